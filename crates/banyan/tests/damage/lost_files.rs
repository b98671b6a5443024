//! Session files that are gone, short or unreadable: each closes one session, and is never taken for a new one.

use std::path::Path;

use banyan::Options;
use banyan::model::SessionId;
use banyan::repair::{Decisions, plan, repair};
use banyan::verify::verify;
use serde_json::json;

use super::super::{TEXTS, check_mine, check_other, written};
use crate::support::*;

fn refused_everything(dir: &Path, what: &str) {
    for _ in 0..2 {
        let (store, warnings) = open_hearing_warnings(dir);
        assert!(
            warnings.all().iter().any(|warning| warning.contains("mine.jsonl")),
            "{what}: {:?}",
            warnings.all()
        );
        check_other(&store);
        let message = json!({"session_id": "mine", "message": user("next")});
        for (function, request) in [
            ("append", message),
            ("ensure", json!({"session_id": "mine"})),
            ("set-meta", json!({"session_id": "mine", "title": "X"})),
            ("delete", json!({"session_id": "mine"})),
        ] {
            let outcome = door(&store).call(function, request);
            let code = outcome.map_err(|refusal| refusal.code.clone());
            let harmless = matches!((&code, function), (Ok(answer), "ensure") if answer["created"] == false);
            assert!(harmless || code == Err("session/storage".into()), "{what}, {function}: {code:?}");
        }
        door(&store).say(&json!("other"), "goes on");
        door(&store).ok("delete", json!({"session_id": "other"}));
        door(&store).ok("ensure", json!({"session_id": "other", "title": "Other"}));
        door(&store).say(&json!("other"), "untouched");
        store.close().unwrap();
    }
    let report = verify(dir, &()).unwrap();
    assert!(report.findings.iter().any(|finding| finding.file == "mine.jsonl"), "{what}: {report:?}");
    assert!(!report.is_sound());
}

#[test]
fn a_session_file_that_is_gone_is_damage_and_no_new_session() {
    let dir = written();
    let mine = file_of(dir.path(), "mine");
    let bytes = std::fs::read(&mine).unwrap();
    std::fs::remove_file(&mine).unwrap();
    refused_everything(dir.path(), "gone");
    assert_eq!(door(&open(dir.path())).refused("get", json!({"session_id": "mine"})), "session/storage");
    std::fs::write(&mine, bytes).unwrap();
    check_mine(&open(dir.path()), "back again");
}

#[test]
fn a_session_file_that_is_cut_anywhere_is_read_only() {
    let original = written();
    let whole = std::fs::read(file_of(original.path(), "mine")).unwrap();
    let ends = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let lengths: Vec<usize> = [0, 1, 40].into_iter().chain(ends).filter(|length| *length < whole.len()).collect();
    for length in lengths {
        let dir = copied(original.path());
        std::fs::write(file_of(dir.path(), "mine"), &whole[..length]).unwrap();
        refused_everything(dir.path(), &format!("{length} of {} bytes", whole.len()));
        assert_eq!(std::fs::read(file_of(dir.path(), "mine")).unwrap(), &whole[..length], "it is left as it is");
        std::fs::write(file_of(dir.path(), "mine"), &whole).unwrap();
        check_mine(&open(dir.path()), "back again");
    }
}

#[cfg(unix)]
#[test]
fn a_session_file_that_cannot_be_opened_closes_one_session() {
    let link = |path: &Path| std::os::unix::fs::symlink(path, path).unwrap();
    let dangling = |path: &Path| std::os::unix::fs::symlink("nowhere", path).unwrap();
    let folder = |path: &Path| std::fs::create_dir(path).unwrap();
    for (what, put) in [("a loop", &link as &dyn Fn(&Path)), ("dangling", &dangling), ("a folder", &folder)] {
        let dir = written();
        let mine = file_of(dir.path(), "mine");
        std::fs::remove_file(&mine).unwrap();
        put(&mine);
        let store = open(dir.path());
        check_other(&store);
        assert_eq!(door(&store).refused("get", json!({"session_id": "mine"})), "session/storage", "{what}");
        store.close().unwrap();
        drop(store);
        assert!(!verify(dir.path(), &()).unwrap().is_sound(), "{what}");
    }
}

#[test]
fn a_longer_file_is_taken_over() {
    let dir = written();
    let longer = copied(dir.path());
    let store = open(longer.path());
    door(&store).say(&json!("mine"), "later");
    store.close().unwrap();
    drop(store);
    std::fs::copy(file_of(longer.path(), "mine"), file_of(dir.path(), "mine")).unwrap();
    let store = open(dir.path());
    assert_eq!(door(&store).path(&json!("mine")), [&TEXTS[..], &["later"]].concat());
    door(&store).say(&json!("mine"), "next");
}

#[test]
fn what_a_fork_inherits_is_known_a_second_time() {
    let dir = written();
    let store = open(dir.path());
    let fork = door(&store).ok("fork", json!({"session_id": "mine", "entry_id": "e3"}))["session_id"].clone();
    door(&store).say(&fork, "of the fork");
    let path = door(&store).path(&fork);
    let meta = door(&store).meta(&fork);
    assert_eq!(path, ["zero", "one", "two", "three", "of the fork"]);
    store.close().unwrap();
    drop(store);
    let file = file_of(dir.path(), fork.as_str().unwrap());
    let whole = std::fs::read(&file).unwrap();
    let first = whole.iter().position(|byte| *byte == b'\n').unwrap();
    for at in (0..first).step_by(7) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        std::fs::write(&file, bytes).unwrap();
        let (store, warnings) = open_hearing_warnings(dir.path());
        assert_eq!(door(&store).path(&fork), path, "byte {at}");
        assert_eq!(door(&store).meta(&fork)["metadata"], meta["metadata"], "byte {at}");
        assert!(!warnings.all().is_empty(), "byte {at}");
        store.close().unwrap();
        drop(store);
        assert!(!verify(dir.path(), &()).unwrap().is_sound(), "byte {at}");
    }
}

