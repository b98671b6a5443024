//! The index follows: updates, growth, deletion, forks, imports.

use banyan::{Banyan, Options};
use serde_json::{Value, json};

use super::{found, found_by, sorted};
use crate::support::*;

const NOTHING: [Value; 0] = [];

#[test]
fn an_updated_message_is_found_by_what_it_says_now() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let store = door(&store);
    let session = store.session();
    let entry = store.append(&session, json!({"message": assistant("first")}));
    assert_eq!(found(store, "first"), sorted([entry.clone()]));
    let message = assistant("second");
    store.ok("update-message", json!({"session_id": session, "entry_id": entry, "content": message["content"]}));
    assert_eq!(found(store, "first"), NOTHING);
    assert_eq!(found(store, "second"), [entry]);
}

#[test]
fn a_growing_message_is_found_before_it_settles() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let store = door(&store);
    let session = store.session();
    store.ok("set-status", json!({"session_id": session, "status": "working"}));
    let entry = store.append(&session, json!({"message": assistant("begin")}));
    for n in 0..50 {
        let text = format!(" token{n}");
        store.ok("extend-message", json!({"session_id": session, "entry_id": entry, "text": text}));
        if n % 10 == 0 {
            assert_eq!(found(store, &format!("\"begin token0\" token{n}")), sorted([entry.clone()]));
        }
    }
    assert_eq!(found(store, "begin token49"), sorted([entry.clone()]));
    store.ok("set-status", json!({"session_id": session, "status": "idle"}));
    store.say(&session, "something else");
    assert_eq!(found(store, "token49"), [entry]);
}

#[test]
fn messages_that_grow_by_turns_are_found_by_all_that_they_say() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let store = door(&store);
    let session = store.session();
    let [one, two] = ["one", "two"].map(|text| store.append(&session, json!({"message": assistant(text)})));
    assert_eq!(found(store, "one"), sorted([one.clone()]));
    for text in [" early", " later"] {
        for entry in [&one, &two] {
            store.ok("extend-message", json!({"session_id": session, "entry_id": entry, "text": text}));
        }
    }
    for text in ["early", "later"] {
        assert_eq!(found(store, text), sorted([one.clone(), two.clone()]), "{text}");
    }
}

#[test]
fn a_deleted_session_is_not_found_and_neither_is_its_successor_by_the_old_words() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let store = door(&store);
    store.ok("ensure", json!({"session_id": "s"}));
    store.say(&json!("s"), "old");
    assert_eq!(found(store, "old").len(), 1);
    store.ok("delete", json!({"session_id": "s"}));
    assert_eq!(found(store, "old"), NOTHING);
    store.ok("ensure", json!({"session_id": "s"}));
    let new = store.say(&json!("s"), "new");
    assert_eq!(found(store, "old"), NOTHING);
    assert_eq!(found(store, "new"), [new]);
    // All of it between two looks of the index.
    store.ok("delete", json!({"session_id": "s"}));
    store.ok("ensure", json!({"session_id": "s"}));
    let newest = store.say(&json!("s"), "newest");
    assert_eq!(found(store, "new"), NOTHING);
    assert_eq!(found(store, "newest"), [newest]);
}

#[test]
fn a_fork_is_found_as_the_copy_that_it_is() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let store = door(&store);
    let source = store.session();
    let one = store.say(&source, "shared word");
    let two = store.say(&source, "not shared word");
    let fork = store.ok("fork", json!({"session_id": source, "entry_id": one}))["session_id"].clone();
    let inherited = ids(&store.ok("messages", json!({"session_id": fork}))["messages"]);
    let own = store.say(&fork, "own word");
    let in_fork = || found_by(store, json!({"query": "word", "session_id": fork}));
    assert_eq!(in_fork(), sorted([inherited[0].clone(), own.clone()]));
    assert_eq!(found_by(store, json!({"query": "word", "session_id": source})), sorted([one, two]));
    store.ok("delete", json!({"session_id": source}));
    assert_eq!(found(store, "word"), sorted([inherited[0].clone(), own]));
}

#[test]
fn entries_that_others_put_are_found_though_no_event_tells_of_them() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let call = |function: &str, request: Value| {
        let id = format!("session::store::{function}");
        banyan::block_on(store.store_call(&id, request.to_string().as_bytes())).unwrap();
    };
    let entry = |id: &str, parent: Value, text: &str| {
        json!({"session_id": "put", "entry": {"kind": "message", "id": id, "parent_id": parent, "timestamp": 5,
            "revision": 0, "message": user(text)}})
    };
    call("put-entry", entry("e1", Value::Null, "put first"));
    let meta = json!({"session_id": "put", "title": "", "description": "", "status": "idle", "created_at": 1, "updated_at": 1,
        "message_count": 2});
    call("put-meta", json!({"session_id": "put", "meta": meta}));
    call("put-entry", entry("e2", json!("e1"), "put second"));
    call("set-active-leaf", json!({"session_id": "put", "entry_id": "e2"}));
    assert_eq!(found(door(&store), "put"), [json!("e1"), json!("e2")]);
    call("put-entry", entry("e2", json!("e1"), "changed"));
    assert_eq!(found(door(&store), "put"), [json!("e1")]);
    assert_eq!(found(door(&store), "changed"), [json!("e2")]);
}

#[test]
fn an_entry_that_is_put_before_what_it_follows_is_found_with_it_once_that_is_there() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let call = |function: &str, request: Value| {
        let id = format!("session::store::{function}");
        banyan::block_on(store.store_call(&id, request.to_string().as_bytes())).unwrap();
    };
    let put = |id: &str, parent: Value| {
        let entry = json!({"kind": "message", "id": id, "parent_id": parent, "timestamp": 5, "revision": 0,
            "message": user(&format!("put {id}"))});
        call("put-entry", json!({"session_id": "put", "entry": entry}));
    };
    let meta = json!({"session_id": "put", "title": "", "description": "", "status": "idle", "created_at": 1, "updated_at": 1,
        "message_count": 0});
    call("put-meta", json!({"session_id": "put", "meta": meta}));
    put("e3", json!("e2"));
    put("e4", json!("e3"));
    call("set-active-leaf", json!({"session_id": "put", "entry_id": "e4"}));
    assert_eq!(found(door(&store), "put"), [json!("e3"), json!("e4")]);
    put("e1", Value::Null);
    put("e2", json!("e1"));
    let all = ["e1", "e2", "e3", "e4"].map(|id| json!(id));
    assert_eq!(found(door(&store), "put"), all);
    // What a fork has is found by where it stands now.
    let fork = door(&store).ok("fork", json!({"session_id": "put", "entry_id": "e3"}))["session_id"].clone();
    let copies = ids(&door(&store).ok("messages", json!({"session_id": fork}))["messages"]);
    let copies: [Value; 3] = copies.try_into().unwrap();
    assert_eq!(found_by(door(&store), json!({"query": "put", "session_id": fork})), sorted(copies));
    assert_eq!(found(door(&store), "put"), all);
}

#[test]
fn very_long_messages_are_found_by_their_beginning_and_their_end() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let store = door(&store);
    let session = store.session();
    let long = format!("overture {} middle {} finale", "x ".repeat(100_000), "y ".repeat(100_000));
    let entry = store.append(&session, json!({"message": result("c", &long)}));
    assert_eq!(found(store, "overture finale"), [entry]);
    assert_eq!(found(store, "middle"), NOTHING);
}
