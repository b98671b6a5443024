//! Directories written by session-manager, of both generations, opened in place.

use std::path::Path;

use crate::support::*;
use banyan::model::Position;
use banyan::{Banyan, Delivery, Start, Subscribe};
use serde_json::{Value, json};

const T: i64 = 1_717_800_000_000;

/// A copy of the fixtures of one generation, opened.
fn opened(generation: &str) -> OnDisk {
    OnDisk::with(fixtures(generation))
}

fn fixtures(generation: &str) -> tempfile::TempDir {
    copied(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/session-manager").join(generation))
}

fn said_by_user(said: &str) -> Value {
    json!({"role": "user", "content": text(said), "timestamp": T})
}

fn said_by_assistant(said: &str) -> Value {
    json!({"role": "assistant", "content": text(said), "stop_reason": "end", "model": "m", "provider": "p", "timestamp": T})
}

fn e(number: u32) -> Value {
    json!(format!("e_{number:032x}"))
}

/// Everything that can be read of a session.
fn everything_of(store: &Banyan, session: &str) -> Value {
    let id = json!(session);
    let tree = door(store).ok("tree", json!({"session_id": id}));
    let entries: Vec<Value> = ids(&tree["entries"]).iter().map(|entry| door(store).entry(&id, entry)).collect();
    json!({"meta": door(store).meta(&id), "tree": tree, "entries": entries, "path": door(store).path(&id)})
}

#[test]
fn a_session_of_the_first_generation_reads_as_it_did() {
    let on_disk = opened("first");
    let store = door(&on_disk.store);
    let id = json!("weather");
    let meta = json!({"session_id": id, "title": "Weather", "description": "Will it rain?", "status": "error", "status_reason": "rate",
        "metadata": {"owner": "u_1"}, "message_count": 5, "created_at": T, "updated_at": T + 7});
    assert_eq!(store.meta(&id), meta);
    assert_eq!(store.path(&id), ["Will it rain?", "It rains.", "mark", "And tomorrow?", "Sun."]);
    let entries = [
        json!({"kind": "message", "id": e(1), "parent_id": null, "timestamp": T + 1, "revision": 0, "origin": {"worker": "chat"},
            "message": said_by_user("Will it rain?")}),
        json!({"kind": "message", "id": e(2), "parent_id": e(1), "timestamp": T + 2, "revision": 1, "message": said_by_assistant("It rains.")}),
        json!({"kind": "custom", "id": "mark", "parent_id": e(2), "timestamp": T + 4, "revision": 0, "custom_type": "mark", "data": {"x": [1, 2]}}),
        json!({"kind": "message", "id": e(6), "parent_id": e(1), "timestamp": T + 6, "revision": 0, "message": said_by_user("A branch")}),
    ];
    for entry in entries {
        assert_eq!(store.entry(&id, &entry["id"]), entry);
    }
    assert_eq!(store.ok("tree", json!({"session_id": id}))["entries"].as_array().unwrap().len(), 6);
    assert_eq!(store.meta(&json!("a/b"))["title"], "Slash");
    assert_eq!(store.path(&json!("empty")), [""; 0]);
}

#[test]
fn a_session_of_the_newest_generation_reads_as_it_did() {
    let on_disk = opened("newest");
    let store = door(&on_disk.store);
    let id = json!("newest");
    let meta = json!({"session_id": id, "title": "Newest", "description": "", "status": "idle", "metadata": {"owner": "u_1"},
        "message_count": 5, "created_at": T, "updated_at": T + 6});
    assert_eq!(store.meta(&id), meta);
    assert_eq!(store.path(&id), ["one", "two!", "compaction", "many 1", "many 2"]);
    let mut message = said_by_assistant("two!");
    message["agent"] = json!({"name": "helper"});
    assert_eq!(
        store.entry(&id, &json!("n2")),
        json!({"kind": "message", "id": "n2", "parent_id": "n1", "timestamp": T + 2, "revision": 1,
        "origin": {"notification": true}, "message": message})
    );
    assert_eq!(store.path(&json!("healed")), ["one", "two"]);
    assert_eq!(store.meta(&json!("healed"))["message_count"], 2);
}

#[test]
fn sessions_of_session_manager_are_listed_and_those_without_meta_are_none() {
    let on_disk = opened("first");
    let listed = door(&on_disk.store).ok("list", json!({"order": "created_asc"}));
    let ids: Vec<&str> =
        listed["sessions"].as_array().unwrap().iter().map(|meta| meta["session_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["a/b", "crash", "empty", "fork", "odd", "torn", "unended", "weather"]);
    assert_eq!(door(&on_disk.store).ok("get", json!({"session_id": "orphan"})), Value::Null);
    let owned = door(&on_disk.store).ok("list", json!({"metadata": {"owner": "u_1"}, "status": "error"}));
    assert_eq!(owned["sessions"][0]["session_id"], "weather");
}

#[test]
fn what_is_appended_follows_the_old_leaf_and_the_old_lines_stay_as_they_are() {
    for (generation, session, leaf, count) in [("first", "weather", e(5), 5), ("newest", "newest", json!("n5"), 5)]
    {
        let dir = fixtures(generation);
        let before = std::fs::read(file_of(dir.path(), session)).unwrap();
        let on_disk = OnDisk::with(dir);
        let id = json!(session);
        let appended = door(&on_disk.store).ok("append", json!({"session_id": id, "message": user("new")}));
        assert_eq!(appended["parent_id"], leaf);
        assert_eq!(door(&on_disk.store).meta(&id)["message_count"], count + 1);
        assert_eq!(door(&on_disk.store).meta(&id)["updated_at"], appended["timestamp"]);
        let whole = everything_of(&on_disk.store, session);
        let on_disk = on_disk.killed();
        assert_eq!(everything_of(&on_disk.store, session), whole);
        let on_disk = on_disk.reopened();
        assert_eq!(everything_of(&on_disk.store, session), whole);
        let after = std::fs::read(file_of(on_disk.dir.path(), session)).unwrap();
        assert!(after.starts_with(&before), "append-only");
        let added = String::from_utf8(after[before.len()..].to_vec()).unwrap();
        assert_eq!(added.lines().count(), 1);
    }
}

#[test]
fn old_entries_can_be_changed_branched_from_and_forked() {
    for (generation, session) in [("first", "weather"), ("newest", "newest")] {
        let on_disk = opened(generation);
        let store = door(&on_disk.store);
        let id = json!(session);
        let path = store.ok("messages", json!({"session_id": id}));
        let [first, second] = [0, 1].map(|at| path["messages"][at]["entry_id"].clone());
        let fork = store.ok("fork", json!({"session_id": id, "entry_id": second}));
        assert_eq!(fork["meta"]["message_count"], 2);
        let copied = store.path(&fork["session_id"]);
        assert_eq!(
            store.ok("extend-message", json!({"session_id": id, "entry_id": second, "text": " Indeed."})),
            json!({"updated": true, "revision": 2})
        );
        assert_eq!(
            store.ok("update-message", json!({"session_id": id, "entry_id": first, "content": text("?")})),
            json!({"updated": true, "revision": 1})
        );
        store.append(&id, json!({"message": user("elsewhere"), "parent_id": second}));
        store.ok("set-status", json!({"session_id": id, "status": "done"}));
        assert_eq!(store.path(&id), ["?".to_owned(), format!("{} Indeed.", copied[1]), "elsewhere".to_owned()]);
        let whole = everything_of(&on_disk.store, session);
        let on_disk = on_disk.reopened();
        assert_eq!(everything_of(&on_disk.store, session), whole);
        let store = door(&on_disk.store);
        assert_eq!(store.path(&fork["session_id"]), copied);
        store.ok("delete", json!({"session_id": id}));
        assert_eq!(store.path(&fork["session_id"]), copied);
        let on_disk = on_disk.reopened();
        assert_eq!(door(&on_disk.store).path(&fork["session_id"]), copied);
        assert_eq!(door(&on_disk.store).ok("get", json!({"session_id": id})), Value::Null);
    }
}

#[test]
fn a_torn_tail_is_cut_off_and_never_glued_to() {
    for generation in ["first", "newest"] {
        let mut on_disk = opened(generation);
        let id = json!("torn");
        assert_eq!(door(&on_disk.store).path(&id), ["kept"]);
        assert_eq!(
            door(&on_disk.store).ok("get-message", json!({"session_id": id, "entry_id": "t2"})),
            Value::Null
        );
        door(&on_disk.store).append(&id, json!({"message": user("again"), "entry_id": "t2"}));
        for _ in 0..2 {
            assert_eq!(door(&on_disk.store).path(&id), ["kept", "again"]);
            assert_eq!(door(&on_disk.store).meta(&id)["message_count"], 2);
            on_disk = on_disk.reopened();
        }
        for line in lines_of(on_disk.dir.path(), "torn") {
            serde_json::from_str::<Value>(&line).unwrap();
        }
    }
}

#[test]
fn a_whole_last_line_without_its_line_feed_is_kept() {
    for generation in ["first", "newest"] {
        let mut on_disk = opened(generation);
        let id = json!("unended");
        assert_eq!(door(&on_disk.store).meta(&id)["message_count"], 1);
        assert_eq!(door(&on_disk.store).path(&id), ["kept"]);
        door(&on_disk.store).say(&id, "next");
        for _ in 0..2 {
            assert_eq!(door(&on_disk.store).path(&id), ["kept", "next"]);
            on_disk = on_disk.reopened();
        }
        for line in lines_of(on_disk.dir.path(), "unended") {
            serde_json::from_str::<Value>(&line).unwrap();
        }
    }
}

#[test]
fn an_entry_that_a_crash_left_uncommitted_is_put_on_the_path_when_it_is_delivered_again() {
    let mut on_disk = opened("first");
    let id = json!("crash");
    let again =
        json!({"session_id": id, "message": user("another text"), "entry_id": "c2", "parent_id": "nowhere"});
    {
        let store = door(&on_disk.store);
        assert_eq!(store.path(&id), ["kept"]);
        assert_eq!(store.meta(&id)["message_count"], 1);
        let mut events = store.listen_to_all();
        let answer = json!({"entry_id": "c2", "parent_id": "c1", "timestamp": T + 2});
        assert_eq!(store.ok("append", again.clone()), answer);
        assert_eq!(store.path(&id), ["kept", "lost by the crash"]);
        assert_eq!(store.meta(&id)["message_count"], 2);
        let payload = json!({"session_id": id, "entry_id": "c2", "parent_id": "c1", "message": said_by_user("lost by the crash"),
            "origin": {"n": 1}, "timestamp": T + 2});
        assert_eq!(said(&events.heard()), [("session::message-added".to_owned(), payload)]);
        assert_eq!(store.ok("append", again), answer, "and once only");
        assert_eq!(store.meta(&id)["message_count"], 2);
        assert_eq!(events.heard(), []);
        store.say(&id, "next");
    }
    let whole = everything_of(&on_disk.store, "crash");
    let told = Ears::after(&on_disk.store, Position::BEGINNING).heard();
    for _ in 0..2 {
        on_disk = on_disk.reopened();
        assert_eq!(everything_of(&on_disk.store, "crash"), whole);
        assert_eq!(Ears::after(&on_disk.store, Position::BEGINNING).heard(), told);
    }
    assert_eq!(types(&told), ["message-added", "message-added"]);
}

#[test]
fn an_uncommitted_entry_does_not_hinder_other_appends() {
    let on_disk = opened("first");
    let id = json!("crash");
    let appended = door(&on_disk.store).ok("append", json!({"session_id": id, "message": user("other")}));
    assert_eq!(appended["parent_id"], "c1");
    assert_eq!(door(&on_disk.store).path(&id), ["kept", "other"]);
    let on_disk = on_disk.reopened();
    assert_eq!(door(&on_disk.store).path(&id), ["kept", "other"]);
    assert_eq!(door(&on_disk.store).meta(&id)["message_count"], 2);
}

#[test]
fn lines_that_are_no_records_are_passed_over() {
    let on_disk = opened("first");
    assert_eq!(door(&on_disk.store).path(&json!("odd")), ["one", "two"]);
    assert_eq!(door(&on_disk.store).meta(&json!("odd"))["message_count"], 2);
}

#[test]
fn a_session_without_meta_can_be_ensured() {
    let on_disk = opened("first");
    let id = json!("orphan");
    assert_eq!(door(&on_disk.store).refused("messages", json!({"session_id": id})), "session/not_found");
    assert_eq!(door(&on_disk.store).ok("ensure", json!({"session_id": id}))["created"], true);
    door(&on_disk.store).say(&id, "first");
    let whole = everything_of(&on_disk.store, "orphan");
    assert_eq!(door(&on_disk.store).path(&id).last().unwrap(), "first");
    let on_disk = on_disk.reopened();
    assert_eq!(everything_of(&on_disk.store, "orphan"), whole);
    assert_eq!(door(&on_disk.store).ok("list", json!({}))["sessions"][0]["session_id"], id);
}

#[test]
fn entries_that_follow_each_other_in_a_circle_are_a_storage_error_and_no_more() {
    let on_disk = opened("newest");
    let store = door(&on_disk.store);
    let id = json!("circle");
    for (function, request) in [
        ("messages", json!({"session_id": id})),
        ("messages", json!({"session_id": id, "from_entry_id": "r1"})),
        ("messages-tail", json!({"session_id": id})),
        ("fork", json!({"session_id": id, "entry_id": "r1"})),
    ] {
        assert_eq!(store.refused(function, request), "session/storage", "{function}");
    }
    assert_eq!(store.entry(&id, &json!("r1"))["message"], said_by_user("one"));
    assert_eq!(store.ok("tree", json!({"session_id": id}))["entries"].as_array().unwrap().len(), 2);
    assert_eq!(store.ok("delete", json!({"session_id": id})), json!({"deleted": true}));
    assert_eq!(store.path(&json!("newest")).len(), 5);
}

#[test]
fn one_bad_byte_in_one_file_hurts_nobody_else() {
    let dir = fixtures("first");
    let mut bytes = std::fs::read(file_of(dir.path(), "odd")).unwrap();
    let at = bytes.windows(3).position(|window| window == b"one").unwrap();
    bytes[at] = 0xff;
    std::fs::write(file_of(dir.path(), "odd"), bytes).unwrap();
    let on_disk = OnDisk::with(dir);
    let store = door(&on_disk.store);
    assert_eq!(store.ok("list", json!({}))["sessions"].as_array().unwrap().len(), 8);
    assert_eq!(store.path(&json!("odd")), ["two"]);
    assert_eq!(store.path(&json!("weather")).len(), 5);
}

#[test]
fn a_snapshot_of_an_old_session_can_be_followed_and_come_back_to() {
    let on_disk = opened("newest");
    let start = Start::Snapshot("newest".into());
    let mut ears = Ears::of(&on_disk.store, Subscribe { filters: everything(), start });
    let deliveries = ears.deliveries();
    let added = deliveries.iter().filter(|delivery| matches!(delivery, Delivery::Snapshot(event) if event.event_type().as_str() == "session::message-added"));
    assert_eq!(added.count(), 6);
    let Some(Delivery::SnapshotEnd(end)) = deliveries.last() else { panic!("{deliveries:?}") };
    door(&on_disk.store).say(&json!("newest"), "live");
    let live = ears.heard();
    assert_eq!(types(&live), ["message-added"]);
    assert_eq!(Ears::after(&on_disk.store, *end).heard(), live);
}

#[test]
fn files_that_are_no_sessions_are_left_alone() {
    let dir = fixtures("newest");
    std::fs::write(dir.path().join("notes.txt"), "mine").unwrap();
    std::fs::write(dir.path().join("half.jsonl.tmp"), "{").unwrap();
    let on_disk = OnDisk::with(dir);
    let listed = door(&on_disk.store).ok("list", json!({}));
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 5);
    let dir = on_disk.close();
    for (file, content) in [("notes.txt", "mine"), ("half.jsonl.tmp", "{"), ("attachments/newest/a_1.bin", "hi")] {
        assert_eq!(std::fs::read_to_string(dir.path().join(file)).unwrap(), content);
    }
}

#[test]
fn a_file_name_in_another_spelling_is_the_same_session() {
    let dir = fixtures("first");
    std::fs::rename(dir.path().join("a%2Fb.jsonl"), dir.path().join("a%2fb.jsonl")).unwrap();
    let mut on_disk = OnDisk::with(dir);
    let id = json!("a/b");
    assert_eq!(door(&on_disk.store).meta(&id)["title"], "Slash");
    door(&on_disk.store).say(&id, "hi");
    for _ in 0..2 {
        on_disk = on_disk.reopened();
        assert_eq!(door(&on_disk.store).path(&id), ["hi"]);
        assert_eq!(door(&on_disk.store).meta(&id)["title"], "Slash");
        assert_eq!(door(&on_disk.store).ok("list", json!({}))["sessions"].as_array().unwrap().len(), 8);
    }
}
