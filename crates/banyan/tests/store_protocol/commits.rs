//! Commits that another Banyan decided.

use banyan::model::{CommitNo, Raw, Role, Seq};
use banyan::rules::record::{self, Grew, LeafMoved, MessageRecord, Record, StatusSet};
use banyan::{Banyan, Options};
use serde_json::{Value, json};

use super::super::{ok, store};
use crate::support::*;

fn line(record: &Record) -> String {
    let mut line = Vec::new();
    record::encode(record, Seq(0), 7, &mut line);
    record::seal(&mut line, 0, CommitNo(0));
    String::from_utf8(line).unwrap()
}

fn message(id: &str, parent: Option<&str>) -> Record {
    Record::Message(MessageRecord {
        entry_id: id.into(),
        parent_id: parent.map(Into::into),
        role: Role::User,
        origin: None,
        blobs: Vec::new(),
        message: Raw::from_text(user(id).to_string()).unwrap(),
    })
}

fn version(main: &Banyan, session: &Value) -> Value {
    ok(main, "look", json!({"session_id": session}))["version"].clone()
}

fn commit(
    main: &Banyan,
    session: &Value,
    expected: &Value,
    token: &str,
    records: &[Record],
) -> Result<Value, String> {
    let lines: Vec<String> = records.iter().map(line).collect();
    let request =
        json!({"session_id": session, "expected": expected, "token": token, "time": 7, "records": lines});
    store(main, "commit", request)
}

#[test]
fn a_look_tells_what_was_asked_for_and_no_more() {
    let main = Banyan::in_memory(Options::default()).unwrap();
    let session = door(&main).session();
    let said = door(&main).say(&session, "one");
    let note = door(&main).append(&session, json!({"custom": {"custom_type": "mark", "data": 1}}));
    let seen = ok(&main, "look", json!({"session_id": session, "entries": [note, "nobody"], "message": said}));
    assert_eq!(seen["meta"], door(&main).meta(&session));
    assert_eq!(seen["leaf"], note);
    assert_eq!(seen["message"], user("one"));
    let entries = seen["entries"].as_array().unwrap();
    let places: Vec<Value> = entries
        .iter()
        .map(|it| json!([it["entry_id"], it["parent_id"], it["role"], it["depth"], it["messages"]]))
        .collect();
    assert_eq!(json!(places), json!([[said, null, "user", 0, 1], [note, said, null, 1, 1]]));
    let nothing = ok(&main, "look", json!({"session_id": "nobody", "entries": ["a"], "fork_at": "a"}));
    assert_eq!((&nothing["meta"], &nothing["leaf"]), (&Value::Null, &Value::Null));
}

#[test]
fn any_change_gives_another_version_even_one_more_text_on_the_same_line() {
    let main = Banyan::in_memory(Options::default()).unwrap();
    let session = door(&main).session();
    let entry = door(&main).append(&session, json!({"message": assistant("")}));
    let mut versions = vec![version(&main, &session)];
    for _ in 0..3 {
        door(&main).ok("extend-message", json!({"session_id": session, "entry_id": entry, "text": "x"}));
        versions.push(version(&main, &session));
    }
    door(&main).ok("delete", json!({"session_id": session}));
    door(&main).ok("ensure", json!({"session_id": session}));
    versions.push(version(&main, &session));
    for (at, one) in versions.iter().enumerate() {
        assert!(!versions[..at].contains(one), "{versions:?}");
    }
}

