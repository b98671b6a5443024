//! Stopping and starting again: cleanly, by a kill, and with files in their places.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::*;
use banyan::{Banyan, Options};
use serde_json::{Value, json};

/// A log whose segments are full soon, so that session files are written during the test.
fn small_segments() -> Options {
    let mut options = Options::default();
    options.log.background = false;
    options.log.first_segment = 8 << 10;
    options.log.largest_segment = 8 << 10;
    options
}

/// Writes so much that what was written before is in session files and no longer in the write-ahead log.
fn fill_the_log(store: &Banyan) {
    let session = door(store).session();
    for _ in 0..8 {
        door(store).say(&session, &"x".repeat(4 << 10));
    }
}

#[test]
fn a_source_and_its_last_fork_deleted_just_before_a_kill_do_not_keep_the_store_from_opening() {
    let dir = tempfile::tempdir().unwrap();
    let store = Banyan::open(dir.path(), small_segments()).unwrap();
    let source = door(&store).session();
    let entry = door(&store).say(&source, "hi");
    let fork = door(&store).ok("fork", json!({"session_id": source, "entry_id": entry}))["session_id"].clone();
    fill_the_log(&store);
    door(&store).ok("delete", json!({"session_id": source}));
    door(&store).ok("delete", json!({"session_id": fork}));
    let killed = copied(dir.path());
    let store = Banyan::open(killed.path(), small_segments()).unwrap();
    assert_eq!(door(&store).ok("list", json!({}))["sessions"].as_array().unwrap().len(), 1);
}

#[test]
fn a_session_made_anew_under_the_id_of_a_forks_source_survives_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let store = Banyan::open(dir.path(), small_segments()).unwrap();
    let id = json!("mine");
    door(&store).ok("ensure", json!({"session_id": id}));
    let entry = door(&store).say(&id, "old");
    let fork = door(&store).ok("fork", json!({"session_id": id, "entry_id": entry}))["session_id"].clone();
    fill_the_log(&store);
    door(&store).ok("delete", json!({"session_id": id}));
    door(&store).ok("ensure", json!({"session_id": id}));
    door(&store).say(&id, "new");
    for delete_fork in [false, true] {
        if delete_fork {
            door(&store).ok("delete", json!({"session_id": fork}));
        }
        let killed = copied(dir.path());
        let store = Banyan::open(killed.path(), small_segments()).unwrap();
        assert_eq!(door(&store).path(&id), ["new"]);
        if !delete_fork {
            assert_eq!(door(&store).path(&fork), ["old"]);
        }
    }
}

#[test]
fn everything_acknowledged_survives_a_kill_at_every_moment() {
    let on_disk = OnDisk::new();
    let store = door(&on_disk.store);
    let session = store.session();
    let entry = store.append(&session, json!({"message": assistant("")}));
    let mut copies = Vec::new();
    for token in ["a", "b", "c"] {
        store.ok("extend-message", json!({"session_id": session, "entry_id": entry, "text": token}));
        copies.push((copied(on_disk.dir.path()), store.entry(&session, &entry), store.meta(&session)));
    }
    for (dir, entry, meta) in copies {
        let again = OnDisk::with(dir);
        assert_eq!(door(&again.store).entry(&session, &entry["id"]), entry);
        assert_eq!(door(&again.store).meta(&session), meta);
    }
}

#[test]
fn a_killed_store_is_killed_again_while_it_grows() {
    let mut on_disk = OnDisk::new();
    let session = door(&on_disk.store).session();
    let entry = door(&on_disk.store).append(&session, json!({"message": assistant("")}));
    let mut whole = String::new();
    for token in ["a", "b", "c", "d", "e", "f"] {
        whole.push_str(token);
        let answer = door(&on_disk.store)
            .ok("extend-message", json!({"session_id": session, "entry_id": entry, "text": token}));
        assert_eq!(answer["revision"], whole.len());
        on_disk = if whole.len().is_multiple_of(2) { on_disk.killed() } else { on_disk.reopened() };
        assert_eq!(door(&on_disk.store).path(&session), [whole.clone()]);
    }
}

