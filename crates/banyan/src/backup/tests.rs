//! Backups over disks in memory.

use std::io::Read;
use std::sync::Arc;

use banyan_log::disk::{Disk, MemDisk};
use banyan_model::{CommitNo, EventFilter, EventType, Position};
use serde_json::{Value, json};

use super::*;
use crate::{Banyan, Delivery, Options, SearchIndexing, Start, Subscribe, block_on};

mod damaged;

fn options() -> Options {
    let mut options = Options { search: SearchIndexing::Off, ..Options::default() };
    options.log.background = false;
    options
}

fn open(disk: &MemDisk) -> Banyan {
    Banyan::open_on(Arc::new(disk.clone()), None, options()).unwrap()
}

fn call(store: &Banyan, function: &str, request: Value) -> Value {
    let answer = block_on(store.call(&format!("session::{function}"), request.to_string().as_bytes()));
    serde_json::from_str(&answer.unwrap()).unwrap()
}

fn say(store: &Banyan, session: &str, text: &str) -> String {
    let message = json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1});
    let answer = call(store, "append", json!({"session_id": session, "message": message}));
    answer["entry_id"].as_str().unwrap().to_owned()
}

fn texts(store: &Banyan, session: &str) -> Vec<String> {
    let page = call(store, "messages", json!({"session_id": session, "limit": 500}));
    let text = |entry: &Value| entry["message"]["content"][0]["text"].as_str().unwrap().to_owned();
    page["messages"].as_array().unwrap().iter().map(text).collect()
}

/// The stream of a backup for what a repository has.
fn stream(store: &Banyan, repository: &Repository, wanted: Wanted) -> Vec<u8> {
    let mut known = Vec::new();
    have(repository, wanted, &mut known).unwrap();
    collect(store.backup(&mut known.as_slice(), None).unwrap())
}

fn collect(mut backup: Backup) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(piece) = backup.next_piece().unwrap() {
        all.extend_from_slice(&piece);
    }
    all
}

fn back_up(store: &Banyan, disk: &MemDisk, keep: Option<u64>) -> Received {
    back_up_with(store, disk, keep, Wanted::default())
}

fn back_up_with(store: &Banyan, disk: &MemDisk, keep: Option<u64>, wanted: Wanted) -> Received {
    let repository = Repository::create_on(Arc::new(disk.clone())).unwrap();
    let stream = stream(store, &repository, wanted);
    let options = ReceiveOptions { keep, rate: None };
    receive(&repository, &mut stream.as_slice(), options, &()).unwrap()
}

fn everything() -> Restore {
    Restore { sessions: Vec::new(), at: Cut::NONE, with_keys: false }
}

fn restored(backup: &MemDisk, request: &Restore) -> (MemDisk, Restored) {
    let target = MemDisk::new();
    let disk: Arc<dyn Disk> = Arc::new(target.clone());
    let outcome = restore(&Repository::on(Arc::new(backup.clone())), &disk, request, &()).unwrap();
    (target, outcome.unwrap())
}

/// Copies all files from one disk to another.
fn copy(from: &MemDisk, to: &MemDisk) {
    for path in from.paths() {
        to.write_file(&path, &from.read_file(&path).unwrap());
    }
}

/// The files of record lines in a backup.
fn records(disk: &MemDisk) -> Vec<String> {
    let mut paths = disk.paths();
    paths.retain(|path| path.starts_with("records/"));
    paths
}

