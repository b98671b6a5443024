//! Bytes of deleted sessions leave the disk: by themselves while the store idles, and at once when that is asked for.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::support::*;
use banyan::{Access, Banyan, EraseAfter, Options, Scope};
use serde_json::json;

/// A word that is nowhere else. The search index finds it as one word.
const MARKER: &str = "zqxjkvwmarkerzqxjkvw";

/// Everything that is due is done at once.
fn at_once() -> Options {
    let erase_after = EraseAfter { log: Duration::ZERO, derived: Duration::ZERO };
    Options { erase_after, aside_for: Duration::ZERO, ..Options::default() }
}

/// Nothing is done before it is asked for.
fn never() -> Options {
    let after = Duration::from_secs(24 * 3600);
    Options { erase_after: EraseAfter { log: after, derived: after }, ..Options::default() }
}

/// The files of a directory that hold some bytes, sorted, relative to it.
fn files_with(root: &Path, bytes: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut dirs = vec![PathBuf::new()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(root.join(&dir)).into_iter().flatten().flatten() {
            let path = dir.join(entry.file_name());
            if entry.path().is_dir() {
                dirs.push(path);
            } else if let Ok(content) = std::fs::read(entry.path())
                && content.windows(bytes.len()).any(|window| window == bytes.as_bytes())
            {
                found.push(path.display().to_string());
            }
        }
    }
    found.sort();
    found
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}: not within a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A session that has the marker in everything that it has, and a fork of another session that has it, too.
fn two_sessions(store: &Banyan) -> [serde_json::Value; 2] {
    let others = door(store).session();
    let entry = door(store).say(&others, "what stays");
    let marked = json!({"title": MARKER, "description": MARKER, "metadata": {"owner": "u_1", "note": MARKER}});
    let created = door(store).ok("create", marked);
    let id = created["session_id"].clone();
    door(store).say(&id, &format!("a short text with {MARKER} in it"));
    door(store).say(&id, &format!("{MARKER} {}", "long ".repeat(20_000)));
    let fork = json!({"session_id": others, "entry_id": entry, "title": MARKER, "metadata": {"note": MARKER}});
    let fork = door(store).ok("fork", fork)["session_id"].clone();
    door(store).say(&fork, &format!("{MARKER} in a fork"));
    let found = door(store).ok("search", json!({"query": MARKER, "wait_ms": 60_000}));
    assert!(found["hits"].as_array().unwrap().len() >= 2, "{found}");
    [id, fork]
}

#[test]
fn bytes_of_deleted_sessions_leave_the_disk_while_the_store_idles() {
    let dir = tempfile::tempdir().unwrap();
    let store = Banyan::open(dir.path(), at_once()).unwrap();
    let sessions = two_sessions(&store);
    let holds = |part: &str| files_with(dir.path(), MARKER).iter().any(|file| file.contains(part));
    until("the catalogue has it", || holds("catalogue"));
    assert!(holds(".banyan/wal/") && holds(".banyan/blobs/"), "{:?}", files_with(dir.path(), MARKER));
    let fork = sessions[1].as_str().unwrap();
    until("the session files have it", || holds(fork));
    for session in &sessions {
        assert_eq!(door(&store).ok("delete", json!({"session_id": session}))["deleted"], true);
    }
    until("nothing has it", || files_with(dir.path(), MARKER).is_empty());
    assert_eq!(door(&store).ok("list", json!({}))["sessions"].as_array().unwrap().len(), 1);
    store.close().unwrap();
    assert_eq!(files_with(dir.path(), MARKER), [""; 0]);
}

