//! What the contract does not have: extend-message, expected_leaf, tree, messages-range, bytes.

use serde_json::{Value, json};

use crate::support::*;

scenarios! {
    extending_adds_to_the_last_text_block
    extending_a_chosen_block
    extending_a_message_without_text_adds_a_block
    extending_and_updating_share_one_revision
    extending_changes_updated_at_only
    extending_checks_in_the_order_of_updating
    extending_what_is_no_text_is_refused
    extending_works_on_every_branch_and_on_many_at_once
    an_append_that_expects_the_leaf_is_taken
    an_append_that_expects_another_leaf_is_a_conflict
    a_repeated_append_need_not_expect_the_leaf
    a_tree_shows_every_entry_of_every_branch
    a_tree_of_an_empty_session_has_no_leaf
    bytes_end_a_page_but_never_before_its_first_entry
    a_range_is_read_from_one_entry_to_another
    a_range_can_name_its_entries_in_any_order
    a_range_is_read_page_by_page
    a_range_needs_one_whole_selector
    a_range_of_unknown_entries_is_refused
    a_range_on_another_branch_is_refused
    a_range_is_never_shortened
}

fn extend(store: &dyn Door, session: &Value, entry: &Value, text: &str) -> Value {
    store.ok("extend-message", json!({"session_id": session, "entry_id": entry, "text": text}))
}

fn extending_adds_to_the_last_text_block(store: &dyn Door) {
    let id = store.session();
    let blocks = |last: &str| {
        json!([{"type": "text", "text": "first"}, {"type": "text", "text": last},
            {"type": "function_call", "id": "c", "function_id": "f", "arguments": {}}])
    };
    let entry = store.append(&id, json!({"message": assistant_with(blocks("a"))}));
    let mut whole = "a".to_owned();
    for (revision, token) in (1..).zip(["b", "\u{1f333}\"\\\n\u{0}", "", "ü"]) {
        assert_eq!(extend(store, &id, &entry, token), json!({"updated": true, "revision": revision}));
        whole.push_str(token);
        assert_eq!(store.entry(&id, &entry)["message"], assistant_with(blocks(&whole)));
    }
}

fn extending_a_chosen_block(store: &dyn Door) {
    let id = store.session();
    let blocks = |thinking: &str, text: &str| json!([{"type": "thinking", "text": thinking}, {"type": "text", "text": text}]);
    let entry = store.append(&id, json!({"message": assistant_with(blocks("", ""))}));
    for (block, token) in [(0, "h"), (0, "m"), (1, "s"), (0, "!"), (1, "o")] {
        store.ok("extend-message", json!({"session_id": id, "entry_id": entry, "text": token, "block": block}));
    }
    assert_eq!(store.entry(&id, &entry)["message"], assistant_with(blocks("hm!", "so")));
    assert_eq!(store.entry(&id, &entry)["revision"], 5);
}

fn extending_a_message_without_text_adds_a_block(store: &dyn Door) {
    let id = store.session();
    let thinking = json!({"type": "thinking", "text": "hm"});
    let entry = store.append(&id, json!({"message": assistant_with(json!([thinking]))}));
    extend(store, &id, &entry, "a");
    extend(store, &id, &entry, "b");
    assert_eq!(
        store.entry(&id, &entry)["message"],
        assistant_with(json!([thinking, {"type": "text", "text": "ab"}]))
    );
}

fn extending_and_updating_share_one_revision(store: &dyn Door) {
    let id = store.session();
    let entry = store.append(&id, json!({"message": assistant("a")}));
    extend(store, &id, &entry, "b");
    let answer = store.ok(
        "update-message",
        json!({"session_id": id, "entry_id": entry, "content": text("abc"), "expected_revision": 1}),
    );
    assert_eq!(answer, json!({"updated": true, "revision": 2}));
    store.ok("update-message", json!({"session_id": id, "entry_id": entry, "content": text("new")}));
    let stale = json!({"session_id": id, "entry_id": entry, "text": "!", "expected_revision": 2});
    assert_eq!(store.ok("extend-message", stale), json!({"updated": false, "revision": 3}));
    assert_eq!(extend(store, &id, &entry, "!"), json!({"updated": true, "revision": 4}));
    assert_eq!(store.path(&id), ["new!"]);
}

