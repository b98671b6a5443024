//! Forks of forks, and forks over restarts.

use std::fs;

use banyan::{Banyan, Options};
use serde_json::{Value, json};

use super::{answer, assert_found_as_it_is, found_by};
use crate::support::*;

/// A session that says one thing, a fork of it that adds another, a fork of that, and so on.
fn line_of(store: &dyn Door, length: usize) -> Vec<Value> {
    let mut line: Vec<Value> = Vec::new();
    let mut leaf = Value::Null;
    for n in 0..length {
        let session = match line.last() {
            Some(last) => {
                let fork = json!({"session_id": last, "entry_id": leaf});
                store.ok("fork", fork)["session_id"].clone()
            }
            None => store.session(),
        };
        leaf = store.say(&session, &format!("word number{n}"));
        line.push(session);
    }
    line
}

fn documents(store: &Banyan) -> u64 {
    answer(door(store), json!({"query": "word"}));
    store.search_documents()
}

/// That each session of a line is found as it is.
fn must_be_found(store: &dyn Door, line: &[Value]) {
    for session in line {
        for word in ["word", "number0", "number1", "changed"] {
            assert_found_as_it_is(store, session, word);
        }
    }
}

fn first_entry(store: &dyn Door, session: &Value) -> Value {
    ids(&store.ok("messages", json!({"session_id": session, "limit": 500}))["messages"])[0].clone()
}

#[test]
fn a_fork_of_a_fork_finds_what_both_have_from_others() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let line = line_of(door(&store), 5);
    assert_eq!(documents(&store), 10);
    must_be_found(door(&store), &line);
    // A fork of what the last one has from the first.
    let entry = first_entry(door(&store), &line[4]);
    let early = door(&store).ok("fork", json!({"session_id": line[4], "entry_id": entry}))["session_id"].clone();
    assert_eq!(documents(&store), 11);
    must_be_found(door(&store), &[early]);
}

#[test]
fn in_a_line_of_forks_only_the_one_that_lost_its_base_has_everything_itself() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let all = door(&store);
    let line = line_of(all, 5);
    assert_eq!(documents(&store), 10);
    // The second has the first entry as it was; those after it find it there.
    let entry = first_entry(all, &line[0]);
    all.ok("update-message", json!({"session_id": line[0], "entry_id": entry, "content": text("word changed")}));
    assert_eq!(documents(&store), 11);
    must_be_found(all, &line);
    // One in the middle goes: the next one has all that it shows.
    all.ok("delete", json!({"session_id": line[2]}));
    assert_eq!(documents(&store), 11 - 2 + 3);
    must_be_found(all, &[line[0].clone(), line[1].clone(), line[3].clone(), line[4].clone()]);
    // One in the middle changes what it has from others: it is whole already, and the next one becomes so.
    let entry = first_entry(all, &line[3]);
    all.ok("update-message", json!({"session_id": line[3], "entry_id": entry, "content": text("word changed")}));
    assert_eq!(documents(&store), 12 + 4);
    must_be_found(all, &[line[0].clone(), line[1].clone(), line[3].clone(), line[4].clone()]);
}

#[test]
fn a_change_at_the_beginning_of_a_line_is_heard_at_its_end() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let all = door(&store);
    let line = line_of(all, 3);
    // The second changes what it has from the first, so neither it nor the third can have it from there.
    let entry = first_entry(all, &line[1]);
    assert_eq!(documents(&store), 6);
    all.ok("update-message", json!({"session_id": line[1], "entry_id": entry, "content": text("word changed")}));
    assert_eq!(documents(&store), 6 + 1 + 2);
    must_be_found(all, &line);
}

#[test]
fn a_very_long_line_is_found_to_its_end_and_costs_little() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let line = line_of(door(&store), 150);
    // Each with one of its own, and now and then one with all before it.
    let found = documents(&store);
    assert!((300..150 * 4).contains(&found), "{found}");
    must_be_found(door(&store), &[line[149].clone(), line[70].clone(), line[64].clone()]);
    let all = json!({"query": "number0", "session_id": line[149]});
    assert_eq!(found_by(door(&store), all), [first_entry(door(&store), &line[149])]);
}

#[test]
fn a_line_of_forks_is_the_same_after_a_restart_and_in_an_index_that_is_made_anew() {
    let store = OnDisk::new();
    let line = line_of(door(&store.store), 12);
    assert_eq!(documents(&store.store), 24);
    let store = store.reopened();
    assert_eq!(documents(&store.store), 24);
    must_be_found(door(&store.store), &line);
    door(&store.store).say(&line[11], "word more");
    let store = store.killed();
    assert_eq!(documents(&store.store), 25);
    must_be_found(door(&store.store), &line);
    for lost in [".banyan/index/search", ".banyan/index"] {
        let mut dir = copied(store.dir.path());
        for _ in 0..2 {
            fs::remove_dir_all(dir.path().join(lost)).unwrap();
            let store = OnDisk::with(dir);
            assert_eq!(documents(&store.store), 25, "without {lost}");
            must_be_found(door(&store.store), &line);
            dir = store.close();
        }
    }
}

#[test]
fn what_ends_a_base_while_nobody_looks_is_noticed_later() {
    let store = OnDisk::new();
    let line = line_of(door(&store.store), 3);
    assert_eq!(documents(&store.store), 6);
    // Closed before the index has looked.
    door(&store.store).ok("delete", json!({"session_id": line[0]}));
    let store = store.reopened();
    assert_eq!(documents(&store.store), 5);
    must_be_found(door(&store.store), &line[1..]);
    let entry = first_entry(door(&store.store), &line[1]);
    let changed = json!({"session_id": line[1], "entry_id": entry, "content": text("word changed")});
    door(&store.store).ok("update-message", changed);
    let store = store.killed();
    assert_eq!(documents(&store.store), 7);
    must_be_found(door(&store.store), &line[1..]);
}

#[test]
fn an_index_of_an_older_version_is_made_anew() {
    let store = OnDisk::new();
    let line = line_of(door(&store.store), 3);
    assert_eq!(documents(&store.store), 6);
    let dir = store.close();
    let path = dir.path().join(".banyan/index/search/meta.json");
    let meta = fs::read_to_string(&path).unwrap();
    let older = meta.replace("\\\"version\\\":3", "\\\"version\\\":2");
    assert_ne!(older, meta);
    fs::write(path, older).unwrap();
    let (store, warnings) = open_hearing_warnings(dir.path());
    assert_eq!(documents(&store), 6);
    must_be_found(door(&store), &line);
    assert!(warnings.all().iter().any(|warning| warning.contains("made anew")), "{:?}", warnings.all());
}
