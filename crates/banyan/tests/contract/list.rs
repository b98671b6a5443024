//! Listing sessions: orders, filters, pages and cursors.

use std::cmp::Reverse;

use serde_json::{Value, json};

use crate::support::*;

scenarios! {
    an_empty_store_lists_nothing
    sessions_are_listed_by_key_and_ties_by_id_in_the_same_direction
    the_last_changed_session_comes_first_unless_asked_otherwise
    a_session_moves_when_it_changes_and_stays_when_only_its_leaf_does
    a_page_ends_with_a_cursor_only_when_more_remains
    every_order_can_be_read_page_by_page
    a_cursor_is_padded_base64_of_its_order_key_and_id
    a_cursor_survives_the_deletion_of_its_session
    a_cursor_of_another_order_is_refused
    a_cursor_that_is_no_cursor_is_refused
    filters_are_not_bound_into_the_cursor
    sessions_touched_between_pages_are_not_revisited
    a_limit_is_clamped
    the_default_limit_is_fifty
    sessions_are_filtered_by_status
    sessions_are_filtered_by_metadata_as_a_subset
    filters_apply_before_paging
    a_fork_is_listed
}

fn sessions(answer: &Value) -> Vec<Value> {
    answer["sessions"].as_array().unwrap().clone()
}

fn ids_of(answer: &Value) -> Vec<String> {
    sessions(answer).iter().map(|meta| meta["session_id"].as_str().unwrap().to_owned()).collect()
}

/// Many sessions made so fast that some share a millisecond, their ids in no order.
fn many(store: &dyn Door, count: usize) -> Vec<Value> {
    let id = |n: usize| format!("s{:03}", (n * 37) % 101);
    (0..count)
        .map(|n| store.ok("ensure", json!({"session_id": id(n), "metadata": {"n": n % 3}}))["meta"].clone())
        .collect()
}

fn key(meta: &Value, field: &str) -> (i64, String) {
    (meta[field].as_i64().unwrap(), meta["session_id"].as_str().unwrap().to_owned())
}

fn in_order(mut metas: Vec<Value>, order: &str) -> Vec<Value> {
    match order {
        "created_asc" => metas.sort_by_key(|meta| key(meta, "created_at")),
        "created_desc" => metas.sort_by_key(|meta| Reverse(key(meta, "created_at"))),
        _ => metas.sort_by_key(|meta| Reverse(key(meta, "updated_at"))),
    }
    metas
}

fn an_empty_store_lists_nothing(store: &dyn Door) {
    assert_eq!(store.ok("list", json!({})), json!({"sessions": []}));
}

fn sessions_are_listed_by_key_and_ties_by_id_in_the_same_direction(store: &dyn Door) {
    let metas = many(store, 40);
    for order in ["created_asc", "created_desc", "updated_desc"] {
        assert_eq!(store.ok("list", json!({"order": order})), json!({"sessions": in_order(metas.clone(), order)}));
    }
}

fn the_last_changed_session_comes_first_unless_asked_otherwise(store: &dyn Door) {
    let metas = many(store, 5);
    let default = store.ok("list", json!({}));
    assert_eq!(default, json!({"sessions": in_order(metas, "updated_desc")}));
    assert_eq!(
        default,
        store.ok("list", json!({"order": null, "limit": null, "cursor": null, "status": null, "metadata": null}))
    );
}

fn a_session_moves_when_it_changes_and_stays_when_only_its_leaf_does(store: &dyn Door) {
    let first = store.session();
    let root = store.say(&first, "root");
    store.say(&first, "leaf");
    a_later_moment();
    let second = store.session();
    a_later_moment();
    store.ok("set-active-leaf", json!({"session_id": first, "entry_id": root}));
    let listed = |store: &dyn Door| ids_of(&store.ok("list", json!({})));
    assert_eq!(listed(store), strings(&json!([second, first])));
    store.say(&first, "again");
    assert_eq!(listed(store), strings(&json!([first, second])));
}

fn a_page_ends_with_a_cursor_only_when_more_remains(store: &dyn Door) {
    many(store, 4);
    assert!(store.ok("list", json!({"limit": 3})).get("next_cursor").is_some());
    assert_eq!(store.ok("list", json!({"limit": 4})).get("next_cursor"), None);
}

