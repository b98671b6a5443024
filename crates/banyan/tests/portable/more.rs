//! Sessions that somebody imports again and again, in pieces, while others work on them here.

use banyan::batch::{self, Batch};
use banyan::import::Mode;
use banyan::model::{ErrorCode, LastTold, SessionEntry, SessionMeta, SessionStatus};
use banyan::{Banyan, Durability, Incoming, Options, Taken, block_on};
use serde_json::{Value, json};

use crate::{all_of, append, call, import, store, user};

/// What an importer tells: entries by id, each after the one that it names, and the leaf.
struct Telling {
    title: &'static str,
    metadata: Value,
    entries: Vec<(&'static str, Option<&'static str>, u64)>,
    leaf: Option<&'static str>,
}

fn telling(entries: &[(&'static str, Option<&'static str>)], leaf: &'static str) -> Telling {
    let entries = entries.iter().map(|(id, parent)| (*id, *parent, 0)).collect();
    Telling { title: "title", metadata: json!({"agent": "a"}), entries, leaf: Some(leaf) }
}

impl Telling {
    fn told(&self) -> LastTold {
        LastTold {
            title: self.title.to_owned(),
            status: SessionStatus::Idle,
            metadata: serde_json::from_value(self.metadata.clone()).unwrap(),
            leaf: self.leaf.map(Into::into),
        }
    }

    fn meta(&self) -> SessionMeta {
        serde_json::from_value(json!({"session_id": "s", "title": self.title, "description": "", "status": "idle",
            "metadata": self.metadata, "message_count": 0, "created_at": 5, "updated_at": 9}))
        .unwrap()
    }

    fn entries(&self) -> Vec<SessionEntry> {
        let entry = |(id, parent, revision): &(&str, Option<&str>, u64)| {
            serde_json::from_value(json!({"kind": "message", "id": id, "parent_id": parent, "timestamp": 7,
                "revision": revision, "message": user(&format!("{id} {revision}"))}))
            .unwrap()
        };
        self.entries.iter().map(entry).collect()
    }

    fn take(&self, store: &Banyan, told: &[LastTold]) -> Result<Taken, banyan::model::Error> {
        let active_leaf = self.leaf.map(Into::into);
        let incoming =
            Incoming { meta: self.meta(), entries: self.entries(), active_leaf, attachments: Vec::new() };
        block_on(store.take_more(incoming, told, Mode::Write))
    }
}

fn leaf(store: &Banyan) -> Value {
    call(store, "tree", json!({"session_id": "s"}))["active_leaf"].clone()
}

fn meta(store: &Banyan) -> Value {
    call(store, "get", json!({"session_id": "s"}))["meta"].clone()
}

#[test]
fn given_pieces_of_a_session_when_they_are_taken_then_it_is_as_if_it_had_come_whole() {
    let (whole, pieces) = (store(), store());
    let chain = [("a", None), ("b", Some("a")), ("c", Some("b")), ("d", Some("a")), ("e", Some("d"))];
    telling(&chain, "e").take(&whole, &[]).unwrap();
    let mut told = Vec::new();
    for (at, piece) in chain.iter().enumerate() {
        let telling = telling(&[*piece], piece.0);
        let taken = telling.take(&pieces, &told).unwrap();
        assert_eq!((taken.created, taken.added), (at == 0, 1));
        told = vec![telling.told()];
    }
    assert_eq!(all_of(&pieces, "s"), all_of(&whole, "s"));
    assert_eq!((leaf(&pieces), meta(&pieces)["message_count"].clone()), (json!("e"), json!(5)));
    let head = pieces.head();
    let again = telling(&chain, "e").take(&pieces, &told).unwrap();
    assert_eq!((again.added, again.unchanged, pieces.head()), (0, 5, head), "twice changes nothing");
}

