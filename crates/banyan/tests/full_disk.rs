//! A disk that fills up: the reserve of the log, and what is deleted on it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::*;
use banyan::{Banyan, Options, SpaceLevel};
use banyan_log::disk::{Disk, MemDisk};
use serde_json::{Value, json};

const RESERVE: &str = ".banyan/reserve";

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}: not within a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A store on a disk of so many bytes, with its reserve.
fn small_disk(bytes: u64) -> (MemDisk, Banyan) {
    let disk = MemDisk::new();
    disk.report_space();
    disk.set_capacity(Some(bytes));
    let store = Banyan::open_on(Arc::new(disk.clone()), None, Options::default()).unwrap();
    until("the reserve is kept", || disk.paths().contains(&RESERVE.to_owned()));
    (disk, store)
}

fn used(disk: &MemDisk) -> u64 {
    disk.paths().iter().filter_map(|path| disk.read_file(path)).map(|bytes| bytes.len() as u64).sum()
}

fn say(store: &Banyan, session: &Value, bytes: usize) -> Result<Value, Refusal> {
    let message = user(&"x".repeat(bytes));
    door(store).call("append", json!({"session_id": session, "message": message}))
}

/// Appends to new sessions until the disk is full.
fn fill(store: &Banyan) -> Vec<Value> {
    let mut sessions = Vec::new();
    loop {
        let Ok(created) = door(store).call("create", json!({})) else { return sessions };
        sessions.push(created["session_id"].clone());
        for _ in 0..20 {
            if let Err(refused) = say(store, &created["session_id"], 4000) {
                assert!(format!("{refused:?}").contains("the disk is full"), "{refused:?}");
                return sessions;
            }
        }
    }
}

#[test]
fn a_full_disk_keeps_the_reserve_and_everything_that_was_answered() {
    let (disk, store) = small_disk(8 << 20);
    let sessions = fill(&store);
    assert!(sessions.len() > 20, "{}", sessions.len());
    assert!(disk.paths().contains(&RESERVE.to_owned()), "appends do not take the reserve");
    assert_eq!(store.disk_space().level, SpaceLevel::Full);
    // What was answered fits into the session files, whatever was promised to the log.
    store.close().unwrap();
    let log = disk.paths().into_iter().filter(|path| path.starts_with(".banyan/wal/") && path.ends_with(".seg"));
    assert_eq!(log.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn sessions_are_deleted_when_not_a_byte_is_left() {
    let (disk, store) = small_disk(8 << 20);
    let sessions = fill(&store);
    disk.set_capacity(Some(used(&disk)));
    assert_eq!(disk.space().unwrap().unwrap().free, 0);
    assert!(say(&store, &sessions[0], 4000).is_err() || say(&store, &sessions[0], 100_000).is_err());
    let (doomed, kept) = sessions.split_at(sessions.len() / 2);
    for session in doomed {
        disk.set_capacity(Some(used(&disk).min(disk.space().unwrap().unwrap().total)));
        assert_eq!(door(&store).ok("delete", json!({"session_id": session}))["deleted"], true);
    }
    assert_eq!(store.poisoned(), None);
    disk.set_capacity(Some(8 << 20));
    until("an append is taken", || say(&store, &kept[0], 4000).is_ok());
    until("the reserve is whole again", || disk.paths().contains(&RESERVE.to_owned()));
    assert_eq!(store.disk_space().level, SpaceLevel::Enough);
    let listed = door(&store).ok("list", json!({"limit": 1000}))["sessions"].as_array().unwrap().len();
    assert_eq!(listed, kept.len());
}

#[test]
fn content_that_is_stored_aside_does_not_take_the_reserve_either() {
    let (disk, store) = small_disk(8 << 20);
    let session = door(&store).session();
    let refused = (0..1000).find_map(|number| {
        let message = user(&format!("{number} {}", "x".repeat(100_000)));
        door(&store).call("append", json!({"session_id": session, "message": message})).err()
    });
    assert!(format!("{refused:?}").contains("the disk is full"), "{refused:?}");
    assert!(disk.paths().contains(&RESERVE.to_owned()));
    assert_eq!(door(&store).ok("delete", json!({"session_id": session}))["deleted"], true);
}
