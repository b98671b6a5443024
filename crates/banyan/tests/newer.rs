//! Records of a newer Banyan: read around, never written behind, and no damage.

use std::path::Path;

use crate::support::*;
use banyan::verify::{Severity, verify};
use banyan::{Access, Scope, block_on};
use banyan_core::record::seal;
use banyan_model::CommitNo;
use serde_json::{Value, json};
use tempfile::TempDir;

/// What a newer Banyan may write: a type that may not be skipped, and a message of the next schema version.
const UNSKIPPABLE: &str = r#""type":"erased-range","needs":"0.9.0","from":"e0","to":"e9""#;
const NEXT_VERSION: &str = r#""type":"message","entry_id":"n0","parent_id":"e2","role":"user","sealed":"x""#;

/// A closed directory: `mine` says three things, `fork` is its fork at the first, and `other` says one.
fn written() -> TempDir {
    let on_disk = OnDisk::new();
    let store = door(&on_disk.store);
    for id in ["mine", "other"] {
        store.ok("ensure", json!({"session_id": id, "title": id, "metadata": {"owner": "u"}}));
        for entry in ["e0", "e1", "e2"] {
            store.append(&json!(id), json!({"message": user(entry), "entry_id": entry}));
        }
    }
    on_disk.close()
}

/// A record as another version writes it.
fn record(version: u32, seq: usize, fields: &str) -> String {
    let mut line =
        format!(r#"{{"schema_version":{version},"seq":{seq},"time":"2026-11-15T20:30:00.123Z","commit":"000000000000",{fields}"#)
            .into_bytes();
    seal(&mut line, 0, CommitNo(999));
    String::from_utf8(line).unwrap().trim_end().to_owned()
}

/// Writes a newer record behind what `mine` has, and half a line of one behind that.
fn add_newer(dir: &Path, version: u32, fields: &str) -> Vec<u8> {
    let mut lines = lines_of(dir, "mine");
    lines.push(record(version, lines.len(), fields));
    let mut text = lines.join("\n");
    text.push_str("\n{\"schema_version\":2,\"seq\"");
    std::fs::write(file_of(dir, "mine"), &text).unwrap();
    text.into_bytes()
}

/// Calls that would write to `mine`.
fn writes() -> Vec<(&'static str, Value)> {
    vec![
        ("append", json!({"session_id": "mine", "message": user("more")})),
        ("append-many", json!({"session_id": "mine", "messages": [user("more")]})),
        ("update-message", json!({"session_id": "mine", "entry_id": "e0", "content": text("other")})),
        ("extend-message", json!({"session_id": "mine", "entry_id": "e0", "text": "more"})),
        ("set-meta", json!({"session_id": "mine", "title": "other"})),
        ("set-status", json!({"session_id": "mine", "status": "done"})),
        ("set-active-leaf", json!({"session_id": "mine", "entry_id": "e0"})),
        ("put-attachment", json!({"session_id": "mine", "name": "n", "data": "aGk=", "mime": "text/plain"})),
        ("fork", json!({"session_id": "mine", "entry_id": "e0"})),
        ("delete", json!({"session_id": "mine"})),
    ]
}

#[test]
fn a_session_with_a_newer_record_is_read_and_not_written_and_the_others_go_on() {
    let cases = [
        (1, UNSKIPPABLE, "record type `erased-range`", "Banyan 0.9.0 or newer"),
        (2, NEXT_VERSION, "schema version 2", "a newer Banyan"),
    ];
    for (version, fields, what, needed) in cases {
        let dir = written();
        let before = add_newer(dir.path(), version, fields);
        let (store, warnings) = open_hearing_warnings(dir.path());
        let id = json!("mine");
        assert_eq!(door(&store).path(&id), ["e0", "e1", "e2"]);
        assert_eq!(door(&store).meta(&id)["title"], "mine");
        for (function, request) in writes() {
            let refusal = door(&store).call(function, request).unwrap_err();
            assert_eq!(refusal.code, "session/storage", "{function}");
            assert!(refusal.message.contains(what) && refusal.message.contains(needed), "{function}: {refusal:?}");
        }
        let meta = json!({"session_id": "mine", "title": "", "description": "", "status": "idle", "message_count": 0,
            "created_at": 1, "updated_at": 1});
        for (function, request) in
            [("put-meta", json!({"meta": meta})), ("delete-entries", json!({"session_id": "mine"}))]
        {
            let answer =
                block_on(store.store_call(&format!("session::store::{function}"), request.to_string().as_bytes()));
            assert!(answer.is_err_and(|error| error.to_string().contains(needed)), "{function}");
        }
        assert!(warnings.all().iter().any(|warning| warning.contains(what)), "{:?}", warnings.all());
        door(&store).say(&json!("other"), "next");
        assert_eq!(door(&store).path(&json!("other")), ["e0", "e1", "e2", "next"]);
        store.close().unwrap();
        assert_eq!(std::fs::read(file_of(dir.path(), "mine")).unwrap(), before, "not a byte has changed");
        let report = verify(dir.path(), &()).unwrap();
        let newer: Vec<_> = report
            .findings
            .iter()
            .filter(|finding| finding.severity == Severity::Newer)
            .map(|it| it.line)
            .collect();
        assert_eq!(newer, [Some(5)], "{report:?}");
        assert!(report.findings.iter().any(|finding| finding.reason.contains(what)), "{report:?}");
    }
}

#[test]
fn a_type_that_may_be_skipped_is_kept_and_written_behind() {
    let dir = written();
    let mut lines = lines_of(dir.path(), "mine");
    lines.push(record(1, lines.len(), r#""type":"novel","of":"e0""#));
    write_lines(dir.path(), "mine", &lines);
    let store = open(dir.path());
    door(&store).say(&json!("mine"), "next");
    store.close().unwrap();
    assert_eq!(lines_of(dir.path(), "mine")[..lines.len()], lines);
    assert_eq!(door(&open(dir.path())).path(&json!("mine")), ["e0", "e1", "e2", "next"]);
    assert!(verify(dir.path(), &()).unwrap().is_sound());
}

#[test]
fn a_beginning_of_a_newer_version_is_a_session_that_stays() {
    for first in [
        r#""type":"created","session_id":"mine","born":"00112233445566778899aabbccddeeff","sealed":"x""#,
        r#""type":"sealed","needs":"2.0.0""#,
    ] {
        let dir = written();
        let lines: Vec<String> =
            [record(2, 0, first)].into_iter().chain(lines_of(dir.path(), "mine").split_off(1)).collect();
        write_lines(dir.path(), "mine", &lines);
        std::fs::remove_dir_all(dir.path().join(".banyan/index")).unwrap();
        // The newer version would have registered its own first line.
        std::fs::remove_file(dir.path().join(".banyan/files")).unwrap();
        let store = open(dir.path());
        assert_eq!(door(&store).path(&json!("mine")), ["e0", "e1", "e2"]);
        for (function, request) in
            [("ensure", json!({"session_id": "mine"})), ("delete", json!({"session_id": "mine"}))]
        {
            assert_eq!(door(&store).refused(function, request), "session/storage");
        }
        store.close().unwrap();
        assert_eq!(lines_of(dir.path(), "mine"), lines);
    }
}

#[test]
fn half_an_import_with_a_newer_record_is_not_taken_back() {
    let dir = written();
    let begun = r#""type":"begun","session_id":"part","born":"00112233445566778899aabbccddeeff","import":true"#;
    let lines = [record(1, 0, begun), record(1, 1, UNSKIPPABLE)];
    write_lines(dir.path(), "part", &lines);
    let store = open(dir.path());
    assert_eq!(
        door(&store).refused("append", json!({"session_id": "part", "message": user("more")})),
        "session/storage"
    );
    store.close().unwrap();
    assert_eq!(lines_of(dir.path(), "part"), lines);
}

#[test]
fn content_that_a_newer_record_names_stays() {
    let dir = written();
    let bytes = b"what only a newer record uses";
    let hash = blake3::hash(bytes).to_hex().to_string();
    let blob = dir.path().join(".banyan/blobs").join(&hash[..2]).join(&hash);
    std::fs::create_dir_all(blob.parent().unwrap()).unwrap();
    std::fs::write(&blob, bytes).unwrap();
    add_newer(dir.path(), 1, &format!(r#"{UNSKIPPABLE},"content":"{hash}""#));
    // Without a catalogue everything is looked through, as after a crash.
    std::fs::remove_dir_all(dir.path().join(".banyan/index")).unwrap();
    open(dir.path()).close().unwrap();
    assert_eq!(std::fs::read(&blob).unwrap(), bytes);
}

#[test]
fn a_scoped_access_does_not_reach_a_session_whose_metadata_a_newer_record_may_have_set() {
    for (version, fields, reached) in [(1, UNSKIPPABLE, false), (2, NEXT_VERSION, true)] {
        let dir = written();
        add_newer(dir.path(), version, fields);
        let store = open(dir.path());
        let pairs = json!({"owner": "u"}).as_object().unwrap().clone();
        let scoped = store.with_access(Access { scope: Scope::of(pairs), read_only: false });
        let found = door(&scoped).ok("get", json!({"session_id": "mine"}));
        assert_eq!(found != Value::Null, reached, "{fields}");
        let listed = door(&scoped).ok("list", json!({}))["sessions"].as_array().unwrap().len();
        assert_eq!(listed, if reached { 2 } else { 1 });
        assert_eq!(door(&scoped).path(&json!("other")), ["e0", "e1", "e2"]);
    }
}

#[test]
fn a_fork_is_read_only_if_what_it_inherits_is_not_understood() {
    for newer_before_fork in [true, false] {
        let dir = written();
        let base = |seq: usize| {
            let born = &lines_of(dir.path(), "mine")[0];
            let born: Value = serde_json::from_str(born).unwrap();
            format!(
                r#""type":"created","session_id":"fork","born":"00112233445566778899aabbccddeeff","title":"","description":"","base":{{"session_id":"mine","born":{},"seq":{seq},"entry_id":"e1","entries":2,"messages":2}}"#,
                born["born"]
            )
        };
        let fork = record(1, 0, &base(if newer_before_fork { 4 } else { 3 }));
        write_lines(dir.path(), "fork", std::slice::from_ref(&fork));
        add_newer(dir.path(), 1, UNSKIPPABLE);
        let store = open(dir.path());
        assert_eq!(door(&store).path(&json!("fork")), ["e0", "e1"]);
        let appended = door(&store).call("append", json!({"session_id": "fork", "message": user("more")}));
        assert_eq!(
            appended.map_err(|refusal| refusal.code).err(),
            newer_before_fork.then(|| "session/storage".to_owned())
        );
    }
}

#[test]
fn derived_files_of_another_version_are_made_anew() {
    let on_disk = OnDisk::new();
    let id = door(&on_disk.store).session();
    for n in 0..60 {
        door(&on_disk.store).say(&id, &format!("{n} {}", "x".repeat(20 << 10)));
    }
    let path = door(&on_disk.store).path(&id);
    let dir = on_disk.close();
    let index = dir.path().join(".banyan/index");
    let image = std::fs::read_dir(index.join("trees")).unwrap().next().unwrap().unwrap().path();
    let change = |path: &Path, at: usize, bytes: &[u8]| {
        let mut file = std::fs::read(path).unwrap();
        let before = file[at..at + bytes.len()].to_vec();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        std::fs::write(path, file).unwrap();
        before
    };
    const FORM: &[u8] = b"banyan state 04\n";
    // `user_version` of the catalogue, and the number of the image's form.
    let catalogue = index.join("catalogue.sqlite");
    let version = change(&catalogue, 60, &99_u32.to_be_bytes());
    let form = std::fs::read(&image).unwrap().windows(FORM.len()).position(|bytes| bytes == FORM).unwrap();
    change(&image, form, b"banyan state 99\n");
    let on_disk = OnDisk::with(dir);
    assert_eq!(door(&on_disk.store).path(&id), path);
    assert_eq!(door(&on_disk.store).ok("list", json!({}))["sessions"].as_array().unwrap().len(), 1);
    door(&on_disk.store).say(&id, "next");
    let dir = on_disk.close();
    assert_eq!(std::fs::read(&catalogue).unwrap()[60..64], version);
    assert_eq!(std::fs::read(&image).unwrap()[form..form + FORM.len()], *FORM);
    assert!(verify(dir.path(), &()).unwrap().is_sound());
}
