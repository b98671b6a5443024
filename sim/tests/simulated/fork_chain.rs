//! A fork of a fork whose sources are both gone, when everything derived is made anew.

use banyan::block_on;
use banyan_log::disk::MemDisk;
use banyan_sim::driver::open;
use banyan_sim::observe::observe;
use serde_json::{Value, json};

#[test]
fn a_fork_of_a_fork_stays_whole_when_both_sources_are_deleted_and_the_store_is_opened_again() {
    let disk = MemDisk::crashable(1);
    let store = open(&disk).unwrap();
    let call = |function: &str, request: Value| -> Value {
        let answer = block_on(store.call(function, request.to_string().as_bytes())).unwrap();
        serde_json::from_str(&answer).unwrap()
    };
    let message = json!({"role": "user", "content": [{"type": "text", "text": "hello"}], "timestamp": 1});
    let add =
        |id: &Value| call("session::append", json!({"session_id": id, "message": message}))["entry_id"].clone();
    let fork = |id: &Value, entry: &Value| {
        call("session::fork", json!({"session_id": id, "entry_id": entry}))["session_id"].clone()
    };
    let first = call("session::create", json!({}))["session_id"].clone();
    let second = fork(&first, &add(&first));
    let third = fork(&second, &add(&second));
    add(&third);
    for id in [&first, &second] {
        call("session::delete", json!({"session_id": id}));
    }
    let before = observe(&store);
    store.close().unwrap();
    for _ in 0..2 {
        let store = open(&disk).unwrap();
        assert_eq!(observe(&store), before);
        store.close().unwrap();
    }
}
