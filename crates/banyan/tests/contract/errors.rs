//! Every refusal by its code, and malformed requests.

use serde_json::{Value, json};

use crate::support::*;

scenarios! {
    an_unknown_session_is_not_found_by_everything_that_needs_one
    a_session_is_looked_for_before_anything_else
    a_malformed_request_comes_before_an_unknown_session
    a_body_that_is_not_a_json_object_is_refused
    an_empty_body_is_an_empty_request
    a_missing_field_is_refused
    an_unknown_enum_value_is_refused
    a_wrong_type_is_refused
    an_unknown_function_says_what_was_meant
    a_refused_call_leaves_no_session_behind
    every_code_can_be_met
}

fn an_unknown_session_is_not_found_by_everything_that_needs_one(store: &dyn Door) {
    for session in ["nobody", ""] {
        for (function, rest) in [
            ("set-meta", json!({"title": "T"})),
            ("set-meta", json!({})),
            ("set-status", json!({"status": "idle"})),
            ("append", json!({"message": user("x")})),
            ("append-many", json!({"messages": [user("x")]})),
            ("update-message", json!({"entry_id": "e", "content": []})),
            ("extend-message", json!({"entry_id": "e", "text": ""})),
            ("messages", json!({})),
            ("messages-tail", json!({})),
            ("messages-range", json!({"entry_ids": []})),
            ("tree", json!({})),
            ("fork", json!({"entry_id": "e"})),
            ("set-active-leaf", json!({"entry_id": "e"})),
            ("put-attachment", json!({"name": "n", "mime": "m", "data": ""})),
            ("list-attachments", json!({})),
            ("delete-attachment", json!({"attachment_id": "a"})),
        ] {
            let mut request = rest;
            request["session_id"] = json!(session);
            assert_eq!(store.refused(function, request), "session/not_found", "{function}");
        }
        for (function, rest, answer) in [
            ("get", json!({}), Value::Null),
            ("get-message", json!({"entry_id": "e"}), Value::Null),
            ("get-attachment", json!({"attachment_id": "a"}), Value::Null),
            ("delete", json!({}), json!({"deleted": false})),
        ] {
            let mut request = rest;
            request["session_id"] = json!(session);
            assert_eq!(store.ok(function, request), answer, "{function}");
        }
    }
}

fn a_session_is_looked_for_before_anything_else(store: &dyn Door) {
    for (function, request) in [
        ("append", json!({"session_id": "nobody"})),
        ("append-many", json!({"session_id": "nobody", "messages": []})),
        ("messages", json!({"session_id": "nobody", "cursor": "%", "from_entry_id": "nothing"})),
        ("messages-tail", json!({"session_id": "nobody", "before_entry_id": "nothing"})),
        ("messages-range", json!({"session_id": "nobody"})),
    ] {
        assert_eq!(store.refused(function, request), "session/not_found", "{function}");
    }
}

fn a_malformed_request_comes_before_an_unknown_session(store: &dyn Door) {
    for (function, request) in [
        ("append", json!({"session_id": "nobody", "message": {"role": "robot"}})),
        ("set-status", json!({"session_id": "nobody", "status": "waiting"})),
        ("messages", json!({"session_id": "nobody", "limit": -1})),
        ("get", json!({"session_id": 1})),
    ] {
        assert_eq!(store.refused(function, request), "session/invalid_request", "{function}");
    }
}

fn a_body_that_is_not_a_json_object_is_refused(store: &dyn Door) {
    for body in ["[]", "1", "\"text\"", "null", "true", "{", "{}{}", "{\"a\":}", "nonsense", "[\"T\"]"] {
        let refusal = store.call_text("session::create", body).unwrap_err();
        assert_eq!(refusal.code, "session/invalid_request", "{body}");
    }
}

fn an_empty_body_is_an_empty_request(store: &dyn Door) {
    assert_eq!(store.call_text("session::list", "").unwrap(), json!({"sessions": []}));
    assert_eq!(store.call_text("session::list", " \n ").unwrap(), json!({"sessions": []}));
    assert_eq!(store.call_text("session::get", "").unwrap_err().code, "session/invalid_request");
}

fn a_missing_field_is_refused(store: &dyn Door) {
    let id = store.session();
    for (function, request) in [
        ("ensure", json!({})),
        ("ensure", json!({"session_id": null})),
        ("get", json!({})),
        ("set-status", json!({"session_id": id})),
        ("append", json!({"message": user("x")})),
        ("append", json!({"session_id": id, "message": {"role": "user", "content": []}})),
        ("append", json!({"session_id": id, "message": {"content": [], "timestamp": 1}})),
        ("append", json!({"session_id": id, "message": {"role": "assistant", "content": [], "timestamp": 1}})),
        ("append", json!({"session_id": id, "custom": {"data": 1}})),
        ("append-many", json!({"session_id": id})),
        ("update-message", json!({"session_id": id, "entry_id": "e"})),
        ("get-message", json!({"session_id": id})),
        ("fork", json!({"session_id": id})),
        ("set-active-leaf", json!({"session_id": id})),
    ] {
        assert_eq!(store.refused(function, request.clone()), "session/invalid_request", "{function} {request}");
    }
}

