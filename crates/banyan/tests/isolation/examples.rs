//! A valid request, or several, for every function of the table.

use serde_json::{Value, json};

use super::tenants::Furnished;
use crate::support::*;

/// What a function is called with.
pub(super) enum Example {
    /// It is about a session that is there.
    OfSession(Vec<Value>),
    /// It is about a session that may have to be made. What it does is in `begin.rs`.
    MakesSession(Value),
    /// It names no session. What it does is in `begin.rs`.
    OfNone(Value),
}

/// Requests for a function, about this session. A function that has none here is not known to keep tenants apart.
pub(super) fn example(function: &str, it: &Furnished) -> Example {
    let Furnished { session, message, leaf, shown, unused } = it;
    let with = |rest: Value| {
        let mut request = rest;
        request["session_id"] = session.clone();
        request
    };
    let all_with = |requests: Vec<Value>| Example::OfSession(requests.into_iter().map(with).collect());
    match function {
        "session::create" => Example::OfNone(json!({"title": "mine"})),
        "session::list" => Example::OfNone(json!({})),
        "session::ensure" => Example::MakesSession(with(json!({"title": "other", "metadata": {"x": 1}}))),
        "session::get" | "session::tree" | "session::list-attachments" | "session::delete" => {
            all_with(vec![json!({})])
        }
        "session::set-meta" => all_with(vec![json!({"title": "taken"}), json!({"metadata": {"y": 1}}), json!({})]),
        "session::set-status" => all_with(vec![json!({"status": "working"}), json!({"status": "idle"})]),
        "session::append" => all_with(vec![
            json!({"message": user("in"), "expected_leaf": leaf}),
            json!({"message": user("in"), "parent_id": message}),
            json!({"message": user("again"), "entry_id": message}),
            json!({"custom": {"custom_type": "t", "data": {}}}),
        ]),
        "session::append-many" => all_with(vec![json!({"messages": [user("1"), assistant("2")]})]),
        "session::update-message" => all_with(vec![
            json!({"entry_id": message, "content": text("changed")}),
            json!({"entry_id": message, "content": text("changed"), "expected_revision": 99}),
        ]),
        "session::extend-message" => {
            all_with(vec![json!({"entry_id": leaf, "text": "!"}), json!({"entry_id": message, "text": "!"})])
        }
        "session::messages" => all_with(vec![json!({"include_custom": true}), json!({"from_entry_id": message})]),
        "session::messages-tail" => all_with(vec![json!({"limit": 1}), json!({"before_entry_id": leaf})]),
        "session::messages-range" => {
            all_with(vec![json!({"entry_ids": [message]}), json!({"from_entry_id": message, "to_entry_id": leaf})])
        }
        "session::search" => all_with(vec![
            json!({"query": "first", "wait_ms": 60_000}),
            json!({"query": "f*", "all_branches": true, "wait_ms": 60_000}),
        ]),
        "session::turns" => all_with(vec![json!({}), json!({"limit": 1})]),
        "session::get-message" => all_with(vec![json!({"entry_id": message})]),
        "session::fork" => all_with(vec![json!({"entry_id": message}), json!({"entry_id": leaf, "title": "F"})]),
        "session::set-active-leaf" => all_with(vec![json!({"entry_id": message})]),
        "session::put-attachment" => {
            all_with(vec![json!({"name": "n", "mime": "text/plain", "data": base64(b"bytes")})])
        }
        "session::get-attachment" => all_with(vec![
            json!({"attachment_id": shown}),
            json!({"attachment_id": unused, "include_data": false}),
        ]),
        "session::delete-attachment" => all_with(vec![json!({"attachment_id": unused})]),
        unknown => panic!(
            "`{unknown}` has no example request in tests/isolation/examples.rs, so nobody knows whether it keeps \
             tenants apart; add one"
        ),
    }
}