fn extending_changes_updated_at_only(store: &dyn Door) {
    let id = store.session();
    let entry = store.append(&id, json!({"message": assistant("a"), "origin": {"by": "me"}}));
    let (meta, stored) = (store.meta(&id), store.entry(&id, &entry));
    a_later_moment();
    extend(store, &id, &entry, "b");
    let mut expected = meta.clone();
    expected["updated_at"] = store.meta(&id)["updated_at"].clone();
    assert!(expected["updated_at"].as_i64() > meta["updated_at"].as_i64());
    assert_eq!(store.meta(&id), expected);
    let mut expected = stored;
    expected["revision"] = json!(1);
    expected["message"] = assistant("ab");
    assert_eq!(store.entry(&id, &entry), expected);
}

fn extending_checks_in_the_order_of_updating(store: &dyn Door) {
    let id = store.session();
    let custom = store.append(&id, json!({"custom": {"custom_type": "t", "data": 1}}));
    let said = store.say(&id, "x");
    let mut request =
        json!({"session_id": "nobody", "entry_id": "nothing", "text": "t", "block": 9, "expected_revision": 9});
    assert_eq!(store.refused("extend-message", request.clone()), "session/not_found");
    request["session_id"] = id;
    assert_eq!(store.refused("extend-message", request.clone()), "session/entry_not_found");
    request["entry_id"] = custom;
    assert_eq!(store.refused("extend-message", request.clone()), "session/invalid_entry_kind");
    request["entry_id"] = said;
    assert_eq!(store.ok("extend-message", request.clone()), json!({"updated": false, "revision": 0}));
    request["expected_revision"] = Value::Null;
    assert_eq!(store.refused("extend-message", request), "session/invalid_request");
}

fn extending_what_is_no_text_is_refused(store: &dyn Door) {
    let id = store.session();
    let entry = store.append(&id, json!({"message": calling("c")}));
    let mut events = store.listen_to_all();
    for block in [2, 3, 99] {
        let request = json!({"session_id": id, "entry_id": entry, "text": "t", "block": block});
        assert_eq!(store.refused("extend-message", request), "session/invalid_request");
    }
    assert_eq!(store.entry(&id, &entry)["revision"], 0);
    assert_eq!(events.heard(), []);
}

fn extending_works_on_every_branch_and_on_many_at_once(store: &dyn Door) {
    let id = store.session();
    let root = store.say(&id, "root");
    let entries: Vec<Value> =
        (0..3).map(|_| store.append(&id, json!({"message": assistant(""), "parent_id": root}))).collect();
    for token in ["a", "b", "c"] {
        for entry in &entries {
            extend(store, &id, entry, token);
        }
        store.ok("set-active-leaf", json!({"session_id": id, "entry_id": root}));
        store.say(&id, "between");
    }
    for entry in &entries {
        let entry = store.entry(&id, entry);
        assert_eq!((&entry["message"], &entry["revision"]), (&assistant("abc"), &json!(3)));
    }
}

fn an_append_that_expects_the_leaf_is_taken(store: &dyn Door) {
    let id = store.session();
    let root = store.say(&id, "root");
    let next = store.append(&id, json!({"message": user("next"), "expected_leaf": root}));
    store.append(&id, json!({"message": user("branch"), "expected_leaf": next, "parent_id": root}));
    assert_eq!(store.path(&id), ["root", "branch"]);
}

fn an_append_that_expects_another_leaf_is_a_conflict(store: &dyn Door) {
    let id = store.session();
    let request = |leaf: &Value| json!({"session_id": id, "message": user("x"), "expected_leaf": leaf, "parent_id": "nowhere"});
    assert_eq!(store.refused("append", request(&json!("nothing"))), "session/conflict");
    let root = store.say(&id, "root");
    let leaf = store.say(&id, "leaf");
    let refusal = store.call("append", request(&root)).unwrap_err();
    assert_eq!(refusal.code, "session/conflict");
    assert!(refusal.message.contains(leaf.as_str().unwrap()), "the real leaf is named: {}", refusal.message);
    assert_eq!(store.refused("append", request(&leaf)), "session/parent_not_found");
    assert_eq!(store.path(&id), ["root", "leaf"]);
}

