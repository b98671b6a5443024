//! Damage that is only met when an entry is read: a session over 1 MiB is loaded from its image, not from its lines.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use banyan::export::{ExportRequest, Redaction, Target};
use banyan::model::{EntryId, Position, SessionEntry};
use banyan::{Delivery, PathRequest, Start, Stretch, Subscribe, WalkOrder, Walked};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::*;

const COUNT: usize = 60;

/// What entry `n` says: as long as every other, so that lines can be exchanged.
fn said(n: usize) -> String {
    format!("{n:02} {}", "x".repeat(20_000))
}

fn entry(n: usize) -> String {
    format!("e{n:02}")
}

/// A closed directory with one session of more than 1 MiB, for which there is an image.
fn large() -> TempDir {
    let on_disk = OnDisk::new();
    let store = door(&on_disk.store);
    store.ok("ensure", json!({"session_id": "mine", "title": "Title"}));
    for n in 0..COUNT {
        store.append(&json!("mine"), json!({"message": user(&said(n)), "entry_id": entry(n), "origin": {"n": 1}}));
    }
    on_disk.close()
}

/// Where the lines of a session's file are, line feeds included.
fn places(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    let mut start = 0;
    for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
        places.push(start..at + 1);
        start = at + 1;
    }
    places
}

/// Changes the file of `mine` in place; the first line is the session's beginning, so entry `n` is on line `n + 1`.
fn damage(dir: &Path, change: impl Fn(&mut [u8], &[Range<usize>])) {
    let file = file_of(dir, "mine");
    let mut bytes = std::fs::read(&file).unwrap();
    let places = places(&bytes);
    change(&mut bytes, &places);
    std::fs::write(file, bytes).unwrap();
}

fn zeros(lines: Range<usize>) -> impl Fn(&mut [u8], &[Range<usize>]) {
    move |bytes, places| bytes[places[lines.start].start..places[lines.end - 1].end].fill(0)
}

fn exchange(one: usize, other: usize) -> impl Fn(&mut [u8], &[Range<usize>]) {
    move |bytes, places| {
        let first = bytes[places[one].clone()].to_vec();
        let second = bytes[places[other].clone()].to_vec();
        assert_eq!(first.len(), second.len());
        bytes[places[one].clone()].copy_from_slice(&second);
        bytes[places[other].clone()].copy_from_slice(&first);
    }
}

fn without_images(dir: &Path) {
    std::fs::remove_dir_all(dir.join(".banyan/index/trees")).unwrap();
}

/// The damaged entries that an answer names.
fn damaged(answer: &Value) -> Vec<String> {
    let list = answer["damaged"].as_array().cloned().unwrap_or_default();
    list.iter().map(|entry| entry["entry_id"].as_str().unwrap().to_owned()).collect()
}

/// Every entry of an answer says what was appended under its id.
fn check_texts(items: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for item in items.as_array().unwrap() {
        let id = item["entry_id"].as_str().unwrap();
        let n: usize = id[1..].parse().unwrap();
        assert_eq!(said_in(&item["message"]), said(n), "{id} says what another entry says");
        found.insert(id.to_owned());
    }
    found
}

fn ids_of(entries: impl IntoIterator<Item = usize>) -> Vec<String> {
    entries.into_iter().map(entry).collect()
}

