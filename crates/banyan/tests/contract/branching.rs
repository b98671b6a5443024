//! Branches: fork, set-active-leaf.

use serde_json::{Value, json};

use crate::support::*;

scenarios! {
    a_fork_copies_exactly_the_path_to_an_entry
    a_forks_entries_have_fresh_ids_and_the_same_structure
    a_fork_keeps_timestamps_and_origins_but_no_revisions
    a_fork_describes_itself_like_its_source
    a_fork_can_have_its_own_title_even_an_empty_one
    a_fork_is_idle_whatever_its_source_is
    a_fork_counts_the_messages_it_copied
    a_fork_can_end_in_a_custom_entry_or_off_the_active_path
    a_fork_leaves_its_source_untouched
    a_fork_and_its_source_are_independent_for_ever
    a_fork_survives_the_deletion_of_its_source
    a_fork_of_a_growing_message_keeps_what_it_had_grown_to
    a_fork_of_a_fork_of_a_fork_works_after_all_before_it_are_gone
    a_fork_survives_a_new_session_under_its_sources_id
    custom_data_is_copied_verbatim
    forking_what_does_not_exist_is_refused
    a_fork_fires_one_created_event
    the_active_leaf_can_be_any_entry
    moving_the_leaf_is_silent
    moving_the_leaf_to_what_does_not_exist_is_refused
}

fn fork(store: &dyn Door, session: &Value, entry: &Value) -> Value {
    store.ok("fork", json!({"session_id": session, "entry_id": entry}))["session_id"].clone()
}

/// root - a - mark - b, and a branch off a.
fn branched(store: &dyn Door) -> (Value, Vec<Value>) {
    let request = json!({"title": "T", "description": "D", "metadata": {"owner": "u"}});
    let id = store.ok("create", request)["session_id"].clone();
    let root = store.append(&id, json!({"message": user("root"), "origin": {"n": 1}}));
    let a = store.append(&id, json!({"message": assistant("a")}));
    let branch = store.say(&id, "branch");
    let mark = store
        .append(&id, json!({"custom": {"custom_type": "mark", "data": [1]}, "parent_id": a, "origin": {"n": 2}}));
    let b = store.say(&id, "b");
    (id, vec![root, a, mark, b, branch])
}

fn entries(store: &dyn Door, session: &Value) -> Vec<Value> {
    let tree = store.ok("tree", json!({"session_id": session}));
    ids(&tree["entries"]).iter().map(|entry| store.entry(session, entry)).collect()
}

fn a_fork_copies_exactly_the_path_to_an_entry(store: &dyn Door) {
    let (id, entry) = branched(store);
    assert_eq!(store.path(&fork(store, &id, &entry[3])), ["root", "a", "mark", "b"]);
    let short = fork(store, &id, &entry[1]);
    assert_eq!(store.path(&short), ["root", "a"]);
    assert_eq!(entries(store, &short).len(), 2, "siblings are not copied");
}

fn a_forks_entries_have_fresh_ids_and_the_same_structure(store: &dyn Door) {
    let (id, entry) = branched(store);
    let forks = [fork(store, &id, &entry[3]), fork(store, &id, &entry[3])];
    let mut seen = entry.clone();
    for fork in &forks {
        let copies = entries(store, fork);
        let mut parent = Value::Null;
        for copy in copies {
            assert_eq!(copy["parent_id"], parent);
            parent = copy["id"].clone();
            let hex = parent.as_str().unwrap().strip_prefix("e_").unwrap();
            assert_eq!(hex.len(), 32);
            assert!(!seen.contains(&parent));
            seen.push(parent.clone());
        }
        let next = store.ok("append", json!({"session_id": fork, "message": user("own")}));
        assert_eq!(next["parent_id"], parent, "the leaf is the copy of the entry");
        assert_eq!(store.ok("get-message", json!({"session_id": fork, "entry_id": entry[0]})), Value::Null);
    }
}

fn a_fork_keeps_timestamps_and_origins_but_no_revisions(store: &dyn Door) {
    let (id, entry) = branched(store);
    store.ok("update-message", json!({"session_id": id, "entry_id": entry[1], "content": text("a2")}));
    a_later_moment();
    let copies = entries(store, &fork(store, &id, &entry[3]));
    for (copy, original) in copies.iter().zip(&entry) {
        let mut expected = store.entry(&id, original);
        expected["id"] = copy["id"].clone();
        expected["parent_id"] = copy["parent_id"].clone();
        expected["revision"] = json!(0);
        assert_eq!(copy, &expected);
    }
}

