//! Records that were blanked in place: sound for every reader, and nothing of their content is shown.

use std::path::Path;
use std::sync::Arc;

use crate::support::*;
use banyan::export::{ExportRequest, Redaction, Target};
use banyan::model::Position;
use banyan::verify::verify;
use banyan::{Banyan, Delivery, block_on};
use banyan_core::record::{NotBlanked, blank};
use banyan_log::disk::OsDisk;
use banyan_log::{At, FsLog, SessionLog};
use banyan_model::SessionId;
use serde_json::{Value, json};
use tempfile::TempDir;

/// In every text that the store is given.
const SECRET: &str = "zebra";

fn secret(n: u32) -> String {
    format!("{SECRET}{n}")
}

/// A closed directory with every kind of record that has content, in a session, its fork, the base of a fork, a session
/// that was put, and one of session-manager's.
fn written() -> (TempDir, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let legacy = [
        format!(
            r#"{{"type":"entry","entry":{{"kind":"message","id":"e1","parent_id":null,"timestamp":5,"message":{}}}}}"#,
            user(SECRET)
        ),
        r#"{"type":"leaf","entry_id":"e1"}"#.to_owned(),
        format!(
            r#"{{"type":"meta","meta":{{"session_id":"legacy","title":"{SECRET}","description":"","status":"idle","message_count":1,"created_at":1,"updated_at":2}}}}"#
        ),
    ];
    write_lines(dir.path(), "legacy", &legacy);
    let on_disk = OnDisk::with(dir);
    let store = door(&on_disk.store);
    let fork_of = |id: &str, entry: &Value| {
        let forked = store.ok("fork", json!({"session_id": id, "entry_id": entry}));
        forked["session_id"].as_str().unwrap().to_owned()
    };
    let mut sessions = vec!["legacy".to_owned()];
    for id in ["mine", "gone"] {
        let session = json!(id);
        store.ok(
            "ensure",
            json!({"session_id": id, "title": SECRET, "description": SECRET, "metadata": {"owner": "u"}}),
        );
        store.append(&session, json!({"message": user(&secret(1)), "origin": {"by": SECRET}}));
        store.say(&session, &SECRET.repeat(20_000));
        store.append(&session, json!({"custom": {"custom_type": "note", "data": {SECRET: SECRET}}}));
        let first = store.append(&session, json!({"message": assistant(&secret(2))}));
        store.ok("extend-message", json!({"session_id": id, "entry_id": first, "text": secret(3)}));
        store.ok(
            "extend-message",
            json!({"session_id": id, "entry_id": first, "text": secret(4), "origin": {"by": SECRET}}),
        );
        let second = store.append(&session, json!({"message": assistant(&secret(5))}));
        // Another that grows settles the first.
        store.ok("extend-message", json!({"session_id": id, "entry_id": second, "text": secret(6)}));
        store.ok("update-message", json!({"session_id": id, "entry_id": second, "content": text(&secret(7))}));
        store.ok("set-meta", json!({"session_id": id, "title": secret(8)}));
        store.ok("set-status", json!({"session_id": id, "status": "error", "reason": SECRET}));
        store
            .ok("put-attachment", json!({"session_id": id, "name": SECRET, "mime": "text/plain", "data": "aGk="}));
        let last = store.append(&session, json!({"message": result("c", &secret(9))}));
        sessions.push(fork_of(id, &last));
        sessions.push(id.to_owned());
    }
    store.ok("delete", json!({"session_id": "gone"}));
    sessions.pop();
    let put = json!({"kind": "message", "id": "p", "parent_id": null, "timestamp": 5, "revision": 0, "message": user(SECRET)});
    let meta = json!({"session_id": "put", "title": SECRET, "description": SECRET, "status": "idle", "message_count": 0, "created_at": 1, "updated_at": 1});
    for (function, request) in [
        ("put-meta", json!({"meta": meta})),
        ("put-entry", json!({"session_id": "put", "entry": put})),
        ("set-active-leaf", json!({"session_id": "put", "entry_id": "p"})),
    ] {
        block_on(on_disk.store.store_call(&format!("session::store::{function}"), request.to_string().as_bytes()))
            .unwrap();
    }
    sessions.push("put".to_owned());
    (on_disk.close(), sessions)
}

/// Blanks every record that has content, and says which types those were.
fn blank_all(dir: &Path, sessions: &[String]) -> Vec<String> {
    let (log, _) = FsLog::open(Arc::new(OsDisk::new(dir.to_owned())), banyan_log::Options::default()).unwrap();
    log.start(Box::new(|_| Ok(()))).unwrap();
    let mut types = Vec::new();
    let unnamed = SessionId::from("gone");
    let ids: Vec<SessionId> = sessions.iter().map(|id| SessionId::from(id.as_str())).collect();
    let live = ids.iter().map(At::Live);
    let retained = log.retained();
    assert_eq!(retained.len(), 1);
    for at in live.chain(retained.iter().map(|born| At::Incarnation(&unnamed, *born))) {
        let mut lines = Vec::new();
        log.scan(at, 0, &mut |offset, line| lines.push((offset, line.to_vec()))).unwrap();
        for (offset, line) in lines {
            match blank(&line) {
                Ok(_) => log.blank_line(at, offset).unwrap(),
                Err(error) => {
                    assert_eq!(error, NotBlanked::NoContent);
                    continue;
                }
            }
            let line: Value = serde_json::from_slice(&line).unwrap();
            types.push(line["type"].as_str().unwrap().to_owned());
        }
    }
    log.close().unwrap();
    // What is derived is made anew; it said what the records said.
    std::fs::remove_dir_all(dir.join(".banyan/index")).unwrap();
    types.sort_unstable();
    types.dedup();
    types
}

