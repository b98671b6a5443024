//! New entries: append, append-many.

use serde_json::{Value, json};

use crate::support::*;

scenarios! {
    the_first_entry_has_no_parent
    each_entry_follows_the_active_leaf
    a_null_parent_is_no_second_root
    an_explicit_parent_branches_and_moves_the_leaf
    custom_entries_are_chained_but_not_counted
    every_kind_of_message_is_stored_as_it_came
    opaque_json_is_kept
    an_append_sets_updated_at_to_the_entrys_timestamp
    an_origin_is_stored
    the_callers_entry_id_is_kept_even_an_empty_one
    repeating_an_entry_id_changes_nothing
    a_repeated_append_needs_no_valid_parent_and_no_same_kind
    an_entry_id_belongs_to_its_session
    exactly_one_body_is_needed
    checks_come_in_order
    a_batch_chains_its_messages
    a_batch_branches_at_an_explicit_parent
    a_batch_shares_one_timestamp_and_one_origin
    a_batch_is_not_idempotent
    a_batch_of_one_is_a_batch
    checks_of_a_batch_come_in_order
}

fn the_first_entry_has_no_parent(store: &dyn Door) {
    let id = store.session();
    let before = now();
    let appended = store.ok("append", json!({"session_id": id, "message": user("hi")}));
    let at = appended["timestamp"].as_i64().unwrap();
    assert!((before..=now()).contains(&at));
    assert_eq!(appended, json!({"entry_id": appended["entry_id"], "parent_id": null, "timestamp": at}));
    let entry = json!({"kind": "message", "id": appended["entry_id"], "parent_id": null, "timestamp": at,
        "revision": 0, "message": user("hi")});
    assert_eq!(
        store.ok("get-message", json!({"session_id": id, "entry_id": appended["entry_id"]})),
        json!({"entry": entry})
    );
}

fn each_entry_follows_the_active_leaf(store: &dyn Door) {
    let id = store.session();
    let first = store.say(&id, "one");
    let second = store.ok("append", json!({"session_id": id, "message": user("two"), "parent_id": null}));
    let third = store.ok("append", json!({"session_id": id, "message": user("three")}));
    assert_eq!([&second["parent_id"], &third["parent_id"]], [&first, &second["entry_id"]]);
    assert_eq!(store.path(&id), ["one", "two", "three"]);
    assert_eq!(store.meta(&id)["message_count"], 3);
}

fn a_null_parent_is_no_second_root(store: &dyn Door) {
    let id = store.session();
    let root = store.say(&id, "root");
    let next = store.ok(
        "append",
        json!({"session_id": id, "message": user("next"), "parent_id": null, "entry_id": null,
        "custom": null, "origin": null, "expected_leaf": null}),
    );
    assert_eq!(next["parent_id"], root);
}

fn an_explicit_parent_branches_and_moves_the_leaf(store: &dyn Door) {
    let id = store.session();
    let root = store.say(&id, "root");
    store.say(&id, "left");
    let right = store.ok("append", json!({"session_id": id, "message": user("right"), "parent_id": root}));
    assert_eq!(right["parent_id"], root);
    assert_eq!(store.path(&id), ["root", "right"]);
    store.say(&id, "right of right");
    assert_eq!(store.path(&id), ["root", "right", "right of right"]);
    assert_eq!(store.meta(&id)["message_count"], 4);
}

fn custom_entries_are_chained_but_not_counted(store: &dyn Door) {
    let id = store.session();
    let root = store.say(&id, "root");
    let request =
        json!({"session_id": id, "custom": {"custom_type": "mark", "data": {"x": [1]}}, "origin": {"by": "app"}});
    let custom = store.ok("append", request);
    assert_eq!(custom["parent_id"], root);
    let after = store.ok("append", json!({"session_id": id, "message": user("after")}));
    assert_eq!(after["parent_id"], custom["entry_id"]);
    assert_eq!(store.meta(&id)["message_count"], 2);
    let entry = json!({"kind": "custom", "id": custom["entry_id"], "parent_id": root, "timestamp": custom["timestamp"],
        "revision": 0, "origin": {"by": "app"}, "custom_type": "mark", "data": {"x": [1]}});
    assert_eq!(store.entry(&id, &custom["entry_id"]), entry);
}

