//! Names of files: ids that are odd as names, and ids that differ only in case.

use std::sync::Arc;

use banyan::verify::{verify, verify_on};
use banyan::{Banyan, Options};
use serde_json::json;

use super::folding::FoldingDisk;
use crate::support::*;

/// A session as session-manager writes it.
fn legacy(id: &str, text: &str) -> String {
    let meta = json!({"session_id": id, "title": "Old", "description": "", "status": "idle", "message_count": 1,
        "created_at": 1, "updated_at": 1});
    let message = json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1});
    let entry = json!({"kind": "message", "id": "e", "parent_id": null, "timestamp": 1, "revision": 0, "message": message});
    [
        json!({"type": "entry", "entry": entry}),
        json!({"type": "leaf", "entry_id": "e"}),
        json!({"type": "meta", "meta": meta}),
    ]
    .map(|line| format!("{line}\n"))
    .concat()
}

#[test]
fn a_session_of_session_manager_opens_whatever_its_id_is_as_a_file_name() {
    let long = "x".repeat(230);
    for (id, file) in [("..", "...jsonl"), ("...", "....jsonl"), (long.as_str(), &format!("{long}.jsonl"))] {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(file), legacy(id, "hello")).unwrap();
        assert!(verify(dir.path(), &()).unwrap().is_sound());
        for _ in 0..2 {
            let store = open(dir.path());
            assert_eq!(door(&store).path(&json!(id))[0], "hello", "{id}");
            let listed = door(&store).ok("list", json!({}));
            assert_eq!(listed["sessions"][0]["session_id"], id);
            door(&store).say(&json!(id), "next");
            store.close().unwrap();
        }
        assert!(verify(dir.path(), &()).unwrap().is_sound());
    }
}

#[test]
fn ids_that_differ_only_in_case_are_two_sessions_where_case_is_folded() {
    let disk = FoldingDisk::new();
    let open = || Banyan::open_on(Arc::new(disk.clone()), None, Options::default()).unwrap();
    let ids = ["Trip", "trip", "TRIP", "Ä", "ä"];
    let store = open();
    for id in ids {
        door(&store).ok("ensure", json!({"session_id": id, "title": id}));
        door(&store).say(&json!(id), &format!("of {id}"));
    }
    store.close().unwrap();
    drop(store);
    let store = open();
    for id in ids {
        assert_eq!(door(&store).meta(&json!(id))["title"], id);
        assert_eq!(door(&store).path(&json!(id)), [format!("of {id}")]);
    }
    door(&store).ok("delete", json!({"session_id": "Trip"}));
    store.close().unwrap();
    drop(store);
    let store = open();
    assert!(door(&store).ok("get", json!({"session_id": "Trip"})).is_null());
    assert_eq!(door(&store).path(&json!("trip")), ["of trip"]);
    assert_eq!(door(&store).ok("list", json!({}))["sessions"].as_array().unwrap().len(), ids.len() - 1);
    store.close().unwrap();
    drop(store);
    assert!(verify_on(Arc::new(disk.clone()), &()).unwrap().is_sound());
}

#[test]
fn a_directory_that_comes_from_a_disk_which_does_not_fold_case_is_read_on_one_that_does() {
    let from = OnDisk::new();
    for id in ["Trip", "other"] {
        door(&from.store).ok("ensure", json!({"session_id": id}));
        door(&from.store).say(&json!(id), &format!("of {id}"));
    }
    let from = from.close();
    let disk = FoldingDisk::new();
    for (name, bytes) in files_in(from.path()) {
        disk.write_file(name.to_str().unwrap(), &bytes);
    }
    for round in 0..2 {
        let store = Banyan::open_on(Arc::new(disk.clone()), None, Options::default()).unwrap();
        for id in ["Trip", "other"] {
            assert_eq!(door(&store).path(&json!(id))[0], format!("of {id}"));
            door(&store).say(&json!(id), &format!("round {round}"));
        }
        store.close().unwrap();
        drop(store);
        assert!(verify_on(Arc::new(disk.clone()), &()).unwrap().is_sound());
    }
}