#[test]
fn a_closed_session_file_holds_everything_and_opens_alone_in_another_directory() {
    let on_disk = OnDisk::new();
    let store = door(&on_disk.store);
    let session = store.ok("create", json!({"title": "T", "metadata": {"a": 1}}))["session_id"].clone();
    let root = store.say(&session, "root");
    let entry = store.append(&session, json!({"message": assistant("")}));
    store.ok("extend-message", json!({"session_id": session, "entry_id": entry, "text": "grown"}));
    store.append(&session, json!({"message": user("branch"), "parent_id": root}));
    let before =
        (store.meta(&session), store.ok("tree", json!({"session_id": session})), store.entry(&session, &entry));
    let dir = on_disk.close();
    let id = session.as_str().unwrap().to_owned();
    let lines = lines_of(dir.path(), &id);
    assert!(lines.iter().any(|line| line.contains(r#""text":"grown""#)), "the whole text stands in one record");
    for (seq, line) in lines.iter().enumerate() {
        let record: Value = serde_json::from_str(line).unwrap();
        let keys: Vec<&String> = record.as_object().unwrap().keys().collect();
        assert_eq!(keys[..5], ["schema_version", "seq", "time", "commit", "type"]);
        assert_eq!(keys[keys.len() - 1], "crc");
        assert_eq!(record["seq"], seq);
    }
    let elsewhere = tempfile::tempdir().unwrap();
    write_lines(elsewhere.path(), &id, &lines);
    let alone = OnDisk::with(elsewhere);
    let store = door(&alone.store);
    assert_eq!(
        (store.meta(&session), store.ok("tree", json!({"session_id": session})), store.entry(&session, &entry)),
        before
    );
    assert_eq!(store.ok("list", json!({})), json!({"sessions": [before.0]}));
}

#[test]
fn a_second_store_on_the_same_directory_is_refused() {
    let on_disk = OnDisk::new();
    let refused = Banyan::open(on_disk.dir.path(), Options::default());
    assert!(refused.err().unwrap().to_string().contains(&std::process::id().to_string()), "the owner is named");
    on_disk.reopened();
}

#[test]
fn calls_after_closing_are_refused() {
    let on_disk = OnDisk::new();
    let session = door(&on_disk.store).session();
    on_disk.store.close().unwrap();
    assert_eq!(
        door(&on_disk.store).refused("append", json!({"session_id": session, "message": user("x")})),
        "session/storage"
    );
    assert_eq!(door(&on_disk.store).refused("create", json!({})), "session/storage");
}

#[test]
fn opening_and_closing_changes_no_session_file() {
    let on_disk = OnDisk::new();
    let session = door(&on_disk.store).session();
    door(&on_disk.store).say(&session, "hi");
    let dir = on_disk.close();
    let sessions = |dir: &std::path::Path| {
        let mut files = files_in(dir);
        files.retain(|name, _| !name.starts_with(".banyan"));
        files
    };
    let before = sessions(dir.path());
    let mut on_disk = OnDisk::with(dir);
    for _ in 0..2 {
        door(&on_disk.store).path(&session);
        on_disk = on_disk.reopened();
    }
    assert_eq!(sessions(on_disk.close().path()), before);
}

#[test]
fn long_content_is_stored_once_and_goes_with_its_last_user() {
    let on_disk = OnDisk::new();
    let store = door(&on_disk.store);
    let long = "long ".repeat(20_000);
    let blobs = |on_disk: &OnDisk| {
        files_in(on_disk.dir.path()).keys().filter(|name| name.starts_with(".banyan/blobs")).count()
    };
    let (one, other) = (store.session(), store.session());
    let entry = store.say(&one, &long);
    store.say(&one, &long);
    store.say(&other, &long);
    assert_eq!(blobs(&on_disk), 1);
    let fork = store.ok("fork", json!({"session_id": one, "entry_id": entry}))["session_id"].clone();
    for gone in [&one, &other] {
        store.ok("delete", json!({"session_id": gone}));
        assert_eq!(blobs(&on_disk), 1);
        assert_eq!(store.path(&fork), [long.as_str()]);
    }
    store.ok("delete", json!({"session_id": fork}));
    let on_disk = on_disk.reopened();
    assert!(on_disk.store.purge_content().unwrap().is_complete());
    assert_eq!(blobs(&on_disk), 0);
    assert!(!files_in(on_disk.dir.path()).keys().any(|name| name.starts_with(".banyan/aside/content")));
}

#[test]
fn content_that_a_crash_left_without_a_user_goes_when_the_store_is_opened_next() {
    let stray = |dir: &std::path::Path| {
        let hash = blake3::hash(b"stray").to_hex().to_string();
        let folder = dir.join(".banyan/blobs").join(&hash[..2]);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(&hash), b"stray").unwrap();
        folder.join(hash)
    };
    let dir = tempfile::tempdir().unwrap();
    let store = Banyan::open(dir.path(), Options::default()).unwrap();
    door(&store).session();
    store.close().unwrap();
    let store = Banyan::open(dir.path(), Options::default()).unwrap();

    // Killed in a call that stored content and committed nothing: the write-ahead log is empty.
    let killed = copied(dir.path());
    let left = stray(killed.path());
    let reopened = Banyan::open(killed.path(), Options::default()).unwrap();
    assert!(!left.exists(), "it is gone");
    assert_eq!(door(&reopened).ok("list", json!({}))["sessions"].as_array().unwrap().len(), 1);
    drop(store);
}

#[test]
fn only_bringing_a_session_into_memory_is_done_where_it_may_take_a_while() {
    static TIMES: AtomicUsize = AtomicUsize::new(0);
    let on_disk = OnDisk::new();
    let session = door(&on_disk.store).session();
    door(&on_disk.store).say(&session, "hi");
    let dir = on_disk.close();
    let counted = |work: &mut dyn FnMut()| {
        TIMES.fetch_add(1, Ordering::Relaxed);
        work();
    };
    let store = Banyan::open(dir.path(), Options { may_block: counted, ..Options::default() }).unwrap();
    for _ in 0..3 {
        let page = door(&store).ok("messages", json!({"session_id": session}));
        assert_eq!(page["messages"][0]["message"]["content"], text("hi"));
        door(&store).say(&session, "again");
    }
    assert_eq!(TIMES.load(Ordering::Relaxed), 1);
}