#[test]
fn everything_comes_back() {
    let (data, backup) = (MemDisk::new(), MemDisk::new());
    let store = open(&data);
    call(&store, "ensure", json!({"session_id": "trip", "title": "Lisbon"}));
    let first = say(&store, "trip", "one");
    say(&store, "trip", &"long ".repeat(20_000));
    let fork = call(&store, "fork", json!({"session_id": "trip", "entry_id": first}));
    let fork = fork["session_id"].as_str().unwrap();
    say(&store, fork, "elsewhere");
    call(&store, "ensure", json!({"session_id": "base"}));
    let entry = say(&store, "base", "inherited");
    let heir = call(&store, "fork", json!({"session_id": "base", "entry_id": entry}));
    let heir = heir["session_id"].as_str().unwrap();
    call(&store, "delete", json!({"session_id": "base"}));
    let file =
        json!({"session_id": "trip", "name": "a.bin", "mime": "application/octet-stream", "data": "AAECAwQ="});
    let put = call(&store, "put-attachment", file);
    let received = back_up(&store, &backup, None);
    assert_eq!((received.sessions, received.damage), (3, vec![]));

    let (target, restored) = restored(&backup, &everything());
    assert_eq!(restored.report.findings, []);
    let again = open(&target);
    for session in ["trip", fork, heir] {
        assert_eq!(texts(&again, session), texts(&store, session), "{session}");
        let meta = json!({"session_id": session});
        assert_eq!(call(&again, "get", meta.clone()), call(&store, "get", meta));
    }
    let file = json!({"session_id": "trip", "attachment_id": put["attachment"]["attachment_id"]});
    let content = call(&again, "get-attachment", file.clone());
    assert_eq!((&content, &content["data"]), (&call(&store, "get-attachment", file), &json!("AAECAwQ=")));
    assert!(again.head() > store.head());
    again.close().unwrap();
    let report = crate::verify::verify_on(Arc::new(target), &()).unwrap();
    assert_eq!(
        report.findings.iter().filter(|finding| finding.severity == crate::verify::Severity::Damage).count(),
        0
    );
}

#[test]
fn a_second_backup_writes_what_is_new() {
    let (data, backup) = (MemDisk::new(), MemDisk::new());
    let store = open(&data);
    for session in ["a", "b"] {
        call(&store, "ensure", json!({"session_id": session}));
        say(&store, session, &"x".repeat(200 << 10).replace('x', "xy "));
    }
    let first = back_up(&store, &backup, None);
    say(&store, "a", "new");
    let second = back_up(&store, &backup, None);
    assert_eq!((second.unchanged, second.sessions), (1, 2));
    assert!(second.written < 2_000, "{} after {}", second.written, first.written);
    let third = back_up(&store, &backup, None);
    assert_eq!((third.unchanged, third.written), (2, 0));
    let reread = back_up_with(&store, &backup, None, Wanted { reread: true, keys: false });
    assert_eq!((reread.unchanged, reread.written, reread.damage), (2, 0, vec![]));
    let (target, _) = restored(&backup, &everything());
    assert_eq!(texts(&open(&target), "a"), texts(&store, "a"));
}

#[test]
fn what_happens_during_a_backup_is_left_to_the_next_one() {
    let (data, backup) = (MemDisk::new(), MemDisk::new());
    let store = open(&data);
    for session in ["a", "b", "gone"] {
        call(&store, "ensure", json!({"session_id": session}));
        say(&store, session, "before");
    }
    let reply = json!({"role": "assistant", "content": [{"type": "text", "text": ""}], "model": "m", "provider": "p",
        "stop_reason": "end", "timestamp": 1});
    let reply = call(&store, "append", json!({"session_id": "b", "message": reply}));
    let extend = |text: &str| {
        call(&store, "extend-message", json!({"session_id": "b", "entry_id": reply["entry_id"], "text": text}));
    };
    extend("some ");
    let repository = Repository::create_on(Arc::new(backup.clone())).unwrap();
    let mut known = Vec::new();
    have(&repository, Wanted::default(), &mut known).unwrap();
    let head = store.head();
    let begun = store.backup(&mut known.as_slice(), None).unwrap();
    say(&store, "a", "after");
    extend("more");
    call(&store, "delete", json!({"session_id": "gone"}));
    call(&store, "ensure", json!({"session_id": "gone"}));
    say(&store, "gone", "another");
    call(&store, "ensure", json!({"session_id": "late"}));
    let stream = collect(begun);
    let received = receive(&repository, &mut stream.as_slice(), ReceiveOptions::default(), &()).unwrap();
    assert_eq!((CommitNo(received.commit), received.sessions, received.damage), (head, 3, vec![]));
    // What was kept for the backup is let go.
    assert!(store.purge_content().unwrap().is_complete());
    assert!(store.store.log.retained().is_empty());

    let (target, _) = restored(&backup, &everything());
    let then = open(&target);
    assert_eq!(texts(&then, "a"), ["before"]);
    assert_eq!(texts(&then, "b"), ["before", "some "]);
    assert_eq!(texts(&then, "gone"), ["before"]);
    assert_eq!(call(&then, "get", json!({"session_id": "late"})), Value::Null);

    drop(repository);
    let second = back_up(&store, &backup, None);
    assert_eq!(second.damage, []);
    let (target, _) = restored(&backup, &everything());
    let now = open(&target);
    assert_eq!(texts(&now, "b"), ["before", "some more"]);
    assert_eq!(texts(&now, "gone"), ["another"]);
}

