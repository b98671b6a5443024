//! Damage to what is kept beside the session files: the catalogue, the journal, the write-ahead log.

use std::path::Path;

use banyan::model::Position;
use banyan::{Delivery, Start, Subscribe};
use serde_json::json;

use super::super::{check_mine, written};
use crate::support::*;

#[test]
fn a_catalogue_that_is_missing_foreign_or_damaged_is_made_anew() {
    let closed = written();
    let listed = |dir: &Path| {
        let store = open(dir);
        let listed = door(&store).ok("list", json!({"metadata": {"owner": "u"}}));
        (door(&store).ok("list", json!({})), listed)
    };
    let expected = listed(copied(closed.path()).path());
    let catalogue = |dir: &Path| dir.join(".banyan/index/catalogue.sqlite");
    let foreign = std::fs::read(catalogue(OnDisk::new().close().path())).unwrap();
    let whole = std::fs::read(catalogue(closed.path())).unwrap();
    let no_folder = |dir: &Path| std::fs::remove_dir_all(dir.join(".banyan/index")).unwrap();
    let no_file = |dir: &Path| std::fs::remove_file(catalogue(dir)).unwrap();
    let other_store = |dir: &Path| std::fs::write(catalogue(dir), &foreign).unwrap();
    let garbage = |dir: &Path| std::fs::write(catalogue(dir), "this is no database at all".repeat(200)).unwrap();
    let empty = |dir: &Path| std::fs::write(catalogue(dir), "").unwrap();
    let cut = |dir: &Path| std::fs::write(catalogue(dir), &whole[..whole.len() / 2]).unwrap();
    let holes = |dir: &Path| {
        let mut bytes = whole.clone();
        for page in bytes.chunks_mut(4096).skip(1) {
            page.fill(0xee);
        }
        std::fs::write(catalogue(dir), bytes).unwrap();
    };
    for (what, damage) in [
        ("no folder", &no_folder as &dyn Fn(&Path)),
        ("no file", &no_file),
        ("of another store", &other_store),
        ("garbage", &garbage),
        ("empty", &empty),
        ("cut", &cut),
        ("holes", &holes),
    ] {
        let dir = copied(closed.path());
        damage(dir.path());
        assert_eq!(listed(dir.path()), expected, "{what}");
        assert_eq!(listed(dir.path()), expected, "{what}, once more");
        let store = open(dir.path());
        check_mine(&store, what);
        assert_eq!(door(&store).ok("list", json!({}))["sessions"][0]["session_id"], "mine");
    }
}

#[test]
fn a_catalogue_that_is_older_than_the_files_catches_up() {
    let old = written();
    let new = copied(old.path());
    let store = open(new.path());
    door(&store).say(&json!("mine"), "later");
    door(&store).ok("ensure", json!({"session_id": "new"}));
    door(&store).ok("delete", json!({"session_id": "other"}));
    let expected = door(&store).ok("list", json!({}));
    store.close().unwrap();
    drop(store);
    let catalogue = ".banyan/index/catalogue.sqlite";
    std::fs::copy(old.path().join(catalogue), new.path().join(catalogue)).unwrap();
    assert_eq!(door(&open(new.path())).ok("list", json!({})), expected);
}

#[test]
fn positions_are_not_given_twice_though_the_journal_and_the_catalogue_are_gone() {
    let dir = written();
    let store = open(dir.path());
    let head = store.head();
    let early = Ears::after(&store, Position::BEGINNING).heard();
    store.close().unwrap();
    drop(store);
    std::fs::remove_dir_all(dir.path().join(".banyan")).unwrap();
    let store = open(dir.path());
    assert!(store.head() >= head);
    let mut live = Ears::open(&store);
    door(&store).say(&json!("mine"), "new");
    let new = live.heard();
    assert!(new[0].position > early.last().unwrap().position);
    let mut back = Ears::after(&store, early[0].position);
    match back.next().unwrap() {
        Delivery::Resync => assert!(back.next().is_none()),
        other => panic!("the order is lost, so the subscriber must read again; not {other:?}"),
    }
    let filters = vec![filter("session::message-added", &json!({"session_id": "mine"})).unwrap()];
    let own = Ears::of(&store, Subscribe { filters, start: Start::After(early[0].position) }).heard();
    let expected: Vec<Heard> = early
        .iter()
        .filter(|heard| heard.event_type == "session::message-added" && heard.payload["session_id"] == "mine")
        .cloned()
        .chain(new)
        .collect();
    assert_eq!(own, expected, "one session's own stream can always be replayed whole");
}

#[test]
fn a_damaged_journal_is_never_passed_over_in_silence() {
    let closed = written();
    let store = open(closed.path());
    let all = Ears::after(&store, Position::BEGINNING).heard();
    store.close().unwrap();
    drop(store);
    let journal =
        files_in(closed.path()).into_iter().find(|(name, _)| name.starts_with(".banyan/journal")).unwrap();
    for at in (0..journal.1.len()).step_by(journal.1.len() / 6) {
        let dir = copied(closed.path());
        let mut bytes = journal.1.clone();
        bytes[at] ^= 0x10;
        std::fs::write(dir.path().join(&journal.0), bytes).unwrap();
        let store = open(dir.path());
        assert!(store.head().0 >= all.last().unwrap().position.commit.0, "positions are not given twice");
        for seen in 0..3 {
            let mut told = Vec::new();
            let mut resync = false;
            for delivery in Ears::after(&store, all[seen].position).deliveries() {
                match delivery {
                    Delivery::Event(event) => told.push(Heard::of(&event)),
                    Delivery::Resync => resync = true,
                    other => panic!("{other:?}"),
                }
            }
            let rest = &all[seen + 1..];
            assert_eq!(told[..], rest[..told.len()], "byte {at}");
            assert!(
                resync || told.len() == rest.len(),
                "byte {at}: {} of {} told, no word of more",
                told.len(),
                rest.len()
            );
        }
    }
}