fn a_repeated_append_need_not_expect_the_leaf(store: &dyn Door) {
    let id = store.session();
    let root = store.say(&id, "root");
    let request = json!({"session_id": id, "message": user("x"), "entry_id": "e", "expected_leaf": root});
    let first = store.ok("append", request.clone());
    assert_eq!(store.ok("append", request), first);
}

fn a_tree_shows_every_entry_of_every_branch(store: &dyn Door) {
    let id = store.session();
    let root = store.ok("append", json!({"session_id": id, "message": user("root")}));
    let left = store.ok("append", json!({"session_id": id, "message": assistant("left")}));
    let right = store.ok("append", json!({"session_id": id, "custom": {"custom_type": "mark", "data": [1, 2]}, "parent_id": root["entry_id"]}));
    store.ok("update-message", json!({"session_id": id, "entry_id": root["entry_id"], "content": text("root!")}));
    let size = |body: &Value| body.to_string().len();
    let expected = json!({"session_id": id, "active_leaf": right["entry_id"], "entries": [
        {"entry_id": root["entry_id"], "parent_id": null, "kind": "message", "role": "user", "revision": 1,
            "timestamp": root["timestamp"], "bytes": size(&user("root!")), "on_active_path": true},
        {"entry_id": left["entry_id"], "parent_id": root["entry_id"], "kind": "message", "role": "assistant", "revision": 0,
            "timestamp": left["timestamp"], "bytes": size(&assistant("left")), "on_active_path": false},
        {"entry_id": right["entry_id"], "parent_id": root["entry_id"], "kind": "custom", "custom_type": "mark", "revision": 0,
            "timestamp": right["timestamp"], "bytes": size(&json!([1, 2])), "on_active_path": true},
    ]});
    assert_eq!(store.ok("tree", json!({"session_id": id})), expected);
}

fn a_tree_of_an_empty_session_has_no_leaf(store: &dyn Door) {
    let id = store.session();
    assert_eq!(store.ok("tree", json!({"session_id": id})), json!({"session_id": id, "entries": []}));
}

fn five(store: &dyn Door) -> (Value, Vec<Value>) {
    let id = store.session();
    let mut entries: Vec<Value> = (0..4).map(|n| store.say(&id, &n.to_string())).collect();
    entries.push(store.append(&id, json!({"custom": {"custom_type": "mark", "data": 1}})));
    (id, entries)
}

