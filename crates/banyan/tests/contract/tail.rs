//! The newest page, an agent's activity shortened: messages-tail.

use serde_json::{Value, json};

use crate::support::*;

scenarios! {
    a_tail_of_an_empty_session_is_empty
    a_tail_is_the_newest_page_oldest_first
    a_tail_is_read_backwards_page_by_page
    a_limit_counts_blocks
    the_last_calls_of_a_run_stay_whole
    a_run_without_calls_keeps_only_its_wakes
    wakes_belong_to_a_run_and_stay_whole
    an_assistant_without_calls_ends_a_run
    before_an_entry_of_a_run_is_before_the_run
    until_widens_the_page_backwards
    anchors_off_the_path_are_refused
    custom_entries_are_shown_unless_left_out
    leaving_out_custom_entries_joins_the_runs_around_them
    a_call_to_another_agent_says_what_it_is_about
    shortening_leaves_storage_untouched
}

fn tail(store: &dyn Door, session: &Value, mut request: Value) -> Value {
    request["session_id"] = session.clone();
    store.ok("messages-tail", request)
}

fn shown(page: &Value) -> Vec<String> {
    let items = page["messages"].as_array().unwrap();
    let mark = |item: &Value| if item["elided"] == json!(true) { "~" } else { "" };
    texts(&page["messages"]).iter().zip(items).map(|(text, item)| format!("{}{text}", mark(item))).collect()
}

fn shortened_call(call: &str) -> Value {
    assistant_with(json!([
        {"type": "text", "text": "calling"},
        {"type": "function_call", "id": call, "function_id": "f", "arguments": {}},
    ]))
}

fn shortened_result(call: &str) -> Value {
    let mut short = result(call, "");
    short["content"] = json!([]);
    short["details"] = Value::Null;
    short
}

/// A question, two rounds of calls, an answer, and a question again.
fn conversation(store: &dyn Door) -> (Value, Vec<Value>) {
    let id = store.session();
    let messages = [
        user("q"),
        calling("1"),
        result("1", "r1"),
        calling("2"),
        result("2", "r2"),
        assistant("answer"),
        user("q2"),
    ];
    let entries = messages.map(|message| store.append(&id, json!({"message": message}))).to_vec();
    (id, entries)
}

fn a_tail_of_an_empty_session_is_empty(store: &dyn Door) {
    let id = store.session();
    assert_eq!(tail(store, &id, json!({})), json!({"messages": [], "has_more": false}));
}

fn a_tail_is_the_newest_page_oldest_first(store: &dyn Door) {
    let id = store.session();
    let entries: Vec<Value> =
        (0..5).map(|n| store.append(&id, json!({"message": user(&n.to_string()), "origin": {"n": n}}))).collect();
    let expected = json!([
        {"entry_id": entries[3], "message": user("3"), "origin": {"n": 3}},
        {"entry_id": entries[4], "message": user("4"), "origin": {"n": 4}},
    ]);
    assert_eq!(
        tail(store, &id, json!({"limit": 2})),
        json!({"messages": expected, "has_more": true, "oldest_entry_id": entries[3]})
    );
    assert_eq!(tail(store, &id, json!({"limit": 5}))["has_more"], false);
    assert_eq!(shown(&tail(store, &id, json!({"limit": 0}))), ["4"]);
    store.ok("set-active-leaf", json!({"session_id": id, "entry_id": entries[1]}));
    assert_eq!(shown(&tail(store, &id, json!({}))), ["0", "1"]);
}

fn a_tail_is_read_backwards_page_by_page(store: &dyn Door) {
    let (id, _) = conversation(store);
    for limit in 1..=5 {
        let mut request = json!({"limit": limit});
        let mut read = Vec::new();
        loop {
            let page = tail(store, &id, request.clone());
            let mut items = ids(&page["messages"]);
            assert_eq!(page["oldest_entry_id"], items[0]);
            items.extend(read);
            read = items;
            if page["has_more"] == json!(false) {
                break;
            }
            request["before_entry_id"] = page["oldest_entry_id"].clone();
        }
        let path = store.ok("messages", json!({"session_id": id}));
        assert_eq!(read, ids(&path["messages"]), "by {limit}");
    }
}

fn a_limit_counts_blocks(store: &dyn Door) {
    let (id, entries) = conversation(store);
    for (limit, oldest) in [(1, 6), (2, 5), (3, 1), (4, 0)] {
        let page = tail(store, &id, json!({"limit": limit}));
        assert_eq!(page["oldest_entry_id"], entries[oldest]);
        assert_eq!(page["has_more"], oldest > 0);
    }
}

