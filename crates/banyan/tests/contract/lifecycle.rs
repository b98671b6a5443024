//! A session from its beginning to its end: create, ensure, get, set-meta, set-status, delete.

use serde_json::{Value, json};

use crate::support::*;

scenarios! {
    a_created_session_is_idle_empty_and_untitled
    a_created_session_keeps_what_it_was_given
    a_created_session_has_an_id_of_the_stores_making
    null_means_left_out
    unknown_fields_are_ignored
    ensure_creates_what_is_missing_under_the_callers_id
    ensure_leaves_what_exists_as_it_is
    ensure_refuses_an_empty_id
    any_other_id_can_be_ensured
    a_session_that_does_not_exist_is_null
    set_meta_replaces_only_what_is_supplied
    set_meta_replaces_metadata_wholesale
    set_meta_with_nothing_supplied_does_nothing
    set_meta_with_the_same_values_still_counts_as_a_change
    nothing_can_be_cleared_with_null
    set_meta_leaves_status_and_messages_alone
    any_status_follows_any_other
    the_same_status_again_does_nothing_whatever_the_reason
    a_reason_is_kept_for_errors_only
    a_deleted_session_is_gone
    deleting_what_does_not_exist_says_so
    a_session_ensured_after_its_deletion_starts_empty
}

fn bare(session_id: &Value, at: &Value) -> Value {
    json!({"session_id": session_id, "title": "", "description": "", "status": "idle", "message_count": 0,
        "created_at": at, "updated_at": at})
}

fn a_created_session_is_idle_empty_and_untitled(store: &dyn Door) {
    let before = now();
    let created = store.ok("create", json!({}));
    let at = &created["meta"]["created_at"];
    let id = &created["session_id"];
    assert_eq!(created, json!({"session_id": id, "meta": bare(id, at)}));
    assert!((before..=now()).contains(&at.as_i64().unwrap()));
    assert_eq!(store.ok("get", json!({"session_id": id})), json!({"meta": created["meta"]}));
}

fn a_created_session_keeps_what_it_was_given(store: &dyn Door) {
    let metadata = json!({"owner": "u_1", "deep": {"list": [1, null, {"x": 1.5}]}});
    let request = json!({"title": "Weather", "description": "Will it rain?", "metadata": metadata});
    let created = store.ok("create", request);
    let id = &created["session_id"];
    let mut expected = bare(id, &created["meta"]["created_at"]);
    expected["title"] = json!("Weather");
    expected["description"] = json!("Will it rain?");
    expected["metadata"] = metadata;
    assert_eq!(created["meta"], expected);
    assert_eq!(store.meta(id), expected);
}

