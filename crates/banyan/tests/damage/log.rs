//! Damage to the write-ahead log: the damaged commit alone is lost, and is named for good.

use std::path::{Path, PathBuf};

use banyan::verify::{Report, verify};
use serde_json::json;
use tempfile::TempDir;

use super::super::{TEXTS, check_mine, check_other};
use crate::support::*;

/// A directory whose owner was killed: `other` is in its file, and what `mine` says is in the log only.
fn killed() -> (TempDir, PathBuf, Vec<u8>) {
    let on_disk = OnDisk::new();
    let store = door(&on_disk.store);
    store.ok("ensure", json!({"session_id": "other", "title": "Other"}));
    store.say(&json!("other"), "untouched");
    let on_disk = on_disk.reopened();
    let store = door(&on_disk.store);
    store.ok("ensure", json!({"session_id": "mine", "title": "Title"}));
    for said in TEXTS {
        store.say(&json!("mine"), said);
    }
    let killed = copied(on_disk.dir.path());
    let _ = std::fs::remove_file(file_of(killed.path(), "mine"));
    let log =
        files_in(killed.path()).into_iter().filter(|(name, _)| name.extension().is_some_and(|it| it == "seg"));
    let (name, bytes) = log.max_by_key(|(_, bytes)| bytes.iter().filter(|byte| **byte != 0).count()).unwrap();
    (killed, name, bytes)
}

/// What `verify` finds, having changed nothing.
fn verified(dir: &Path) -> Report {
    let before = files_in(dir);
    let report = verify(dir, &()).unwrap();
    assert!(files_in(dir) == before, "verify changes nothing");
    report
}

#[test]
fn whichever_byte_of_the_log_is_changed_at_most_its_commit_is_lost_and_that_is_reported_for_good() {
    let (dir, name, bytes) = killed();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    let header = (0..28).collect::<Vec<_>>();
    for at in header.iter().copied().chain((64..=used).step_by(used / 60)) {
        let dir = copied(dir.path());
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x20;
        std::fs::write(dir.path().join(&name), bytes).unwrap();
        assert!(!verified(dir.path()).is_sound(), "byte {at}");
        let (store, warnings) = open_hearing_warnings(dir.path());
        assert!(!warnings.all().is_empty(), "byte {at}");
        check_other(&store);
        let path = door(&store).path(&json!("mine"));
        let lost = TEXTS.iter().filter(|said| !path.iter().any(|kept| kept == *said)).count();
        assert!(lost <= usize::from(!header.contains(&at)), "byte {at}: {path:?}");
        check_mine(&store, &format!("byte {at}"));
        let path = door(&store).path(&json!("mine"));
        store.close().unwrap();
        drop(store);
        // After the checkpoint, too: what was lost is known, unless nothing was.
        assert_eq!(verified(dir.path()).is_sound(), header.contains(&at), "byte {at}");
        assert_eq!(door(&open(dir.path())).path(&json!("mine")), path, "byte {at}, reopened");
    }
}

#[test]
fn a_segment_that_is_gone_cut_exchanged_or_unreadable_is_missed() {
    let (killed, name, bytes) = killed();
    let gone = |path: &Path| std::fs::remove_file(path).unwrap();
    let empty = |path: &Path| std::fs::write(path, "").unwrap();
    let cut = |path: &Path| std::fs::write(path, &bytes[..1000]).unwrap();
    let zeros = |path: &Path| std::fs::write(path, vec![0; bytes.len()]).unwrap();
    let garbage = |path: &Path| std::fs::write(path, vec![0x5a; bytes.len()]).unwrap();
    let folder = |path: &Path| {
        std::fs::remove_file(path).unwrap();
        std::fs::create_dir(path).unwrap();
    };
    for (what, damage) in [
        ("gone", &gone as &dyn Fn(&Path)),
        ("empty", &empty),
        ("cut", &cut),
        ("zeros", &zeros),
        ("garbage", &garbage),
        ("a folder", &folder),
    ] {
        let dir = copied(killed.path());
        damage(&dir.path().join(&name));
        assert!(!verified(dir.path()).is_sound(), "{what}");
        let (store, warnings) = open_hearing_warnings(dir.path());
        assert!(!warnings.all().is_empty(), "{what}");
        check_other(&store);
        door(&store).ok("ensure", json!({"session_id": "new"}));
        store.close().unwrap();
        drop(store);
        assert!(!verified(dir.path()).is_sound(), "{what}, later");
        check_other(&open(dir.path()));
    }
}

#[test]
fn a_session_whose_removal_was_lost_does_not_come_back() {
    let on_disk = OnDisk::new();
    let store = door(&on_disk.store);
    store.ok("ensure", json!({"session_id": "mine", "title": "Title"}));
    store.say(&json!("mine"), "a secret");
    store.ok("delete", json!({"session_id": "mine"}));
    store.ok("ensure", json!({"session_id": "other"}));
    let killed = copied(on_disk.dir.path());
    let files = files_in(killed.path());
    let (name, bytes) = files.iter().find(|(name, _)| name.extension().is_some_and(|it| it == "seg")).unwrap();
    // The last place that names the file is its removal.
    let at = bytes.windows(10).rposition(|part| part == b"mine.jsonl").unwrap();
    let mut bytes = bytes.clone();
    bytes[at] ^= 1;
    std::fs::write(killed.path().join(name), bytes).unwrap();
    let store = open(killed.path());
    assert!(door(&store).ok("get", json!({"session_id": "mine"})).is_null());
    assert!(!file_of(killed.path(), "mine").exists());
    assert!(!door(&store).ok("get", json!({"session_id": "other"})).is_null());
}

#[test]
fn a_lost_commit_that_a_session_file_still_has_is_not_lost() {
    let (dir, name, bytes) = killed();
    // The file as it is shown to whoever looks, before any checkpoint.
    let whole = {
        let copy = copied(dir.path());
        open(copy.path()).close().unwrap();
        std::fs::read(file_of(copy.path(), "mine")).unwrap()
    };
    std::fs::write(file_of(dir.path(), "mine"), whole).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    for at in (64..=used).step_by(used / 20) {
        let dir = copied(dir.path());
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x20;
        std::fs::write(dir.path().join(&name), bytes).unwrap();
        assert_eq!(door(&open(dir.path())).path(&json!("mine")), TEXTS, "byte {at}");
    }
}

#[test]
fn a_log_of_a_later_release_is_refused_and_left_as_it_is() {
    let (dir, name, mut bytes) = killed();
    bytes.fill(0x5a);
    bytes[..8].copy_from_slice(b"BANYANW2");
    std::fs::write(dir.path().join(&name), &bytes).unwrap();
    let before = files_in(dir.path());
    let error = banyan::Banyan::open(dir.path(), banyan::Options::default()).err().unwrap().to_string();
    assert!(error.contains("format 2") && error.contains("newer"), "{error}");
    let after = files_in(dir.path());
    assert!(after[&name] == before[&name]);
}