fn every_kind_of_message_is_stored_as_it_came(store: &dyn Door) {
    let id = store.session();
    let content = json!([
        {"type": "text", "text": "t\u{0}\n\"ü\u{1f333}"},
        {"type": "image", "mime": "image/png", "data": "aGk="},
        {"type": "image", "mime": "image/png", "data": "", "attachment_id": "a_1"},
        {"type": "thinking", "text": "hm", "signature": "seal"},
        {"type": "function_call", "id": "c", "function_id": "f", "arguments": {"deep": [1.5, null]}},
        {"type": "function_result", "function_call_id": "c", "content": [{"type": "text", "text": "in"}], "is_error": true},
        {"type": "file", "attachment_id": "a_1", "name": "n", "mime": "m", "size": 3},
    ]);
    let mut full = assistant_with(content.clone());
    full["native_stop_reason"] = json!("stop");
    full["error_kind"] = json!("rate_limited");
    full["error_message"] = json!("slow down");
    full["usage"] =
        json!({"input": 1, "output": 2, "cache_read": 3, "cache_write": 4, "reasoning": 5, "cost_usd": 0.25});
    full["warnings"] = json!(["w"]);
    let mut shown = note("card", "shown");
    shown["display"] = json!("short");
    shown["details"] = json!({"k": "v"});
    let messages = [
        json!({"role": "user", "content": content, "timestamp": -5}),
        full,
        result("c", "done"),
        shown,
        note("bare", ""),
        json!({"role": "user", "content": [], "timestamp": 0}),
    ];
    for message in &messages {
        let entry = store.append(&id, json!({"message": message}));
        assert_eq!(&store.entry(&id, &entry)["message"], message);
    }
    let page = store.ok("messages", json!({"session_id": id}));
    let read: Vec<Value> =
        page["messages"].as_array().unwrap().iter().map(|item| item["message"].clone()).collect();
    assert_eq!(read, messages);
}

fn opaque_json_is_kept(store: &dyn Door) {
    let id = store.session();
    let data = [
        json!(null),
        json!([]),
        json!({}),
        json!("text"),
        json!(1e300),
        json!({"z": 1, "a": {"y": [true, -0.5]}}),
    ];
    for data in data {
        let entry = store.append(&id, json!({"custom": {"custom_type": "any", "data": data}}));
        assert_eq!(store.entry(&id, &entry)["data"], data);
    }
    let without = store.append(&id, json!({"custom": {"custom_type": "any"}}));
    assert_eq!(store.entry(&id, &without)["data"], Value::Null);
}

fn an_append_sets_updated_at_to_the_entrys_timestamp(store: &dyn Door) {
    let id = store.session();
    a_later_moment();
    let appended = store.ok("append", json!({"session_id": id, "message": user("hi")}));
    let meta = store.meta(&id);
    assert_eq!(meta["updated_at"], appended["timestamp"]);
    assert!(meta["updated_at"].as_i64() > meta["created_at"].as_i64());
}

fn an_origin_is_stored(store: &dyn Door) {
    let id = store.session();
    let origin = json!({"worker": "w", "nested": {"n": [1, 2]}});
    let entry = store.append(&id, json!({"message": user("hi"), "origin": origin}));
    assert_eq!(store.entry(&id, &entry)["origin"], origin);
    assert_eq!(
        store.refused("append", json!({"session_id": id, "message": user("x"), "origin": "w"})),
        "session/invalid_request"
    );
}

fn the_callers_entry_id_is_kept_even_an_empty_one(store: &dyn Door) {
    let id = store.session();
    let long = "e".repeat(10_000);
    for entry_id in [
        "",
        "mine",
        "with \"quotes\"\n",
        "e_0123456789abcdef0123456789abcdef",
        "e_0123456789ABCDEF0123456789ABCDEF",
        &long,
    ] {
        let appended =
            store.ok("append", json!({"session_id": id, "message": user(entry_id), "entry_id": entry_id}));
        assert_eq!(appended["entry_id"], entry_id);
        assert_eq!(store.entry(&id, &json!(entry_id))["message"], user(entry_id));
    }
    assert_eq!(store.meta(&id)["message_count"], 6);
}

fn repeating_an_entry_id_changes_nothing(store: &dyn Door) {
    let id = store.session();
    store.say(&id, "root");
    let request = json!({"session_id": id, "message": user("once"), "entry_id": "e"});
    let first = store.ok("append", request.clone());
    store.say(&id, "leaf");
    let (meta, path) = (store.meta(&id), store.path(&id));
    let mut events = store.listen_to_all();
    a_later_moment();
    assert_eq!(store.ok("append", request), first);
    assert_eq!(store.meta(&id), meta);
    assert_eq!(store.path(&id), path);
    assert_eq!(events.heard(), []);
}

fn a_repeated_append_needs_no_valid_parent_and_no_same_kind(store: &dyn Door) {
    let id = store.session();
    let first = store.ok("append", json!({"session_id": id, "message": user("once"), "entry_id": "e"}));
    for again in [
        json!({"session_id": id, "message": assistant("other"), "entry_id": "e"}),
        json!({"session_id": id, "custom": {"custom_type": "t", "data": 1}, "entry_id": "e", "parent_id": "nowhere"}),
        json!({"session_id": id, "message": user("once"), "entry_id": "e", "parent_id": "e", "origin": {"a": 1}}),
    ] {
        assert_eq!(store.ok("append", again), first);
    }
    assert_eq!(store.entry(&id, &json!("e"))["message"], user("once"));
    assert_eq!(store.meta(&id)["message_count"], 1);
}

fn an_entry_id_belongs_to_its_session(store: &dyn Door) {
    for text in ["one", "other"] {
        let id = store.session();
        store.append(&id, json!({"message": user(text), "entry_id": "same"}));
        assert_eq!(store.path(&id), [text]);
    }
}

