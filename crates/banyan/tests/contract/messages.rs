//! Reading the active path: messages, get-message.

use serde_json::{Value, json};

use crate::support::*;

scenarios! {
    a_session_without_entries_reads_as_an_empty_page
    the_path_is_read_oldest_first
    another_branch_can_be_read_from_its_end
    from_entry_id_ends_the_path_before_the_leaf
    custom_entries_are_left_out_unless_asked_for
    roles_choose_messages
    no_roles_choose_nothing
    items_hold_an_id_and_one_body
    pages_follow_one_another_by_cursor
    a_cursor_is_padded_base64_of_the_last_entry_id
    a_cursor_is_resolved_on_the_filtered_path
    a_cursor_off_the_path_is_refused
    a_cursor_that_is_no_cursor_is_refused
    after_entry_id_resumes_strictly_after
    a_cursor_wins_over_after_entry_id
    new_entries_are_found_by_going_on
    a_limit_is_clamped
    the_default_limit_is_fifty
    reading_changes_nothing
    get_message_reads_any_entry_of_any_branch
    get_message_is_null_for_what_does_not_exist
    image_data_can_be_left_out_when_it_is_an_attachment
    long_content_is_read_as_it_was_written
}

/// A user, a mark and an assistant, three times over.
fn nine(store: &dyn Door) -> (Value, Vec<Value>) {
    let id = store.session();
    let mut entries = Vec::new();
    for n in 0..3 {
        entries.push(store.say(&id, &format!("u{n}")));
        entries.push(
            store.append(&id, json!({"custom": {"custom_type": format!("c{n}"), "data": n}, "origin": {"n": n}})),
        );
        entries.push(store.append(&id, json!({"message": assistant(&format!("a{n}")), "origin": {"n": n}})));
    }
    (id, entries)
}

fn read(store: &dyn Door, session: &Value, mut request: Value) -> Vec<String> {
    request["session_id"] = session.clone();
    texts(&store.ok("messages", request)["messages"])
}

fn a_session_without_entries_reads_as_an_empty_page(store: &dyn Door) {
    let id = store.session();
    assert_eq!(store.ok("messages", json!({"session_id": id})), json!({"messages": []}));
    assert_eq!(store.refused("messages", json!({"session_id": "nobody"})), "session/not_found");
}

fn the_path_is_read_oldest_first(store: &dyn Door) {
    let (id, _) = nine(store);
    assert_eq!(read(store, &id, json!({})), ["u0", "a0", "u1", "a1", "u2", "a2"]);
    let nulls = json!({"limit": null, "cursor": null, "roles": null, "from_entry_id": null, "include_custom": null, "after_entry_id": null});
    assert_eq!(read(store, &id, nulls), ["u0", "a0", "u1", "a1", "u2", "a2"]);
}

fn another_branch_can_be_read_from_its_end(store: &dyn Door) {
    let (id, entries) = nine(store);
    store.append(&id, json!({"message": user("branch"), "parent_id": entries[0]}));
    assert_eq!(read(store, &id, json!({})), ["u0", "branch"]);
    assert_eq!(read(store, &id, json!({"from_entry_id": entries[5]})), ["u0", "a0", "u1", "a1"]);
    let request = json!({"session_id": id, "from_entry_id": "nothing"});
    assert_eq!(store.refused("messages", request), "session/entry_not_found");
}

fn from_entry_id_ends_the_path_before_the_leaf(store: &dyn Door) {
    let (id, entries) = nine(store);
    assert_eq!(read(store, &id, json!({"from_entry_id": entries[3]})), ["u0", "a0", "u1"]);
    assert_eq!(read(store, &id, json!({"from_entry_id": entries[1], "include_custom": true})), ["u0", "c0"]);
    assert_eq!(read(store, &id, json!({"from_entry_id": entries[1]})), ["u0"]);
}

fn custom_entries_are_left_out_unless_asked_for(store: &dyn Door) {
    let (id, _) = nine(store);
    assert_eq!(read(store, &id, json!({"include_custom": false})), ["u0", "a0", "u1", "a1", "u2", "a2"]);
    assert_eq!(
        read(store, &id, json!({"include_custom": true})),
        ["u0", "c0", "a0", "u1", "c1", "a1", "u2", "c2", "a2"]
    );
}

fn roles_choose_messages(store: &dyn Door) {
    let (id, _) = nine(store);
    store.append(&id, json!({"message": note("t", "n")}));
    store.append(&id, json!({"message": result("c", "r")}));
    assert_eq!(read(store, &id, json!({"roles": ["user"]})), ["u0", "u1", "u2"]);
    assert_eq!(
        read(store, &id, json!({"roles": ["assistant", "user"], "include_custom": true})),
        ["u0", "a0", "u1", "a1", "u2", "a2"]
    );
    assert_eq!(read(store, &id, json!({"roles": ["custom"], "include_custom": true})), ["n"]);
    assert_eq!(read(store, &id, json!({"roles": ["function_result"]})), ["r"]);
    assert_eq!(
        store.refused("messages", json!({"session_id": id, "roles": ["system"]})),
        "session/invalid_request"
    );
}