fn a_fork_describes_itself_like_its_source(store: &dyn Door) {
    let (id, entry) = branched(store);
    a_later_moment();
    let before = now();
    let answer = store.ok("fork", json!({"session_id": id, "entry_id": entry[3], "title": null}));
    let at = answer["meta"]["created_at"].as_i64().unwrap();
    assert!((before..=now()).contains(&at));
    let fork = &answer["session_id"];
    let meta = json!({"session_id": fork, "title": "T", "description": "D", "status": "idle", "metadata": {"owner": "u"},
        "forked_from": id, "message_count": 3, "created_at": at, "updated_at": at});
    assert_eq!(answer, json!({"session_id": fork, "meta": meta}));
    assert_eq!(store.meta(fork), meta);
}

fn a_fork_can_have_its_own_title_even_an_empty_one(store: &dyn Door) {
    let (id, entry) = branched(store);
    for title in ["other", ""] {
        let answer = store.ok("fork", json!({"session_id": id, "entry_id": entry[0], "title": title}));
        assert_eq!(answer["meta"]["title"], title);
        assert_eq!(store.meta(&answer["session_id"])["title"], title);
    }
}

fn a_fork_is_idle_whatever_its_source_is(store: &dyn Door) {
    let (id, entry) = branched(store);
    store.ok("set-status", json!({"session_id": id, "status": "error", "reason": "why"}));
    let meta = store.meta(&fork(store, &id, &entry[0]));
    assert_eq!(meta["status"], "idle");
    assert_eq!(meta.get("status_reason"), None);
}

fn a_fork_counts_the_messages_it_copied(store: &dyn Door) {
    let (id, entry) = branched(store);
    for (at, count) in [(0, 1), (1, 2), (2, 2), (3, 3), (4, 3)] {
        assert_eq!(store.meta(&fork(store, &id, &entry[at]))["message_count"], count);
    }
}

fn a_fork_can_end_in_a_custom_entry_or_off_the_active_path(store: &dyn Door) {
    let (id, entry) = branched(store);
    assert_eq!(store.path(&fork(store, &id, &entry[2])), ["root", "a", "mark"]);
    assert_eq!(store.path(&fork(store, &id, &entry[4])), ["root", "a", "branch"]);
}

fn a_fork_leaves_its_source_untouched(store: &dyn Door) {
    let (id, entry) = branched(store);
    let before = (store.meta(&id), entries(store, &id), store.path(&id));
    a_later_moment();
    fork(store, &id, &entry[1]);
    assert_eq!((store.meta(&id), entries(store, &id), store.path(&id)), before);
}

fn a_fork_and_its_source_are_independent_for_ever(store: &dyn Door) {
    let (id, entry) = branched(store);
    let fork = fork(store, &id, &entry[3]);
    let copies = entries(store, &fork);
    store.ok("update-message", json!({"session_id": id, "entry_id": entry[0], "content": text("edited")}));
    store.ok("update-message", json!({"session_id": id, "entry_id": entry[1], "content": text("a and more")}));
    store.ok("extend-message", json!({"session_id": id, "entry_id": entry[1], "text": "!"}));
    store.ok("set-meta", json!({"session_id": id, "title": "T2"}));
    store.say(&id, "later");
    assert_eq!(entries(store, &fork), copies);
    assert_eq!(store.meta(&fork)["title"], "T");
    let source = entries(store, &id);
    store.ok("update-message", json!({"session_id": fork, "entry_id": copies[0]["id"], "content": text("own")}));
    store.ok("extend-message", json!({"session_id": fork, "entry_id": copies[1]["id"], "text": " grown"}));
    store.ok("set-active-leaf", json!({"session_id": fork, "entry_id": copies[1]["id"]}));
    store.say(&fork, "own way");
    assert_eq!(store.path(&fork), ["own", "a grown", "own way"]);
    assert_eq!(entries(store, &id), source);
}

fn a_fork_survives_the_deletion_of_its_source(store: &dyn Door) {
    let (id, entry) = branched(store);
    let fork = fork(store, &id, &entry[3]);
    let before = (store.meta(&fork), entries(store, &fork));
    store.ok("delete", json!({"session_id": id}));
    assert_eq!((store.meta(&fork), entries(store, &fork)), before);
    store.say(&fork, "goes on");
    assert_eq!(store.path(&fork), ["root", "a", "mark", "b", "goes on"]);
    assert_eq!(store.ok("delete", json!({"session_id": fork})), json!({"deleted": true}));
    assert_eq!(store.ok("list", json!({})), json!({"sessions": []}));
}

fn a_fork_of_a_growing_message_keeps_what_it_had_grown_to(store: &dyn Door) {
    let id = store.session();
    let entry = store.append(&id, json!({"message": assistant("")}));
    store.ok("set-status", json!({"session_id": id, "status": "working"}));
    let mut forks = Vec::new();
    for token in ["It ", "is ", "sunny"] {
        store.ok("extend-message", json!({"session_id": id, "entry_id": entry, "text": token}));
        forks.push(fork(store, &id, &entry));
    }
    store.ok("set-status", json!({"session_id": id, "status": "done"}));
    let texts: Vec<Vec<String>> = forks.iter().map(|fork| store.path(fork)).collect();
    assert_eq!(texts, [["It "], ["It is "], ["It is sunny"]]);
    store.ok("delete", json!({"session_id": id}));
    let texts: Vec<Vec<String>> = forks.iter().map(|fork| store.path(fork)).collect();
    assert_eq!(texts, [["It "], ["It is "], ["It is sunny"]]);
}

