//! Who is bound hears what happens, and nothing else.

use serde_json::{Value, json};

use crate::support::{Bus, Client, Ears, InProcess, eventually, in_directory, reply, said, text_of};

/// A bus with a worker that stores in a directory, and a client.
struct Scene {
    client: Client,
    worker: InProcess,
    bus: Bus,
    dir: tempfile::TempDir,
}

impl Scene {
    async fn new() -> Self {
        let bus = Bus::start().await;
        let dir = tempfile::tempdir().unwrap();
        let worker = InProcess::join(&bus.url, in_directory(dir.path())).await;
        let client = Client::when_ready(&bus.url).await;
        Self { client, worker, bus, dir }
    }
}

fn names(events: &[Value], key: &str) -> Vec<String> {
    events.iter().map(|event| event[key].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_change_is_heard_by_who_is_bound_to_it() {
    let Scene { client, worker, bus: _bus, dir: _dir } = Scene::new().await;
    let mut created = client.hear("session::created", json!({}));
    let mut added = client.hear("session::message-added", json!({}));
    let mut updated = client.hear("session::message-updated", json!({}));
    let mut status = client.hear("session::status-changed", json!({}));
    let mut meta = client.hear("session::meta-updated", Value::Null);
    let mut deleted = client.hear("session::deleted", json!({}));

    let session = client.session(json!({"title": "Weather", "metadata": {"owner": "u_1"}})).await;
    let event = created.next().await;
    assert_eq!((event["session_id"].as_str(), event["title"].as_str()), (Some(&*session), Some("Weather")));
    assert!(event.get("metadata").is_none());

    let first = client.say(&session, "What's the weather?").await;
    let event = added.next().await;
    assert_eq!((event["entry_id"].as_str(), &event["parent_id"]), (Some(&*first), &Value::Null));
    assert_eq!(text_of(&event["message"]), "What's the weather?");

    let content = json!([{"type": "text", "text": "And tomorrow?"}]);
    let update = json!({"session_id": session, "entry_id": first, "content": content, "origin": {"by": "test"}});
    client.call("session::update-message", update).await;
    let event = updated.next().await;
    assert_eq!((event["revision"].as_u64(), text_of(&event["message"])), (Some(1), "And tomorrow?".to_owned()));
    assert_eq!(event["origin"], json!({"by": "test"}));

    client.call("session::set-status", json!({"session_id": session, "status": "working"})).await;
    client.call("session::set-status", json!({"session_id": session, "status": "working"})).await;
    client.call("session::set-status", json!({"session_id": session, "status": "error", "reason": "no"})).await;
    let events = [status.next().await, status.next().await];
    assert_eq!(names(&events, "status"), ["working", "error"]);
    assert_eq!(names(&events, "previous_status"), ["idle", "working"]);

    client.call("session::set-meta", json!({"session_id": session, "title": "Rain"})).await;
    let event = meta.next().await;
    assert_eq!((event["title"].as_str(), &event["metadata"]), (Some("Rain"), &json!({"owner": "u_1"})));

    let fork = client.call("session::fork", json!({"session_id": session, "entry_id": first})).await;
    let event = created.next().await;
    assert_eq!((&event["session_id"], event["forked_from"].as_str()), (&fork["session_id"], Some(&*session)));

    client.call("session::delete", json!({"session_id": session})).await;
    assert_eq!(deleted.next().await["session_id"].as_str(), Some(&*session));
    for ears in [&mut created, &mut added, &mut updated, &mut status, &mut meta, &mut deleted] {
        assert_eq!(ears.rest(), Vec::<Value>::new());
    }
    worker.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_streamed_reply_is_heard_with_rising_revisions() {
    let Scene { client, worker, bus: _bus, dir: _dir } = Scene::new().await;
    let session = client.session(json!({})).await;
    let other = client.session(json!({})).await;
    let mut ears = client.hear("session::message-updated", json!({"session_id": session, "roles": ["assistant"]}));
    for session in [&other, &session] {
        let entry = client.call("session::append", reply(session)).await["entry_id"].clone();
        for token in ["It ", "will ", "rain."] {
            let extend = json!({"session_id": session, "entry_id": entry, "text": token});
            client.call("session::extend-message", extend).await;
        }
    }
    let heard = ears.until(|event| event["revision"] == 3).await;
    let revisions: Vec<u64> = heard.iter().filter_map(|event| event["revision"].as_u64()).collect();
    assert_eq!(revisions, [1, 2, 3]);
    assert_eq!(text_of(&heard[2]["message"]), "It will rain.");
    assert!(heard.iter().all(|event| event["session_id"] == json!(session)));
    worker.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_hear_a_fast_reply_may_miss_tokens_and_never_the_last() {
    const TOKENS: u64 = 60;
    let Scene { client, worker, bus: _bus, dir: _dir } = Scene::new().await;
    let session = client.session(json!({})).await;
    let listen = |_| client.hear("session::message-updated", json!({"session_id": session}));
    let mut everyone: Vec<Ears> = (0..50).map(listen).collect();
    let entry = client.call("session::append", reply(&session)).await["entry_id"].clone();
    for _ in 0..TOKENS {
        let extend = json!({"session_id": session, "entry_id": entry, "text": "on "});
        client.call("session::extend-message", extend).await;
    }
    for ears in &mut everyone {
        let heard = ears.until(|event| event["revision"] == TOKENS).await;
        let revisions: Vec<u64> = heard.iter().filter_map(|event| event["revision"].as_u64()).collect();
        assert!(revisions.is_sorted_by(|one, next| one < next), "{revisions:?}");
        assert_eq!(text_of(&heard[heard.len() - 1]["message"]), "on ".repeat(TOKENS as usize));
    }
    worker.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binding_hears_what_its_config_asks_for() {
    let Scene { client, worker, bus: _bus, dir: _dir } = Scene::new().await;
    let mine = client.session(json!({"metadata": {"owner": "u_1", "deep": {"x": 1}}})).await;
    let theirs = client.session(json!({"metadata": {"owner": "u_2"}})).await;
    let configs = [
        json!({}),
        json!({"metadata": {"owner": "u_1"}}),
        json!({"metadata": {"deep": {"x": 1}}, "session_id": mine}),
        json!({"roles": ["assistant"]}),
        json!({"roles": []}),
        json!({"session_id": theirs, "metadata": {"owner": "u_1"}}),
        json!({"roles": ["user"]}),
    ];
    let mut ears: Vec<Ears> =
        configs.iter().map(|config| client.hear("session::message-added", config.clone())).collect();
    for session in [&mine, &theirs] {
        client.say(session, "hi").await;
        client.call("session::append", reply(session)).await;
        client
            .call("session::append", json!({"session_id": session, "custom": {"custom_type": "t", "data": 1}}))
            .await;
    }
    let expected = [6, 3, 3, 2, 0, 0, 2];
    for ((ears, expected), config) in ears.iter_mut().zip(expected).zip(&configs) {
        for _ in 0..expected {
            ears.next().await;
        }
        assert_eq!(ears.rest(), Vec::<Value>::new(), "{config}");
    }
    worker.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_bindings_hear_it_twice_and_one_that_is_gone_hears_nothing() {
    let Scene { client, worker, bus: _bus, dir: _dir } = Scene::new().await;
    let (sender, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let function = client.function(move |event: Value| {
        let _ = sender.send(event);
        async { Ok(Value::Null) }
    });
    let _one = client.bind("session::created", &function, json!({}));
    let other = client.bind("session::created", &function, json!({}));
    client.session(json!({"title": "first"})).await;
    for _ in 0..2 {
        assert_eq!(heard.recv().await.unwrap()["title"], "first");
    }
    other.unregister();
    // Both go the same way to the worker, so this comes after.
    client.session(json!({"title": "second"})).await;
    client.session(json!({"title": "third"})).await;
    assert_eq!(heard.recv().await.unwrap()["title"], "second");
    assert_eq!(heard.recv().await.unwrap()["title"], "third");
    worker.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_config_that_makes_no_sense_is_refused_and_hears_nothing() {
    let Scene { client, worker, bus: _bus, dir: _dir } = Scene::new().await;
    let bad = [
        ("session::created", json!({"session_id": "s"})),
        ("session::created", json!({"roles": ["user"]})),
        ("session::message-added", json!({"sesion_id": "s"})),
        ("session::message-added", json!({"roles": ["robot"]})),
        ("session::deleted", json!({"roles": ["user"]})),
        ("session::meta-updated", json!({"metadata": "u_1"})),
    ];
    let mut deaf: Vec<Ears> = bad.iter().map(|(kind, config)| client.hear(kind, config.clone())).collect();
    let mut ears = client.hear("session::deleted", json!({}));
    let session = client.session(json!({})).await;
    client.say(&session, "hi").await;
    client.call("session::set-meta", json!({"session_id": session, "title": "t"})).await;
    client.call("session::delete", json!({"session_id": session})).await;
    ears.next().await;
    for ears in &mut deaf {
        assert_eq!(ears.rest(), Vec::<Value>::new());
    }
    worker.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_consumer_stops_hearing_and_holds_up_nobody() {
    let Scene { client, worker, bus, dir: _dir } = Scene::new().await;
    let session = client.session(json!({})).await;
    let stuck = Client::when_ready(&bus.url).await;
    let never = stuck.function(|_| std::future::pending());
    stuck.bind("session::message-added", &never, json!({}));
    stuck.call("session::get", json!({"session_id": session})).await;
    let mut ears = client.hear("session::message-added", json!({"session_id": session}));
    for number in 0..300 {
        client.say(&session, &number.to_string()).await;
        assert_eq!(text_of(&ears.next().await["message"]), number.to_string());
    }
    drop(stuck);
    client.say(&session, "after").await;
    assert_eq!(text_of(&ears.next().await["message"]), "after");
    worker.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_sessions_events_come_in_their_order_however_many_write() {
    let Scene { client, worker, bus, dir: _dir } = Scene::new().await;
    let client = std::sync::Arc::new(client);
    let mut ears = client.hear("session::message-added", json!({}));
    let mut sessions = Vec::new();
    for _ in 0..4 {
        sessions.push(client.session(json!({})).await);
    }
    let writers = sessions.iter().flat_map(|session| [session.clone(), session.clone()]).map(|session| {
        let client = std::sync::Arc::clone(&client);
        tokio::spawn(async move {
            for number in 0..40 {
                client.call("session::append", said(&session, &number.to_string())).await;
            }
        })
    });
    futures_util::future::join_all(writers.collect::<Vec<_>>()).await;
    let mut heard: std::collections::HashMap<String, Vec<String>> = std::collections::HashMap::new();
    for _ in 0..320 {
        let event = ears.next().await;
        let session = event["session_id"].as_str().unwrap().to_owned();
        heard.entry(session).or_default().push(event["entry_id"].as_str().unwrap().to_owned());
    }
    for session in &sessions {
        let page = client.call("session::messages", json!({"session_id": session, "limit": 500})).await;
        let stored: Vec<&str> =
            page["messages"].as_array().unwrap().iter().filter_map(|it| it["entry_id"].as_str()).collect();
        assert_eq!(heard[session], stored);
    }
    eventually("nothing is heard twice", async || ears.rest().is_empty().then_some(())).await;
    worker.leave().await;
    drop(bus);
}
