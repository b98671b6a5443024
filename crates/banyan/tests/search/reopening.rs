//! The index over closings, kills, damage and loss.

use std::fs;
use std::path::{Path, PathBuf};

use banyan::Options;
use banyan::repair::{Decisions, repair};
use serde_json::{Value, json};

use super::{found, sorted};
use crate::support::*;

fn index_of(dir: &Path) -> PathBuf {
    dir.join(".banyan/index/search")
}

#[test]
fn a_store_that_is_opened_again_finds_what_it_found_and_what_came_after() {
    let store = OnDisk::new();
    let session = door(&store.store).session();
    let one = door(&store.store).say(&session, "word one");
    assert_eq!(found(door(&store.store), "word"), sorted([one.clone()]));
    let store = store.reopened();
    let two = door(&store.store).say(&session, "word two");
    // Closed before the index has looked.
    let store = store.reopened();
    assert_eq!(found(door(&store.store), "word"), sorted([one.clone(), two.clone()]));
    let three = door(&store.store).say(&session, "word three");
    let store = store.killed();
    assert_eq!(found(door(&store.store), "word"), sorted([one, two, three]));
}

#[test]
fn a_kill_at_any_moment_loses_and_doubles_nothing() {
    let mut store = OnDisk::new();
    let session = door(&store.store).session();
    let mut expected = Vec::new();
    for round in 0..6 {
        for n in 0..40 {
            expected.push(door(&store.store).say(&session, &format!("word {round} {n}")));
        }
        if round % 2 == 0 {
            let leaf = &expected[expected.len() - 20];
            let store = door(&store.store);
            let moved = json!({"session_id": session, "entry_id": leaf});
            store.ok("set-active-leaf", moved);
        }
        store = store.killed();
    }
    expected.sort_by_key(Value::to_string);
    let request = json!({"query": "word", "limit": 100, "all_branches": true});
    let mut seen = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let mut request = request.clone();
        request["cursor"] = cursor;
        let page = super::answer(door(&store.store), request);
        seen.extend(ids(&page["hits"]));
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    seen.sort_by_key(Value::to_string);
    assert_eq!(seen, expected);
}

#[test]
fn an_index_that_is_gone_is_made_anew() {
    let store = OnDisk::new();
    let session = door(&store.store).session();
    let entry = door(&store.store).say(&session, "word");
    assert_eq!(found(door(&store.store), "word"), sorted([entry.clone()]));
    let dir = store.close();
    fs::remove_dir_all(index_of(dir.path())).unwrap();
    let store = OnDisk::with(dir);
    assert_eq!(found(door(&store.store), "word"), [entry]);
}

#[test]
fn a_damaged_index_is_made_anew_whichever_file_it_is() {
    let store = OnDisk::new();
    let session = door(&store.store).session();
    let entry = door(&store.store).say(&session, "word");
    assert_eq!(found(door(&store.store), "word"), sorted([entry.clone()]));
    let dir = store.close();
    let whole = copied(dir.path());
    let names: Vec<PathBuf> = files_in(&index_of(dir.path())).into_keys().collect();
    assert!(names.len() > 5, "{names:?}");
    for name in names {
        let dir = copied(whole.path());
        let path = index_of(dir.path()).join(&name);
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        if let Some(byte) = bytes.get_mut(middle) {
            *byte ^= 0xff;
        }
        bytes.truncate(bytes.len() - bytes.len() / 4);
        fs::write(&path, bytes).unwrap();
        let store = OnDisk::with(dir);
        assert_eq!(found(door(&store.store), "word"), sorted([entry.clone()]), "{}", name.display());
    }
}

#[test]
fn an_index_of_another_store_is_made_anew() {
    let other = OnDisk::new();
    let session = door(&other.store).session();
    for n in 0..20 {
        door(&other.store).say(&session, &format!("foreign {n}"));
    }
    assert_eq!(found(door(&other.store), "foreign").len(), 20);
    let other = other.close();
    let store = OnDisk::new();
    let session = door(&store.store).session();
    let entry = door(&store.store).say(&session, "own");
    let dir = store.close();
    let _ = fs::remove_dir_all(index_of(dir.path()));
    fs::create_dir_all(index_of(dir.path())).unwrap();
    for (name, bytes) in files_in(&index_of(other.path())) {
        fs::write(index_of(dir.path()).join(name), bytes).unwrap();
    }
    let store = OnDisk::with(dir);
    assert_eq!(found(door(&store.store), "own"), [entry]);
    assert_eq!(found(door(&store.store), "foreign"), [] as [Value; 0]);
}

#[test]
fn files_that_others_brought_are_noticed_and_those_that_they_took_away_once_they_are_forgotten() {
    let store = OnDisk::new();
    let (kept, lost) = (json!("kept"), json!("lost"));
    for session in [&kept, &lost] {
        door(&store.store).ok("ensure", json!({"session_id": session}));
    }
    let of_kept = door(&store.store).say(&kept, "word");
    door(&store.store).say(&lost, "word");
    assert_eq!(found(door(&store.store), "word").len(), 2);
    let from = OnDisk::new();
    door(&from.store).ok("ensure", json!({"session_id": "brought"}));
    let of_brought = door(&from.store).say(&json!("brought"), "word");
    let from = from.close();
    let dir = store.close();
    fs::remove_file(file_of(dir.path(), "lost")).unwrap();
    let decisions = Decisions { forget: vec!["lost".into()], ..Decisions::default() };
    repair(dir.path(), &decisions, Options::default()).unwrap();
    fs::copy(file_of(from.path(), "brought"), file_of(dir.path(), "brought")).unwrap();
    let store = OnDisk::with(dir);
    assert_eq!(found(door(&store.store), "word"), sorted([of_kept, of_brought]));
}
