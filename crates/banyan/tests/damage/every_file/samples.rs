//! Directories with a file of every kind.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use banyan::Banyan;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::content::Content;
use crate::support::*;

/// A directory as somebody left it.
pub(super) struct Sample {
    pub(super) name: &'static str,
    pub(super) files: BTreeMap<String, Vec<u8>>,
    /// The files as they were some commits before.
    pub(super) older: BTreeMap<String, Vec<u8>>,
    /// Files of another directory.
    foreign: BTreeMap<String, Vec<u8>>,
    pub(super) content: Content,
    /// How many of a hundred rounds are its.
    pub(super) share: usize,
}

/// A directory that was closed, one whose owner was killed, and one with a session that is large enough for an image.
pub(super) fn samples() -> [Sample; 3] {
    [
        Sample::of("closed", 50, &|store| begin(store, "of this one"), &|store| go_on(store), Left::Closed),
        Sample::of("killed", 40, &|store| begin(store, "of this one"), &|store| go_on(store), Left::Killed),
        Sample::of("large", 10, &|store| begin_large(store), &|store| go_on_large(store), Left::Closed),
    ]
}

#[derive(Clone, Copy)]
enum Left {
    Closed,
    Killed,
}

impl Sample {
    fn of(name: &'static str, share: usize, first: &dyn Fn(&Banyan), then: &dyn Fn(&Banyan), left: Left) -> Self {
        let on_disk = OnDisk::new();
        first(&on_disk.store);
        let dir = on_disk.close();
        let older = named(files_in(dir.path()));
        let on_disk = OnDisk::with(dir);
        then(&on_disk.store);
        searchable(&on_disk.store);
        let content = Content::of(&on_disk.store, &[]);
        let files = match left {
            Left::Closed => named(files_in(on_disk.close().path())),
            Left::Killed => named(files_in(copied(on_disk.dir.path()).path())),
        };
        let other = OnDisk::new();
        begin(&other.store, "of another one");
        go_on(&other.store);
        searchable(&other.store);
        let log = named(files_in(copied(other.dir.path()).path())).into_iter();
        let log = log.filter(|(name, _)| super::Kind::of(name) == Some(super::Kind::Segment));
        let foreign = log.chain(named(files_in(other.close().path()))).collect();
        Self { name, files, older, foreign, content, share }
    }

    /// Writes the files into an empty directory.
    pub(super) fn write(&self, dir: &Path) {
        for (name, bytes) in &self.files {
            let path = dir.join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            std::fs::write(path, bytes).expect("a file");
        }
    }

    /// Another directory's file that has this name, or is of the same kind where names are chosen at random.
    pub(super) fn foreign_file(&self, file: &str) -> Option<&Vec<u8>> {
        let kind = super::Kind::of(file);
        let same_kind =
            || self.foreign.iter().find(|(name, _)| super::Kind::of(name) == kind).map(|(_, bytes)| bytes);
        self.foreign.get(file).or_else(same_kind)
    }

    /// Whether a session inherits from another one.
    pub(super) fn reads_from(&self, session: &str, from: &str) -> bool {
        let title = self.content.title(session);
        matches!((title.as_str(), from), ("Fork", "mine") | ("Heir", "ended"))
    }

    /// Whether a session uses content that is stored by its hash.
    pub(super) fn uses_content(&self, session: &str) -> bool {
        session == "mine" || self.reads_from(session, "mine")
    }
}

fn named(files: BTreeMap<PathBuf, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    let name = |path: PathBuf| path.to_str().expect("a name").to_owned();
    files.into_iter().map(|(path, bytes)| (name(path), bytes)).collect()
}

/// Waits until everything can be found, so that the index has what it will have.
fn searchable(store: &Banyan) {
    door(store).ok("search", json!({"query": "text", "wait_ms": 60_000}));
}

fn begin(store: &Banyan, whose: &str) {
    let store = door(store);
    store.ok("ensure", json!({"session_id": "mine", "title": "Title", "metadata": {"owner": "u", "of": whose}}));
    store.ok("ensure", json!({"session_id": "other", "title": "Other"}));
    store.ok("ensure", json!({"session_id": "ended", "title": "Ended"}));
    store.ok("ensure", json!({"session_id": "deleted", "title": "Deleted"}));
    for (n, text) in ["zero", "one", "two"].iter().enumerate() {
        let text = format!("text {text} {whose}");
        store.append(&json!("mine"), json!({"message": user(&text), "entry_id": format!("e{n}")}));
    }
    store.append(&json!("ended"), json!({"message": user(&format!("text of ended {whose}")), "entry_id": "x0"}));
    store.say(&json!("other"), &format!("text untouched {whose}"));
    store.say(&json!("deleted"), "text of a deleted session");
    let long = format!("long text {whose} ").repeat(2500);
    store.append(&json!("mine"), json!({"message": user(&long), "entry_id": "long"}));
}

fn go_on(store: &Banyan) {
    let store = door(store);
    store.ok("fork", json!({"session_id": "mine", "entry_id": "long", "title": "Fork"}));
    store.ok("fork", json!({"session_id": "ended", "entry_id": "x0", "title": "Heir"}));
    let entry = store.append(&json!("mine"), json!({"message": assistant("first version"), "entry_id": "a0"}));
    store
        .ok("update-message", json!({"session_id": "mine", "entry_id": entry, "content": text("second version")}));
    let grown = store.append(&json!("mine"), json!({"message": assistant(""), "entry_id": "grown"}));
    for token in ["alpha ", "beta ", "gamma"] {
        store.ok("extend-message", json!({"session_id": "mine", "entry_id": grown, "text": token}));
    }
    store.append(&json!("mine"), json!({"custom": {"custom_type": "note", "data": {"a": 1}}, "entry_id": "c0"}));
    let data = STANDARD.encode("an attachment ".repeat(100));
    store.ok("put-attachment", json!({"session_id": "mine", "name": "n", "mime": "text/plain", "data": data}));
    store.ok("set-meta", json!({"session_id": "mine", "title": "Renamed"}));
    store.ok("set-status", json!({"session_id": "mine", "status": "working"}));
    store.ok("set-status", json!({"session_id": "mine", "status": "idle"}));
    store.ok("delete", json!({"session_id": "ended"}));
    store.ok("delete", json!({"session_id": "deleted"}));
    store.say(&json!("other"), "text at the end");
}

fn begin_large(store: &Banyan) {
    let store = door(store);
    store.ok("ensure", json!({"session_id": "large", "title": "Title"}));
    for n in 0..80 {
        store.append(
            &json!("large"),
            json!({"message": user(&format!("text {n} ").repeat(2000)), "entry_id": format!("e{n}")}),
        );
    }
}

fn go_on_large(store: &Banyan) {
    door(store).say(&json!("large"), "text at the end");
    door(store).ok("ensure", json!({"session_id": "other", "title": "Other"}));
    door(store).say(&json!("other"), "text untouched");
}