/// What a session's readers see: its meta, its tree, every entry, its path, its turns.
fn shown(store: &Banyan, id: &str) -> Value {
    let session = json!({"session_id": id});
    let tree = door(store).ok("tree", session.clone());
    let entries: Vec<Value> =
        ids(&tree["entries"]).iter().map(|entry| door(store).entry(&json!(id), entry)).collect();
    json!({
        "meta": door(store).meta(&json!(id)),
        "entries": entries,
        "messages": door(store).ok("messages", json!({"session_id": id, "include_custom": true})),
        "tail": door(store).ok("messages-tail", session.clone()),
        "turns": door(store).ok("turns", session.clone()),
        "attachments": door(store).ok("list-attachments", session),
        "tree": tree,
    })
}

/// Ids, parents, revisions and kinds: what a session is without what it says.
fn structure(store: &Banyan, id: &str) -> Value {
    let mut tree = door(store).ok("tree", json!({"session_id": id}));
    for entry in tree["entries"].as_array_mut().unwrap() {
        let kept = ["entry_id", "parent_id", "kind", "role", "revision", "timestamp", "custom_type"];
        entry.as_object_mut().unwrap().retain(|key, _| kept.contains(&key.as_str()));
    }
    json!({"tree": tree, "count": door(store).meta(&json!(id))["message_count"], "metadata": door(store).meta(&json!(id))["metadata"]})
}

fn events(store: &Banyan) -> Vec<(String, Heard)> {
    let mut ears = Ears::after(store, Position::BEGINNING);
    let told = ears.deliveries().into_iter().filter_map(|delivery| match delivery {
        Delivery::Event(event) => Some((event.position.to_string(), Heard::of(&event))),
        _ => None,
    });
    told.collect()
}

#[test]
fn blanked_records_are_sound_and_show_nothing() {
    let (dir, sessions) = written();
    let before = open(dir.path());
    let (told, structures) =
        (events(&before), sessions.iter().map(|id| structure(&before, id)).collect::<Vec<_>>());
    assert!(sessions.iter().all(|id| shown(&before, id).to_string().contains(SECRET)));
    before.close().unwrap();
    let lengths: Vec<usize> = sessions.iter().map(|id| lines_of(dir.path(), id).concat().len()).collect();
    let types = blank_all(dir.path(), &sessions);
    let expected = [
        "attached",
        "created",
        "custom",
        "entry",
        "entry-put",
        "grew",
        "message",
        "meta",
        "meta-put",
        "meta-set",
        "settled",
        "status-set",
        "updated",
    ];
    assert_eq!(types, expected);
    for (name, bytes) in files_in(dir.path()) {
        let is_true =
            name.extension().is_some_and(|ending| ending == "jsonl" || ending == "seg") || name.ends_with("files");
        assert!(!is_true || !String::from_utf8_lossy(&bytes).contains(SECRET), "{}", name.display());
    }
    assert_eq!(sessions.iter().map(|id| lines_of(dir.path(), id).concat().len()).collect::<Vec<_>>(), lengths);
    let report = verify(dir.path(), &()).unwrap();
    assert!(report.is_sound(), "{report:?}");

    let (store, warnings) = open_hearing_warnings(dir.path());
    for (id, structure_before) in sessions.iter().zip(&structures) {
        let now = shown(&store, id).to_string();
        assert!(!now.contains(SECRET), "{now}");
        assert_eq!(&structure(&store, id), structure_before);
        for target in [Target::SessionLog, Target::Markdown, Target::Html, Target::Opa] {
            let request =
                ExportRequest { session_id: id.as_str().into(), target, redaction: Redaction::Off, plain: true };
            let request = ExportRequest { plain: target == Target::Opa, ..request };
            let mut export = store.export(&request).unwrap();
            while let Some(piece) = export.next_piece().unwrap() {
                assert!(!String::from_utf8_lossy(&piece).contains(SECRET), "{target:?}");
            }
        }
    }
    let found = door(&store).ok("search", json!({"query": format!("{SECRET}*"), "wait_ms": 60_000}));
    assert_eq!((&found["complete"], &found["hits"]), (&json!(true), &json!([])));
    let told_now = events(&store);
    let order = |events: &[(String, Heard)]| -> Vec<(String, String)> {
        events.iter().map(|(position, heard)| (position.clone(), heard.said().0)).collect()
    };
    assert_eq!(order(&told_now), order(&told));
    assert!(told_now.iter().all(|(_, heard)| !heard.said().1.to_string().contains(SECRET)));
    assert_eq!(warnings.all(), Vec::<String>::new());

    for id in &sessions {
        door(&store).say(&json!(id), "next");
        let leaf = door(&store).ok("messages-tail", json!({"session_id": id, "limit": 1}));
        assert_eq!(texts(&leaf["messages"]), ["next"]);
    }
    let after: Vec<Value> = sessions.iter().map(|id| shown(&store, id)).collect();
    store.close().unwrap();
    let store = open(dir.path());
    assert_eq!(sessions.iter().map(|id| shown(&store, id)).collect::<Vec<_>>(), after);
    drop(store);
    assert!(verify(dir.path(), &()).unwrap().is_sound());
}
