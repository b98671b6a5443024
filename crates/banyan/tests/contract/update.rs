//! Changing a message: update-message.

use serde_json::{Value, json};

use crate::support::*;

scenarios! {
    an_update_replaces_the_content_and_counts_the_revision
    an_update_bumps_updated_at_and_nothing_else_of_the_session
    identical_content_still_counts
    growing_shrinking_and_other_content_all_work
    an_update_works_on_any_branch
    an_update_works_on_every_role
    the_stored_origin_stays
    a_wrong_expected_revision_changes_nothing
    a_right_expected_revision_is_an_update
    details_replace_details
    null_details_change_nothing
    usage_replaces_usage_of_an_assistant
    checks_come_in_order
    a_mismatch_hides_later_errors
    a_refused_update_writes_nothing
}

fn update(session: &Value, entry: &Value, said: &str) -> Value {
    json!({"session_id": session, "entry_id": entry, "content": text(said)})
}

fn an_update_replaces_the_content_and_counts_the_revision(store: &dyn Door) {
    let id = store.session();
    let root = store.say(&id, "root");
    let entry = store.append(&id, json!({"message": assistant("old"), "origin": {"by": "me"}}));
    let mut expected = store.entry(&id, &entry);
    a_later_moment();
    for revision in 1..=3 {
        let said = format!("new {revision}");
        let answer = store.ok("update-message", update(&id, &entry, &said));
        assert_eq!(answer, json!({"updated": true, "revision": revision}));
        expected["revision"] = json!(revision);
        expected["message"] = assistant(&said);
        assert_eq!(store.entry(&id, &entry), expected);
    }
    assert_eq!(expected["parent_id"], root);
    assert_eq!(store.path(&id), ["root", "new 3"]);
}

fn an_update_bumps_updated_at_and_nothing_else_of_the_session(store: &dyn Door) {
    let id = store.session();
    let entry = store.say(&id, "one");
    store.say(&id, "leaf");
    let before = store.meta(&id);
    a_later_moment();
    store.ok("update-message", update(&id, &entry, "one!"));
    let after = store.meta(&id);
    assert!(after["updated_at"].as_i64() > before["updated_at"].as_i64());
    let mut expected = before;
    expected["updated_at"] = after["updated_at"].clone();
    assert_eq!(after, expected);
    assert_eq!(store.path(&id), ["one!", "leaf"]);
}

fn identical_content_still_counts(store: &dyn Door) {
    let id = store.session();
    let entry = store.say(&id, "same");
    let mut events = store.listen_to_all();
    assert_eq!(store.ok("update-message", update(&id, &entry, "same")), json!({"updated": true, "revision": 1}));
    assert_eq!(store.ok("update-message", update(&id, &entry, "same")), json!({"updated": true, "revision": 2}));
    assert_eq!(types(&events.heard()), ["message-updated", "message-updated"]);
}

fn growing_shrinking_and_other_content_all_work(store: &dyn Door) {
    let id = store.session();
    let entry = store.append(&id, json!({"message": assistant("")}));
    let contents = [
        text("a"),
        text("ab"),
        text("ab"),
        text("abc"),
        text("a"),
        text(""),
        json!([]),
        text("ü"),
        text("ü\u{1f333}"),
        json!([{"type": "thinking", "text": "h"}]),
        json!([{"type": "thinking", "text": "hm"}]),
        json!([{"type": "thinking", "text": "hm", "signature": "s"}]),
        json!([{"type": "thinking", "text": "hm"}, {"type": "text", "text": ""}]),
        json!([{"type": "thinking", "text": "hm!"}, {"type": "text", "text": "a"}]),
        json!([{"type": "thinking", "text": "hm!"}, {"type": "text", "text": "ab"}]),
    ];
    for (revision, content) in (1..).zip(&contents) {
        let answer = store.ok("update-message", json!({"session_id": id, "entry_id": entry, "content": content}));
        assert_eq!(answer, json!({"updated": true, "revision": revision}));
        assert_eq!(store.entry(&id, &entry)["message"], assistant_with(content.clone()));
    }
}

fn an_update_works_on_any_branch(store: &dyn Door) {
    let id = store.session();
    let root = store.say(&id, "root");
    let off = store.say(&id, "off the path");
    store.append(&id, json!({"message": user("on"), "parent_id": root}));
    store.ok("update-message", update(&id, &off, "changed"));
    assert_eq!(store.path(&id), ["root", "on"]);
    assert_eq!(store.entry(&id, &off)["message"], user("changed"));
}

fn an_update_works_on_every_role(store: &dyn Door) {
    let id = store.session();
    for message in [user("old"), assistant("old"), result("c", "old"), note("t", "old")] {
        let entry = store.append(&id, json!({"message": message}));
        store.ok("update-message", update(&id, &entry, "new"));
        let mut expected = message;
        expected["content"] = text("new");
        assert_eq!(store.entry(&id, &entry)["message"], expected);
    }
}

fn the_stored_origin_stays(store: &dyn Door) {
    let id = store.session();
    let entry = store.append(&id, json!({"message": user("x"), "origin": {"by": "first"}}));
    let bare = store.say(&id, "y");
    for content in ["x and more", "other"] {
        let mut request = update(&id, &entry, content);
        request["origin"] = json!({"by": "second"});
        store.ok("update-message", request.clone());
        assert_eq!(store.entry(&id, &entry)["origin"], json!({"by": "first"}));
        request["entry_id"] = bare.clone();
        store.ok("update-message", request);
        assert_eq!(store.entry(&id, &bare).get("origin"), None);
    }
}

