//! What session-manager delivers over the bus, to consumers that speak the protocol by hand.

use std::collections::BTreeSet;

use banyan::{Banyan, Options};
use banyan_iii::hub::Hub;
use banyan_iii::worker::{Storage, Worker as SessionManager, WorkerOptions};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::support::{Worker, engine, hub};

const ADDED: &str = "session::message-added";
const HEARD: &str = "consumer::heard";

/// Session-manager on a bus, and the store that it shares with this process.
struct Sessions {
    store: Banyan,
    worker: SessionManager,
    _stop: watch::Sender<bool>,
    _dir: tempfile::TempDir,
}

impl Sessions {
    async fn on(hub: &Hub) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Banyan::in_memory(Options::default()).unwrap();
        let (stop, stopped) = watch::channel(false);
        let storage = Storage::Shared { store: store.clone(), dir: dir.path().to_owned() };
        let options = WorkerOptions { engine: engine(hub), storage, seed: None };
        let worker = SessionManager::start(options, stopped).await.unwrap();
        Self { store, worker, _stop: stop, _dir: dir }
    }

    /// Puts a message into a session of its own.
    async fn say(&self, entry: &str, text: &str) {
        let session = format!("of-{entry}");
        self.call("session::ensure", json!({"session_id": session})).await;
        self.call("session::append", json!({"session_id": session, "entry_id": entry, "message": message(text)}))
            .await;
    }

    async fn call(&self, function: &str, request: Value) {
        self.store.call(function, request.to_string().as_bytes()).await.unwrap();
    }
}

fn message(text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1})
}

/// A consumer of what is added, bound under an id.
async fn consumer(hub: &Hub, binding: &str) -> Worker {
    let mut consumer = Worker::named(hub, "consumer").await;
    consumer.offer(HEARD).await;
    consumer.bind(binding, ADDED, HEARD, json!({})).await;
    let bound = consumer.hear().await;
    assert_eq!((&bound["type"], &bound["error"]), (&json!("triggerregistrationresult"), &Value::Null));
    consumer
}

/// The connections of workers that have a name.
async fn workers(hub: &Hub) -> BTreeSet<String> {
    let mut asks = Worker::nameless(hub).await;
    let listed = asks.call("engine::workers::list", json!({})).await.unwrap();
    let named = listed["workers"].as_array().unwrap().iter().filter(|worker| worker["name"].is_string());
    named.map(|worker| worker["id"].as_str().unwrap().to_owned()).collect()
}

/// The consumer on another connection: the old one ends and the new one binds before anybody else has a turn.
async fn come_back(hub: &Hub, before: &Worker) -> Worker {
    let mut after = Worker::nameless(hub).await;
    after.say(json!({"type": "reattach", "previous_worker_id": before.id, "reattach_token": before.token})).await;
    after
        .say(json!({"type": "invokefunction", "function_id": "engine::workers::register",
            "data": {"name": "consumer", "runtime": "test", "version": "1"}, "action": {"type": "void"}}))
        .await;
    after.say(json!({"type": "registerfunction", "id": HEARD})).await;
    after.bind("binding", ADDED, HEARD, json!({})).await;
    after
}

/// The next call of the consumer's function.
async fn heard(consumer: &mut Worker) -> Value {
    loop {
        let frame = consumer.hear().await;
        if frame["type"] == "invokefunction" {
            return frame;
        }
    }
}

#[tokio::test]
async fn a_consumer_that_comes_back_at_once_is_sent_again_what_it_did_not_answer() {
    let hub = hub();
    let sessions = Sessions::on(&hub).await;
    let mut before = consumer(&hub, "binding").await;
    let entries = ["e1", "e2", "e3", "e4"];
    for entry in entries {
        sessions.say(entry, "hi").await;
    }
    for _ in entries {
        heard(&mut before).await;
    }
    let mut after = come_back(&hub, &before).await;
    let mut again = BTreeSet::new();
    for _ in entries {
        let call = heard(&mut after).await;
        again.insert(call["data"]["entry_id"].as_str().unwrap().to_owned());
        after.answer(&call, json!({})).await;
    }
    assert_eq!(again, entries.map(str::to_owned).into());
    sessions.worker.stop().await;
}

