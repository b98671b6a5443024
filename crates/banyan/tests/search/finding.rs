//! Words, phrases, beginnings, identifiers, paths; what a hit says.

use banyan::{Banyan, Options};
use serde_json::{Value, json};

use super::{answer, found, marked, sorted};
use crate::support::*;

#[test]
fn what_is_typed_finds_what_is_meant() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let store = door(&store);
    let session = store.session();
    let texts = [
        "The borrow checker says E0308 in src/foo/bar.rs",
        "call fn_name and readFile, then std::io::Read",
        "run cargo build --release",
        "全文検索 is full-text search in Japanese",
        "the quick brown fox",
        "brown the quick",
    ];
    let entries: Vec<Value> = texts.iter().map(|text| store.say(&session, text)).collect();
    for (query, expected) in [
        ("borrow", vec![0]),
        ("BORROW Checker", vec![0]),
        ("the", vec![0, 4, 5]),
        ("the -fox -borrow", vec![5]),
        ("\"quick brown\"", vec![4]),
        ("\"brown the quick\"", vec![5]),
        ("bor*", vec![0]),
        ("\"quick bro*\"", vec![4]),
        ("e0308", vec![0]),
        ("src/foo/bar.rs", vec![0]),
        ("foo/bar", vec![0]),
        ("bar.rs", vec![0]),
        ("src/bar.rs", vec![]),
        ("fn_name", vec![1]),
        ("fn_na*", vec![1]),
        ("name", vec![1]),
        ("readFile", vec![1]),
        ("readfile", vec![1]),
        ("file", vec![1]),
        ("std::io::Read", vec![1]),
        ("io::read", vec![1]),
        ("--release", vec![2]),
        ("検索", vec![3]),
        ("索検", vec![]),
        ("full-text", vec![3]),
        ("nowhere", vec![]),
        ("the nowhere", vec![]),
    ] {
        let mut expected: Vec<Value> = expected.into_iter().map(|at: usize| entries[at].clone()).collect();
        expected.sort_by_key(Value::to_string);
        assert_eq!(found(store, query), expected, "{query}");
    }
}

#[test]
fn everything_that_a_session_says_is_found() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let store = door(&store);
    let session = store.session();
    let calls = assistant_with(json!([
        {"type": "thinking", "text": "pondering"},
        {"type": "function_call", "id": "c", "function_id": "shell::exec", "arguments": {"command": "ls \"quoted\""}},
    ]));
    let call = store.append(&session, json!({"message": calls}));
    let result = store.append(&session, json!({"message": result("c", "listing")}));
    let custom = store.append(&session, json!({"message": note("reminder", "remember")}));
    let data = store.append(&session, json!({"custom": {"custom_type": "summary", "data": {"inner": ["deep"]}}}));
    for (query, entry) in [
        ("pondering", &call),
        ("shell::exec", &call),
        ("command quoted", &call),
        ("listing", &result),
        ("reminder remember", &custom),
        ("summary deep", &data),
    ] {
        assert_eq!(found(store, query), sorted([entry.clone()]), "{query}");
    }
}

#[test]
fn a_hit_cites_its_entry_and_shows_the_match() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let store = door(&store);
    let metadata = json!({"agent": "codex", "cwd": "/code/tree"});
    let session = store.ok("create", json!({"title": "On trees", "metadata": metadata}))["session_id"].clone();
    let entry = store.say(&session, "Plant a <b>banyan</b>\ntree");
    let mut answer = answer(store, json!({"q": "banyan"}));
    let hit = answer["hits"][0].take();
    assert_eq!(marked(&hit), "Plant a <b>[banyan]</b> tree");
    assert!(hit["score"].as_f64().unwrap() > 0.0);
    let expected = json!({
        "session_id": session, "title": "On trees", "agent": "codex", "workspace": "/code/tree", "entry_id": entry,
        "role": "user", "timestamp": store.entry(&session, &entry)["timestamp"], "score": hit["score"],
        "active": true, "snippet": hit["snippet"],
    });
    assert_eq!(hit, expected);
    assert_eq!(answer["next_cursor"], Value::Null);
}

#[test]
fn pages_follow_each_other_without_gap_or_overlap() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let store = door(&store);
    let session = store.session();
    let mut expected: Vec<String> =
        (0..25).map(|n| store.say(&session, &format!("needle {n}")).to_string()).collect();
    let (mut seen, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let page = answer(store, json!({"query": "needle", "limit": 10, "cursor": cursor}));
        seen.extend(page["hits"].as_array().unwrap().iter().map(|hit| hit["entry_id"].to_string()));
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    seen.sort();
    expected.sort();
    assert_eq!(seen, expected);
}

#[test]
fn better_matches_come_first_and_newer_ones_before_equal_ones() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let store = door(&store);
    let session = store.session();
    let older = store.say(&session, "about kernels and much else that has nothing to do with it");
    a_later_moment();
    let newer = store.say(&session, "about kernels and much else that has nothing to do with it");
    let best = store.say(&session, "kernels kernels kernels");
    let answer = answer(store, json!({"query": "kernels"}));
    assert_eq!(ids(&answer["hits"]), [best, newer, older]);
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let store = door(&store);
    for request in [
        json!({}),
        json!({"query": ""}),
        json!({"query": "-only"}),
        json!({"query": "a", "q": "a"}),
        json!({"query": "x".repeat(5000)}),
        json!({"query": "a", "roles": ["nobody"]}),
    ] {
        assert_eq!(store.refused("search", request), "session/invalid_request");
    }
    assert_eq!(store.refused("search", json!({"query": "a", "cursor": "?"})), "session/invalid_cursor");
}