#[test]
fn the_first_line_of_a_fork_is_repaired_from_the_register() {
    let dir = written();
    let store = open(dir.path());
    let fork = door(&store).ok("fork", json!({"session_id": "mine", "entry_id": "e3"}))["session_id"].clone();
    door(&store).say(&fork, "of the fork");
    let (path, meta) = (door(&store).path(&fork), door(&store).meta(&fork));
    store.close().unwrap();
    drop(store);
    let name = fork.as_str().unwrap();
    let file = file_of(dir.path(), name);
    let whole = std::fs::read(&file).unwrap();
    let end = whole.iter().position(|byte| *byte == b'\n').unwrap();
    let flips = (0..end).step_by(29).chain([end]).map(|at| (at, whole[at] ^ 0x10));
    // A byte in the middle becomes a line feed, too.
    for (count, (at, byte)) in flips.chain([(end / 2, b'\n')]).enumerate() {
        let mut bytes = whole.clone();
        bytes[at] = byte;
        std::fs::write(&file, &bytes).unwrap();
        let report = verify(dir.path(), &()).unwrap();
        let steps = plan(&report.findings, &Decisions::default());
        assert_eq!(steps.len(), 1, "byte {at}: {report:?}");
        assert_eq!(steps[0].file, format!("{name}.jsonl"), "byte {at}");
        assert_eq!(std::fs::read(&file).unwrap(), bytes, "byte {at}: looking changes nothing");
        repaired(dir.path(), &[], &[]).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), whole, "byte {at}");
        let kept = dir.path().join(format!(".banyan/aside/{name}.jsonl.{}", count + 1));
        assert_eq!(std::fs::read(kept).unwrap(), bytes, "byte {at}: what was replaced is kept");
        let report = verify(dir.path(), &()).unwrap();
        assert!(report.is_sound(), "byte {at}: {report:?}");
        let (store, warnings) = open_hearing_warnings(dir.path());
        assert_eq!(
            (door(&store).path(&fork), door(&store).meta(&fork)),
            (path.clone(), meta.clone()),
            "byte {at}"
        );
        let listed = door(&store).ok("list", json!({}))["sessions"].clone();
        assert!(listed.as_array().unwrap().contains(&meta), "byte {at}: {listed}");
        assert!(warnings.all().is_empty(), "byte {at}: {:?}", warnings.all());
        store.close().unwrap();
    }
}

#[test]
fn files_from_before_there_was_a_register_are_registered_when_they_are_first_opened() {
    let dir = written();
    for name in ["files", "format", "format.copy"] {
        std::fs::remove_file(dir.path().join(".banyan").join(name)).unwrap();
    }
    open(dir.path()).close().unwrap();
    std::fs::remove_file(file_of(dir.path(), "mine")).unwrap();
    refused_everything(dir.path(), "gone");
}

fn repaired(dir: &Path, accept: &[&str], forget: &[&str]) -> Result<(), String> {
    let ids = |ids: &[&str]| ids.iter().map(|id| SessionId::from(*id)).collect();
    let decisions = Decisions { accept: ids(accept), forget: ids(forget) };
    repair(dir, &decisions, Options::default()).map_err(|error| error.to_string())
}

#[test]
fn a_short_file_that_is_accepted_is_a_session_again() {
    let dir = written();
    let mine = file_of(dir.path(), "mine");
    let whole = std::fs::read(&mine).unwrap();
    let third = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(2).unwrap().0 + 1;
    // Two messages, and a part of the next one.
    std::fs::write(&mine, &whole[..third + 30]).unwrap();
    assert!(repaired(dir.path(), &[], &["mine"]).unwrap_err().contains("--accept mine"));
    assert!(repaired(dir.path(), &["other"], &[]).unwrap_err().contains("nothing to accept"));
    repaired(dir.path(), &["mine"], &[]).unwrap();
    let kept = std::fs::read(dir.path().join(".banyan/aside/mine.jsonl.1")).unwrap();
    assert!(kept == whole[..third + 30], "what was replaced is kept");
    assert!(verify(dir.path(), &()).unwrap().is_sound());
    let store = open(dir.path());
    assert_eq!(door(&store).path(&json!("mine")), ["zero", "one"]);
    check_mine(&store, "accepted");
}

#[test]
fn a_missing_file_that_is_forgotten_is_a_deleted_session() {
    let dir = written();
    std::fs::remove_file(file_of(dir.path(), "mine")).unwrap();
    assert!(repaired(dir.path(), &["mine"], &[]).unwrap_err().contains("--forget mine"));
    let before = open(dir.path());
    let head = before.head();
    drop(before);
    repaired(dir.path(), &[], &["mine"]).unwrap();
    assert!(verify(dir.path(), &()).unwrap().is_sound());
    let store = open(dir.path());
    assert!(store.head() > head, "subscribers that come back are notified of the end");
    check_other(&store);
    assert!(door(&store).ok("get", json!({"session_id": "mine"})).is_null());
    assert_eq!(door(&store).ok("list", json!({}))["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(door(&store).ok("ensure", json!({"session_id": "mine"}))["created"], true);
}

#[test]
fn a_directory_is_never_changed_by_looking_at_it() {
    let dir = written();
    let store = open(dir.path());
    door(&store).say(&json!("mine"), "in the log");
    let killed = copied(dir.path());
    let before = files_in(killed.path());
    let report = verify(killed.path(), &()).unwrap();
    assert!(report.is_sound() && files_in(killed.path()) == before, "{report:?}");
}
