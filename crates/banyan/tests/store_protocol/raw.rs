//! Things put as they are, on sessions of our own and on new ones.

use banyan::model::Position;
use banyan::verify;
use serde_json::{Value, json};

use super::super::{entry, everything, meta, ok, put_entry, put_leaf, put_meta, store};
use crate::support::*;

/// Restarts the store in both ways; the session must be the same, and nothing may be wrong with the directory.
fn outlives_restarts(on_disk: OnDisk, sessions: &[&str]) -> OnDisk {
    let before: Vec<Value> = sessions.iter().map(|id| everything(&on_disk.store, id)).collect();
    let on_disk = on_disk.killed();
    for (id, before) in sessions.iter().zip(&before) {
        assert_eq!(&everything(&on_disk.store, id), before);
    }
    let dir = on_disk.close();
    let report = verify::verify(dir.path(), &()).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    let on_disk = OnDisk::with(dir);
    for (id, before) in sessions.iter().zip(&before) {
        assert_eq!(&everything(&on_disk.store, id), before);
    }
    on_disk
}

#[test]
fn a_session_that_is_only_put_is_a_session_like_any_other() {
    let on_disk = OnDisk::new();
    let main = &on_disk.store;
    put_meta(main, &meta("s", "T", 0));
    put_entry(main, "s", &entry("a", None, "one"));
    put_leaf(main, "s", "a");
    put_meta(main, &meta("s", "T", 1));
    assert_eq!(ok(main, "get-meta", json!({"session_id": "s"})), meta("s", "T", 1));
    assert_eq!(ok(main, "get-entry", json!({"session_id": "s", "entry_id": "a"})), entry("a", None, "one"));
    assert_eq!(ok(main, "get-entry", json!({"session_id": "s", "entry_id": "b"})), Value::Null);
    assert_eq!(ok(main, "list-metas", json!({})), json!({"metas": [meta("s", "T", 1)]}));
    assert_eq!(door(main).path(&json!("s")), ["one"]);
    let on_disk = outlives_restarts(on_disk, &["s"]);
    let main = door(&on_disk.store);
    let appended = main.ok("append", json!({"session_id": "s", "message": user("two")}));
    assert_eq!(appended["parent_id"], "a");
    let fork = main.ok("fork", json!({"session_id": "s", "entry_id": "a"}));
    assert_eq!(main.path(&fork["session_id"]), ["one"]);
    assert_eq!(main.meta(&json!("s"))["message_count"], 2);
    outlives_restarts(on_disk, &["s", fork["session_id"].as_str().unwrap()]);
}

#[test]
fn what_is_put_into_a_session_of_ours_takes_its_place() {
    let on_disk = OnDisk::new();
    let main = &on_disk.store;
    door(main).ok("ensure", json!({"session_id": "s", "title": "Ours", "metadata": {"owner": "u"}}));
    let id = json!("s");
    let grown = door(main).append(&id, json!({"message": assistant("It "), "origin": {"worker": "w"}}));
    door(main).ok("extend-message", json!({"session_id": "s", "entry_id": grown, "text": "grows"}));
    let mut put = ok(main, "get-entry", json!({"session_id": "s", "entry_id": grown}));
    assert_eq!(put["message"], assistant("It grows"));
    assert_eq!(put["revision"], 1);
    put["message"] = assistant("It was put");
    put["revision"] = json!(2);
    put_entry(main, "s", &put);
    assert_eq!(door(main).entry(&id, &grown), put);
    let extended = door(main).ok("extend-message", json!({"session_id": "s", "entry_id": grown, "text": "!"}));
    assert_eq!(extended, json!({"updated": true, "revision": 3}));
    let mut changed = ok(main, "get-meta", json!({"session_id": "s"}));
    changed["title"] = json!("Theirs");
    changed["status"] = json!("working");
    changed["message_count"] = json!(77);
    put_meta(main, &changed);
    changed["message_count"] = json!(1);
    assert_eq!(door(main).meta(&id), changed, "messages are counted here");
    let custom = json!({"kind": "custom", "id": "mark", "parent_id": grown, "timestamp": 5, "revision": 0,
        "origin": {"by": "them"}, "custom_type": "mark", "data": {"x": [1]}});
    put_entry(main, "s", &custom);
    assert_eq!(door(main).path(&id), ["It was put!"], "the leaf did not move");
    put_leaf(main, "s", "mark");
    assert_eq!(door(main).path(&id), ["It was put!", "mark"]);
    assert_eq!(door(main).entry(&id, &json!("mark")), custom);
    let on_disk = outlives_restarts(on_disk, &["s"]);
    assert_eq!(door(&on_disk.store).path(&id), ["It was put!", "mark"]);
}