#[tokio::test]
async fn a_binding_that_is_refused_ends_the_one_that_had_its_id() {
    let hub = hub();
    let sessions = Sessions::on(&hub).await;
    let mut consumer = consumer(&hub, "binding").await;
    consumer.bind("binding", ADDED, HEARD, json!({"bogus": 1})).await;
    assert_eq!(consumer.hear().await["error"]["code"], "trigger_registration_failed");
    sessions.say("nobody's", "hi").await;
    consumer.bind("binding", ADDED, HEARD, json!({})).await;
    let bound = consumer.hear().await;
    assert_eq!((&bound["type"], &bound["error"]), (&json!("triggerregistrationresult"), &Value::Null));
    sessions.say("mine", "hi").await;
    assert_eq!(heard(&mut consumer).await["data"]["entry_id"], "mine");
    sessions.worker.stop().await;
}

#[tokio::test]
async fn an_answer_that_no_frame_can_carry_is_refused_and_everyone_else_is_answered() {
    let hub = hub();
    let sessions = Sessions::on(&hub).await;
    sessions.call("session::ensure", json!({"session_id": "s"})).await;
    for _ in 0..2 {
        let large = json!({"session_id": "s", "message": message(&"x".repeat(9 << 20))});
        sessions.call("session::append", large).await;
    }
    let mut caller = Worker::named(&hub, "caller").await;
    let refused = caller.call("session::messages", json!({"session_id": "s"})).await.unwrap_err();
    assert_eq!(refused["code"], "session/too_large");
    let said = refused["message"].as_str().unwrap();
    assert!(said.starts_with("session/too_large: ") && said.contains("ask for a smaller page"), "{said}");
    let page = caller.call("session::messages", json!({"session_id": "s", "limit": 1})).await.unwrap();
    assert_eq!(page["messages"].as_array().unwrap().len(), 1);
    sessions.worker.stop().await;
}

#[tokio::test]
async fn an_event_that_no_frame_can_carry_is_passed_over() {
    let hub = hub();
    let sessions = Sessions::on(&hub).await;
    let mut consumer = consumer(&hub, "binding").await;
    let before = workers(&hub).await;
    sessions.say("large", &"x".repeat(17 << 20)).await;
    sessions.say("after", "hi").await;
    let follows = json!({"session_id": "of-large", "entry_id": "follows", "message": message("hi")});
    sessions.call("session::append", follows).await;
    let mut told = BTreeSet::new();
    for _ in 0..2 {
        let call = heard(&mut consumer).await;
        told.insert(call["data"]["entry_id"].as_str().unwrap().to_owned());
        consumer.answer(&call, json!({})).await;
    }
    assert_eq!(told, ["after", "follows"].map(str::to_owned).into());
    assert_eq!(workers(&hub).await, before, "the connection was not lost");
    sessions.worker.stop().await;
}

#[tokio::test]
async fn an_error_of_the_consumers_own_is_an_answer_and_one_of_the_bus_is_not() {
    let hub = hub();
    let sessions = Sessions::on(&hub).await;
    let mut before = consumer(&hub, "binding").await;
    sessions.call("session::ensure", json!({"session_id": "s"})).await;
    for (entry, code) in [("e1", "my_app/denied"), ("e2", "function_not_found"), ("e3", "")] {
        let append = json!({"session_id": "s", "entry_id": entry, "message": message("hi")});
        sessions.call("session::append", append).await;
        // The one before was taken in, or this one would not be sent.
        let call = heard(&mut before).await;
        assert_eq!(call["data"]["entry_id"], entry);
        if !code.is_empty() {
            before
                .say(json!({"type": "invocationresult", "invocation_id": call["invocation_id"],
                    "function_id": HEARD, "error": {"code": code, "message": "no"}}))
                .await;
        }
    }
    let mut after = come_back(&hub, &before).await;
    for entry in ["e2", "e3"] {
        let call = heard(&mut after).await;
        assert_eq!(call["data"]["entry_id"], entry);
        after.answer(&call, json!({})).await;
    }
    sessions.worker.stop().await;
}