#[test]
fn a_commit_is_made_once_and_only_on_what_was_seen() {
    let on_disk = OnDisk::new();
    let main = &on_disk.store;
    let session = door(main).session();
    let mut ears = Ears::open(main);
    let seen = version(main, &session);
    let records = [message("a", None), message("b", Some("a"))];
    let made = commit(main, &session, &seen, "t1", &records).unwrap();
    assert_eq!(made, json!({"committed": true, "version": version(main, &session)}));
    assert_eq!(commit(main, &session, &seen, "t1", &records).unwrap(), made, "asked for twice");
    let other = commit(main, &session, &seen, "t2", &[message("c", None)]).unwrap();
    assert_eq!(other, json!({"committed": false, "version": version(main, &session)}));
    assert_eq!(door(main).path(&session), ["a", "b"]);
    assert_eq!(door(main).entry(&session, &json!("a"))["timestamp"], 7);
    assert_eq!(types(&ears.heard()), ["message-added", "message-added"]);
    drop(ears);
    let on_disk = on_disk.killed();
    assert_eq!(door(&on_disk.store).path(&session), ["a", "b"]);
    assert_eq!(door(&on_disk.store).meta(&session)["message_count"], 2);
}

#[test]
fn a_growing_message_is_settled_by_the_main() {
    let on_disk = OnDisk::new();
    let main = &on_disk.store;
    door(main).ok("ensure", json!({"session_id": "s"}));
    let session = json!("s");
    let entry = door(main).append(&session, json!({"message": assistant("It")}));
    let grew = |revision: u64, text: &str| {
        let add = record::Add { text: text.into(), ms_since: 0, commits_since: 0, origin: None };
        let id = entry.as_str().unwrap().into();
        Record::Grew(Grew { entry_id: id, block: 0, revision: revision.into(), adds: vec![add] })
    };
    for (revision, text) in [(1, " grows"), (2, " here")] {
        commit(main, &session, &version(main, &session), text, &[grew(revision, text)]).unwrap();
    }
    let status = StatusSet { status: banyan::model::SessionStatus::Done, reason: None };
    commit(main, &session, &version(main, &session), "status", &[Record::StatusSet(status)]).unwrap();
    assert_eq!(door(main).path(&session), ["It grows here"]);
    let dir = on_disk.close();
    let lines = lines_of(dir.path(), "s");
    let kinds: Vec<Value> =
        lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].clone()).collect();
    assert_eq!(json!(kinds), json!(["created", "message", "grew", "settled", "status-set"]));
}

#[test]
fn what_does_not_fit_the_session_is_refused_and_leaves_no_trace() {
    let main = Banyan::in_memory(Options::default()).unwrap();
    let session = door(&main).session();
    let said = door(&main).say(&session, "one");
    let said = said.as_str().unwrap();
    let seen = version(&main, &session);
    let add = record::Add { text: "x".into(), ms_since: 0, commits_since: 0, origin: None };
    let grew = Grew { entry_id: said.into(), block: 0, revision: 5.into(), adds: vec![add] };
    for (records, code) in [
        (vec![message(said, None)], "session/invalid_request"),
        (vec![message("a", None), message("a", None)], "session/invalid_request"),
        (vec![message("a", Some("nobody"))], "session/parent_not_found"),
        (vec![Record::LeafMoved(LeafMoved { entry_id: "nobody".into() })], "session/entry_not_found"),
        (vec![Record::Grew(grew)], "session/invalid_request"),
        (vec![], "session/invalid_request"),
    ] {
        let refused = commit(&main, &session, &seen, "t", &records).unwrap_err();
        assert!(refused.starts_with(code), "{records:?}: {refused}");
    }
    let nobody = json!("nobody");
    let refused = commit(&main, &nobody, &version(&main, &nobody), "t", &[message("a", None)]).unwrap_err();
    assert!(refused.starts_with("session/not_found"), "{refused}");
    let mut broken = json!({"session_id": session, "expected": seen, "token": "t", "time": 7, "records": ["{}"]});
    assert!(store(&main, "commit", broken.clone()).unwrap_err().starts_with("session/invalid_request"));
    broken["records"] = json!([line(&message("a", None)).replace("\"a\"", "\"b\"")]);
    assert!(store(&main, "commit", broken).unwrap_err().contains("checksum"));
    assert_eq!(version(&main, &session), seen);
}