fn the_last_calls_of_a_run_stay_whole(store: &dyn Door) {
    let (id, entries) = conversation(store);
    let page = tail(store, &id, json!({}));
    let whole = |at: usize, message: Value| json!({"entry_id": entries[at], "message": message});
    let short = |at: usize, message: Value| json!({"entry_id": entries[at], "message": message, "elided": true});
    let expected = json!([
        whole(0, user("q")),
        short(1, shortened_call("1")),
        short(2, shortened_result("1")),
        whole(3, calling("2")),
        whole(4, result("2", "r2")),
        whole(5, assistant("answer")),
        whole(6, user("q2")),
    ]);
    assert_eq!(page["messages"], expected);
}

fn a_run_without_calls_keeps_only_its_wakes(store: &dyn Door) {
    let id = store.session();
    let first = store.append(&id, json!({"message": result("1", "r1")}));
    let wake = store.append(&id, json!({"message": user("wake"), "origin": {"notification": true}}));
    let page = tail(store, &id, json!({}));
    let expected = json!([
        {"entry_id": first, "message": shortened_result("1"), "elided": true},
        {"entry_id": wake, "message": user("wake"), "origin": {"notification": true}},
    ]);
    assert_eq!(page["messages"], expected);
}

fn wakes_belong_to_a_run_and_stay_whole(store: &dyn Door) {
    let prefixes = [
        "e_fire_",
        "e_notify_",
        "e_expire_",
        "e_stalespawn_",
        "e_claimfail_",
        "e_condfail_",
        "e_trigfired_",
        "e_trigexpired_",
        "e_trigstale_",
    ];
    let mut wakes = vec![
        json!({"message": user("w"), "origin": {"notification": true}}),
        json!({"message": user("w"), "origin": {"trigger_fired": true, "other": 1}}),
        json!({"message": note("t", "w"), "origin": {"notification": true}}),
        json!({"message": note("trigger_fired", "w")}),
        json!({"custom": {"custom_type": "trigger_fired", "data": 1}}),
        json!({"custom": {"custom_type": "w", "data": 1}, "origin": {"trigger_fired": true}}),
    ];
    wakes.extend(prefixes.map(|prefix| json!({"message": user("w"), "entry_id": format!("{prefix}1")})));
    wakes.push(json!({"custom": {"custom_type": "w", "data": 1}, "entry_id": "e_fire_2"}));
    for wake in wakes {
        let id = store.session();
        store.append(&id, json!({"message": calling("1")}));
        store.append(&id, wake.clone());
        store.append(&id, json!({"message": calling("2")}));
        let page = tail(store, &id, json!({"limit": 1}));
        assert_eq!(page["has_more"], false, "{wake}");
        let elided: Vec<bool> =
            page["messages"].as_array().unwrap().iter().map(|item| item.get("elided").is_some()).collect();
        assert_eq!(elided, [true, false, false], "{wake}");
    }
    let plain = [
        json!({"message": user("w"), "origin": {"notification": "true"}}),
        json!({"message": user("w"), "origin": {"notification": false}}),
        json!({"message": assistant("w"), "origin": {"notification": true}}),
        json!({"message": assistant("w"), "entry_id": "e_fire_3"}),
        json!({"message": user("w"), "entry_id": "e_firework"}),
        json!({"message": note("fired", "w")}),
        json!({"custom": {"custom_type": "mark", "data": 1}}),
    ];
    for entry in plain {
        let id = store.session();
        store.append(&id, json!({"message": calling("1")}));
        store.append(&id, entry.clone());
        store.append(&id, json!({"message": calling("2")}));
        assert_eq!(tail(store, &id, json!({"limit": 2}))["messages"].as_array().unwrap().len(), 2, "{entry}");
    }
}

fn an_assistant_without_calls_ends_a_run(store: &dyn Door) {
    let id = store.session();
    for message in [calling("1"), assistant("said"), calling("2"), result("2", "r"), result("1", "late")] {
        store.append(&id, json!({"message": message}));
    }
    assert_eq!(shown(&tail(store, &id, json!({}))), ["hm", "said", "hm", "r", "~"]);
}

