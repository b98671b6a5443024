//! Sessions that leave one store as files and come into another.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "portable/exports.rs"]
mod exports;
#[path = "portable/imports.rs"]
mod imports;
#[path = "portable/large.rs"]
mod large;
#[path = "portable/more.rs"]
mod more;
#[path = "portable/opa.rs"]
mod opa;
#[path = "portable/turns.rs"]
mod turns;

use std::io::Cursor;

use banyan::export::{ExportRequest, Redaction, Target};
use banyan::import::Mode;
use banyan::model::{Error, ImportResponse};
use banyan::{Banyan, Options, block_on};
use serde_json::{Value, json};

fn store() -> Banyan {
    Banyan::in_memory(Options::default()).unwrap()
}

fn call(store: &Banyan, function: &str, request: Value) -> Value {
    let answer = block_on(store.call(&format!("session::{function}"), request.to_string().as_bytes()));
    serde_json::from_str(&answer.unwrap_or_else(|error| panic!("{function} {request}: {error}"))).unwrap()
}

fn append(store: &Banyan, session: &str, entry_id: &str, parent: Option<&str>, message: Value) {
    call(
        store,
        "append",
        json!({"session_id": session, "entry_id": entry_id, "parent_id": parent, "message": message}),
    );
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1_717_800_000_000_i64})
}

fn assistant(content: Value, stop_reason: &str) -> Value {
    json!({"role": "assistant", "content": content, "model": "m-1", "provider": "p", "stop_reason": stop_reason,
        "timestamp": 1_717_800_001_000_i64, "usage": {"input": 3, "output": 4}})
}

/// A session with a bit of everything: branches, revisions, custom entries, origins, long strings.
fn furnish(store: &Banyan, id: &str) {
    call(
        store,
        "ensure",
        json!({"session_id": id, "title": "First title", "metadata": {"cwd": "/repo", "n": 1.5}}),
    );
    append(store, id, "u1", None, user("root"));
    append(
        store,
        id,
        "a1",
        None,
        assistant(
            json!([{"type": "thinking", "text": "hm"}, {"type": "text", "text": "one"},
        {"type": "function_call", "id": "c1", "function_id": "read", "arguments": {"p": "x"}}]),
            "function_call",
        ),
    );
    let long = "long ".repeat(100_000);
    append(
        store,
        id,
        "r1",
        None,
        json!({"role": "function_result", "function_call_id": "c1", "function_id": "read",
        "content": [{"type": "text", "text": long}], "is_error": false, "timestamp": 1_717_800_002_000_i64}),
    );
    call(
        store,
        "append",
        json!({"session_id": id, "entry_id": "k1", "custom": {"custom_type": "note", "data": {"z": 1, "a": [1.50]}}}),
    );
    call(
        store,
        "append",
        json!({"session_id": id, "entry_id": "u2", "message": user("left"), "origin": {"by": "me"}}),
    );
    append(store, id, "u3", Some("k1"), user("right"));
    append(store, id, "a3", None, assistant(json!([{"type": "text", "text": "grow"}]), "end"));
    call(store, "extend-message", json!({"session_id": id, "entry_id": "a3", "text": "ing"}));
    append(store, id, "b1", Some("u1"), user("side"));
    call(store, "set-active-leaf", json!({"session_id": id, "entry_id": "a3"}));
    call(store, "set-meta", json!({"session_id": id, "title": "Second title"}));
    call(store, "set-status", json!({"session_id": id, "status": "done"}));
}

/// Everything that callers can see of a session.
fn all_of(store: &Banyan, id: &str) -> Value {
    let tree = call(store, "tree", json!({"session_id": id}));
    let entry = |node: &Value| call(store, "get-message", json!({"session_id": id, "entry_id": node["entry_id"]}));
    let entries: Vec<Value> = tree["entries"].as_array().unwrap().iter().map(entry).collect();
    json!({"meta": call(store, "get", json!({"session_id": id})), "tree": tree, "entries": entries})
}

fn export(store: &Banyan, id: &str, target: Target, redaction: Redaction) -> String {
    let mut export =
        store.export(&ExportRequest { session_id: id.into(), target, redaction, plain: false }).unwrap();
    let mut all = Vec::new();
    while let Some(piece) = export.next_piece().unwrap() {
        all.extend(piece);
    }
    String::from_utf8(all).unwrap()
}

fn log_of(store: &Banyan, id: &str) -> String {
    export(store, id, Target::SessionLog, Redaction::Off)
}

fn import(store: &Banyan, file: &str, mode: Mode) -> Result<ImportResponse, Error> {
    block_on(store.import(&mut Cursor::new(file.as_bytes().to_vec()), mode))
}