#[test]
fn entries_without_a_meta_are_no_session_until_there_is_one() {
    let on_disk = OnDisk::new();
    let main = &on_disk.store;
    let long = "x".repeat(100_000);
    put_entry(main, "fork", &entry("a", None, &long));
    put_entry(main, "fork", &entry("b", Some("a"), "two"));
    put_leaf(main, "fork", "b");
    assert_eq!(ok(main, "get-meta", json!({"session_id": "fork"})), Value::Null);
    assert_eq!(ok(main, "list-metas", json!({})), json!({"metas": []}));
    assert_eq!(door(main).ok("list", json!({})), json!({"sessions": []}));
    assert_eq!(door(main).ok("get", json!({"session_id": "fork"})), Value::Null);
    assert_eq!(
        door(main).refused("append", json!({"session_id": "fork", "message": user("x")})),
        "session/not_found"
    );
    let on_disk = outlives_restarts(on_disk, &["fork"]);
    let main = &on_disk.store;
    put_meta(main, &meta("fork", "F", 2));
    assert_eq!(ok(main, "get-meta", json!({"session_id": "fork"})), meta("fork", "F", 2));
    assert_eq!(door(main).path(&json!("fork")), [long.as_str(), "two"]);
    let listed = door(main).ok("list", json!({}));
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
    outlives_restarts(on_disk, &["fork"]);
}

#[test]
fn nothing_need_be_put_in_order() {
    let on_disk = OnDisk::new();
    let main = &on_disk.store;
    put_leaf(main, "s", "c");
    assert_eq!(ok(main, "get-active-leaf", json!({"session_id": "s"})), json!({"entry_id": "c"}));
    for (id, parent) in [("c", Some("b")), ("a", None), ("b", Some("a"))] {
        put_entry(main, "s", &entry(id, parent, id));
    }
    put_meta(main, &meta("s", "T", 0));
    assert_eq!(door(main).path(&json!("s")), ["a", "b", "c"]);
    assert_eq!(door(main).meta(&json!("s"))["message_count"], 3);
    outlives_restarts(on_disk, &["s"]);
}

#[test]
fn two_who_count_at_once_lose_no_message() {
    let on_disk = OnDisk::new();
    let main = &on_disk.store;
    put_meta(main, &meta("s", "T", 0));
    put_entry(main, "s", &entry("a", None, "a"));
    put_entry(main, "s", &entry("b", None, "b"));
    put_leaf(main, "s", "a");
    put_leaf(main, "s", "b");
    put_meta(main, &meta("s", "T", 1));
    put_meta(main, &meta("s", "T", 1));
    assert_eq!(door(main).meta(&json!("s"))["message_count"], 2);
}

#[test]
fn an_entry_whose_leaf_was_never_put_is_adopted_when_it_is_appended_again() {
    let on_disk = OnDisk::new();
    let main = &on_disk.store;
    put_meta(main, &meta("s", "T", 0));
    put_entry(main, "s", &entry("a", None, "a"));
    assert_eq!(door(main).meta(&json!("s"))["message_count"], 0);
    door(main).ok("append", json!({"session_id": "s", "entry_id": "a", "message": user("a")}));
    assert_eq!(door(main).path(&json!("s")), ["a"]);
    assert_eq!(door(main).meta(&json!("s"))["message_count"], 1);
    outlives_restarts(on_disk, &["s"]);
}