#[test]
fn one_session_is_restored_with_what_it_inherits() {
    let (data, backup) = (MemDisk::new(), MemDisk::new());
    let store = open(&data);
    call(&store, "ensure", json!({"session_id": "source"}));
    let entry = say(&store, "source", &"inherited ".repeat(5_000));
    let fork = call(&store, "fork", json!({"session_id": "source", "entry_id": entry}));
    let fork = fork["session_id"].as_str().unwrap();
    let entry = say(&store, fork, "own");
    let second = call(&store, "fork", json!({"session_id": fork, "entry_id": entry}));
    let second = second["session_id"].as_str().unwrap();
    call(&store, "ensure", json!({"session_id": "other"}));
    back_up(&store, &backup, None);
    let request = Restore { sessions: vec![second.into()], ..everything() };
    let (target, _) = restored(&backup, &request);
    let again = open(&target);
    assert_eq!(texts(&again, second), texts(&store, second));
    let listed = call(&again, "list", json!({}));
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
    again.close().unwrap();
    assert_eq!(texts(&open(&target), second), texts(&store, second));
    let missing = Restore { sessions: vec!["nobody".into()], ..everything() };
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let refused = restore(&Repository::on(Arc::new(backup)), &disk, &missing, &());
    assert!(matches!(refused, Err(BackupError::Refused(_))), "{refused:?}");
}

#[test]
fn a_state_of_the_past_is_restored_as_it_was() {
    let (data, backup) = (MemDisk::new(), MemDisk::new());
    let store = open(&data);
    call(&store, "ensure", json!({"session_id": "a"}));
    let mut heads = vec![(store.head(), texts(&store, "a"))];
    for round in 0..4 {
        for text in ["x", "y"] {
            say(&store, "a", &format!("{text}{round}"));
            heads.push((store.head(), texts(&store, "a")));
        }
        back_up(&store, &backup, None);
    }
    call(&store, "ensure", json!({"session_id": "late"}));
    back_up(&store, &backup, None);
    for (commit, expected) in heads {
        let request = Restore { at: Cut::at_commit(commit), ..everything() };
        let (target, restored) = restored(&backup, &request);
        assert_eq!(restored.commit, commit.0);
        let then = open(&target);
        assert_eq!(texts(&then, "a"), expected);
        assert_eq!(call(&then, "get", json!({"session_id": "late"})), Value::Null);
    }
}

#[test]
fn old_backups_go_and_what_the_others_need_stays() {
    let (data, backup) = (MemDisk::new(), MemDisk::new());
    let store = open(&data);
    call(&store, "ensure", json!({"session_id": "kept"}));
    say(&store, "kept", "one");
    call(&store, "ensure", json!({"session_id": "deleted"}));
    say(&store, "deleted", &"secret ".repeat(10_000));
    back_up(&store, &backup, Some(2));
    call(&store, "delete", json!({"session_id": "deleted"}));
    for round in 0..2 {
        say(&store, "kept", &format!("more {round}"));
        back_up(&store, &backup, Some(2));
    }
    let manifests = backup.paths().into_iter().filter(|path| path.starts_with("manifest-"));
    assert_eq!(manifests.count(), 2);
    assert!(!backup.paths().iter().any(|path| path.starts_with("blobs/")), "{:?}", backup.paths());
    for path in records(&backup) {
        assert!(!String::from_utf8(backup.read_file(&path).unwrap()).unwrap().contains("\"deleted\""));
    }
    let (target, _) = restored(&backup, &everything());
    assert_eq!(texts(&open(&target), "kept"), ["one", "more 0", "more 1"]);
}

