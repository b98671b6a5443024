//! Damage that may have changed metadata takes a session from every scope, until its metadata is set again.

use std::path::Path;

use banyan::{Access, Banyan, Options, Scope, SearchIndexing};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::*;

const ID: &str = "mine";

fn tenant(store: &Banyan, name: &str) -> Banyan {
    let Value::Object(pairs) = json!({"tenant": name}) else { unreachable!() };
    store.with_access(Access { scope: Scope::of(pairs), read_only: false })
}

/// A closed directory with a session of red's that was given to blue, with so many messages after that.
fn given_away(after: usize) -> TempDir {
    let on_disk = OnDisk::new();
    let store = door(&on_disk.store);
    store.ok("ensure", json!({"session_id": ID, "title": "Title", "metadata": {"tenant": "red"}}));
    store.say(&json!(ID), "of red");
    store.ok("set-meta", json!({"session_id": ID, "metadata": {"tenant": "blue"}}));
    for _ in 0..after {
        store.say(&json!(ID), "of blue");
    }
    on_disk.close()
}

fn quick(dir: &Path) -> Banyan {
    Banyan::open(dir, Options { search: SearchIndexing::Off, ..Options::default() }).unwrap()
}

/// Whether a handle reaches the session: all functions agree.
fn reaches(store: &Banyan) -> bool {
    let door = door(store);
    let listed = door.ok("list", json!({}))["sessions"].as_array().unwrap().len();
    let by_filter = door.ok("list", json!({"metadata": {}}))["sessions"].as_array().unwrap().len();
    let known = door.ok("get", json!({"session_id": ID})) != Value::Null;
    let read = door.call("messages", json!({"session_id": ID})).is_ok();
    let forked = door.call("fork", json!({"session_id": ID, "entry_id": "none"})).unwrap_err().code;
    assert_eq!((listed, by_filter, read), (usize::from(known), usize::from(known), known));
    assert_eq!(forked == "session/not_found", !known, "{forked}");
    known
}

/// No tenant reaches the session, and the operator does.
fn check_closed(dir: &Path, what: &str) {
    let store = quick(dir);
    let (red, blue) = (tenant(&store, "red"), tenant(&store, "blue"));
    for tenant in [&red, &blue] {
        assert_eq!(door(tenant).ok("get", json!({"session_id": ID})), Value::Null, "{what}");
        assert!(!reaches(tenant), "{what}");
    }
    assert!(reaches(&store), "{what}");
    assert_eq!(door(&store).meta(&json!(ID))["title"], "Title", "{what}");
    store.close().unwrap();
}

fn file(dir: &Path) -> std::path::PathBuf {
    dir.join(format!("{ID}.jsonl"))
}

#[test]
fn no_flipped_byte_of_a_line_that_set_metadata_gives_the_session_back_to_its_former_owner() {
    for after in [0, 1] {
        let dir = given_away(after);
        let sound = std::fs::read(file(dir.path())).unwrap();
        let ends: Vec<usize> = (0..sound.len()).filter(|at| sound[*at] == b'\n').collect();
        assert!(sound[ends[1] + 1..ends[2]].windows(8).any(|part| part == b"meta-set"));
        let files = dir.path().join(".banyan/files");
        let registered = std::fs::read(&files).unwrap();
        // From the line feed before the line to its own, with the index and without.
        let places = (ends[1]..ends[2]).step_by(3).chain([ends[2]]);
        for (number, at) in places.enumerate() {
            let mut damaged = sound.clone();
            damaged[at] ^= 1;
            std::fs::write(file(dir.path()), &damaged).unwrap();
            std::fs::write(&files, &registered).unwrap();
            if number % 2 == 0 {
                std::fs::remove_dir_all(dir.path().join(".banyan/index")).unwrap();
            }
            let what = format!("byte {at} of {}..{}, {after} lines after it", ends[1], ends[2]);
            let store = quick(dir.path());
            assert!(!reaches(&tenant(&store, "red")), "{what}");
            store.close().unwrap();
            // Of a line that only lost its line feed, or the one before it, everything is known.
            if at == ends[1] || (at == ends[2] && after > 0) {
                let store = quick(dir.path());
                // The catalogue may know the file as it was damaged before; reading the session corrects that.
                assert!(reaches(&store));
                assert!(reaches(&tenant(&store, "blue")) && !reaches(&tenant(&store, "red")), "{what}");
                continue;
            }
            check_closed(dir.path(), &what);
        }
    }
}

#[test]
fn a_lost_line_closes_a_session_as_a_damaged_one_does() {
    let dir = given_away(2);
    let mut lines = lines_of(dir.path(), ID);
    lines.remove(2);
    write_lines(dir.path(), ID, &lines);
    check_closed(dir.path(), "a line is gone");

    let dir = given_away(0);
    let whole = std::fs::read(file(dir.path())).unwrap();
    std::fs::write(file(dir.path()), &whole[..whole.len() - 5]).unwrap();
    check_closed(dir.path(), "the last line is cut");
    check_closed(dir.path(), "the last line is cut, and the session was opened since");
    assert_eq!(std::fs::read(file(dir.path())).unwrap(), whole[..whole.len() - 5], "what is left stays");
}

#[test]
fn a_damaged_message_closes_a_session_to_no_one() {
    let dir = given_away(2);
    let mut lines = lines_of(dir.path(), ID);
    lines[3] = lines[3].replace("of blue", "of  lue");
    write_lines(dir.path(), ID, &lines);
    let store = quick(dir.path());
    assert!(reaches(&tenant(&store, "blue")) && !reaches(&tenant(&store, "red")));
}

#[test]
fn metadata_that_is_set_again_opens_the_session_to_its_owner() {
    let dir = given_away(1);
    let mut lines = lines_of(dir.path(), ID);
    lines[2] = "#".repeat(lines[2].len());
    write_lines(dir.path(), ID, &lines);
    check_closed(dir.path(), "damaged");
    let (store, warnings) = open_hearing_warnings(dir.path());
    let all = door(&store);
    let id = json!(ID);
    // A title is not enough.
    all.ok("set-meta", json!({"session_id": id, "title": "Title"}));
    for owner in ["red", "blue"] {
        assert!(!reaches(&tenant(&store, owner)), "{owner}");
    }
    assert!(warnings.all().iter().any(|warning| warning.contains("until its metadata is set again")));
    // What is done to it meanwhile is told to no tenant, and a fork is no tenant's.
    let red = tenant(&store, "red");
    let mut heard =
        door(&red).listen(&[("session::message-added", json!({})), ("session::created", json!({}))]).unwrap();
    let entry = all.say(&id, "secret");
    let fork = all.ok("fork", json!({"session_id": id, "entry_id": entry}))["session_id"].clone();
    assert!(heard.heard().is_empty());
    assert_eq!(door(&red).ok("get", json!({"session_id": fork})), Value::Null);
    for owner in ["red", "blue"] {
        let found = door(&tenant(&store, owner)).ok("search", json!({"query": "secret", "wait_ms": 10_000}));
        assert_eq!(found["hits"], json!([]), "{owner}");
    }
    all.ok("delete", json!({"session_id": fork}));
    all.ok("set-meta", json!({"session_id": id, "metadata": {"tenant": "blue"}}));
    assert!(reaches(&tenant(&store, "blue")) && !reaches(&tenant(&store, "red")));
    store.close().unwrap();
    std::fs::remove_dir_all(dir.path().join(".banyan/index")).unwrap();
    let store = quick(dir.path());
    assert!(reaches(&tenant(&store, "blue")) && !reaches(&tenant(&store, "red")));
}
