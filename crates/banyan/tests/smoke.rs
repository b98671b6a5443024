//! The life of a session, end to end, on both kinds of store.

use banyan::{Banyan, Delivery, Options, Start, Subscribe, block_on};
use banyan_model::{EventFilter, EventType};
use serde_json::{Value, json};

fn call(store: &Banyan, id: &str, body: Value) -> Value {
    let answer =
        block_on(store.call(id, body.to_string().as_bytes())).unwrap_or_else(|error| panic!("{id}: {error}"));
    serde_json::from_str(&answer).unwrap()
}

fn life(store: &Banyan) -> String {
    let created = call(store, "session::create", json!({"title": "Weather"}));
    let id = created["session_id"].clone();
    let filters = EventType::ALL.map(EventFilter::all).to_vec();
    let mut events = store.subscribe(Subscribe { filters, start: Start::Now }).unwrap();
    let user = json!({"role": "user", "content": [{"type": "text", "text": "hi"}], "timestamp": 1});
    let first = call(store, "session::append", json!({"session_id": id, "message": user}));
    let assistant = json!({"role": "assistant", "content": [{"type": "text", "text": ""}], "timestamp": 2,
        "model": "m", "provider": "p", "stop_reason": "end"});
    let second = call(store, "session::append", json!({"session_id": id, "message": assistant}));
    for token in ["It ", "is ", "sunny"] {
        call(
            store,
            "session::extend-message",
            json!({"session_id": id, "entry_id": second["entry_id"], "text": token}),
        );
    }
    let page = call(store, "session::messages", json!({"session_id": id}));
    assert_eq!(page["messages"][1]["message"]["content"][0]["text"], "It is sunny");
    let fork = call(store, "session::fork", json!({"session_id": id, "entry_id": second["entry_id"]}));
    let page = call(store, "session::messages", json!({"session_id": fork["session_id"]}));
    assert_eq!(page["messages"].as_array().unwrap().len(), 2);
    assert_eq!(page["messages"][1]["message"]["content"][0]["text"], "It is sunny");
    assert_ne!(page["messages"][0]["entry_id"], first["entry_id"]);
    call(store, "session::delete", json!({"session_id": id}));
    let again = call(store, "session::messages", json!({"session_id": fork["session_id"]}));
    assert_eq!(page, again);
    let mut seen = Vec::new();
    while let Some(Delivery::Event(event)) = events.try_next().unwrap() {
        seen.push(event.event_type().as_str());
    }
    assert_eq!(
        seen,
        [
            "session::message-added",
            "session::message-added",
            "session::message-updated",
            "session::message-updated",
            "session::message-updated",
            "session::created",
            "session::deleted"
        ]
    );
    let listed = call(store, "session::list", json!({}));
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
    fork["session_id"].as_str().unwrap().to_owned()
}

#[test]
fn a_session_lives_in_memory() {
    life(&Banyan::in_memory(Options::default()).unwrap());
}

#[test]
fn a_session_lives_on_disk_and_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let store = Banyan::open(dir.path(), Options::default()).unwrap();
    let fork = life(&store);
    let before = call(&store, "session::messages", json!({"session_id": fork}));
    store.close().unwrap();
    drop(store);
    let store = Banyan::open(dir.path(), Options::default()).unwrap();
    assert_eq!(call(&store, "session::messages", json!({"session_id": fork})), before);
}
