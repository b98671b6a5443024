//! Files that are gone, foreign or copied, and content that is damaged.

use std::path::Path;

use banyan::verify::verify;
use serde_json::json;

use super::super::{TEXTS, check_mine, check_other, written};
use crate::support::*;

#[test]
fn files_of_other_programs_are_left_alone() {
    let dir = written();
    let foreign = [
        ("notes.txt", "x"),
        ("empty.jsonl", ""),
        ("garbage.jsonl", "\u{0}\u{1}not a record\n"),
        ("%zz.jsonl", "{}\n"),
        ("x.jsonl.tmp", "{"),
        (".hidden", "y"),
        ("config.json", "{}"),
        ("list.jsonl", "[1,2]\n{\"a\":1}\n"),
    ];
    for (name, content) in foreign {
        std::fs::write(dir.path().join(name), content).unwrap();
    }
    std::fs::create_dir(dir.path().join("folder.jsonl")).unwrap();
    let store = open(dir.path());
    let listed = door(&store).ok("list", json!({}));
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 2, "{listed}");
    check_mine(&store, "beside other files");
    store.close().unwrap();
    for (name, content) in foreign {
        assert_eq!(std::fs::read_to_string(dir.path().join(name)).unwrap(), content, "{name}");
    }
}

#[test]
fn a_copy_of_a_session_file_under_another_name_does_no_harm() {
    let dir = written();
    std::fs::copy(file_of(dir.path(), "mine"), file_of(dir.path(), "backup")).unwrap();
    let store = open(dir.path());
    let listed = door(&store).ok("list", json!({}));
    let named =
        |id: &str| listed["sessions"].as_array().unwrap().iter().filter(|meta| meta["session_id"] == id).count();
    assert_eq!((named("mine"), named("other")), (1, 1), "{listed}");
    check_mine(&store, "beside a copy");
    assert_eq!(named("backup"), 0, "its records are of another session");
    assert_eq!(door(&store).refused("get", json!({"session_id": "backup"})), "session/storage");
    store.close().unwrap();
    drop(store);
    let store = open(dir.path());
    assert_eq!(door(&store).path(&json!("mine")), [&TEXTS[..], &["next"]].concat());
    check_other(&store);
}

#[test]
fn content_that_is_missing_or_damaged_is_never_served() {
    let on_disk = OnDisk::new();
    let store = door(&on_disk.store);
    let long = "long ".repeat(20_000);
    store.ok("ensure", json!({"session_id": "mine"}));
    for said in ["before", &long, "after"] {
        store.say(&json!("mine"), said);
    }
    let request = json!({"session_id": "mine", "name": "n", "mime": "m", "data": base64(b"attached")});
    let attachment = store.ok("put-attachment", request)["attachment"].clone();
    let closed = on_disk.close();
    let spoil = |path: &Path| {
        let mut bytes = std::fs::read(path).unwrap();
        bytes[3] ^= 1;
        std::fs::write(path, bytes).unwrap();
    };
    let remove = |path: &Path| std::fs::remove_file(path).unwrap();
    for damage in [&spoil as &dyn Fn(&Path), &remove] {
        let dir = copied(closed.path());
        for name in files_in(dir.path()).keys().filter(|name| name.starts_with(".banyan/blobs")) {
            damage(&dir.path().join(name));
        }
        let store = open(dir.path());
        let id = json!("mine");
        assert_eq!(door(&store).path(&id), ["before", "after"]);
        let listed = door(&store).ok("list-attachments", json!({"session_id": id}));
        assert_eq!(listed, json!({"attachments": [attachment]}));
        let request = json!({"session_id": id, "attachment_id": attachment["attachment_id"]});
        assert_eq!(door(&store).refused("get-attachment", request), "session/storage");
        door(&store).say(&id, "next");
        assert_eq!(door(&store).path(&id), ["before", "after", "next"]);
        drop(store);
        assert!(!verify(dir.path(), &()).unwrap().is_sound());
    }
}

#[test]
fn a_sound_directory_is_found_sound() {
    let report = verify(written().path(), &()).unwrap();
    assert!(report.is_sound() && report.findings.is_empty(), "{report:?}");
    assert_eq!((report.sessions, report.records), (2, 9));
}
