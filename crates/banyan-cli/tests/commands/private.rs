//! A data directory is its owner's alone.
#![cfg(unix)]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::common::served::Served;
use crate::common::{Place, user};
use serde_json::json;

/// A directory and all that is in it.
fn tree(dir: &Path) -> Vec<PathBuf> {
    let mut found = vec![dir.to_owned()];
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(tree(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}

/// What others may do something with. A file that is gone by now was a part of the database's.
fn open_to_others(dir: &Path) -> Vec<PathBuf> {
    let wide =
        |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0);
    tree(dir).into_iter().filter(wide).collect()
}

/// Writes a bit of everything: messages, content beside them, attachments, keys, what is searched, a bus.
fn use_all(place: &Place) -> Served {
    let served = place.serve_with(&["--listen", "127.0.0.1:0", "--iii-listen", "127.0.0.1:0"]).unwrap();
    place.ask(&served, &["call", "session::ensure", r#"{"session_id":"s"}"#]).ok();
    for text in ["short".to_owned(), "long ".repeat(20_000)] {
        let request = json!({"session_id": "s", "message": user(&text)}).to_string();
        place.ask(&served, &["call", "session::append", &request]).ok();
    }
    place.ask(&served, &["call", "session::search", r#"{"query":"short","wait_ms":20000}"#]).ok();
    served
}

#[test]
fn what_a_server_makes_is_for_its_owner_alone() {
    let place = Place::new();
    let served = use_all(&place);
    assert!(tree(&place.dir()).len() > 20, "{:?}", tree(&place.dir()));
    assert_eq!(open_to_others(&place.dir()), [""; 0].map(PathBuf::from));
    place.run(&["key", "create", "--name", "ops"]);
    assert_eq!(open_to_others(&place.dir()), [""; 0].map(PathBuf::from));
    served.stop("TERM");
    assert_eq!(open_to_others(&place.dir()), [""; 0].map(PathBuf::from));

    let keys_first = Place::new();
    keys_first.run(&["key", "create", "--name", "ops"]);
    assert_eq!(open_to_others(&keys_first.dir()), [""; 0].map(PathBuf::from));
}

#[test]
fn what_others_could_read_before_is_for_its_owner_alone_after_a_start() {
    let place = Place::new();
    use_all(&place).stop("TERM");
    for path in tree(&place.dir()) {
        let mode = if path.is_dir() { 0o755 } else { 0o644 };
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }
    // What somebody else keeps beside the sessions is not the server's.
    let other = place.dir().join("notes.txt");
    fs::write(&other, "").unwrap();
    fs::set_permissions(&other, Permissions::from_mode(0o644)).unwrap();
    let served = place.serve();
    assert_eq!(open_to_others(&place.dir()), [other]);
    served.stop("TERM");
}