/// Reads to the end, page by page.
fn all_pages(store: &dyn Door, mut request: Value) -> Vec<Value> {
    let mut all = Vec::new();
    loop {
        let page = store.ok("list", request.clone());
        all.extend(sessions(&page));
        match page.get("next_cursor") {
            Some(cursor) => request["cursor"] = cursor.clone(),
            None => return all,
        }
    }
}

fn every_order_can_be_read_page_by_page(store: &dyn Door) {
    let metas = many(store, 20);
    for order in ["created_asc", "created_desc", "updated_desc"] {
        for limit in [1, 3, 20] {
            let read = all_pages(store, json!({"order": order, "limit": limit}));
            assert_eq!(read, in_order(metas.clone(), order), "{order} by {limit}");
        }
    }
}

fn a_cursor_is_padded_base64_of_its_order_key_and_id(store: &dyn Door) {
    many(store, 3);
    for (order, field) in
        [("created_asc", "created_at"), ("created_desc", "created_at"), ("updated_desc", "updated_at")]
    {
        let page = store.ok("list", json!({"order": order, "limit": 2}));
        let last = &page["sessions"][1];
        let id = last["session_id"].as_str().unwrap();
        let expected = format!(r#"{{"o":"{order}","k":{},"id":"{id}"}}"#, last[field]);
        assert_eq!(cursor_text(&page["next_cursor"]), expected);
    }
}

fn a_cursor_survives_the_deletion_of_its_session(store: &dyn Door) {
    let metas = in_order(many(store, 5), "created_asc");
    let page = store.ok("list", json!({"order": "created_asc", "limit": 2}));
    store.ok("delete", json!({"session_id": metas[1]["session_id"]}));
    let rest = store.ok("list", json!({"order": "created_asc", "cursor": page["next_cursor"]}));
    assert_eq!(rest, json!({"sessions": metas[2..]}));
}

fn a_cursor_of_another_order_is_refused(store: &dyn Door) {
    many(store, 3);
    let cursor = store.ok("list", json!({"order": "created_asc", "limit": 1}))["next_cursor"].clone();
    for order in ["created_desc", "updated_desc"] {
        assert_eq!(store.refused("list", json!({"order": order, "cursor": cursor})), "session/invalid_cursor");
    }
    assert_eq!(store.refused("list", json!({"cursor": cursor})), "session/invalid_cursor");
}

fn a_cursor_that_is_no_cursor_is_refused(store: &dyn Door) {
    let unpadded = base64(br#"{"o":"updated_desc","k":1,"id":"a"}"#).trim_end_matches('=').to_owned();
    let bad = ["", "%%%", "bm90IGpzb24=", &cursor(&json!({"o": "updated_desc"})), &cursor(&json!([1])), &unpadded];
    for bad in bad {
        assert_eq!(store.refused("list", json!({"cursor": bad})), "session/invalid_cursor", "{bad:?}");
    }
    let made_up = cursor(&json!({"o": "updated_desc", "k": 1, "id": "never existed"}));
    assert_eq!(store.ok("list", json!({"cursor": made_up})), json!({"sessions": []}));
}

fn filters_are_not_bound_into_the_cursor(store: &dyn Door) {
    let metas = in_order(many(store, 12), "created_asc");
    let page = store.ok("list", json!({"order": "created_asc", "limit": 3, "metadata": {"n": 0}}));
    let last = key(&sessions(&page)[2], "created_at");
    let expected: Vec<&Value> = metas.iter().filter(|meta| key(meta, "created_at") > last).collect();
    let unfiltered = store.ok("list", json!({"order": "created_asc", "cursor": page["next_cursor"]}));
    assert_eq!(unfiltered, json!({"sessions": expected}));
}

fn sessions_touched_between_pages_are_not_revisited(store: &dyn Door) {
    let metas = in_order(many(store, 5), "updated_desc");
    let page = store.ok("list", json!({"limit": 2}));
    a_later_moment();
    store.ok("set-meta", json!({"session_id": metas[4]["session_id"], "title": "touched"}));
    let rest = store.ok("list", json!({"cursor": page["next_cursor"]}));
    assert_eq!(rest, json!({"sessions": metas[2..4]}));
}

fn a_limit_is_clamped(store: &dyn Door) {
    many(store, 3);
    for (limit, count) in [(0_u64, 1), (1, 1), (2, 2), (9_999_999, 3)] {
        assert_eq!(sessions(&store.ok("list", json!({"limit": limit}))).len(), count, "{limit}");
    }
    for malformed in [json!(-1), json!(1.5), json!("2"), json!([1])] {
        assert_eq!(store.refused("list", json!({"limit": malformed})), "session/invalid_request");
    }
}

fn the_default_limit_is_fifty(store: &dyn Door) {
    many(store, 51);
    let page = store.ok("list", json!({}));
    assert_eq!(sessions(&page).len(), 50);
    assert_eq!(sessions(&store.ok("list", json!({"cursor": page["next_cursor"]}))).len(), 1);
}

fn sessions_are_filtered_by_status(store: &dyn Door) {
    let (idle, working) = (store.session(), store.session());
    store.ok("set-status", json!({"session_id": working, "status": "working"}));
    assert_eq!(store.ok("list", json!({"status": "idle"})), json!({"sessions": [store.meta(&idle)]}));
    assert_eq!(store.ok("list", json!({"status": "working"})), json!({"sessions": [store.meta(&working)]}));
    assert_eq!(store.ok("list", json!({"status": "done"})), json!({"sessions": []}));
    assert_eq!(store.refused("list", json!({"status": "waiting"})), "session/invalid_request");
}

fn sessions_are_filtered_by_metadata_as_a_subset(store: &dyn Door) {
    let metadata = json!({"owner": "u_1", "tags": ["a", "b"], "deep": {"x": 1, "y": 2}, "none": null, "n": 1});
    store.ok("ensure", json!({"session_id": "full", "metadata": metadata}));
    store.ok("ensure", json!({"session_id": "empty", "metadata": {}}));
    store.ok("ensure", json!({"session_id": "absent"}));
    let all = ["absent", "empty", "full"];
    for (wanted, found) in [
        (json!({}), &all[..]),
        (json!({"owner": "u_1"}), &["full"]),
        (json!({"owner": "u_1", "n": 1}), &["full"]),
        (json!({"deep": {"y": 2, "x": 1}}), &["full"]),
        (json!({"tags": ["a", "b"]}), &["full"]),
        (json!({"none": null}), &["full"]),
        (json!({"owner": "u_2"}), &[]),
        (json!({"owner": "u_1", "n": 2}), &[]),
        (json!({"deep": {"x": 1}}), &[]),
        (json!({"tags": ["a"]}), &[]),
        (json!({"tags": ["b", "a"]}), &[]),
        (json!({"missing": null}), &[]),
        (json!({"owner": null}), &[]),
        (json!({"n": "1"}), &[]),
    ] {
        let mut listed = ids_of(&store.ok("list", json!({"metadata": wanted})));
        listed.sort();
        assert_eq!(listed, found, "{wanted}");
    }
    assert_eq!(store.refused("list", json!({"metadata": ["owner"]})), "session/invalid_request");
}

fn filters_apply_before_paging(store: &dyn Door) {
    let metas = many(store, 9);
    let wanted: Vec<Value> = metas.into_iter().filter(|meta| meta["metadata"]["n"] == 1).collect();
    let request = json!({"order": "created_asc", "limit": 2, "metadata": {"n": 1}});
    assert_eq!(all_pages(store, request.clone()), in_order(wanted.clone(), "created_asc"));
    assert_eq!(sessions(&store.ok("list", request)), in_order(wanted, "created_asc")[..2]);
}

fn a_fork_is_listed(store: &dyn Door) {
    let source = store.session();
    let entry = store.say(&source, "hi");
    a_later_moment();
    let fork = store.ok("fork", json!({"session_id": source, "entry_id": entry}));
    assert_eq!(store.ok("list", json!({})), json!({"sessions": [fork["meta"], store.meta(&source)]}));
}