#[test]
fn the_number_of_parts_grows_with_the_logarithm_of_the_number_of_backups() {
    let (data, backup) = (MemDisk::new(), MemDisk::new());
    let store = open(&data);
    call(&store, "ensure", json!({"session_id": "a"}));
    for round in 0..40 {
        say(&store, "a", &format!("{round} {}", "word ".repeat(4_000)));
        back_up(&store, &backup, Some(1));
    }
    let newest = Repository::on(Arc::new(backup.clone())).newest().unwrap().unwrap();
    assert!(newest.sessions[0].parts.len() <= 8, "{}", newest.sessions[0].parts.len());
    let (target, _) = restored(&backup, &everything());
    assert_eq!(texts(&open(&target), "a"), texts(&store, "a"));
}

#[test]
fn a_backup_of_another_directory_or_of_a_later_state_is_refused() {
    let (data, backup) = (MemDisk::new(), MemDisk::new());
    let store = open(&data);
    call(&store, "ensure", json!({"session_id": "a"}));
    let older = MemDisk::new();
    copy(&data, &older);
    say(&store, "a", "one");
    back_up(&store, &backup, None);
    let repository = Repository::create_on(Arc::new(backup.clone())).unwrap();
    let mut known = Vec::new();
    have(&repository, Wanted::default(), &mut known).unwrap();
    let other = open(&MemDisk::new());
    assert!(
        other
            .backup(&mut known.as_slice(), None)
            .is_err_and(|error| error.message.contains("another data directory"))
    );
    let older = open(&older);
    assert!(
        older
            .backup(&mut known.as_slice(), None)
            .is_err_and(|error| error.message.contains("older than its backup"))
    );
}

fn resyncs(store: &Banyan, after: Position) -> bool {
    let filters = EventType::ALL.map(EventFilter::all).to_vec();
    let mut events = store.subscribe(Subscribe { filters, start: Start::After(after) }).unwrap();
    matches!(events.try_next().unwrap(), Some(Delivery::Resync))
}

/// The position that a snapshot of a session ends with.
fn snapshot_position(store: &Banyan, session: &str) -> Position {
    let filter = EventFilter { session_id: Some(session.into()), ..EventFilter::all(EventType::MessageAdded) };
    let subscribe = Subscribe { filters: vec![filter], start: Start::Snapshot(session.into()) };
    let mut events = store.subscribe(subscribe).unwrap();
    loop {
        if let Some(Delivery::SnapshotEnd(position)) = events.try_next().unwrap() {
            return position;
        }
    }
}

#[test]
fn a_restored_directory_gives_out_no_position_of_the_other_one() {
    let (data, backup) = (MemDisk::new(), MemDisk::new());
    let store = open(&data);
    call(&store, "ensure", json!({"session_id": "a"}));
    say(&store, "a", "one");
    back_up(&store, &backup, None);
    let (target, _) = restored(&backup, &everything());
    for damaged in [false, true] {
        if damaged {
            target.write_file(".banyan/restored", b"{}\n");
        }
        let again = open(&target);
        // Also positions of what the other directory did after the backup.
        for commit in 1..=store.head().0 + 5 {
            assert!(resyncs(&again, Position::new(CommitNo(commit), 0)), "commit {commit}");
        }
        assert!(again.head().0 > store.head().0 + (1 << 36));
        assert!(!resyncs(&again, snapshot_position(&again, "a")));
        let before = Position::new(again.head(), 0xff_ffff);
        say(&again, "a", "two");
        assert!(!resyncs(&again, before));
        assert!(!resyncs(&again, snapshot_position(&again, "a")));
        again.close().unwrap();
    }
}