fn a_fork_of_a_fork_of_a_fork_works_after_all_before_it_are_gone(store: &dyn Door) {
    let mut id = store.session();
    let mut leaf = store.say(&id, "0");
    let mut before = Vec::new();
    for depth in 1..8 {
        let next = fork(store, &id, &leaf);
        leaf = store.say(&next, &depth.to_string());
        before.push(std::mem::replace(&mut id, next));
    }
    let expected: Vec<String> = (0..8).map(|depth: u32| depth.to_string()).collect();
    for gone in before.iter().rev().chain([&json!("nobody")]) {
        assert_eq!(store.path(&id), expected);
        store.ok("delete", json!({"session_id": gone}));
    }
    assert_eq!(store.path(&id), expected);
    assert_eq!(store.meta(&id)["message_count"], 8);
    assert_eq!(store.meta(&id)["forked_from"], before[6]);
}

fn a_fork_survives_a_new_session_under_its_sources_id(store: &dyn Door) {
    let id = json!("mine");
    store.ok("ensure", json!({"session_id": id}));
    let entry = store.append(&id, json!({"message": user("old"), "entry_id": "e"}));
    let old = fork(store, &id, &entry);
    store.ok("delete", json!({"session_id": id}));
    store.ok("ensure", json!({"session_id": id}));
    store.append(&id, json!({"message": user("new"), "entry_id": "e"}));
    let new = fork(store, &id, &entry);
    assert_eq!([store.path(&old), store.path(&new), store.path(&id)], [["old"], ["new"], ["new"]]);
    store.ok("delete", json!({"session_id": id}));
    assert_eq!([store.path(&old), store.path(&new)], [["old"], ["new"]]);
}

fn custom_data_is_copied_verbatim(store: &dyn Door) {
    let id = store.session();
    let root = store.say(&id, "root");
    let data = json!({"tail_start_entry_id": root, "after": root, "moved": [root]});
    for custom_type in ["compaction", "message_order"] {
        let entry = store.append(&id, json!({"custom": {"custom_type": custom_type, "data": data}}));
        let copy = entries(store, &fork(store, &id, &entry)).pop().unwrap();
        assert_eq!(copy["data"], data);
    }
}

fn forking_what_does_not_exist_is_refused(store: &dyn Door) {
    let id = store.session();
    let mut events = store.listen_to_all();
    assert_eq!(store.refused("fork", json!({"session_id": "nobody", "entry_id": "e"})), "session/not_found");
    assert_eq!(store.refused("fork", json!({"session_id": id, "entry_id": "e"})), "session/entry_not_found");
    assert_eq!(events.heard(), []);
}

fn a_fork_fires_one_created_event(store: &dyn Door) {
    let (id, entry) = branched(store);
    let mut events = store.listen_to_all();
    let fork = store.ok("fork", json!({"session_id": id, "entry_id": entry[3], "title": "F"}));
    let payload = json!({"session_id": fork["session_id"], "title": "F", "description": "D", "status": "idle",
        "forked_from": id, "created_at": fork["meta"]["created_at"]});
    assert_eq!(said(&events.heard()), [("session::created".to_owned(), payload)]);
}

fn the_active_leaf_can_be_any_entry(store: &dyn Door) {
    let (id, entry) = branched(store);
    for (at, path) in [
        (0, &["root"][..]),
        (2, &["root", "a", "mark"]),
        (4, &["root", "a", "branch"]),
        (4, &["root", "a", "branch"]),
    ] {
        let answer = store.ok("set-active-leaf", json!({"session_id": id, "entry_id": entry[at]}));
        assert_eq!(answer, json!({"active_leaf": entry[at]}));
        assert_eq!(store.path(&id), path);
    }
    let next = store.ok("append", json!({"session_id": id, "message": user("on")}));
    assert_eq!(next["parent_id"], entry[4]);
}

fn moving_the_leaf_is_silent(store: &dyn Door) {
    let (id, entry) = branched(store);
    let before = store.meta(&id);
    let mut events = store.listen_to_all();
    a_later_moment();
    store.ok("set-active-leaf", json!({"session_id": id, "entry_id": entry[0]}));
    assert_eq!(store.meta(&id), before);
    assert_eq!(events.heard(), []);
}

fn moving_the_leaf_to_what_does_not_exist_is_refused(store: &dyn Door) {
    let id = store.session();
    let request = |session: &Value| json!({"session_id": session, "entry_id": "nothing"});
    assert_eq!(store.refused("set-active-leaf", request(&json!("nobody"))), "session/not_found");
    assert_eq!(store.refused("set-active-leaf", request(&id)), "session/entry_not_found");
}