fn a_wrong_expected_revision_changes_nothing(store: &dyn Door) {
    let id = store.session();
    let entry = store.say(&id, "x");
    store.ok("update-message", update(&id, &entry, "y"));
    let (meta, stored) = (store.meta(&id), store.entry(&id, &entry));
    let mut events = store.listen_to_all();
    a_later_moment();
    for expected in [0, 2, 1_000_000] {
        let mut request = update(&id, &entry, "z");
        request["expected_revision"] = json!(expected);
        assert_eq!(store.ok("update-message", request), json!({"updated": false, "revision": 1}));
    }
    assert_eq!((store.meta(&id), store.entry(&id, &entry)), (meta, stored));
    assert_eq!(events.heard(), []);
}

fn a_right_expected_revision_is_an_update(store: &dyn Door) {
    let id = store.session();
    let entry = store.say(&id, "x");
    for revision in 0..3 {
        let mut request = update(&id, &entry, "z");
        request["expected_revision"] = json!(revision);
        assert_eq!(store.ok("update-message", request), json!({"updated": true, "revision": revision + 1}));
    }
}

fn details_replace_details(store: &dyn Door) {
    let id = store.session();
    for message in [result("c", "r"), note("t", "n")] {
        let entry = store.append(&id, json!({"message": message}));
        let mut request = update(&id, &entry, "new");
        request["details"] = json!({"only": ["new"]});
        store.ok("update-message", request);
        assert_eq!(store.entry(&id, &entry)["message"]["details"], json!({"only": ["new"]}));
        store.ok("update-message", update(&id, &entry, "newer"));
        assert_eq!(store.entry(&id, &entry)["message"]["details"], json!({"only": ["new"]}));
    }
}

fn null_details_change_nothing(store: &dyn Door) {
    let id = store.session();
    for message in [result("c", "r"), user("u"), assistant("a")] {
        let entry = store.append(&id, json!({"message": message}));
        let mut request = update(&id, &entry, "new");
        request["details"] = Value::Null;
        request["usage"] = Value::Null;
        request["expected_revision"] = Value::Null;
        request["origin"] = Value::Null;
        assert_eq!(store.ok("update-message", request), json!({"updated": true, "revision": 1}));
        assert_eq!(store.entry(&id, &entry)["message"].get("details"), message.get("details"));
    }
}

fn usage_replaces_usage_of_an_assistant(store: &dyn Door) {
    let id = store.session();
    let entry = store.append(&id, json!({"message": assistant("a")}));
    let mut request = update(&id, &entry, "ab");
    request["usage"] = json!({"input": 7});
    store.ok("update-message", request);
    let mut expected = assistant("ab");
    expected["usage"] = json!({"input": 7});
    assert_eq!(store.entry(&id, &entry)["message"], expected);
}

fn checks_come_in_order(store: &dyn Door) {
    let id = store.session();
    let custom = store.append(&id, json!({"custom": {"custom_type": "t", "data": 1}}));
    let said = store.say(&id, "x");
    let mut request = update(&json!("nobody"), &json!("nothing"), "new");
    request["details"] = json!({});
    request["usage"] = json!({});
    request["expected_revision"] = json!(9);
    assert_eq!(store.refused("update-message", request.clone()), "session/not_found");
    request["session_id"] = id;
    assert_eq!(store.refused("update-message", request.clone()), "session/entry_not_found");
    request["entry_id"] = custom;
    assert_eq!(store.refused("update-message", request.clone()), "session/invalid_entry_kind");
    request["entry_id"] = said;
    assert_eq!(store.ok("update-message", request.clone()), json!({"updated": false, "revision": 0}));
    request["expected_revision"] = json!(0);
    assert_eq!(store.refused("update-message", request.clone()), "session/invalid_entry_kind");
    request["usage"] = Value::Null;
    assert_eq!(store.refused("update-message", request.clone()), "session/details_not_supported");
    request["details"] = Value::Null;
    assert_eq!(store.ok("update-message", request), json!({"updated": true, "revision": 1}));
}

fn a_mismatch_hides_later_errors(store: &dyn Door) {
    let id = store.session();
    for message in [user("x"), assistant("x"), result("c", "x")] {
        let entry = store.append(&id, json!({"message": message}));
        let mut request = update(&id, &entry, "new");
        request["details"] = json!({});
        request["usage"] = json!({"input": 1});
        request["expected_revision"] = json!(1);
        assert_eq!(store.ok("update-message", request), json!({"updated": false, "revision": 0}));
    }
}

fn a_refused_update_writes_nothing(store: &dyn Door) {
    let id = store.session();
    let entry = store.append(&id, json!({"message": assistant("x")}));
    let (meta, stored) = (store.meta(&id), store.entry(&id, &entry));
    let mut events = store.listen_to_all();
    a_later_moment();
    let mut request = update(&id, &entry, "new");
    request["details"] = json!({});
    store.refused("update-message", request);
    let malformed = json!({"session_id": id, "entry_id": entry, "content": [{"type": "tex", "text": "?"}]});
    assert_eq!(store.refused("update-message", malformed), "session/invalid_request");
    assert_eq!((store.meta(&id), store.entry(&id, &entry)), (meta, stored));
    assert_eq!(events.heard(), []);
}