fn no_roles_choose_nothing(store: &dyn Door) {
    let (id, _) = nine(store);
    assert_eq!(
        store.ok("messages", json!({"session_id": id, "roles": [], "include_custom": true})),
        json!({"messages": []})
    );
}

fn items_hold_an_id_and_one_body(store: &dyn Door) {
    let (id, entries) = nine(store);
    let page = store.ok("messages", json!({"session_id": id, "limit": 3, "include_custom": true}));
    let expected = json!([
        {"entry_id": entries[0], "message": user("u0")},
        {"entry_id": entries[1], "custom": {"custom_type": "c0", "data": 0}},
        {"entry_id": entries[2], "message": assistant("a0"), "origin": {"n": 0}},
    ]);
    assert_eq!(page["messages"], expected);
}

fn pages_follow_one_another_by_cursor(store: &dyn Door) {
    let (id, _) = nine(store);
    for limit in 1..=9 {
        for filter in [json!({}), json!({"include_custom": true}), json!({"roles": ["assistant"]})] {
            let whole = read(store, &id, filter.clone());
            let mut request = filter.clone();
            request["session_id"] = id.clone();
            request["limit"] = json!(limit);
            let mut all = Vec::new();
            loop {
                let page = store.ok("messages", request.clone());
                all.extend(texts(&page["messages"]));
                let more = all.len() < whole.len();
                assert_eq!(page.get("next_cursor").is_some(), more, "a cursor only when more remains");
                if !more {
                    break;
                }
                request["cursor"] = page["next_cursor"].clone();
            }
            assert_eq!(all, whole, "{filter} by {limit}");
        }
    }
}