#[test]
fn given_a_session_that_nobody_touched_when_it_goes_on_then_title_labels_and_leaf_follow() {
    let store = store();
    let first = telling(&[("a", None), ("b", Some("a"))], "b");
    first.take(&store, &[]).unwrap();
    let mut second = telling(&[("c", Some("a"))], "c");
    (second.title, second.metadata) = ("renamed", json!({"agent": "a", "branch": "main"}));
    second.take(&store, &[first.told()]).unwrap();
    assert_eq!((meta(&store)["title"].clone(), leaf(&store)), (json!("renamed"), json!("c")));
    assert_eq!(meta(&store)["metadata"], json!({"agent": "a", "branch": "main"}));
    // Back to the other branch, without an entry that is new.
    let mut third = telling(&[], "b");
    (third.title, third.metadata) = ("renamed", json!({"agent": "a"}));
    third.take(&store, &[second.told()]).unwrap();
    assert_eq!((leaf(&store), meta(&store)["metadata"].clone()), (json!("b"), json!({"agent": "a"})));
}

#[test]
fn given_a_user_who_renamed_moved_and_wrote_when_the_import_goes_on_then_all_of_that_stays() {
    let store = store();
    let first = telling(&[("a", None), ("b", Some("a"))], "b");
    first.take(&store, &[]).unwrap();
    call(&store, "set-meta", json!({"session_id": "s", "title": "mine", "metadata": {"agent": "a", "mine": 1}}));
    call(&store, "set-status", json!({"session_id": "s", "status": "done"}));
    append(&store, "s", "own", Some("a"), user("my own"));
    call(
        &store,
        "update-message",
        json!({"session_id": "s", "entry_id": "b", "content": [{"type": "text", "text": "edited"}]}),
    );
    let mut second = telling(&[("c", Some("b"))], "c");
    (second.title, second.metadata) = ("theirs", json!({"agent": "b", "mine": 2}));
    second.entries.insert(0, ("b", Some("a"), 9));
    let taken = second.take(&store, &[first.told()]).unwrap();
    assert_eq!((taken.added, taken.updated, taken.unchanged), (1, 0, 1));
    let meta = meta(&store);
    assert_eq!(
        (meta["title"].clone(), meta["status"].clone(), leaf(&store)),
        (json!("mine"), json!("done"), json!("own"))
    );
    assert_eq!(meta["metadata"], json!({"agent": "b", "mine": 1}), "each label for itself");
    let edited = call(&store, "get-message", json!({"session_id": "s", "entry_id": "b"}));
    assert_eq!(edited["entry"]["message"]["content"][0]["text"], "edited");
    assert!(store.has_entry(&"s".into(), &"c".into()).unwrap());
    assert!(!store.has_entry(&"s".into(), &"x".into()).unwrap());
}

#[test]
fn given_a_message_of_which_more_was_read_when_it_is_told_again_then_it_is_replaced() {
    let store = store();
    let first = telling(&[("a", None)], "a");
    first.take(&store, &[]).unwrap();
    let mut second = telling(&[], "a");
    second.entries = vec![("a", None, 2)];
    assert_eq!(second.take(&store, &[first.told()]).unwrap().updated, 1);
    assert_eq!(second.take(&store, &[second.told()]).unwrap().updated, 0);
    let entry = call(&store, "get-message", json!({"session_id": "s", "entry_id": "a"}));
    assert_eq!(entry["entry"]["message"]["content"][0]["text"], "a 2");
}

#[test]
fn given_a_session_that_comes_back_by_way_of_another_agent_when_it_is_told_then_its_own_entries_stay() {
    let store = store();
    let by = |agent: &str, entries: &[(&'static str, Option<&'static str>, u64)]| {
        let mut telling = telling(&[], entries.last().unwrap().0);
        telling.entries = entries.to_vec();
        let active_leaf = telling.leaf.map(Into::into);
        let mut entries = telling.entries();
        for entry in &mut entries {
            let SessionEntry::Message(entry) = entry else { continue };
            entry.origin = Some(serde_json::from_value(json!({agent: {}})).unwrap());
        }
        let incoming = Incoming { meta: telling.meta(), entries, active_leaf, attachments: Vec::new() };
        block_on(store.take_more(incoming, &[], Mode::Write)).unwrap()
    };
    by("first", &[("a", None, 0), ("b", Some("a"), 1)]);
    // The other agent took more lines for the same messages.
    let taken = by("other", &[("a", None, 3), ("b", Some("a"), 4), ("c", Some("b"), 0)]);
    assert_eq!((taken.added, taken.updated, taken.unchanged), (1, 0, 2));
    assert_eq!(leaf(&store), "c");
    assert_eq!(by("other", &[("c", Some("b"), 1)]).updated, 1, "its own may grow");
}

