//! Files beside the conversation.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::*;

scenarios! {
    a_file_is_described_and_can_be_read_back
    names_and_types_are_trimmed
    equal_bytes_are_two_attachments
    putting_is_silent
    checks_come_in_order
    data_must_be_standard_base64_with_padding
    the_bytes_can_be_left_out
    an_attachment_that_does_not_exist_is_null
    attachments_are_listed_oldest_first
    an_unused_attachment_can_be_deleted
    an_attachment_that_a_message_uses_cannot_be_deleted
    deleting_checks_the_session_first
    a_fork_has_the_attachments_that_its_messages_use_under_the_same_ids
    attachments_go_with_their_session
}

fn put(store: &dyn Door, session: &Value, bytes: &[u8]) -> Value {
    let request = json!({"session_id": session, "name": "n.txt", "mime": "text/plain", "data": base64(bytes)});
    store.ok("put-attachment", request)
}

fn get(store: &dyn Door, session: &Value, attachment: &Value) -> Value {
    store.ok("get-attachment", json!({"session_id": session, "attachment_id": attachment}))
}

fn list(store: &dyn Door, session: &Value) -> Value {
    store.ok("list-attachments", json!({"session_id": session}))["attachments"].clone()
}

fn delete(session: &Value, attachment: &Value) -> Value {
    json!({"session_id": session, "attachment_id": attachment})
}

fn showing(block: &Value) -> Value {
    json!({"role": "user", "content": [block], "timestamp": 1})
}

fn a_file_is_described_and_can_be_read_back(store: &dyn Door) {
    let id = store.session();
    for bytes in [&b"hello"[..], b"", &[0, 255, 10].repeat(100_000)] {
        let before = now();
        let answer = put(store, &id, bytes);
        let attachment = &answer["attachment"];
        let a = &attachment["attachment_id"];
        let sha256: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let at = attachment["created_at"].as_i64().unwrap();
        assert!((before..=now()).contains(&at));
        let expected = json!({"attachment_id": a, "session_id": id, "name": "n.txt", "mime": "text/plain",
            "size": bytes.len(), "sha256": sha256, "created_at": at});
        let block = json!({"type": "file", "attachment_id": a, "name": "n.txt", "mime": "text/plain", "size": bytes.len()});
        assert_eq!(answer, json!({"attachment": expected, "block": block}));
        assert_eq!(get(store, &id, a), json!({"attachment": expected, "data": base64(bytes)}));
        assert_eq!(a.as_str().unwrap().strip_prefix("a_").unwrap().len(), 32);
    }
}

fn names_and_types_are_trimmed(store: &dyn Door) {
    let id = store.session();
    for (mime, kept) in
        [(" text/plain ", "text/plain"), ("", "application/octet-stream"), (" \t", "application/octet-stream")]
    {
        let request = json!({"session_id": id, "name": " my file ", "mime": mime, "data": ""});
        let answer = store.ok("put-attachment", request);
        assert_eq!([&answer["attachment"]["name"], &answer["attachment"]["mime"]], ["my file", kept]);
    }
}

fn equal_bytes_are_two_attachments(store: &dyn Door) {
    let id = store.session();
    let [one, other] =
        [put(store, &id, b"same"), put(store, &id, b"same")].map(|put| put["attachment"]["attachment_id"].clone());
    assert_ne!(one, other);
    store.ok("delete-attachment", delete(&id, &one));
    assert_eq!(get(store, &id, &one), Value::Null);
    assert_eq!(get(store, &id, &other)["data"], base64(b"same"));
}

fn putting_is_silent(store: &dyn Door) {
    let id = store.session();
    let before = store.meta(&id);
    let mut events = store.listen_to_all();
    a_later_moment();
    let a = put(store, &id, b"x")["attachment"]["attachment_id"].clone();
    store.ok("delete-attachment", delete(&id, &a));
    assert_eq!(store.meta(&id), before);
    assert_eq!(events.heard(), []);
}

fn checks_come_in_order(store: &dyn Door) {
    let mut request = json!({"session_id": "nobody", "name": " ", "mime": "", "data": "%"});
    let refusal = |request: &Value| store.call("put-attachment", request.clone()).unwrap_err();
    let blank = refusal(&request);
    assert!(blank.code == "session/invalid_request" && blank.message.contains("name"), "{blank:?}");
    request["name"] = json!("n");
    let bad = refusal(&request);
    assert!(bad.code == "session/invalid_request" && bad.message.contains("base64"), "{bad:?}");
    request["data"] = json!("");
    assert_eq!(refusal(&request).code, "session/not_found");
}

fn data_must_be_standard_base64_with_padding(store: &dyn Door) {
    let id = store.session();
    for bad in ["aGk", "aGk-", "a G k=", "aGk=\n", "_w=="] {
        let request = json!({"session_id": id, "name": "n", "mime": "m", "data": bad});
        assert_eq!(store.refused("put-attachment", request), "session/invalid_request", "{bad:?}");
    }
    assert_eq!(list(store, &id), json!([]));
}

