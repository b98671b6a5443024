//! What a main serves to instances that store through it.

use banyan::{Banyan, CallError, block_on};
use serde_json::{Value, json};

mod store_protocol {
    mod commits;
    mod publishing;
    mod raw;
}

/// Calls a function of the store protocol, named without `session::store::`.
fn store(main: &Banyan, function: &str, request: Value) -> Result<Value, String> {
    let id = format!("session::store::{function}");
    match block_on(main.store_call(&id, request.to_string().as_bytes())) {
        Ok(answer) => Ok(serde_json::from_str(&answer).unwrap()),
        Err(CallError::Refused(error)) => Err(error.to_string()),
        Err(unknown) => panic!("{unknown}"),
    }
}

/// Calls one that must not refuse.
fn ok(main: &Banyan, function: &str, request: Value) -> Value {
    store(main, function, request.clone()).unwrap_or_else(|error| panic!("{function} {request}: {error}"))
}

/// A meta as a session-manager writes it.
fn meta(session: &str, title: &str, count: u64) -> Value {
    json!({"session_id": session, "title": title, "description": "", "status": "idle", "message_count": count,
        "created_at": 1_700_000_000_000_i64, "updated_at": 1_700_000_000_001_i64})
}

/// An entry as a session-manager writes it.
fn entry(id: &str, parent: Option<&str>, said: &str) -> Value {
    json!({"kind": "message", "id": id, "parent_id": parent, "timestamp": 1_700_000_000_002_i64, "revision": 0,
        "message": crate::support::user(said)})
}

fn put_meta(main: &Banyan, meta: &Value) {
    assert_eq!(ok(main, "put-meta", json!({"meta": meta})), json!({"ok": true}));
}

fn put_entry(main: &Banyan, session: &str, entry: &Value) {
    assert_eq!(ok(main, "put-entry", json!({"session_id": session, "entry": entry})), json!({"ok": true}));
}

fn put_leaf(main: &Banyan, session: &str, entry: &str) {
    let request = json!({"session_id": session, "entry_id": entry});
    assert_eq!(ok(main, "set-active-leaf", request), json!({"ok": true}));
}

/// Everything that the store protocol and the contract tell of a session.
fn everything(main: &Banyan, session: &str) -> Value {
    let id = json!({"session_id": session});
    json!({
        "meta": ok(main, "get-meta", id.clone()),
        "entries": ok(main, "list-entries", id.clone()),
        "leaf": ok(main, "get-active-leaf", id.clone()),
        "public": crate::support::door(main).ok("get", id.clone()),
        "path": crate::support::door(main).call("messages", id).unwrap_or_else(|refusal| json!(refusal.code)),
    })
}
