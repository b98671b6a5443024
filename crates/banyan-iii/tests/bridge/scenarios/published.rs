//! The calls that a session-manager is asked for, in order.

use serde_json::{Value, json};

use crate::doors::OverReference;
use crate::support::*;

fn calls_of(on: &OverReference, function: &str, request: Value) -> Vec<String> {
    on.main.kept().calls.clear();
    (on as &dyn Door).ok(function, request);
    std::mem::take(&mut on.main.kept().calls)
}

#[test]
fn a_change_is_put_in_the_order_in_which_session_manager_puts_it() {
    let on = OverReference::new();
    assert_eq!(
        calls_of(&on, "ensure", json!({"session_id": "s"})),
        ["look", "get-meta", "look", "get-meta", "put-meta", "publish-events"],
        "the first call asks what the main is"
    );
    let append = |id: &str| json!({"session_id": "s", "entry_id": id, "message": assistant(id)});
    let stored = ["put-entry", "set-active-leaf", "put-meta", "publish-events"];
    let expected = |asked: &[&'static str], put: &[&'static str]| [asked, put].concat();
    assert_eq!(
        calls_of(&on, "append", append("a")),
        expected(&["get-meta", "get-entry", "get-active-leaf"], &stored)
    );
    assert_eq!(calls_of(&on, "append", append("a")), ["get-meta", "get-entry", "get-active-leaf"]);
    assert_eq!(
        calls_of(&on, "append", json!({"session_id": "s", "parent_id": "a", "message": user("b")})),
        expected(&["get-meta", "get-entry"], &stored)
    );
    assert_eq!(
        calls_of(&on, "append-many", json!({"session_id": "s", "messages": [user("c"), user("d")]})),
        expected(&["get-meta", "get-active-leaf", "put-entry"], &stored)
    );
    let changed = ["get-meta", "get-entry", "put-entry", "put-meta", "publish-events"];
    assert_eq!(
        calls_of(&on, "update-message", json!({"session_id": "s", "entry_id": "a", "content": text("z")})),
        changed
    );
    assert_eq!(calls_of(&on, "extend-message", json!({"session_id": "s", "entry_id": "a", "text": "!"})), changed);
    assert_eq!(
        calls_of(&on, "set-active-leaf", json!({"session_id": "s", "entry_id": "a"})),
        ["get-meta", "get-entry", "get-active-leaf", "set-active-leaf"]
    );
    assert_eq!(
        calls_of(&on, "set-status", json!({"session_id": "s", "status": "working"})),
        ["get-meta", "put-meta", "publish-events"]
    );
    assert_eq!(
        calls_of(&on, "fork", json!({"session_id": "s", "entry_id": "a"})),
        expected(&["get-meta", "list-entries", "get-active-leaf"], &stored)
    );
    assert_eq!(
        calls_of(&on, "delete", json!({"session_id": "s"})),
        ["get-meta", "delete-entries", "delete-active-leaf", "delete-meta", "publish-events"]
    );
}

#[test]
fn what_is_put_is_what_session_manager_would_put() {
    let on = OverReference::new();
    let store: &dyn Door = &on;
    store.ok("ensure", json!({"session_id": "s", "title": "T", "metadata": {"owner": "u"}}));
    let request =
        json!({"session_id": "s", "entry_id": "a", "message": assistant("hi"), "origin": {"worker": "w"}});
    let appended = store.ok("append", request);
    store.ok("extend-message", json!({"session_id": "s", "entry_id": "a", "text": "!"}));
    let kept = on.main.kept();
    let entry = json!({"kind": "message", "id": "a", "parent_id": null, "timestamp": appended["timestamp"], "revision": 1,
        "origin": {"worker": "w"}, "message": assistant("hi!")});
    assert_eq!(kept.entries["s"]["a"], entry);
    assert_eq!(kept.metas["s"]["message_count"], 1);
    let metadata: Vec<_> = kept.published.iter().map(|event| json!(event.metadata.as_deref())).collect();
    assert_eq!(metadata, vec![json!({"owner": "u"}); 3]);
}

#[test]
fn a_session_manager_keeps_no_attachments() {
    let on = OverReference::new();
    let store: &dyn Door = &on;
    let session = store.session();
    let request = json!({"session_id": session, "name": "n", "mime": "m", "data": base64(b"abc")});
    let refusal = store.call("put-attachment", request).unwrap_err();
    assert_eq!(refusal.code, "session/storage");
    assert!(refusal.message.contains("no attachments"), "{}", refusal.message);
    assert_eq!(store.ok("list-attachments", json!({"session_id": session})), json!({"attachments": []}));
    let named = json!({"session_id": session, "attachment_id": "a"});
    assert_eq!(store.ok("get-attachment", named.clone()), Value::Null);
    assert_eq!(store.ok("delete-attachment", named), json!({"deleted": false}));
}
