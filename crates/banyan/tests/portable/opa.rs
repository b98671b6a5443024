//! OPA archives: whole, changed on the way, with data.

use std::io::{Cursor, Read};

use banyan::export::{ExportRequest, Redaction, Target};
use banyan::import::Mode;
use banyan::model::{ErrorCode, ImportedSession};
use banyan::opa::{Archive, Limits};
use banyan::{Access, Banyan, Scope, block_on};
use serde_json::json;

use super::*;

pub(super) fn archive_of(store: &Banyan, id: &str, plain: bool) -> Vec<u8> {
    let request = ExportRequest { session_id: id.into(), target: Target::Opa, redaction: Redaction::Off, plain };
    let mut export = store.export(&request).unwrap();
    let mut all = Vec::new();
    while let Some(piece) = export.next_piece().unwrap() {
        all.extend(piece);
    }
    assert_eq!(export.written().unwrap().extension.is_none(), plain);
    all
}

fn take(store: &Banyan, archive: &[u8]) -> ImportedSession {
    let taken = block_on(store.import(&mut Cursor::new(archive.to_vec()), Mode::Write)).unwrap();
    assert_eq!(taken.format, "opa");
    taken.sessions.into_iter().next().unwrap()
}

fn crc32(bytes: &[u8]) -> u32 {
    let byte = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    };
    !bytes.iter().fold(!0, byte)
}

/// The same archive, unpacked, with one text in one file replaced by another.
fn edited(archive: &[u8], path: &str, from: &str, to: &str) -> Vec<u8> {
    let read = Archive::examine(Cursor::new(archive), &Limits::default()).unwrap();
    let (mut zip, mut directory, mut count) = (Vec::new(), Vec::new(), 0_u16);
    for file in read.files() {
        let mut bytes = Vec::new();
        read.read(&file.path).unwrap().read_to_end(&mut bytes).unwrap();
        if file.path == path {
            let text = String::from_utf8(bytes).unwrap();
            assert!(text.contains(from), "{text}");
            bytes = text.replace(from, to).into_bytes();
        }
        let size = u32::try_from(bytes.len()).unwrap().to_le_bytes();
        let name = file.path.as_bytes();
        let mut head = vec![20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0];
        head.extend(crc32(&bytes).to_le_bytes());
        head.extend([size, size].concat());
        head.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
        head.extend([0, 0]);
        directory.extend([b"PK\x01\x02\x14\x00".as_slice(), &head, &[0; 10]].concat());
        directory.extend(u32::try_from(zip.len()).unwrap().to_le_bytes());
        directory.extend(name);
        zip.extend([b"PK\x03\x04".as_slice(), &head, name, &bytes].concat());
        count += 1;
    }
    let (at, len) = (u32::try_from(zip.len()).unwrap(), u32::try_from(directory.len()).unwrap());
    zip.extend(directory);
    zip.extend([b"PK\x05\x06\0\0\0\0".as_slice(), &[count.to_le_bytes(), count.to_le_bytes()].concat()].concat());
    zip.extend([len.to_le_bytes(), at.to_le_bytes()].concat());
    zip.extend([0, 0]);
    zip
}

#[test]
fn a_session_of_everything_comes_back_whole_and_makes_the_same_archive_again() {
    let (here, there) = (store(), store());
    furnish(&here, "s");
    let archive = archive_of(&here, "s", false);
    let taken = take(&there, &archive);
    assert!(taken.created && taken.invented.is_empty() && taken.not_placed.is_empty(), "{taken:?}");
    assert_eq!(all_of(&there, "s"), all_of(&here, "s"));
    assert!(archive_of(&there, "s", false) == archive);
    assert!(archive_of(&there, "s", true).len() < archive.len());
}

