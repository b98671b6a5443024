//! Engines fall, workers are killed, and nothing that was acknowledged is lost.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::support::{Bus, Client, InProcess, Process, eventually, in_directory, said, text_of};

/// Appends numbers until told to stop, and keeps those that were acknowledged. What is refused is tried again with the same id.
async fn write(client: &Client, session: &str, numbers: std::ops::Range<u32>) -> Vec<String> {
    let mut acknowledged = Vec::new();
    for number in numbers {
        let mut request = said(session, &number.to_string());
        request["entry_id"] = json!(format!("e_{number}"));
        eventually("the append is taken", async || client.try_call("session::append", request.clone()).await.ok())
            .await;
        acknowledged.push(number.to_string());
    }
    acknowledged
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_falls_in_the_middle_of_a_stream_loses_nothing() {
    let mut bus = Bus::start().await;
    let dir = tempfile::tempdir().unwrap();
    let worker = InProcess::join(&bus.url, in_directory(dir.path())).await;
    let client = Client::when_ready(&bus.url).await;
    let session = client.session(json!({})).await;
    let mut ears = client.hear("session::message-added", json!({"session_id": session}));
    // Its answer comes after the binding.
    client.call("session::get", json!({"session_id": session})).await;
    let writer = Client::when_ready(&bus.url).await;
    let mut heard: Vec<Value> = Vec::new();
    let falling = async {
        for after in ["20", "60", "90"] {
            heard.extend(ears.until(|event| text_of(&event["message"]) == after).await);
            bus.fall().await;
            bus.go_on().await;
        }
    };
    let (acknowledged, ()) = tokio::join!(write(&writer, &session, 0..120), falling);
    assert_eq!(writer.texts(&session).await, acknowledged);
    heard.extend(ears.until(|event| text_of(&event["message"]) == "119").await);
    let texts: HashSet<String> = heard.iter().map(|event| text_of(&event["message"])).collect();
    assert_eq!(texts, acknowledged.into_iter().collect(), "each is heard at least once");
    worker.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_while_the_engine_is_away_is_delivered_afterwards() {
    let mut bus = Bus::start().await;
    let dir = tempfile::tempdir().unwrap();
    let store = banyan::Banyan::open(dir.path(), banyan::Options::default()).unwrap();
    let (_stop, stopped) = tokio::sync::watch::channel(false);
    let options = banyan_iii::worker::WorkerOptions {
        engine: banyan_iii::link::Engine::Url(bus.url.clone()),
        storage: banyan_iii::worker::Storage::Shared { store: store.clone(), dir: dir.path().to_owned() },
        seed: None,
    };
    let worker = banyan_iii::worker::Worker::start(options, stopped).await.unwrap();
    let client = Client::when_ready(&bus.url).await;
    let session = client.session(json!({})).await;
    let mut ears = client.hear("session::message-added", json!({"session_id": session}));
    client.say(&session, "before").await;
    ears.next().await;
    bus.fall().await;
    // Others of the same process go on, over HTTP for example.
    for number in 0..50 {
        store.append(serde_json::from_value(said(&session, &number.to_string())).unwrap()).await.unwrap();
    }
    bus.go_on().await;
    let heard = ears.until(|event| text_of(&event["message"]) == "49").await;
    let texts: Vec<String> = heard.iter().map(|event| text_of(&event["message"])).collect();
    let all: Vec<String> = (0..50).map(|number| number.to_string()).collect();
    // At least once: what was sent just before may come again.
    let new: Vec<String> = texts.into_iter().filter(|text| text != "before").collect();
    assert_eq!(new, all);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_killed_loses_no_acknowledged_write_and_no_event() {
    let bus = Bus::start().await;
    let dir = tempfile::tempdir().unwrap();
    let Some(process) = Process::start(&bus.url, dir.path()) else { return };
    let client = Client::when_ready(&bus.url).await;
    let session = client.session(json!({})).await;
    let mut ears = client.hear("session::message-added", json!({"session_id": session}));
    let mut acknowledged = write(&client, &session, 0..30).await;
    let mut process = Some(process);
    let mut heard: Vec<Value> = Vec::new();
    for round in 1..4 {
        process.take().unwrap().kill();
        process = Process::start(&bus.url, dir.path());
        acknowledged.extend(write(&client, &session, round * 30..(round + 1) * 30).await);
        let last = (round * 30 + 29).to_string();
        heard.extend(ears.until(|event| text_of(&event["message"]) == last).await);
    }
    assert_eq!(client.texts(&session).await, acknowledged);
    let texts: HashSet<String> = heard.iter().map(|event| text_of(&event["message"])).collect();
    assert_eq!(texts, acknowledged.into_iter().collect());
}
