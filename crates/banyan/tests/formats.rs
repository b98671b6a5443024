//! Directories that earlier builds wrote: each is opened, read exactly, written to, opened again and verified, and no byte of
//! what it held changes. `tests/fixtures/formats/make.py` makes them.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::support::*;
use banyan::model::Position;
use banyan::verify::verify;
use banyan::{Banyan, Delivery};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use tempfile::TempDir;

/// One directory of one build.
struct Fixture {
    name: String,
    dir: TempDir,
    /// What the build itself answered about it.
    expected: Value,
}

/// All of them, unpacked. Builds are folders, cases are archives in them.
fn fixtures() -> Vec<Fixture> {
    let formats = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/formats");
    let entries = |dir: &Path| -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    };
    let archives = entries(&formats).into_iter().filter(|path| path.is_dir()).flat_map(|build| entries(&build));
    let archives = archives.filter(|path| path.to_str().unwrap().ends_with(".tar.gz"));
    archives
        .map(|archive| {
            let dir = tempfile::tempdir().unwrap();
            unpack(&unzipped(&archive), dir.path());
            let expected = archive.to_str().unwrap().replace(".tar.gz", ".json.gz");
            let expected = serde_json::from_slice(&unzipped(Path::new(&expected))).unwrap();
            Fixture { name: archive.strip_prefix(&formats).unwrap().display().to_string(), dir, expected }
        })
        .collect()
}

fn unzipped(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

/// Unpacks plain files of a ustar archive: a header of 512 bytes each, then the content, filled up to 512 bytes.
fn unpack(mut archive: &[u8], dir: &Path) {
    let text =
        |field: &[u8]| String::from_utf8(field.iter().copied().take_while(|byte| *byte != 0).collect()).unwrap();
    while archive.first().is_some_and(|byte| *byte != 0) {
        let (header, rest) = archive.split_at(512);
        let size = usize::from_str_radix(text(&header[124..136]).trim(), 8).unwrap();
        let (prefix, name) = (text(&header[345..500]), text(&header[..100]));
        let path = dir.join(prefix).join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, &rest[..size]).unwrap();
        archive = &rest[size.next_multiple_of(512)..];
    }
}

/// The same questions that were asked of the build that wrote the fixture.
fn everything(store: &Banyan) -> Value {
    let mut sessions = serde_json::Map::new();
    let mut request = json!({});
    loop {
        let page = door(store).ok("list", request.clone());
        for meta in page["sessions"].as_array().unwrap() {
            let id = meta["session_id"].as_str().unwrap();
            sessions.insert(id.to_owned(), session(store, id));
        }
        if page["next_cursor"].is_null() {
            break;
        }
        request["cursor"] = page["next_cursor"].clone();
    }
    let mut ears = Ears::after(store, Position::BEGINNING);
    let events = ears.deliveries().into_iter().filter_map(|delivery| match delivery {
        Delivery::Event(event) => {
            let data: Value = serde_json::from_str(event.json()).unwrap();
            Some(
                json!({"position": event.position.to_string(), "type": event.event_type().as_str(), "data": data}),
            )
        }
        _ => None,
    });
    json!({"sessions": sessions, "events": events.collect::<Vec<_>>()})
}

fn session(store: &Banyan, id: &str) -> Value {
    let request = json!({"session_id": id});
    let tree = door(store).ok("tree", request.clone());
    let of_entry = |entry: &Value| door(store).ok("get-message", json!({"session_id": id, "entry_id": entry}));
    let entries: Vec<Value> = ids(&tree["entries"]).iter().map(of_entry).collect();
    let listed = door(store).ok("list-attachments", request.clone());
    let attachment = |one: &Value| {
        door(store).ok("get-attachment", json!({"session_id": id, "attachment_id": one["attachment_id"]}))
    };
    let attachments: Vec<Value> = listed["attachments"].as_array().unwrap().iter().map(attachment).collect();
    let meta = door(store).ok("get", request)["meta"].clone();
    json!({"meta": meta, "tree": tree, "entries": entries, "attachments": attachments})
}

/// The files that nothing can make again: sessions up to their last whole line, bases of forks, and stored content.
fn true_content(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = files_in(dir);
    files.retain(|path, bytes| {
        let of_session = path.extension().is_some_and(|ending| ending == "jsonl");
        if of_session {
            let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            bytes.truncate(whole);
        }
        let is_ledger = path.starts_with(".banyan/imports");
        (of_session && !is_ledger) || path.starts_with(".banyan/blobs")
    });
    files
}

/// An import that was interrupted when the fixture was made: it is taken back, as it would have been by the build itself.
const INTERRUPTED: &str = "large.jsonl";

#[test]
fn every_directory_of_an_earlier_build_is_read_exactly_and_written_to_and_keeps_every_byte() {
    let fixtures = fixtures();
    assert!(fixtures.len() >= 6, "{} fixtures", fixtures.len());
    for Fixture { name, dir, expected } in fixtures {
        let before = true_content(dir.path());
        assert_eq!(before.contains_key(Path::new(INTERRUPTED)), name.contains("half-import"), "{name}");
        let has_log = files_in(dir.path()).keys().any(|path| path.starts_with(".banyan/wal"));
        assert_eq!(has_log, name.contains("killed") || name.contains("half-import"), "{name}");
        let report = verify(dir.path(), &()).unwrap();
        assert!(
            report.is_sound() || name.contains("legacy") || name.contains("half-import"),
            "{name}: {report:?}"
        );

        let store = open(dir.path());
        assert!(dir.path().join(".banyan/format").exists(), "{name}");
        assert_eq!(everything(&store), expected, "{name}");
        for id in expected["sessions"].as_object().unwrap().keys().filter(|id| id.as_str() != "circle") {
            door(&store).say(&json!(id), "from a later build");
        }
        door(&store).ok("ensure", json!({"session_id": "new"}));
        door(&store).say(&json!("new"), "from a later build");
        let after = everything(&store);
        store.close().unwrap();

        let store = open(dir.path());
        assert_eq!(everything(&store), after, "{name}");
        drop(store);
        for (path, bytes) in before.iter().filter(|(path, _)| path.as_os_str() != INTERRUPTED) {
            let now =
                std::fs::read(dir.path().join(path)).unwrap_or_else(|error| panic!("{name}: {path:?}: {error}"));
            assert!(now.starts_with(bytes), "{name}: {path:?} has changed");
        }
        assert!(!dir.path().join(INTERRUPTED).exists(), "{name}");
        let again = verify(dir.path(), &()).unwrap();
        let findings = |report: &banyan::verify::Report| {
            let found =
                report.findings.iter().filter(|finding| finding.severity == banyan::verify::Severity::Damage);
            found.map(|finding| format!("{}: {}", finding.file, finding.reason)).collect::<Vec<_>>()
        };
        // What session-manager's own crashes left is told as before.
        let known = findings(&report);
        assert!(findings(&again).iter().all(|finding| known.contains(finding)), "{name}: {again:?}");
    }
}