#[test]
fn a_change_on_the_way_wins_and_once_is_enough() {
    let id = "s_0199a0b0c0d070008000000000000001";
    let (here, there) = (store(), store());
    furnish(&here, id);
    let whole = archive_of(&here, id, false);
    let changed = edited(&whole, "session/history.json", "\"right\"", "\"wrong\"");
    let same = edited(&whole, "session/history.json", "\"right\"", "\"right\"");
    let taken = take(&there, &changed);
    assert_eq!(taken.session_id.as_str(), id);
    assert!(taken.remarks.iter().any(|remark| remark.contains("session/history.json")), "{taken:?}");
    let said = |store: &Banyan, entry: &str| {
        let entry = call(store, "get-message", json!({"session_id": id, "entry_id": entry}));
        (entry["entry"]["message"]["content"][0]["text"].clone(), entry["entry"]["revision"].clone())
    };
    assert_eq!(said(&there, "u3"), (json!("wrong"), json!(0)));
    // Where the session is, the change is a new revision of the message, and nothing else changes.
    let before = said(&here, "a3");
    let taken = take(&here, &changed);
    assert_eq!((taken.created, taken.added, taken.updated), (false, 0, 1), "{taken:?}");
    assert_eq!((said(&here, "u3"), said(&here, "a3")), ((json!("wrong"), json!(1)), before));
    let after = all_of(&here, id);
    assert_eq!(take(&here, &changed).updated, 0);
    assert_eq!(all_of(&here, id), after);
    // Packed in another way it is still the same archive.
    let other = store();
    assert!(take(&other, &same).remarks.iter().any(|remark| remark.contains("own records were taken")));
}

#[test]
fn data_comes_back_to_where_it_was() {
    let there = store();
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../banyan-formats/tests/fixtures/opa/py_data_index.opa");
    let taken = take(&there, &std::fs::read(sample).unwrap());
    assert!(taken.attachments >= 2, "{taken:?}");
    for plain in [true, false] {
        let archive = archive_of(&there, taken.session_id.as_str(), plain);
        let read = Archive::examine(Cursor::new(&archive), &Limits::default()).unwrap();
        for path in ["data/INDEX.json", "data/q1/north.csv"] {
            assert!(read.file(path).is_some(), "{path}: {:?}", read.files());
        }
        let again = store();
        assert_eq!(take(&again, &archive).attachments, taken.attachments);
    }
}

#[test]
fn an_archive_that_is_refused_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.limits.max_attachment_bytes = 8;
    let small = Banyan::open(dir.path(), options).unwrap();
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../banyan-formats/tests/fixtures/opa/spec_full.opa");
    let bytes = std::fs::read(sample).unwrap();
    let refused = block_on(small.import(&mut Cursor::new(bytes), Mode::Write)).unwrap_err();
    assert_eq!(refused.code.as_str(), "session/too_large");
    assert_eq!(call(&small, "list", json!({}))["sessions"], json!([]));
    let blobs = dir.path().join(".banyan/blobs");
    let left = std::fs::read_dir(&blobs).map(|dirs| dirs.count()).unwrap_or_default();
    assert_eq!(left, 0);
}

#[test]
fn given_tenants_when_one_imports_an_archive_then_the_session_is_its_own_and_nobody_elses_is_touched() {
    let all = store();
    let tenant = |store: &Banyan, name: &str| {
        let scope = Scope::of(json!({"tenant": name}).as_object().cloned().unwrap());
        store.with_access(Access { scope, read_only: false })
    };
    let (ann, bob) = (tenant(&all, "ann"), tenant(&all, "bob"));
    furnish(&ann, "s");
    let archive = archive_of(&ann, "s", false);
    let before = all_of(&ann, "s");
    let refused = block_on(bob.import(&mut Cursor::new(archive.clone()), Mode::Write)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::NotFound, "the id is taken");
    assert_eq!(all_of(&ann, "s"), before);
    assert!(take(&ann, &archive).unchanged > 0);
    let elsewhere = tenant(&store(), "bob");
    assert_eq!(take(&elsewhere, &archive).invented[0].note, "`tenant` is that of the one who imports");
    assert_eq!(call(&elsewhere, "get", json!({"session_id": "s"}))["meta"]["metadata"]["tenant"], "bob");
}
