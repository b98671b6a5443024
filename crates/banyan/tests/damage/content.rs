//! Attachments and long texts are never removed on the word of what is derived.

use std::path::{Path, PathBuf};
use std::time::Duration;

use banyan::{Banyan, Options};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::*;

const CATALOGUE: &str = ".banyan/index/catalogue.sqlite";

/// A closed directory in which `mine` has an attachment and a long text, and `other` one message.
fn with_content() -> (TempDir, Value) {
    let on_disk = OnDisk::new();
    let store = door(&on_disk.store);
    for id in ["mine", "other"] {
        store.ok("ensure", json!({"session_id": id}));
    }
    store.say(&json!("other"), "untouched");
    store.say(&json!("mine"), &long());
    let request = json!({"session_id": "mine", "name": "n", "mime": "m", "data": base64(b"attached")});
    let attachment = store.ok("put-attachment", request)["attachment"]["attachment_id"].clone();
    (on_disk.close(), attachment)
}

fn long() -> String {
    "long ".repeat(20_000)
}

/// What a kill leaves right after a directory was opened.
fn killed(dir: &Path) -> TempDir {
    let store = open(dir);
    let left = copied(dir);
    drop(store);
    left
}

fn options(aside_for: Duration) -> Options {
    Options { aside_for, ..Options::default() }
}

fn check_content(store: &Banyan, attachment: &Value, what: &str) {
    assert_eq!(door(store).path(&json!("mine")), [long()], "{what}");
    let request = json!({"session_id": "mine", "attachment_id": attachment});
    assert_eq!(door(store).ok("get-attachment", request)["data"], base64(b"attached"), "{what}");
}

fn hashes() -> [blake3::Hash; 2] {
    [blake3::hash(b"attached"), blake3::hash(long().as_bytes())]
}

/// The content that is in the directory, in use or aside.
fn content(dir: &Path, part: &str) -> Vec<PathBuf> {
    let mut found: Vec<_> = files_in(dir).into_keys().filter(|name| name.starts_with(part)).collect();
    found.sort_unstable();
    found
}

/// Flips a bit wherever these bytes stand in a file.
fn flip_in(path: &Path, needle: &[u8]) -> usize {
    let mut bytes = std::fs::read(path).unwrap();
    let found: Vec<usize> =
        bytes.windows(needle.len()).enumerate().filter(|(_, at)| *at == needle).map(|(at, _)| at).collect();
    found.iter().for_each(|at| bytes[at + 3] ^= 4);
    std::fs::write(path, bytes).unwrap();
    found.len()
}

#[test]
fn a_flipped_hash_in_the_catalogue_removes_no_content() {
    for hash in hashes() {
        let (dir, attachment) = with_content();
        let dir = killed(dir.path());
        assert!(flip_in(&dir.path().join(CATALOGUE), hash.as_bytes()) > 0);
        for round in 0..3 {
            let store = Banyan::open(dir.path(), options(Duration::ZERO)).unwrap();
            store.purge_content().unwrap();
            check_content(&store, &attachment, &format!("round {round}"));
            store.close().unwrap();
        }
    }
}

#[test]
fn a_flipped_hash_in_a_session_file_removes_no_content() {
    for hash in hashes() {
        let (dir, attachment) = with_content();
        let mine = file_of(dir.path(), "mine");
        let whole = std::fs::read(&mine).unwrap();
        assert_eq!(flip_in(&mine, hash.to_hex().as_bytes()), 1);
        for _ in 0..2 {
            let dir = killed(dir.path());
            std::fs::remove_file(dir.path().join(CATALOGUE)).unwrap();
            let store = Banyan::open(dir.path(), options(Duration::ZERO)).unwrap();
            let purged = store.purge_content().unwrap();
            assert!(purged.removed.is_empty(), "{purged:?}");
            assert!(purged.unreadable.iter().any(|what| what.starts_with("mine.jsonl, line")), "{purged:?}");
            store.close().unwrap();
            drop(store);
            std::fs::write(file_of(dir.path(), "mine"), &whole).unwrap();
            check_content(&open(dir.path()), &attachment, "the line is whole again");
        }
    }
}

#[test]
fn the_content_of_a_session_file_that_was_away_for_two_starts_is_there_when_it_is_back() {
    let (dir, attachment) = with_content();
    let away = tempfile::tempdir().unwrap();
    let (mine, kept) = (file_of(dir.path(), "mine"), away.path().join("mine.jsonl"));
    std::fs::rename(&mine, &kept).unwrap();
    for _ in 0..2 {
        // Not even the catalogue and the register are left to say that the session was there.
        for lost in [CATALOGUE, ".banyan/files"] {
            std::fs::remove_file(dir.path().join(lost)).unwrap();
        }
        let store = Banyan::open(dir.path(), options(Duration::ZERO)).unwrap();
        let purged = store.purge_content().unwrap();
        assert!(purged.removed.is_empty() && !purged.unreadable.is_empty(), "{purged:?}");
        drop(copied(dir.path()));
        store.close().unwrap();
    }
    std::fs::rename(&kept, &mine).unwrap();
    check_content(&open(dir.path()), &attachment, "the file is back");
}