fn the_bytes_can_be_left_out(store: &dyn Door) {
    let id = store.session();
    let attachment = put(store, &id, b"x")["attachment"].clone();
    for (include, data) in
        [(json!(false), Value::Null), (json!(true), json!("eA==")), (Value::Null, json!("eA=="))]
    {
        let mut request = delete(&id, &attachment["attachment_id"]);
        request["include_data"] = include;
        assert_eq!(store.ok("get-attachment", request), json!({"attachment": attachment, "data": data}));
    }
}

fn an_attachment_that_does_not_exist_is_null(store: &dyn Door) {
    let (id, other) = (store.session(), store.session());
    let a = put(store, &id, b"x")["attachment"]["attachment_id"].clone();
    for (session, attachment) in [(&id, &json!("a_0")), (&other, &a), (&json!("nobody"), &a)] {
        assert_eq!(get(store, session, attachment), Value::Null);
    }
}

fn attachments_are_listed_oldest_first(store: &dyn Door) {
    let id = store.session();
    assert_eq!(list(store, &id), json!([]));
    let mut put: Vec<Value> = (0..10).map(|n| put(store, &id, &[n])["attachment"].clone()).collect();
    put.sort_by_key(|it| (it["created_at"].as_i64().unwrap(), it["attachment_id"].to_string()));
    assert_eq!(list(store, &id), json!(put));
    assert_eq!(store.refused("list-attachments", json!({"session_id": "nobody"})), "session/not_found");
}

fn an_unused_attachment_can_be_deleted(store: &dyn Door) {
    let id = store.session();
    let a = put(store, &id, b"x")["attachment"]["attachment_id"].clone();
    assert_eq!(store.ok("delete-attachment", delete(&id, &a)), json!({"deleted": true}));
    assert_eq!(store.ok("delete-attachment", delete(&id, &a)), json!({"deleted": false}));
    assert_eq!(get(store, &id, &a), Value::Null);
    assert_eq!(list(store, &id), json!([]));
}

fn an_attachment_that_a_message_uses_cannot_be_deleted(store: &dyn Door) {
    let id = store.session();
    let root = store.say(&id, "root");
    let linked = |a: &Value| json!({"type": "image", "mime": "m", "data": "", "attachment_id": a});
    let nested = |a: &Value| json!({"type": "function_result", "function_call_id": "c", "content": [linked(a)]});
    let shown = put(store, &id, b"1");
    let a: Vec<Value> = (0..3).map(|_| put(store, &id, b"2")["attachment"]["attachment_id"].clone()).collect();
    for block in [shown["block"].clone(), linked(&a[0]), nested(&a[1])] {
        store.append(&id, json!({"message": showing(&block), "parent_id": root}));
    }
    for used in [&shown["attachment"]["attachment_id"], &a[0], &a[1]] {
        assert_eq!(store.refused("delete-attachment", delete(&id, used)), "session/attachment_in_use");
        assert!(!get(store, &id, used).is_null());
    }
    store.append(&id, json!({"custom": {"custom_type": "t", "data": {"attachment_id": a[2]}}}));
    assert_eq!(store.ok("delete-attachment", delete(&id, &a[2])), json!({"deleted": true}));
    let entry = store.append(&id, json!({"message": showing(&shown["block"])}));
    store.ok("update-message", json!({"session_id": id, "entry_id": entry, "content": []}));
    assert_eq!(
        store.refused("delete-attachment", delete(&id, &shown["attachment"]["attachment_id"])),
        "session/attachment_in_use"
    );
}

fn deleting_checks_the_session_first(store: &dyn Door) {
    assert_eq!(store.refused("delete-attachment", delete(&json!("nobody"), &json!("a"))), "session/not_found");
}

fn a_fork_has_the_attachments_that_its_messages_use_under_the_same_ids(store: &dyn Door) {
    let id = store.session();
    let (used, later, unused) = (put(store, &id, b"used"), put(store, &id, b"later"), put(store, &id, b"unused"));
    let missing = json!({"type": "file", "attachment_id": "a_missing", "name": "n", "mime": "m", "size": 1});
    store.append(&id, json!({"message": showing(&missing)}));
    let entry = store.append(&id, json!({"message": showing(&used["block"])}));
    store.append(&id, json!({"message": showing(&later["block"])}));
    let fork = store.ok("fork", json!({"session_id": id, "entry_id": entry}))["session_id"].clone();
    let mut expected = used["attachment"].clone();
    expected["session_id"] = fork.clone();
    assert_eq!(list(store, &fork), json!([expected]));
    store.ok("delete", json!({"session_id": id}));
    let a = &used["attachment"]["attachment_id"];
    assert_eq!(get(store, &fork, a), json!({"attachment": expected, "data": base64(b"used")}));
    assert_eq!(get(store, &fork, &unused["attachment"]["attachment_id"]), Value::Null);
    assert_eq!(store.refused("delete-attachment", delete(&fork, a)), "session/attachment_in_use");
}

fn attachments_go_with_their_session(store: &dyn Door) {
    let id = json!("mine");
    store.ok("ensure", json!({"session_id": id}));
    let a = put(store, &id, b"x")["attachment"]["attachment_id"].clone();
    store.ok("delete", json!({"session_id": id}));
    store.ok("ensure", json!({"session_id": id}));
    assert_eq!(get(store, &id, &a), Value::Null);
    assert_eq!(list(store, &id), json!([]));
}