/// All answers leave the same entries out, name them, and go on.
fn check_marked(dir: &Path, lost: &[usize], what: &str) {
    let id = json!("mine");
    let (store, warnings) = open_hearing_warnings(dir);
    let lost_ids = ids_of(lost.iter().copied());
    let sound: BTreeSet<String> = ids_of((0..COUNT).filter(|n| !lost.contains(n))).into_iter().collect();
    let all = json!({"session_id": id, "limit": 500});
    for _ in 0..2 {
        let page = door(&store).ok("messages", all.clone());
        assert_eq!(check_texts(&page["messages"]), sound, "{what}");
        assert_eq!(damaged(&page), lost_ids, "{what}");
    }
    let first = &door(&store).ok("messages", all.clone())["damaged"][0];
    let before = lost[0].checked_sub(1).map_or(Value::Null, |n| json!(entry(n)));
    // The image says what the entry was, unless the damage is near the file's beginning, where the image is not used.
    let role = if lost[0] == 0 { Value::Null } else { json!("user") };
    assert_eq!((&first["parent_id"], &first["role"]), (&before, &role), "{what}");
    let range =
        json!({"session_id": id, "from_entry_id": entry(0), "to_entry_id": entry(COUNT - 1), "limit": 500});
    let page = door(&store).ok("messages-range", range);
    assert_eq!((check_texts(&page["messages"]), damaged(&page)), (sound.clone(), lost_ids.clone()), "{what}");
    let page = door(&store).ok("messages-tail", all.clone());
    assert_eq!((check_texts(&page["messages"]), damaged(&page)), (sound.clone(), lost_ids.clone()), "{what}");

    // Page by page, each is named once.
    let (mut cursor, mut read, mut named) = (Value::Null, BTreeSet::new(), Vec::new());
    loop {
        let mut request = json!({"session_id": id, "limit": 7});
        if !cursor.is_null() {
            request["cursor"] = cursor;
        }
        let page = door(&store).ok("messages", request);
        read.extend(check_texts(&page["messages"]));
        named.extend(damaged(&page));
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!((read, named), (sound, lost_ids.clone()), "{what}");

    let tree = door(&store).ok("tree", json!({"session_id": id}));
    for node in tree["entries"].as_array().unwrap() {
        let id = node["entry_id"].as_str().unwrap().to_owned();
        assert_eq!(node["damaged"] == true, lost_ids.contains(&id), "{what}: {node}");
    }
    for n in 0..COUNT {
        let answer = door(&store).ok("get-message", json!({"session_id": id, "entry_id": entry(n)}));
        match lost.contains(&n) {
            true => assert!(answer.is_null(), "{what}: {n}"),
            false => assert_eq!(said_in(&answer["entry"]["message"]), said(n), "{what}"),
        }
    }
    check_projections(&store, lost, what);
    let named = warnings.all().iter().filter(|warning| warning.contains("mine")).count();
    assert!(named <= 3 * lost.len() + 1, "{what}: each is logged once: {:?}", warnings.all());
    assert!(store.damaged_entries() >= lost.len() as u64, "{what}");

    let next = door(&store).ok("append", json!({"session_id": id, "message": user("next")}));
    assert_eq!(next["parent_id"], entry(COUNT - 1), "{what}");
    let page = door(&store).ok("messages-tail", json!({"session_id": id, "limit": 1}));
    assert_eq!(texts(&page["messages"]), ["next"], "{what}");
    assert_eq!(page.get("damaged"), None, "{what}: it is not on this page");
    store.close().unwrap();
}

/// What is made of whole sessions shows where something is missing.
fn check_projections(store: &banyan::Banyan, lost: &[usize], what: &str) {
    let path = store
        .path(&PathRequest {
            session_id: "mine".into(),
            leaf: None,
            stretch: Stretch::Newest,
            entries: 500,
            bytes: u64::MAX,
        })
        .unwrap();
    let walked = store.walk(&"mine".into(), WalkOrder::Taken).unwrap();
    let walked = walked.filter_map(|step| match step.unwrap() {
        Walked::Entry { entry, .. } => Some(entry),
        _ => None,
    });
    for (how, entries) in [("path", path.entries), ("walk", walked.collect())] {
        let shown: Vec<EntryId> = entries.iter().map(|entry| entry.id().clone()).collect();
        assert_eq!(shown, (0..COUNT).map(|n| EntryId::from(entry(n))).collect::<Vec<_>>(), "{what}, {how}");
        for (n, entry) in entries.iter().enumerate() {
            let is_mark = matches!(entry, SessionEntry::Custom(custom) if custom.custom_type == "banyan.damaged");
            assert_eq!(is_mark, lost.contains(&n), "{what}, {how}: entry {n}");
        }
    }
    for target in [Target::Markdown, Target::Html, Target::SessionLog] {
        let text = exported(store, target);
        assert_eq!(text.matches("is damaged and was left out").count(), lost.len(), "{what}, {target:?}");
        for n in 0..COUNT {
            assert_eq!(text.contains(&said(n)), !lost.contains(&n), "{what}, {target:?}: {n}");
        }
    }
    let mut subscribed =
        Ears::of(store, Subscribe { filters: everything(), start: Start::Snapshot("mine".into()) });
    let snapshot: Vec<Heard> = std::iter::from_fn(|| match subscribed.next() {
        Some(Delivery::Snapshot(event)) => Some(Heard::of(&event)),
        _ => None,
    })
    .collect();
    assert_eq!(snapshot.len(), 1 + COUNT - lost.len(), "{what}");
    check_events(&snapshot, what);
    let mut replayed = Ears::after(store, Position::BEGINNING);
    let replayed = replayed.take(1 + COUNT - lost.len());
    assert!(replayed.is_sorted_by(|one, next| one.position < next.position), "{what}");
    check_events(&replayed, what);
}

/// The session began, and each message says what was appended under its id.
fn check_events(heard: &[Heard], what: &str) {
    assert_eq!(heard[0].event_type, "session::created", "{what}");
    let payloads = heard[1..].iter().map(|heard| heard.payload.clone()).collect();
    check_texts(&Value::Array(payloads));
}

fn exported(store: &banyan::Banyan, target: Target) -> String {
    let request = ExportRequest { session_id: "mine".into(), target, redaction: Redaction::Off, plain: false };
    let mut export = store.export(&request).unwrap();
    let mut bytes = Vec::new();
    while let Some(piece) = export.next_piece().unwrap() {
        bytes.extend(piece);
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_hole_in_a_large_session_is_marked_wherever_it_is_read() {
    for lost in [20..21, 20..23, 0..1] {
        let dir = large();
        damage(dir.path(), zeros(lost.start + 1..lost.end + 1));
        check_marked(dir.path(), &lost.clone().collect::<Vec<_>>(), &format!("a hole at {lost:?}"));
    }
}

#[test]
fn a_hole_at_the_end_of_a_large_session_is_found_when_it_is_loaded() {
    let dir = large();
    damage(dir.path(), |bytes, places| {
        let last = places[COUNT].clone();
        bytes[last.start..last.end - 1].fill(0);
    });
    let (store, warnings) = open_hearing_warnings(dir.path());
    let page = door(&store).ok("messages", json!({"session_id": "mine", "limit": 500}));
    assert_eq!(check_texts(&page["messages"]).len(), COUNT - 1);
    assert!(warnings.all().iter().any(|warning| warning.contains("mine")), "{:?}", warnings.all());
    let next = door(&store).ok("append", json!({"session_id": "mine", "message": user("next")}));
    assert_eq!(next["parent_id"], entry(COUNT - 2));
}

#[test]
fn a_changed_byte_in_a_large_session_is_marked_wherever_it_is_read() {
    let dir = large();
    damage(dir.path(), |bytes, places| bytes[places[31].end - 300] ^= 1);
    check_marked(dir.path(), &[30], "a byte of a text");
}

#[test]
fn exchanged_lines_never_give_an_entry_another_ones_text() {
    for (one, other) in [(10, 11), (15, 50)] {
        let dir = large();
        damage(dir.path(), exchange(one + 1, other + 1));
        check_marked(dir.path(), &[one, other], &format!("{one} and {other} exchanged"));
    }
}

#[test]
fn exchanged_lines_are_told_from_each_other_without_an_image() {
    let dir = large();
    damage(dir.path(), exchange(11, 12));
    without_images(dir.path());
    let store = open(dir.path());
    let page = door(&store).ok("messages", json!({"session_id": "mine", "limit": 500}));
    let read = check_texts(&page["messages"]);
    let named: BTreeSet<String> = damaged(&page).into_iter().collect();
    let all: BTreeSet<String> = ids_of(0..COUNT).into_iter().collect();
    assert_eq!(read.union(&named).cloned().collect::<BTreeSet<_>>(), all, "{named:?}");
    assert!(!named.is_empty() && read.is_disjoint(&named));
}

#[test]
fn a_fork_never_reads_another_entrys_text_from_its_source() {
    for fork_of_a_fork in [false, true] {
        let dir = large();
        let store = open(dir.path());
        let forked = |of: &Value, entry: &Value| {
            door(&store).ok("fork", json!({"session_id": of, "entry_id": entry}))["session_id"].clone()
        };
        let mut fork = forked(&json!("mine"), &json!(entry(COUNT - 1)));
        if fork_of_a_fork {
            let leaf = door(&store).say(&fork, "own");
            fork = forked(&fork, &leaf);
        }
        let whole = door(&store).path(&fork);
        store.close().unwrap();
        drop(store);
        damage(dir.path(), exchange(11, 12));
        let store = open(dir.path());
        let page = door(&store).ok("messages", json!({"session_id": fork, "limit": 500}));
        let mut rest = whole.clone();
        rest.drain(10..12);
        assert_eq!(texts(&page["messages"]), rest, "{fork_of_a_fork}");
        assert_eq!(damaged(&page).len(), 2, "{fork_of_a_fork}");
    }
}

#[test]
fn damage_that_is_found_when_a_session_is_loaded_is_marked_too() {
    let dir = super::super::written();
    let mut lines = lines_of(dir.path(), "mine");
    lines[3] = lines[3].replacen("two", "Xwo", 1);
    lines[5] = "#".repeat(lines[5].len());
    write_lines(dir.path(), "mine", &lines);
    let store = open(dir.path());
    let page = door(&store).ok("messages", json!({"session_id": "mine"}));
    assert_eq!(texts(&page["messages"]), ["zero", "one", "three", "five"]);
    assert_eq!(damaged(&page), ["e2", "e4"]);
    let roles: Vec<&Value> = page["damaged"].as_array().unwrap().iter().map(|entry| &entry["role"]).collect();
    assert_eq!(roles, [&json!("user"), &Value::Null], "nothing can be read of the second line");
    let tree = door(&store).ok("tree", json!({"session_id": "mine"}))["entries"].clone();
    let marked: Vec<&Value> = tree.as_array().unwrap().iter().filter(|node| node["damaged"] == true).collect();
    let marked: BTreeSet<&str> = marked.iter().map(|node| node["entry_id"].as_str().unwrap()).collect();
    assert_eq!(marked, BTreeSet::from(["e2", "e4"]));
    assert_eq!(store.damaged_entries(), 2);
    let tail = door(&store).ok("messages-tail", json!({"session_id": "mine"}));
    assert_eq!(damaged(&tail), ["e2", "e4"]);
    let one = door(&store).ok("messages-range", json!({"session_id": "mine", "entry_ids": ["e2", "e3"]}));
    assert_eq!((texts(&one["messages"]), damaged(&one)), (vec!["three".to_owned()], vec!["e2".to_owned()]));
}

#[test]
fn a_session_that_ended_meanwhile_is_not_called_damaged() {
    let dir = large();
    let store = open(dir.path());
    let mut walk = store.walk(&"mine".into(), WalkOrder::Taken).unwrap();
    assert!(walk.next().unwrap().is_ok());
    door(&store).ok("delete", json!({"session_id": "mine"}));
    door(&store).ok("ensure", json!({"session_id": "mine"}));
    door(&store).say(&json!("mine"), "another session");
    let outcomes: Vec<_> = walk.collect();
    assert!(
        outcomes.iter().flatten().all(|walked| !matches!(
            walked,
            Walked::Entry { entry: SessionEntry::Custom(custom), .. } if custom.custom_type == "banyan.damaged"
        )),
        "the session is gone, and nothing of it is damaged"
    );
    assert_eq!(store.damaged_entries(), 0);
}