#[test]
fn content_that_is_aside_is_found_and_comes_back() {
    let (dir, attachment) = with_content();
    std::fs::create_dir_all(dir.path().join(".banyan/aside/content")).unwrap();
    for hash in hashes().map(|hash| hash.to_hex().to_string()) {
        let from = dir.path().join(".banyan/blobs").join(&hash[..2]).join(&hash);
        std::fs::rename(from, dir.path().join(format!(".banyan/aside/content/{hash}.17"))).unwrap();
    }
    assert!(banyan::verify::verify(dir.path(), &()).unwrap().is_sound());
    let (store, warnings) = open_hearing_warnings(dir.path());
    check_content(&store, &attachment, "aside");
    assert_eq!(content(dir.path(), ".banyan/aside"), Vec::<PathBuf>::new());
    store.close().unwrap();
    assert!(warnings.all().iter().any(|warning| warning.contains("catalogue")), "{:?}", warnings.all());
}

#[test]
fn unused_content_is_set_aside_for_its_time_and_then_goes() {
    let (dir, _) = with_content();
    let store = Banyan::open(dir.path(), options(Duration::from_secs(3600))).unwrap();
    door(&store).ok("delete", json!({"session_id": "mine"}));
    assert_eq!(content(dir.path(), ".banyan/blobs"), Vec::<PathBuf>::new());
    assert_eq!(content(dir.path(), ".banyan/aside/content").len(), 2);
    assert_eq!(store.sweep_content().unwrap().removed, Vec::<String>::new(), "it is not time yet");
    assert_eq!(content(dir.path(), ".banyan/aside/content").len(), 2);
    store.close().unwrap();
    drop(store);
    let store = Banyan::open(dir.path(), options(Duration::ZERO)).unwrap();
    let swept = store.sweep_content().unwrap();
    assert_eq!((swept.removed.len(), swept.bytes), (2, 100_000 + 8));
    assert_eq!(content(dir.path(), ".banyan/aside/content"), Vec::<PathBuf>::new());
}

#[test]
fn a_purge_removes_at_once_what_all_files_say_is_unused_and_nothing_else() {
    let (dir, _) = with_content();
    let store = open(dir.path());
    let request = json!({"session_id": "other", "name": "n", "mime": "m", "data": base64(b"attached")});
    let attachment = door(&store).ok("put-attachment", request)["attachment"]["attachment_id"].clone();
    door(&store).ok("delete", json!({"session_id": "mine"}));
    let purged = store.purge_content().unwrap();
    assert_eq!(purged.removed, [hashes()[1].to_hex().to_string()]);
    let request = json!({"session_id": "other", "attachment_id": attachment});
    assert_eq!(door(&store).ok("get-attachment", request)["data"], base64(b"attached"));
}

#[test]
fn a_purge_is_refused_while_anything_cannot_be_read() {
    type Damage = (&'static str, fn(&Path));
    let damages: [Damage; 4] = [
        ("other.jsonl", |dir| {
            let mut bytes = std::fs::read(file_of(dir, "other")).unwrap();
            bytes[60] ^= 1;
            std::fs::write(file_of(dir, "other"), bytes).unwrap();
        }),
        ("other.jsonl", |dir| std::fs::remove_file(file_of(dir, "other")).unwrap()),
        (".banyan/files", |dir| {
            let mut bytes = std::fs::read(dir.join(".banyan/files")).unwrap();
            let last = bytes.len() - 20;
            bytes[last] ^= 1;
            std::fs::write(dir.join(".banyan/files"), bytes).unwrap();
        }),
        (".banyan/wal", |dir| std::fs::write(dir.join(".banyan/wal/000000000001.seg.damaged"), "frames").unwrap()),
    ];
    for (file, damage) in damages {
        let (dir, _) = with_content();
        let store = open(dir.path());
        door(&store).ok("delete", json!({"session_id": "mine"}));
        store.close().unwrap();
        drop(store);
        damage(dir.path());
        let store = Banyan::open(dir.path(), options(Duration::ZERO)).unwrap();
        let purged = store.purge_content().unwrap();
        assert!(purged.removed.is_empty(), "{file}: {purged:?}");
        assert!(purged.unreadable.iter().any(|what| what.starts_with(file)), "{file}: {purged:?}");
        assert_eq!(content(dir.path(), ".banyan/aside/content").len(), 2, "{file}");
    }
}

#[test]
fn what_forks_inherit_stays_though_the_catalogue_lost_them() {
    let on_disk = OnDisk::new();
    let store = door(&on_disk.store);
    store.ok("ensure", json!({"session_id": "base"}));
    let entry = store.say(&json!("base"), "inherited");
    let fork = store.ok("fork", json!({"session_id": "base", "entry_id": entry}))["session_id"].clone();
    store.ok("delete", json!({"session_id": "base"}));
    let closed = on_disk.close();
    let base = content(closed.path(), ".banyan/bases").pop().unwrap();
    let born = base.file_stem().unwrap().to_str().unwrap().to_owned();
    for _ in 0..2 {
        let dir = killed(closed.path());
        assert!(flip_in(&dir.path().join(CATALOGUE), born.as_bytes()) > 0);
        let store = Banyan::open(dir.path(), options(Duration::ZERO)).unwrap();
        store.purge_content().unwrap();
        assert_eq!(door(&store).path(&fork), ["inherited"]);
        door(&store).ok("delete", json!({"session_id": fork}));
        store.purge_content().unwrap();
        assert_eq!(content(dir.path(), ".banyan/bases"), Vec::<PathBuf>::new(), "no fork reads it any more");
    }
}