fn before_an_entry_of_a_run_is_before_the_run(store: &dyn Door) {
    let (id, entries) = conversation(store);
    for inside in &entries[1..5] {
        assert_eq!(shown(&tail(store, &id, json!({"before_entry_id": inside}))), ["q"]);
    }
    assert_eq!(shown(&tail(store, &id, json!({"before_entry_id": entries[6], "limit": 1}))), ["answer"]);
    let nothing = json!({"messages": [], "has_more": false});
    assert_eq!(tail(store, &id, json!({"before_entry_id": entries[0]})), nothing);
}

fn until_widens_the_page_backwards(store: &dyn Door) {
    let (id, entries) = conversation(store);
    for (until, oldest) in [(6, 6), (5, 5), (4, 1), (1, 1), (0, 0)] {
        let page = tail(store, &id, json!({"limit": 1, "until_entry_id": entries[until]}));
        assert_eq!(page["oldest_entry_id"], entries[oldest], "{until}");
    }
    let page = tail(store, &id, json!({"limit": 3, "until_entry_id": entries[6]}));
    assert_eq!(page["oldest_entry_id"], entries[1], "it never narrows");
}

fn anchors_off_the_path_are_refused(store: &dyn Door) {
    let (id, entries) = conversation(store);
    store.append(&id, json!({"message": user("branch"), "parent_id": entries[0]}));
    for anchor in ["before_entry_id", "until_entry_id"] {
        for entry in [json!("nothing"), entries[3].clone()] {
            let mut request = json!({"session_id": id});
            request[anchor] = entry;
            assert_eq!(store.refused("messages-tail", request), "session/invalid_cursor");
        }
    }
}

fn custom_entries_are_shown_unless_left_out(store: &dyn Door) {
    let id = store.session();
    store.say(&id, "a");
    let mark = store.append(&id, json!({"custom": {"custom_type": "mark", "data": 1}, "origin": {"n": 1}}));
    let page = tail(store, &id, json!({}));
    assert_eq!(shown(&page), ["a", "mark"]);
    assert_eq!(page["messages"][1], json!({"entry_id": mark, "custom": {"custom_type": "mark", "data": 1}}));
    assert_eq!(shown(&tail(store, &id, json!({"include_custom": true}))), ["a", "mark"]);
    assert_eq!(shown(&tail(store, &id, json!({"include_custom": false}))), ["a"]);
    let request = json!({"session_id": id, "include_custom": false, "before_entry_id": mark});
    assert_eq!(store.refused("messages-tail", request), "session/invalid_cursor");
}

fn leaving_out_custom_entries_joins_the_runs_around_them(store: &dyn Door) {
    let id = store.session();
    store.append(&id, json!({"message": calling("1")}));
    store.append(&id, json!({"custom": {"custom_type": "mark", "data": 1}}));
    store.append(&id, json!({"message": calling("2")}));
    assert_eq!(shown(&tail(store, &id, json!({}))), ["hm", "mark", "hm"]);
    assert_eq!(shown(&tail(store, &id, json!({"include_custom": false, "limit": 1}))), ["~calling", "hm"]);
}

fn a_call_to_another_agent_says_what_it_is_about(store: &dyn Door) {
    let id = store.session();
    let call = |arguments: Value| {
        assistant_with(
            json!([{"type": "function_call", "id": "c", "function_id": "agent_trigger", "arguments": arguments}]),
        )
    };
    let long = "ü".repeat(300);
    let cases = [
        (json!({"function": "f", "description": "d", "rest": 1}), json!({"function": "f", "description": "d"})),
        (
            json!({"function": "f".repeat(256), "description": long}),
            json!({"function": "f".repeat(256), "description": "ü".repeat(120)}),
        ),
        (json!({"function": "f".repeat(257)}), json!({})),
        (json!({"function": 1, "description": ["d"]}), json!({})),
        (json!("text"), json!({})),
    ];
    for (arguments, _) in &cases {
        store.append(&id, json!({"message": call(arguments.clone())}));
    }
    store.append(&id, json!({"message": calling("last")}));
    let page = tail(store, &id, json!({}));
    for (at, (_, kept)) in cases.iter().enumerate() {
        assert_eq!(page["messages"][at]["message"], call(kept.clone()));
    }
}

fn shortening_leaves_storage_untouched(store: &dyn Door) {
    let (id, entries) = conversation(store);
    tail(store, &id, json!({}));
    assert_eq!(store.entry(&id, &entries[1])["message"], calling("1"));
    assert_eq!(store.entry(&id, &entries[2])["message"], result("1", "r1"));
}