#[test]
fn a_session_is_deleted_in_three_steps_and_its_forks_stay() {
    let on_disk = OnDisk::new();
    let main = &on_disk.store;
    let id = json!({"session_id": "s"});
    door(main).ok("ensure", json!({"session_id": "s", "metadata": {"owner": "u"}}));
    let said = door(main).say(&json!("s"), &"long ".repeat(10_000));
    let fork = door(main).ok("fork", json!({"session_id": "s", "entry_id": said}))["session_id"].clone();
    let kept = everything(main, fork.as_str().unwrap());
    let before = main.head();
    let mut ears = Ears::open(main);
    let known = ok(main, "get-meta", id.clone());
    assert_eq!(ok(main, "delete-entries", id.clone()), json!({"ok": true}));
    assert_eq!(ok(main, "list-entries", id.clone()), json!({"entries": []}));
    let mut empty = known;
    empty["message_count"] = json!(0);
    assert_eq!(ok(main, "get-meta", id.clone()), empty);
    assert_eq!(everything(main, fork.as_str().unwrap()), kept);
    assert_eq!(ok(main, "delete-active-leaf", id.clone()), json!({"ok": true}));
    assert_eq!(ok(main, "delete-meta", id.clone()), json!({"ok": true}));
    assert_eq!(ok(main, "delete-meta", id.clone()), json!({"ok": true}));
    assert_eq!(ok(main, "get-meta", id), Value::Null);
    assert_eq!(ears.heard(), [], "whoever deletes tells of it");
    let heard = Ears::after(main, Position::new(before, 0)).heard();
    assert_eq!(types(&heard), ["deleted"], "who comes back later is told that it is gone");
    drop(ears);
    let on_disk = outlives_restarts(on_disk, &["s", fork.as_str().unwrap()]);
    assert_eq!(everything(&on_disk.store, fork.as_str().unwrap()), kept);
    assert_eq!(door(&on_disk.store).ok("ensure", json!({"session_id": "s"}))["meta"]["message_count"], 0);
}

#[test]
fn an_id_that_makes_no_file_name_is_told_by_the_file() {
    let on_disk = OnDisk::new();
    let long = "é".repeat(200);
    for id in ["..", "", long.as_str()] {
        put_entry(&on_disk.store, id, &entry("a", None, "a"));
        put_leaf(&on_disk.store, id, "a");
    }
    put_meta(&on_disk.store, &meta("..", "dots", 1));
    put_meta(&on_disk.store, &meta(&long, "long", 1));
    assert!(store(&on_disk.store, "put-meta", json!({"meta": meta("", "none", 1)})).is_err());
    let on_disk = outlives_restarts(on_disk, &["..", long.as_str()]);
    assert_eq!(door(&on_disk.store).path(&json!("..")), ["a"]);
}

#[test]
fn what_is_malformed_is_refused_and_a_narrow_handle_may_do_none_of_it() {
    let on_disk = OnDisk::new();
    let main = &on_disk.store;
    let mut bad = entry("a", None, "a");
    bad["message"] = json!({"role": "robot"});
    let refused = store(main, "put-entry", json!({"session_id": "s", "entry": bad})).unwrap_err();
    assert!(refused.starts_with("session/invalid_request"), "{refused}");
    assert_eq!(ok(main, "list-entries", json!({"session_id": "s"})), json!({"entries": []}));
    let scope = banyan::Scope::of(json!({"tenant": "t"}).as_object().cloned().unwrap());
    for access in [
        banyan::Access { scope, read_only: false },
        banyan::Access { scope: banyan::Scope::default(), read_only: true },
    ] {
        let narrow = main.with_access(access);
        for function in banyan::store_functions() {
            let name = function.id.trim_start_matches("session::store::");
            let refused = store(&narrow, name, json!({"session_id": "s"})).unwrap_err();
            assert!(refused.starts_with("auth/forbidden"), "{name}: {refused}");
        }
    }
    assert!(banyan::functions().iter().all(|function| !function.id.starts_with("session::store::")));
}