fn an_unknown_enum_value_is_refused(store: &dyn Door) {
    let id = store.session();
    let message =
        |role: &str, block: &str| json!({"role": role, "content": [{"type": block, "text": "x"}], "timestamp": 1});
    let mut stopped = assistant("x");
    stopped["stop_reason"] = json!("tired");
    for (function, request) in [
        ("list", json!({"order": "updated_asc"})),
        ("list", json!({"status": "waiting"})),
        ("set-status", json!({"session_id": id, "status": "Idle"})),
        ("append", json!({"session_id": id, "message": message("system", "text")})),
        ("append", json!({"session_id": id, "message": message("user", "video")})),
        ("append", json!({"session_id": id, "message": stopped})),
        ("messages", json!({"session_id": id, "roles": ["tool"]})),
    ] {
        assert_eq!(store.refused(function, request.clone()), "session/invalid_request", "{function} {request}");
    }
}

fn a_wrong_type_is_refused(store: &dyn Door) {
    let id = store.session();
    for (function, request) in [
        ("create", json!({"title": 1})),
        ("create", json!({"metadata": "text"})),
        ("create", json!({"metadata": []})),
        ("set-meta", json!({"session_id": id, "description": {}})),
        ("append", json!({"session_id": id, "message": "hi"})),
        ("append", json!({"session_id": id, "message": user("x"), "parent_id": 5})),
        ("append-many", json!({"session_id": id, "messages": user("x")})),
        ("update-message", json!({"session_id": id, "entry_id": "e", "content": "text"})),
        ("update-message", json!({"session_id": id, "entry_id": "e", "content": [], "expected_revision": -1})),
        ("messages", json!({"session_id": id, "include_custom": "yes"})),
    ] {
        assert_eq!(store.refused(function, request.clone()), "session/invalid_request", "{function} {request}");
    }
}

fn an_unknown_function_says_what_was_meant(store: &dyn Door) {
    let refusal = store.call_text("session::append-all", "{}").unwrap_err();
    assert!(refusal.message.contains("session::append-all"), "{refusal:?}");
    assert!(refusal.message.contains("session::append-many"), "{refusal:?}");
    for unknown in ["", "session::", "append", "session::Append"] {
        assert!(store.call_text(unknown, "{}").is_err());
    }
}

fn a_refused_call_leaves_no_session_behind(store: &dyn Door) {
    store.refused("append", json!({"session_id": "nobody", "message": user("x")}));
    store.refused("ensure", json!({"session_id": ""}));
    assert_eq!(store.ok("list", json!({})), json!({"sessions": []}));
    assert_eq!(store.ok("get", json!({"session_id": "nobody"})), Value::Null);
}

fn every_code_can_be_met(store: &dyn Door) {
    let id = store.session();
    let said = store.say(&id, "x");
    let custom = store.append(&id, json!({"custom": {"custom_type": "t", "data": 1}}));
    let file = json!({"session_id": id, "name": "n", "mime": "m", "data": ""});
    let block = store.ok("put-attachment", file)["block"].clone();
    store.append(&id, json!({"message": {"role": "user", "content": [block], "timestamp": 1}}));
    for (code, function, request) in [
        ("session/not_found", "messages", json!({"session_id": "nobody"})),
        ("session/entry_not_found", "fork", json!({"session_id": id, "entry_id": "nothing"})),
        (
            "session/parent_not_found",
            "append",
            json!({"session_id": id, "message": user("x"), "parent_id": "nothing"}),
        ),
        (
            "session/invalid_entry_kind",
            "update-message",
            json!({"session_id": id, "entry_id": custom, "content": []}),
        ),
        (
            "session/details_not_supported",
            "update-message",
            json!({"session_id": id, "entry_id": said, "content": [], "details": 1}),
        ),
        ("session/empty_batch", "append-many", json!({"session_id": id, "messages": []})),
        ("session/invalid_cursor", "list", json!({"cursor": ""})),
        ("session/invalid_request", "append", json!({"session_id": id})),
        ("session/conflict", "append", json!({"session_id": id, "message": user("x"), "expected_leaf": said})),
        (
            "session/attachment_in_use",
            "delete-attachment",
            json!({"session_id": id, "attachment_id": block["attachment_id"]}),
        ),
    ] {
        let refusal = store.call(function, request).unwrap_err();
        assert_eq!(refusal.code, code);
        assert!(!refusal.message.is_empty());
    }
}
