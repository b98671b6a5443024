//! The configuration can change while the worker runs.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::support::{Bus, Client, InProcess, bridged_to, eventually, in_directory, reply, text_of};

async fn set(client: &Client, value: Value) {
    client.call("configuration::set", json!({"id": "session-manager", "value": value})).await;
}

async fn status(client: &Client) -> Value {
    client.call("session::config-status", json!({})).await
}

async fn listed(client: &Client) -> HashSet<String> {
    let page = client.call("session::list", json!({})).await;
    let ids = page["sessions"].as_array().unwrap().iter().map(|it| it["session_id"].as_str().unwrap().to_owned());
    ids.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_boot_stores_the_seed_and_later_ones_keep_what_is_stored() {
    let bus = Bus::start().await;
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let worker = InProcess::join(&bus.url, in_directory(first.path())).await;
    let client = Client::when_ready(&bus.url).await;
    let session = client.session(json!({})).await;
    let stored = client.call("configuration::get", json!({"id": "session-manager"})).await;
    assert_eq!(stored["value"]["adapter"]["config"]["data_dir"], json!(first.path()));
    worker.leave().await;
    let worker = InProcess::join(&bus.url, in_directory(second.path())).await;
    let client = Client::when_ready(&bus.url).await;
    assert_eq!(listed(&client).await, HashSet::from([session]));
    assert_eq!(
        status(&client).await,
        json!({"last_outcome": "applied", "last_error": null, "rejected_reloads": 0})
    );
    worker.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_change_at_once() {
    let bus = Bus::start().await;
    let dir = tempfile::tempdir().unwrap();
    let worker = InProcess::join(&bus.url, in_directory(dir.path())).await;
    let client = Client::when_ready(&bus.url).await;
    for _ in 0..5 {
        client.session(json!({})).await;
    }
    let mut created = client.hear("session::created", json!({}));
    let mut value = in_directory(dir.path());
    value["default_list_limit"] = json!(2);
    value["max_list_limit"] = json!(3);
    set(&client, value).await;
    eventually("a page has two", async || (listed(&client).await.len() == 2).then_some(())).await;
    let page = client.call("session::list", json!({"limit": 100})).await;
    assert_eq!(page["sessions"].as_array().unwrap().len(), 3);
    assert_eq!(created.rest(), Vec::<Value>::new(), "a change of limits tells nobody anything");
    worker.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_directory_takes_over_and_subscribers_are_told_what_it_holds() {
    let bus = Bus::start().await;
    let (before, after) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let worker = InProcess::join(&bus.url, in_directory(after.path())).await;
    let client = Client::when_ready(&bus.url).await;
    let kept = client.session(json!({"title": "there"})).await;
    let first = client.say(&kept, "one").await;
    let entry = client.call("session::append", reply(&kept)).await["entry_id"].as_str().unwrap().to_owned();
    let extend = json!({"session_id": kept, "entry_id": entry, "text": "answer"});
    client.call("session::extend-message", extend).await;
    let branch = json!({"session_id": kept, "parent_id": first, "message":
        {"role": "user", "content": [{"type": "text", "text": "branch"}], "timestamp": 1}});
    client.call("session::append", branch).await;

    set(&client, in_directory(before.path())).await;
    eventually("the other store is empty", async || listed(&client).await.is_empty().then_some(())).await;
    let lost = client.session(json!({"metadata": {"owner": "u_1"}})).await;
    let mut deleted = client.hear("session::deleted", json!({"metadata": {"owner": "u_1"}}));
    let mut created = client.hear("session::created", json!({}));
    let mut added = client.hear("session::message-added", json!({"session_id": kept}));
    let mut updated = client.hear("session::message-updated", json!({"session_id": kept}));
    client.call("session::get", json!({"session_id": lost})).await;

    set(&client, in_directory(after.path())).await;
    assert_eq!(deleted.next().await["session_id"], json!(lost));
    assert_eq!(created.next().await["title"], "there");
    let told = [added.next().await, added.next().await, added.next().await];
    let mut known = HashSet::from([Value::Null]);
    for event in &told {
        assert!(known.contains(&event["parent_id"]), "a parent comes first: {event}");
        known.insert(event["entry_id"].clone());
    }
    let texts: HashSet<String> = told.iter().map(|event| text_of(&event["message"])).collect();
    assert_eq!(texts, HashSet::from(["one", "answer", "branch"].map(str::to_owned)));
    let event = updated.next().await;
    assert_eq!((&event["revision"], event["entry_id"].as_str()), (&json!(1), Some(&*entry)));
    assert_eq!(listed(&client).await, HashSet::from([kept.clone()]));
    // What happens from now on is heard as before.
    client.say(&kept, "live").await;
    assert_eq!(text_of(&added.next().await["message"]), "live");
    assert_eq!(status(&client).await["last_outcome"], "applied");
    worker.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_makes_no_sense_is_refused_by_whoever_sees_it_first() {
    let bus = Bus::start().await;
    let dir = tempfile::tempdir().unwrap();
    let worker = InProcess::join(&bus.url, in_directory(dir.path())).await;
    let client = Client::when_ready(&bus.url).await;
    let session = client.session(json!({})).await;
    let value = json!({"adapter": {"name": "s3", "config": {}}, "max_list_limit": "many"});
    let taken = client.try_call("configuration::set", json!({"id": "session-manager", "value": value})).await;
    // An engine looks at the schema. A bus that does not leaves it to the worker.
    if let Err(refused) = taken {
        assert!(refused.contains("SCHEMA_INVALID"), "{refused}");
    } else {
        let told = eventually("it is refused", async || {
            let told = status(&client).await;
            (told["last_outcome"] == "rejected").then_some(told)
        })
        .await;
        assert!(told["last_error"].as_str().is_some_and(|why| why.contains("not valid")), "{told}");
    }
    assert_eq!(listed(&client).await, HashSet::from([session]));
    worker.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_built_keeps_the_last_good_store_and_is_told() {
    let bus = Bus::start().await;
    let dir = tempfile::tempdir().unwrap();
    let worker = InProcess::join(&bus.url, in_directory(dir.path())).await;
    let client = Client::when_ready(&bus.url).await;
    let session = client.session(json!({})).await;
    let file = dir.path().join("no-directory");
    std::fs::write(&file, "x").unwrap();
    let itself = bus.url.replace("127.0.0.1", "localhost") + "/";
    let bad =
        [in_directory(&file.join("below")), json!({"adapter": {"name": "bridge", "config": {"url": itself}}})];
    for (refused, value) in (1..).zip(bad) {
        set(&client, value).await;
        let told = eventually("it is refused", async || {
            let told = status(&client).await;
            (told["rejected_reloads"] == json!(refused)).then_some(told)
        })
        .await;
        assert_eq!(told["last_outcome"], "rejected");
        assert!(told["last_error"].is_string(), "{told}");
        assert_eq!(listed(&client).await, HashSet::from([session.clone()]));
    }
    set(&client, in_directory(dir.path())).await;
    let told = eventually("a good one is applied", async || {
        let told = status(&client).await;
        (told["last_outcome"] == "applied").then_some(told)
    })
    .await;
    assert_eq!((&told["last_error"], &told["rejected_reloads"]), (&Value::Null, &json!(2)));
    client.say(&session, "still here").await;
    worker.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_forgot_the_configuration_is_told_what_is_in_use() {
    let mut bus = Bus::start().await;
    let dir = tempfile::tempdir().unwrap();
    let worker = InProcess::join(&bus.url, in_directory(dir.path())).await;
    let client = Client::when_ready(&bus.url).await;
    let session = client.session(json!({})).await;
    bus.fall().await;
    bus.forget();
    bus.go_on().await;
    let stored = eventually("there is a configuration again", async || {
        let stored = client.try_call("configuration::get", json!({"id": "session-manager"})).await.ok()?;
        (!stored["value"].is_null()).then_some(stored)
    })
    .await;
    assert_eq!(stored["value"]["adapter"]["config"]["data_dir"], json!(dir.path()));
    assert_eq!(listed(&client).await, HashSet::from([session.clone()]));
    // Not every engine lets a value be deleted while it runs.
    match client.try_call("configuration::delete", json!({"id": "session-manager"})).await {
        Ok(_) => {
            client.call("session::on-config-change", json!({"id": "session-manager"})).await;
            assert_eq!(status(&client).await["last_outcome"], "rejected");
        }
        Err(refused) => assert!(refused.starts_with("function_not_found"), "{refused}"),
    }
    assert_eq!(listed(&client).await, HashSet::from([session]));
    worker.leave().await;
}

/// Takes the settings away: a file that cannot be read, where files are watched.
async fn take_away(bus: &Bus, client: &Client) {
    match bus.watched("session-manager") {
        Some(file) => std::fs::write(file, "value: [unclosed").unwrap(),
        None => drop(client.call("configuration::delete", json!({"id": "session-manager"})).await),
    }
}

/// Puts settings there as a person would, who does not say what can be configured.
async fn put_there(bus: &Bus, client: &Client, value: Value) {
    let mut entry = json!({"id": "session-manager", "name": "by hand", "description": "by hand"});
    if let Some(file) = bus.watched("session-manager") {
        entry["value"] = value;
        // JSON is YAML.
        return std::fs::write(file, entry.to_string()).unwrap();
    }
    entry["schema"] = Value::Null;
    entry["initial_value"] = value;
    client.call("configuration::register", entry).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_cannot_be_read_are_told_and_applied_when_they_are_corrected() {
    let bus = Bus::start().await;
    let dir = tempfile::tempdir().unwrap();
    let worker = InProcess::join(&bus.url, in_directory(dir.path())).await;
    let client = Client::when_ready(&bus.url).await;
    for _ in 0..3 {
        client.session(json!({})).await;
    }
    for (round, limit) in [(1, 2), (2, 1)] {
        take_away(&bus, &client).await;
        let told = eventually("it is told that they are gone", async || {
            let told = status(&client).await;
            (told["last_outcome"] == "rejected").then_some(told)
        })
        .await;
        assert!(told["rejected_reloads"].as_u64() >= Some(round), "{told}");
        assert!(told["last_error"].as_str().is_some_and(|why| why.contains("cannot be read")), "{told}");
        client.session(json!({})).await;

        let mut value = in_directory(dir.path());
        value["default_list_limit"] = json!(limit);
        put_there(&bus, &client, value.clone()).await;
        eventually("they are applied", async || (listed(&client).await.len() == limit).then_some(())).await;
        eventually("the engine knows again what can be configured", async || {
            let known = client.call("configuration::schema", json!({"id": "session-manager"})).await;
            known["schema"]["properties"]["adapter"].is_object().then_some(())
        })
        .await;
        let stored = client.call("configuration::get", json!({"id": "session-manager", "raw": true})).await;
        assert_eq!(stored["value"], value, "what was written stays as it is");
        let applied = async || (status(&client).await["last_outcome"] == "applied").then_some(());
        eventually("it is told that they are applied", applied).await;
    }
    set(&client, in_directory(dir.path())).await;
    eventually("they can be set again", async || (listed(&client).await.len() == 5).then_some(())).await;
    worker.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn subscribers_hear_of_a_new_store_though_the_old_one_cannot_be_asked() {
    let (bus, nobody) = (Bus::start().await, Bus::start().await);
    let dir = tempfile::tempdir().unwrap();
    let store = banyan::Banyan::open(dir.path(), banyan::Options::default()).unwrap();
    store.call("session::ensure", br#"{"session_id":"there"}"#).await.unwrap();
    store.close().unwrap();
    let worker = InProcess::join(&bus.url, bridged_to(&nobody.url)).await;
    let client = Client::on(&bus.url).await;
    let mut created = client.hear("session::created", json!({}));
    client.call("session::config-status", json!({})).await;
    set(&client, in_directory(dir.path())).await;
    assert_eq!(created.next().await["session_id"], "there");
    worker.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_begins_while_the_new_store_is_asked_is_told_to_be_gone_with_the_old_one() {
    let (bus, elsewhere) = (Bus::start().await, Bus::start().await);
    let dir = tempfile::tempdir().unwrap();
    let worker = InProcess::join(&bus.url, in_directory(dir.path())).await;
    let client = Client::when_ready(&bus.url).await;
    // A main that answers when it is told to.
    let main = Client::on(&elsewhere.url).await;
    let (asked, mut is_asked) = tokio::sync::mpsc::unbounded_channel();
    let answers = std::sync::Arc::new(tokio::sync::Notify::new());
    let may_answer = std::sync::Arc::clone(&answers);
    main.offer("session::store::look", |_| async { Ok(json!({})) });
    main.offer("session::list", move |_| {
        let _ = asked.send(());
        let may_answer = std::sync::Arc::clone(&may_answer);
        async move {
            may_answer.notified().await;
            Ok(json!({"sessions": [], "next_cursor": null}))
        }
    });
    eventually("the main is there", async || main.try_call("session::store::look", json!({})).await.ok()).await;
    let mut deleted = client.hear("session::deleted", json!({}));
    client.call("session::config-status", json!({})).await;
    set(&client, bridged_to(&elsewhere.url)).await;
    is_asked.recv().await.unwrap();
    let during = client.session(json!({})).await;
    answers.notify_one();
    assert_eq!(deleted.next().await["session_id"], json!(during));
    worker.leave().await;
}