fn a_cursor_is_padded_base64_of_the_last_entry_id(store: &dyn Door) {
    let (id, entries) = nine(store);
    let page = store.ok("messages", json!({"session_id": id, "limit": 2}));
    assert_eq!(cursor_text(&page["next_cursor"]), format!(r#"{{"id":{}}}"#, entries[2]));
}

fn a_cursor_is_resolved_on_the_filtered_path(store: &dyn Door) {
    let (id, entries) = nine(store);
    let at = |n: usize| cursor(&json!({"id": entries[n]}));
    assert_eq!(read(store, &id, json!({"cursor": at(5), "roles": ["assistant"]})), ["a2"]);
    assert_eq!(read(store, &id, json!({"cursor": at(8)})), [""; 0]);
    for (entry, filter) in [
        (3, json!({"roles": ["assistant"]})),
        (4, json!({})),
        (4, json!({"roles": ["user"], "include_custom": true})),
    ] {
        let mut request = filter;
        request["session_id"] = id.clone();
        request["cursor"] = json!(at(entry));
        assert_eq!(store.refused("messages", request), "session/invalid_cursor");
    }
}

fn a_cursor_off_the_path_is_refused(store: &dyn Door) {
    let (id, entries) = nine(store);
    let page = store.ok("messages", json!({"session_id": id, "limit": 3}));
    store.append(&id, json!({"message": user("branch"), "parent_id": entries[0]}));
    let mut request = json!({"session_id": id, "cursor": page["next_cursor"]});
    assert_eq!(store.refused("messages", request.clone()), "session/invalid_cursor");
    request["from_entry_id"] = entries[8].clone();
    assert_eq!(texts(&store.ok("messages", request)["messages"]), ["a1", "u2", "a2"]);
}

fn a_cursor_that_is_no_cursor_is_refused(store: &dyn Door) {
    let (id, _) = nine(store);
    let unknown = cursor(&json!({"id": "nothing"}));
    for bad in ["", "%", "bm90IGpzb24=", &cursor(&json!({})), &cursor(&json!({"id": 1})), &unknown] {
        assert_eq!(
            store.refused("messages", json!({"session_id": id, "cursor": bad})),
            "session/invalid_cursor",
            "{bad:?}"
        );
    }
    assert_eq!(store.refused("messages", json!({"session_id": "nobody", "cursor": ""})), "session/not_found");
}

fn after_entry_id_resumes_strictly_after(store: &dyn Door) {
    let (id, entries) = nine(store);
    assert_eq!(read(store, &id, json!({"after_entry_id": entries[2], "limit": 2})), ["u1", "a1"]);
    assert_eq!(read(store, &id, json!({"after_entry_id": entries[8]})), [""; 0]);
    for off_path in [json!("nothing"), entries[1].clone()] {
        let request = json!({"session_id": id, "after_entry_id": off_path});
        assert_eq!(store.refused("messages", request), "session/invalid_cursor");
    }
}

fn a_cursor_wins_over_after_entry_id(store: &dyn Door) {
    let (id, entries) = nine(store);
    let request = json!({"cursor": cursor(&json!({"id": entries[6]})), "after_entry_id": "nothing"});
    assert_eq!(read(store, &id, request), ["a2"]);
}

fn new_entries_are_found_by_going_on(store: &dyn Door) {
    let (id, entries) = nine(store);
    store.say(&id, "new");
    assert_eq!(read(store, &id, json!({"cursor": cursor(&json!({"id": entries[8]}))})), ["new"]);
}

fn a_limit_is_clamped(store: &dyn Door) {
    let (id, _) = nine(store);
    assert_eq!(read(store, &id, json!({"limit": 0})), ["u0"]);
    assert_eq!(read(store, &id, json!({"limit": 1_000_000})).len(), 6);
    assert_eq!(store.refused("messages", json!({"session_id": id, "limit": -1})), "session/invalid_request");
}

fn the_default_limit_is_fifty(store: &dyn Door) {
    let id = store.session();
    let messages: Vec<Value> = (0..510).map(|n| user(&n.to_string())).collect();
    store.ok("append-many", json!({"session_id": id, "messages": messages}));
    assert_eq!(read(store, &id, json!({})).len(), 50);
    assert_eq!(read(store, &id, json!({"limit": 505})).len(), 500);
}

fn reading_changes_nothing(store: &dyn Door) {
    let (id, entries) = nine(store);
    let before = store.meta(&id);
    let mut events = store.listen_to_all();
    a_later_moment();
    store.path(&id);
    store.entry(&id, &entries[0]);
    store.ok("list", json!({}));
    store.ok("tree", json!({"session_id": id}));
    assert_eq!(store.meta(&id), before);
    assert_eq!(events.heard(), []);
}

fn get_message_reads_any_entry_of_any_branch(store: &dyn Door) {
    let (id, entries) = nine(store);
    store.append(&id, json!({"message": user("branch"), "parent_id": entries[0]}));
    assert_eq!(store.entry(&id, &entries[8])["message"], assistant("a2"));
    assert_eq!(store.entry(&id, &entries[7])["custom_type"], "c2");
}

fn get_message_is_null_for_what_does_not_exist(store: &dyn Door) {
    let id = store.session();
    for (session, entry) in [(&id, "nothing"), (&json!("nobody"), "nothing"), (&json!(""), "")] {
        assert_eq!(store.ok("get-message", json!({"session_id": session, "entry_id": entry})), Value::Null);
    }
}

fn image_data_can_be_left_out_when_it_is_an_attachment(store: &dyn Door) {
    let id = store.session();
    let images = |linked: &str| {
        json!([
            {"type": "image", "mime": "image/png", "data": "b25l"},
            {"type": "image", "mime": "image/png", "data": linked, "attachment_id": "a_1"},
        ])
    };
    let message = |linked: &str| {
        let inner = json!([{"type": "function_result", "function_call_id": "c", "content": images(linked)}]);
        let blocks = [images(linked).as_array().unwrap().clone(), inner.as_array().unwrap().clone()].concat();
        json!({"role": "user", "content": blocks, "timestamp": 1})
    };
    let entry = store.append(&id, json!({"message": message("dHdv")}));
    for (include, linked) in [(json!(false), ""), (json!(true), "dHdv"), (Value::Null, "dHdv")] {
        let request = json!({"session_id": id, "include_image_data": include});
        let expected = json!([{"entry_id": entry, "message": message(linked)}]);
        assert_eq!(store.ok("messages", request.clone())["messages"], expected);
        assert_eq!(store.ok("messages-tail", request)["messages"], expected);
        let request = json!({"session_id": id, "entry_ids": [entry], "include_image_data": include});
        assert_eq!(store.ok("messages-range", request)["messages"], expected);
        let request = json!({"session_id": id, "entry_id": entry, "include_image_data": include});
        assert_eq!(store.ok("get-message", request)["entry"]["message"], message(linked));
    }
}

fn long_content_is_read_as_it_was_written(store: &dyn Door) {
    let id = store.session();
    let long = "long \u{1f333}\n\"".repeat(20_000);
    let picture = base64(&[7; 100_000]);
    let message = json!({"role": "user", "timestamp": 1, "content": [
        {"type": "text", "text": long}, {"type": "image", "mime": "image/png", "data": picture}]});
    let entry = store.append(&id, json!({"message": message}));
    let custom = store.append(&id, json!({"custom": {"custom_type": "big", "data": {"deep": [long, 1]}}}));
    assert_eq!(store.entry(&id, &entry)["message"], message);
    assert_eq!(store.entry(&id, &custom)["data"], json!({"deep": [long, 1]}));
    assert_eq!(store.ok("messages", json!({"session_id": id}))["messages"][0]["message"], message);
    store.ok("update-message", json!({"session_id": id, "entry_id": entry, "content": text(&format!("{long}!"))}));
    assert_eq!(store.entry(&id, &entry)["message"]["content"], text(&format!("{long}!")));
}