fn exactly_one_body_is_needed(store: &dyn Door) {
    let id = store.session();
    let custom = json!({"custom_type": "t", "data": 1});
    for request in [
        json!({"session_id": id}),
        json!({"session_id": id, "message": null, "custom": null}),
        json!({"session_id": id, "message": user("hi"), "custom": custom}),
        // A list is no object, whatever is in it.
        json!({"session_id": id, "custom": ["t", 1]}),
        json!({"session_id": id, "message": {"role": "assistant", "content": [], "model": "m", "provider": "p",
            "stop_reason": "end", "timestamp": 1, "usage": [1, 2, 3, 4, 5, 0.5]}}),
    ] {
        assert_eq!(store.refused("append", request), "session/invalid_request");
    }
    assert_eq!(store.path(&id), [""; 0]);
}

fn checks_come_in_order(store: &dyn Door) {
    let id = store.session();
    store.append(&id, json!({"message": user("known"), "entry_id": "e"}));
    assert_eq!(store.refused("append", json!({"session_id": "nobody"})), "session/not_found");
    let request = json!({"session_id": id, "entry_id": "e", "parent_id": "nowhere"});
    assert_eq!(store.refused("append", request), "session/invalid_request");
    let request = json!({"session_id": id, "message": user("x"), "parent_id": "nowhere"});
    assert_eq!(store.refused("append", request), "session/parent_not_found");
    let itself = json!({"session_id": id, "message": user("x"), "entry_id": "new", "parent_id": "new"});
    assert_eq!(store.refused("append", itself), "session/parent_not_found");
    assert_eq!(store.path(&id), ["known"]);
}

fn a_batch_chains_its_messages(store: &dyn Door) {
    let id = store.session();
    let root = store.say(&id, "root");
    let answer = store
        .ok("append-many", json!({"session_id": id, "messages": [user("a"), assistant("b"), result("c", "c")]}));
    let ids = answer["entry_ids"].as_array().unwrap();
    assert_eq!(answer, json!({"entry_ids": ids, "last_entry_id": ids[2]}));
    let parents: Vec<Value> = ids.iter().map(|entry| store.entry(&id, entry)["parent_id"].clone()).collect();
    assert_eq!(parents, [root, ids[0].clone(), ids[1].clone()]);
    assert_eq!(store.path(&id), ["root", "a", "b", "c"]);
    assert_eq!(store.meta(&id)["message_count"], 4);
    assert_eq!(store.ok("append", json!({"session_id": id, "message": user("d")}))["parent_id"], ids[2]);
}

fn a_batch_branches_at_an_explicit_parent(store: &dyn Door) {
    let id = store.session();
    let root = store.say(&id, "root");
    store.say(&id, "left");
    store.ok("append-many", json!({"session_id": id, "messages": [user("a"), user("b")], "parent_id": root}));
    assert_eq!(store.path(&id), ["root", "a", "b"]);
}

fn a_batch_shares_one_timestamp_and_one_origin(store: &dyn Door) {
    let id = store.session();
    a_later_moment();
    let messages: Vec<Value> = (0..50).map(|n| user(&n.to_string())).collect();
    let answer =
        store.ok("append-many", json!({"session_id": id, "messages": messages, "origin": {"by": "import"}}));
    let at = store.meta(&id)["updated_at"].clone();
    for entry in answer["entry_ids"].as_array().unwrap() {
        let entry = store.entry(&id, entry);
        assert_eq!(
            [&entry["timestamp"], &entry["origin"], &entry["revision"]],
            [&at, &json!({"by": "import"}), &json!(0)]
        );
    }
}

fn a_batch_is_not_idempotent(store: &dyn Door) {
    let id = store.session();
    let request = json!({"session_id": id, "messages": [user("a")]});
    assert_ne!(store.ok("append-many", request.clone()), store.ok("append-many", request));
    assert_eq!(store.path(&id), ["a", "a"]);
}

fn a_batch_of_one_is_a_batch(store: &dyn Door) {
    let id = store.session();
    let answer = store
        .ok("append-many", json!({"session_id": id, "messages": [user("a")], "parent_id": null, "origin": null}));
    assert_eq!(answer["entry_ids"], json!([answer["last_entry_id"]]));
    assert_eq!(store.entry(&id, &answer["last_entry_id"])["parent_id"], Value::Null);
}

fn checks_of_a_batch_come_in_order(store: &dyn Door) {
    let id = store.session();
    let mut events = store.listen_to_all();
    assert_eq!(store.refused("append-many", json!({"session_id": "nobody", "messages": []})), "session/not_found");
    let request = json!({"session_id": id, "messages": [], "parent_id": "nowhere"});
    assert_eq!(store.refused("append-many", request), "session/empty_batch");
    let request = json!({"session_id": id, "messages": [user("a")], "parent_id": "nowhere"});
    assert_eq!(store.refused("append-many", request), "session/parent_not_found");
    let one_bad = json!({"session_id": id, "messages": [user("a"), {"role": "user"}]});
    assert_eq!(store.refused("append-many", one_bad), "session/invalid_request");
    assert_eq!(store.path(&id), [""; 0]);
    assert_eq!(events.heard(), []);
}