#[test]
fn a_file_of_the_log_that_served_before_keeps_nothing_of_what_was_deleted_since() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = at_once();
    (options.log.first_segment, options.log.largest_segment) = (64 << 10, 64 << 10);
    let store = Banyan::open(dir.path(), options).unwrap();
    let (doomed, other) = (door(&store).session(), door(&store).session());
    // Segments are filled, dropped and used again.
    for _ in 0..100 {
        door(&store).say(&doomed, &format!("{MARKER} {}", "x".repeat(4000)));
    }
    for _ in 0..20 {
        door(&store).say(&other, &"y".repeat(4000));
    }
    door(&store).ok("delete", json!({"session_id": doomed}));
    until("nothing has it", || files_with(dir.path(), MARKER).is_empty());
}

#[test]
fn a_purge_removes_at_once_what_would_leave_later() {
    let dir = tempfile::tempdir().unwrap();
    let store = Banyan::open(dir.path(), never()).unwrap();
    let sessions = two_sessions(&store);
    // The register of files says how a fork begins.
    store.purge().unwrap();
    assert!(files_with(dir.path(), MARKER).contains(&".banyan/files".to_owned()));
    for session in &sessions {
        door(&store).ok("delete", json!({"session_id": session}));
    }
    assert_ne!(files_with(dir.path(), MARKER), [""; 0], "it would leave later");
    let purged = store.purge().unwrap();
    assert_eq!(files_with(dir.path(), MARKER), [""; 0], "{purged:?}");
    assert!(purged.log_segments > 0 && purged.log_bytes > 0, "{purged:?}");
    assert_eq!(purged.not_reached, []);
}

#[test]
fn a_purge_names_what_forks_of_a_deleted_session_still_read() {
    let dir = tempfile::tempdir().unwrap();
    let store = Banyan::open(dir.path(), never()).unwrap();
    let source = door(&store).session();
    let entry = door(&store).say(&source, MARKER);
    let fork = json!({"session_id": source, "entry_id": entry});
    let fork = door(&store).ok("fork", fork)["session_id"].clone();
    door(&store).ok("delete", json!({"session_id": source}));
    let purged = store.purge().unwrap();
    let kept: Vec<&str> = purged.not_reached.iter().map(|kept| kept.path.as_str()).collect();
    assert!(matches!(kept[..], [base] if base.starts_with(".banyan/bases/")), "{purged:?}");
    assert_eq!(door(&store).path(&fork), [MARKER], "the fork reads it");
}

#[test]
fn only_who_may_do_everything_purges() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    for access in [
        Access { scope: Scope::of(json!({"owner": "u_1"}).as_object().cloned().unwrap()), read_only: false },
        Access { scope: Scope::default(), read_only: true },
    ] {
        assert!(store.with_access(access).purge().is_err());
    }
}

#[test]
fn a_subscriber_that_comes_back_hears_of_an_end_by_what_the_session_had() {
    let dir = tempfile::tempdir().unwrap();
    let store = Banyan::open(dir.path(), at_once()).unwrap();
    let created = door(&store).ok("create", json!({"metadata": {"owner": "u_1", "tags": {"b": 1, "a": [2]}}}));
    door(&store).ok("delete", json!({"session_id": created["session_id"]}));
    store.close().unwrap();
    let store = Banyan::open(dir.path(), at_once()).unwrap();
    for (metadata, expected) in [
        (json!({"owner": "u_1"}), 1),
        (json!({"owner": "u_1", "tags": {"a": [2], "b": 1}}), 1),
        (json!({"owner": "u_2"}), 0),
        (json!({"tags": {"a": [2]}}), 0),
        (json!({}), 1),
    ] {
        let filter = banyan::model::EventFilter::parse(
            banyan::model::EventType::Deleted,
            Some(&json!({"metadata": metadata}).to_string()),
        );
        let wanted = banyan::Subscribe {
            filters: vec![filter.unwrap()],
            start: banyan::Start::After(banyan::model::Position::BEGINNING),
        };
        let mut subscription = store.subscribe(wanted).unwrap();
        let mut heard = 0;
        while let Some(delivery) = subscription.try_next().unwrap() {
            heard += usize::from(matches!(delivery, banyan::Delivery::Event(_)));
        }
        assert_eq!(heard, expected, "{metadata}");
    }
}