#[test]
fn given_notes_after_the_last_word_when_the_session_went_on_elsewhere_then_the_leaf_follows() {
    let store = store();
    telling(&[("a", None), ("b", Some("a"))], "b").take(&store, &[]).unwrap();
    let custom = json!({"session_id": "s", "entry_id": "k", "custom": {"custom_type": "x.note", "data": 1}});
    call(&store, "append", custom);
    telling(&[("c", Some("b"))], "c").take(&store, &[]).unwrap();
    assert_eq!(leaf(&store), "c");
    telling(&[("d", Some("b"))], "d").take(&store, &[]).unwrap();
    assert_eq!(leaf(&store), "c", "something was said after that");
}

#[test]
fn given_a_session_that_was_deleted_when_more_of_it_comes_then_it_stays_deleted() {
    let store = store();
    let first = telling(&[("a", None)], "a");
    first.take(&store, &[]).unwrap();
    call(&store, "delete", json!({"session_id": "s"}));
    let refused = telling(&[("b", Some("a"))], "b").take(&store, &[first.told()]).unwrap_err();
    assert_eq!(refused.code, ErrorCode::NotFound);
    assert_eq!(call(&store, "get", json!({"session_id": "s"})), Value::Null);
    assert!(first.take(&store, &[]).unwrap().created, "told as if for the first time, it is taken");
}

#[test]
fn given_a_batch_as_a_file_when_it_is_imported_then_it_is_the_same_as_by_the_library() {
    let (by_file, by_call) = (store(), store());
    let first = telling(&[("a", None), ("b", Some("a"))], "b");
    let mut second = telling(&[("c", Some("b"))], "c");
    second.title = "renamed";
    for (telling, told) in [(&first, vec![]), (&second, vec![first.told()])] {
        telling.take(&by_call, &told).unwrap();
        let leaf = telling.leaf.map(Into::into);
        let batch = Batch { meta: telling.meta(), told, leaf, entries: telling.entries() };
        let mut file = Vec::new();
        batch::write(&batch, &mut file).unwrap();
        let file = String::from_utf8(file).unwrap();
        assert!(import(&by_file, &file, Mode::DryRun).unwrap().dry_run);
        let summary = import(&by_file, &file, Mode::Write).unwrap();
        assert_eq!((summary.format.as_str(), summary.sessions[0].added), ("batch", telling.entries.len() as u64));
        assert!(import(&by_file, &format!("{file}[]\n"), Mode::Write).is_err(), "all of it or nothing");
    }
    assert_eq!(all_of(&by_file, "s"), all_of(&by_call, "s"));
}

#[test]
fn given_a_buffered_store_when_it_was_flushed_and_reopened_then_every_piece_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let options = || Options { durability: Durability::Buffered, blob_threshold: 2, ..Options::default() };
    let store = Banyan::open(dir.path(), options()).unwrap();
    let first = telling(&[("a", None)], "a");
    first.take(&store, &[]).unwrap();
    telling(&[("b", Some("a"))], "b").take(&store, &[first.told()]).unwrap();
    store.flush().unwrap();
    let before = all_of(&store, "s");
    store.close().unwrap();
    let store = Banyan::open(dir.path(), options()).unwrap();
    assert_eq!(all_of(&store, "s"), before);
    store.close().unwrap();
    assert_eq!(banyan::verify::verify(dir.path(), &()).unwrap().findings.len(), 0);
}