fn bytes_end_a_page_but_never_before_its_first_entry(store: &dyn Door) {
    let (id, entries) = five(store);
    let each = user("0").to_string().len();
    for (bytes, count) in [(0, 1), (1, 1), (each, 1), (2 * each - 1, 1), (2 * each, 2), (1_000_000, 4)] {
        let page = store.ok("messages", json!({"session_id": id, "bytes": bytes}));
        assert_eq!(ids(&page["messages"]), entries[..count], "{bytes}");
        assert_eq!(page.get("next_cursor").is_some(), count < 4);
        let tail = store.ok("messages-tail", json!({"session_id": id, "bytes": bytes, "include_custom": false}));
        assert_eq!(ids(&tail["messages"]), entries[4 - count..4], "{bytes}");
        let range = json!({"session_id": id, "entry_ids": entries[..4], "bytes": bytes});
        assert_eq!(ids(&store.ok("messages-range", range)["messages"]), entries[..count], "{bytes}");
    }
    assert_eq!(
        store.ok("messages", json!({"session_id": id, "bytes": 1_000_000, "limit": 2}))["messages"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

fn range(store: &dyn Door, session: &Value, mut request: Value) -> Vec<String> {
    request["session_id"] = session.clone();
    texts(&store.ok("messages-range", request)["messages"])
}

fn a_range_is_read_from_one_entry_to_another(store: &dyn Door) {
    let (id, entries) = five(store);
    assert_eq!(
        range(store, &id, json!({"from_entry_id": entries[1], "to_entry_id": entries[4]})),
        ["1", "2", "3", "mark"]
    );
    assert_eq!(
        range(store, &id, json!({"from_entry_id": entries[2], "to_entry_id": entries[2], "entry_ids": null})),
        ["2"]
    );
}

fn a_range_can_name_its_entries_in_any_order(store: &dyn Door) {
    let (id, entries) = five(store);
    let named = json!([entries[4], entries[0], entries[2], entries[0]]);
    assert_eq!(range(store, &id, json!({"entry_ids": named})), ["0", "2", "mark"]);
    assert_eq!(store.ok("messages-range", json!({"session_id": id, "entry_ids": []})), json!({"messages": []}));
}

fn a_range_is_read_page_by_page(store: &dyn Door) {
    let (id, entries) = five(store);
    let first = store.ok(
        "messages-range",
        json!({"session_id": id, "entry_ids": [entries[0], entries[2], entries[4]], "limit": 2}),
    );
    assert_eq!(texts(&first["messages"]), ["0", "2"]);
    assert_eq!(cursor_text(&first["next_cursor"]), format!(r#"{{"id":{}}}"#, entries[2]));
    let rest = json!({"session_id": id, "entry_ids": [entries[0], entries[2], entries[4]], "limit": 2, "cursor": first["next_cursor"]});
    assert_eq!(
        store.ok("messages-range", rest),
        json!({"messages": [{"entry_id": entries[4], "custom": {"custom_type": "mark", "data": 1}}]})
    );
    for bad in [cursor(&json!({"id": entries[1]})), cursor(&json!({"id": "nothing"})), "%".to_owned()] {
        let request = json!({"session_id": id, "entry_ids": [entries[0], entries[2]], "cursor": bad});
        assert_eq!(store.refused("messages-range", request), "session/invalid_cursor");
    }
}

fn a_range_needs_one_whole_selector(store: &dyn Door) {
    let (id, entries) = five(store);
    for request in [
        json!({}),
        json!({"from_entry_id": entries[0]}),
        json!({"to_entry_id": entries[0]}),
        json!({"from_entry_id": entries[0], "to_entry_id": entries[1], "entry_ids": []}),
        json!({"from_entry_id": entries[0], "entry_ids": [entries[1]]}),
        json!({"from_entry_id": entries[1], "to_entry_id": entries[0]}),
    ] {
        let mut request = request;
        request["session_id"] = id.clone();
        assert_eq!(store.refused("messages-range", request), "session/invalid_request");
    }
}

fn a_range_of_unknown_entries_is_refused(store: &dyn Door) {
    let (id, entries) = five(store);
    for request in [
        json!({"session_id": id, "from_entry_id": "nothing", "to_entry_id": entries[0]}),
        json!({"session_id": id, "from_entry_id": entries[0], "to_entry_id": "nothing"}),
        json!({"session_id": id, "entry_ids": [entries[0], "nothing"]}),
    ] {
        assert_eq!(store.refused("messages-range", request), "session/entry_not_found");
    }
}

fn a_range_on_another_branch_is_refused(store: &dyn Door) {
    let (id, entries) = five(store);
    store.append(&id, json!({"message": user("branch"), "parent_id": entries[0]}));
    for request in [
        json!({"session_id": id, "from_entry_id": entries[0], "to_entry_id": entries[2]}),
        json!({"session_id": id, "entry_ids": [entries[0], entries[2]]}),
    ] {
        assert_eq!(store.refused("messages-range", request), "session/invalid_cursor");
    }
}

fn a_range_is_never_shortened(store: &dyn Door) {
    let id = store.session();
    let entries = [calling("1"), result("1", "r"), calling("2")]
        .map(|message| store.append(&id, json!({"message": message})));
    let page = store
        .ok("messages-range", json!({"session_id": id, "from_entry_id": entries[0], "to_entry_id": entries[2]}));
    let expected = json!([
        {"entry_id": entries[0], "message": calling("1")},
        {"entry_id": entries[1], "message": result("1", "r")},
        {"entry_id": entries[2], "message": calling("2")},
    ]);
    assert_eq!(page, json!({"messages": expected}));
}