fn a_created_session_has_an_id_of_the_stores_making(store: &dyn Door) {
    let (one, other) = (store.session(), store.session());
    assert_ne!(one, other);
    for (id, prefix) in [(&one, "s_"), (&other, "s_"), (&store.say(&one, "hi"), "e_")] {
        let hex = id.as_str().unwrap().strip_prefix(prefix).unwrap();
        assert_eq!(hex.len(), 32);
        assert!(hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')), "{hex}");
    }
}

fn null_means_left_out(store: &dyn Door) {
    let created = store.ok("create", json!({"title": null, "description": null, "metadata": null}));
    assert_eq!(created["meta"], bare(&created["session_id"], &created["meta"]["created_at"]));
    let request = json!({"session_id": "mine", "title": null, "description": null, "metadata": null});
    let ensured = store.ok("ensure", request);
    assert_eq!(ensured["meta"], bare(&json!("mine"), &ensured["meta"]["created_at"]));
}

fn unknown_fields_are_ignored(store: &dyn Door) {
    let created = store.ok("create", json!({"title": "T", "_caller_worker_id": "w", "colour": 7}));
    assert_eq!(created["meta"]["title"], "T");
    assert_eq!(created["meta"].get("colour"), None);
}

fn ensure_creates_what_is_missing_under_the_callers_id(store: &dyn Door) {
    let request = json!({"session_id": "mine", "title": "T", "description": "D", "metadata": {"a": 1}});
    let ensured = store.ok("ensure", request);
    let mut meta = bare(&json!("mine"), &ensured["meta"]["created_at"]);
    meta["title"] = json!("T");
    meta["description"] = json!("D");
    meta["metadata"] = json!({"a": 1});
    assert_eq!(ensured, json!({"session_id": "mine", "meta": meta, "created": true}));
    assert_eq!(store.meta(&json!("mine")), meta);
}

fn ensure_leaves_what_exists_as_it_is(store: &dyn Door) {
    let first = store.ok("ensure", json!({"session_id": "mine", "title": "T"}));
    let mut events = store.listen_to_all();
    a_later_moment();
    let again = json!({"session_id": "mine", "title": "other", "description": "other", "metadata": {"a": 1}});
    assert_eq!(store.ok("ensure", again), json!({"session_id": "mine", "meta": first["meta"], "created": false}));
    assert_eq!(store.meta(&json!("mine")), first["meta"]);
    assert_eq!(events.heard(), []);
}

fn ensure_refuses_an_empty_id(store: &dyn Door) {
    assert_eq!(store.refused("ensure", json!({"session_id": ""})), "session/invalid_request");
}

fn any_other_id_can_be_ensured(store: &dyn Door) {
    let long = "ü".repeat(300);
    let odd =
        [".", "..", "...", " ", "a/b", "../up", "%2e", "A", "a", "~x", "nul\u{0}l", "line\nfeed", "日本", &long];
    for id in odd {
        assert_eq!(store.ok("ensure", json!({"session_id": id}))["created"], true, "{id:?}");
        store.say(&json!(id), id);
    }
    for id in odd {
        assert_eq!(store.path(&json!(id)), [id]);
        assert_eq!(store.meta(&json!(id))["session_id"], id);
    }
    for id in odd {
        assert_eq!(store.ok("delete", json!({"session_id": id})), json!({"deleted": true}), "{id:?}");
    }
    assert_eq!(store.ok("list", json!({})), json!({"sessions": []}));
}

fn a_session_that_does_not_exist_is_null(store: &dyn Door) {
    for id in ["nobody", ""] {
        assert_eq!(store.ok("get", json!({"session_id": id})), Value::Null);
    }
}

fn set_meta_replaces_only_what_is_supplied(store: &dyn Door) {
    let id =
        store.ok("create", json!({"title": "T", "description": "D", "metadata": {"a": 1}}))["session_id"].clone();
    let mut expected = store.meta(&id);
    for (field, value) in [("title", json!("T2")), ("description", json!("")), ("metadata", json!({}))] {
        a_later_moment();
        let mut request = json!({"session_id": id});
        request[field] = value.clone();
        let answer = store.ok("set-meta", request);
        assert!(answer["meta"]["updated_at"].as_i64() > expected["updated_at"].as_i64());
        expected[field] = value;
        expected["updated_at"] = answer["meta"]["updated_at"].clone();
        assert_eq!(answer, json!({"meta": expected}));
        assert_eq!(store.meta(&id), expected);
    }
}

fn set_meta_replaces_metadata_wholesale(store: &dyn Door) {
    let id = store.ok("create", json!({"metadata": {"a": 1, "b": 2}}))["session_id"].clone();
    store.ok("set-meta", json!({"session_id": id, "metadata": {"b": 3}}));
    assert_eq!(store.meta(&id)["metadata"], json!({"b": 3}));
}

fn set_meta_with_nothing_supplied_does_nothing(store: &dyn Door) {
    let id = store.session();
    let before = store.meta(&id);
    let mut events = store.listen_to_all();
    a_later_moment();
    for request in [json!({"session_id": id}), json!({"session_id": id, "title": null, "metadata": null})] {
        assert_eq!(store.ok("set-meta", request), json!({"meta": before}));
    }
    assert_eq!(store.meta(&id), before);
    assert_eq!(events.heard(), []);
}

fn set_meta_with_the_same_values_still_counts_as_a_change(store: &dyn Door) {
    let id = store.ok("create", json!({"title": "T"}))["session_id"].clone();
    let before = store.meta(&id);
    let mut events = store.listen_to_all();
    a_later_moment();
    let answer = store.ok("set-meta", json!({"session_id": id, "title": "T"}));
    assert!(answer["meta"]["updated_at"].as_i64() > before["updated_at"].as_i64());
    assert_eq!(types(&events.heard()), ["meta-updated"]);
}

fn nothing_can_be_cleared_with_null(store: &dyn Door) {
    let id = store.ok("create", json!({"title": "T", "metadata": {"a": 1}}))["session_id"].clone();
    store.ok("set-meta", json!({"session_id": id, "title": null, "description": "D", "metadata": null}));
    let meta = store.meta(&id);
    assert_eq!(
        [&meta["title"], &meta["description"], &meta["metadata"]],
        [&json!("T"), &json!("D"), &json!({"a": 1})]
    );
}

fn set_meta_leaves_status_and_messages_alone(store: &dyn Door) {
    let id = store.session();
    store.say(&id, "hi");
    store.ok("set-status", json!({"session_id": id, "status": "error", "reason": "why"}));
    let mut expected = store.meta(&id);
    expected["title"] = json!("T");
    let answer = store.ok("set-meta", json!({"session_id": id, "title": "T"}));
    expected["updated_at"] = answer["meta"]["updated_at"].clone();
    assert_eq!(answer, json!({"meta": expected}));
    assert_eq!(store.path(&id), ["hi"]);
}

fn any_status_follows_any_other(store: &dyn Door) {
    let id = store.session();
    let mut previous = "idle";
    for status in [
        "working", "done", "error", "idle", "done", "working", "error", "done", "idle", "error", "working", "idle",
    ] {
        a_later_moment();
        let before = store.meta(&id);
        let answer = store.ok("set-status", json!({"session_id": id, "status": status}));
        assert_eq!(answer, json!({"status": status, "previous_status": previous}));
        let mut expected = before.clone();
        let after = store.meta(&id);
        expected["status"] = json!(status);
        expected["updated_at"] = after["updated_at"].clone();
        assert_eq!(after, expected);
        assert!(after["updated_at"].as_i64() > before["updated_at"].as_i64());
        previous = status;
    }
}

fn the_same_status_again_does_nothing_whatever_the_reason(store: &dyn Door) {
    let id = store.session();
    store.ok("set-status", json!({"session_id": id, "status": "error", "reason": "first"}));
    let before = store.meta(&id);
    let mut events = store.listen_to_all();
    a_later_moment();
    for reason in [json!("second"), Value::Null, json!("first")] {
        let answer = store.ok("set-status", json!({"session_id": id, "status": "error", "reason": reason}));
        assert_eq!(answer, json!({"status": "error", "previous_status": "error"}));
    }
    assert_eq!(store.meta(&id), before);
    assert_eq!(before["status_reason"], "first");
    assert_eq!(events.heard(), []);
}

fn a_reason_is_kept_for_errors_only(store: &dyn Door) {
    let id = store.session();
    for (status, kept) in
        [("working", None), ("error", Some("why")), ("done", None), ("error", Some("why")), ("idle", None)]
    {
        store.ok("set-status", json!({"session_id": id, "status": status, "reason": "why"}));
        assert_eq!(store.meta(&id).get("status_reason").and_then(Value::as_str), kept, "{status}");
    }
    store.ok("set-status", json!({"session_id": id, "status": "error"}));
    assert_eq!(store.meta(&id).get("status_reason"), None);
}

fn a_deleted_session_is_gone(store: &dyn Door) {
    let (id, other) = (store.session(), store.session());
    let entry = store.say(&id, "hi");
    store.say(&other, "stays");
    assert_eq!(store.ok("delete", json!({"session_id": id})), json!({"deleted": true}));
    assert_eq!(store.ok("get", json!({"session_id": id})), Value::Null);
    assert_eq!(store.ok("get-message", json!({"session_id": id, "entry_id": entry})), Value::Null);
    assert_eq!(store.refused("messages", json!({"session_id": id})), "session/not_found");
    assert_eq!(store.ok("list", json!({})), json!({"sessions": [store.meta(&other)]}));
    assert_eq!(store.path(&other), ["stays"]);
}

fn deleting_what_does_not_exist_says_so(store: &dyn Door) {
    let id = store.session();
    store.ok("delete", json!({"session_id": id}));
    let mut events = store.listen_to_all();
    for unknown in [json!("nobody"), json!(""), id] {
        assert_eq!(store.ok("delete", json!({"session_id": unknown})), json!({"deleted": false}));
    }
    assert_eq!(events.heard(), []);
}

fn a_session_ensured_after_its_deletion_starts_empty(store: &dyn Door) {
    let id = json!("mine");
    store.ok("ensure", json!({"session_id": id, "title": "old"}));
    let entry = store.append(&id, json!({"message": user("old"), "entry_id": "e"}));
    store.ok("delete", json!({"session_id": id}));
    let ensured = store.ok("ensure", json!({"session_id": id}));
    assert_eq!(ensured["meta"], bare(&id, &ensured["meta"]["created_at"]));
    assert_eq!(store.path(&id), [""; 0]);
    assert_eq!(store.ok("get-message", json!({"session_id": id, "entry_id": entry})), Value::Null);
    let appended = store.ok("append", json!({"session_id": id, "message": user("new"), "entry_id": "e"}));
    assert_eq!(appended["parent_id"], Value::Null);
    assert_eq!(store.path(&id), ["new"]);
    assert_eq!(store.meta(&id)["message_count"], 1);
}
