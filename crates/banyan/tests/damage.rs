//! Damaged directories: what is lost is never more than what was damaged, and damaged text is never served.

mod damage {
    mod beside;
    mod content;
    mod derived;
    mod every_file;
    mod files;
    mod folding;
    mod holes;
    mod log;
    mod lost_files;
    mod names;
    mod owner;
    mod session;
}

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::support::*;
use banyan::{Banyan, Options};
use banyan_log::disk::MemDisk;
use serde_json::json;
use tempfile::TempDir;

const TEXTS: [&str; 6] = ["zero", "one", "two", "three", "four", "five"];

/// A closed directory: `mine` says six things, `other` says two.
fn written() -> TempDir {
    let on_disk = OnDisk::new();
    let store = door(&on_disk.store);
    store.ok("ensure", json!({"session_id": "mine", "title": "Title", "metadata": {"owner": "u"}}));
    store.ok("ensure", json!({"session_id": "other", "title": "Other"}));
    for (n, said) in TEXTS.iter().enumerate() {
        store.append(
            &json!("mine"),
            json!({"message": user(said), "entry_id": format!("e{n}"), "origin": {"n": n}}),
        );
    }
    store.say(&json!("other"), "untouched");
    on_disk.close()
}

/// The other session is as it always was.
fn check_other(store: &Banyan) {
    assert_eq!(door(store).path(&json!("other")), ["untouched"]);
    assert_eq!(door(store).meta(&json!("other"))["title"], "Other");
}

/// Whatever happened to `mine`: nothing is served that was not written, and it goes on.
fn check_mine(store: &Banyan, what: &str) {
    let id = json!("mine");
    check_other(store);
    let path = door(store).path(&id);
    let mut written = TEXTS.iter();
    assert!(path.iter().all(|said| written.any(|known| known == said)), "{what}: {path:?}");
    let title = door(store).meta(&id)["title"].clone();
    assert!(title == "Title" || title == "", "{what}: {title}");
    door(store).say(&id, "next");
    assert_eq!(door(store).path(&id), [path, vec!["next".to_owned()]].concat(), "{what}");
}

/// What a store in memory finds in a directory's files.
fn in_memory(files: &BTreeMap<PathBuf, Vec<u8>>) -> Banyan {
    let disk = MemDisk::new();
    for (name, bytes) in files {
        disk.write_file(name.to_str().unwrap(), bytes);
    }
    Banyan::open_on(Arc::new(disk), None, Options::default()).unwrap()
}
