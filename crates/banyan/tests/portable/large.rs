//! Logs and archives that are too much for one commit.

use std::fmt::Write as _;
use std::future::Future;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use banyan::model::{EventFilter, EventType};
use banyan::{Delivery, Start, Subscribe};
use banyan_log::disk::{Fate, MemDisk};

use super::*;

const ID: &str = "s_large";
/// As many messages as make several parts.
const MESSAGES: usize = 16_000;

/// A log: a path, a branch, an entry whose text is long enough to be stored elsewhere.
fn large_log(messages: usize) -> String {
    let mut log = String::new();
    let mut line = |fields: Value| {
        let fields = fields.to_string();
        let time = "2026-01-02T03:04:05.000Z";
        let _ = writeln!(log, "{{\"schema_version\":1,\"time\":\"{time}\",{}", &fields[1..]);
    };
    line(json!({"type": "session_meta", "session_id": ID, "title": "Large"}));
    for at in 0..messages {
        // Half of it cannot be packed.
        let noise: String = (0..8).map(|n| blake3::hash(format!("{at} {n}").as_bytes()).to_string()).collect();
        let text = format!("message{at} {noise} {}", "of many words ".repeat(20));
        line(json!({"type": "user", "message_id": format!("e_{at:032x}"), "text": text}));
    }
    for (id, text) in [("side", "a branch".to_owned()), ("long", "long ".repeat(20_000))] {
        let entry = json!({"id": id, "parent_id": format!("e_{:032x}", 7), "timestamp": 5, "revision": 2,
            "kind": "message", "message": user(&text)});
        line(json!({"type": "banyan_entry", "entry": entry}));
    }
    log
}

/// What can be seen of the session.
fn seen(store: &Banyan) -> Value {
    let raw = |function: &str| -> Value {
        let request = json!({"session_id": ID}).to_string();
        let answer = block_on(store.store_call(&format!("session::store::{function}"), request.as_bytes()));
        serde_json::from_str(&answer.unwrap()).unwrap()
    };
    json!([
        call(store, "get", json!({"session_id": ID})),
        call(store, "list", json!({}))["sessions"],
        raw("list-entries"),
        raw("get-meta"),
    ])
}

fn nothing() -> Value {
    json!([null, [], {"entries": []}, null])
}

/// A file that says how much was read of it, before it gives the bytes.
struct Watched<F> {
    file: Cursor<Vec<u8>>,
    read: u64,
    at: F,
}

impl<F: FnMut(u64) -> io::Result<()>> Read for Watched<F> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = into.len().min(64 << 10);
        let read = self.file.read(&mut into[..most])?;
        self.read += read as u64;
        (self.at)(self.read)?;
        Ok(read)
    }
}

impl<F> Seek for Watched<F> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

fn watched<F>(file: impl Into<Vec<u8>>, at: F) -> BufReader<Watched<F>>
where
    F: FnMut(u64) -> io::Result<()>,
{
    BufReader::with_capacity(64 << 10, Watched { file: Cursor::new(file.into()), read: 0, at })
}

/// Fails when so much was read.
fn fails_at(bytes: u64) -> impl FnMut(u64) -> io::Result<()> {
    move |read| if read > bytes { Err(io::Error::other("the disk is gone")) } else { Ok(()) }
}

/// The files of sessions and of content.
fn files(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            match entry.file_type().unwrap().is_dir() {
                true if !matches!(name.as_str(), "index" | "journal" | "wal") => dirs.push(entry.path()),
                true => {}
                false => found.push(name),
            }
        }
    }
    found.retain(|name| !["lock", "format", "format.copy", "files", "reserve"].contains(&name.as_str()));
    found
}

#[test]
fn a_session_of_many_parts_is_the_same_elsewhere_by_log_and_by_archive_and_a_second_time_changes_nothing() {
    let here = store();
    let taken = import(&here, &large_log(MESSAGES), Mode::Write).unwrap();
    let messages = MESSAGES as u64 + 2;
    assert_eq!((taken.sessions[0].created, taken.sessions[0].added), (true, messages));
    let (whole, log) = (all_of(&here, ID), log_of(&here, ID));
    assert_eq!(whole["meta"]["meta"]["message_count"], messages);
    assert!(log.contains("message15999 "));
    for file in [log.clone().into_bytes(), opa::archive_of(&here, ID, false)] {
        let dir = tempfile::tempdir().unwrap();
        let there = Banyan::open(dir.path(), Options::default()).unwrap();
        let told = block_on(there.import(&mut Cursor::new(file.clone()), Mode::DryRun)).unwrap();
        assert_eq!(seen(&there), nothing());
        let taken = block_on(there.import(&mut Cursor::new(file.clone()), Mode::Write)).unwrap();
        assert_eq!(told.sessions, taken.sessions);
        assert_eq!((all_of(&there, ID), log_of(&there, ID)), (whole.clone(), log.clone()));
        let head = there.head();
        for mode in [Mode::DryRun, Mode::Write] {
            let again = block_on(there.import(&mut Cursor::new(file.clone()), mode)).unwrap();
            let session = &again.sessions[0];
            assert_eq!(
                (session.created, session.added, session.updated, session.unchanged),
                (false, 0, 0, messages)
            );
        }
        assert_eq!(there.head(), head);
        there.close().unwrap();
        assert_eq!(banyan::verify::verify(dir.path(), &()).unwrap().findings, []);
        let there = Banyan::open(dir.path(), Options::default()).unwrap();
        assert_eq!(all_of(&there, ID), whole);
        let found = call(&there, "search", json!({"query": "message4711", "wait_ms": 60_000}));
        assert_eq!(found["hits"][0]["entry_id"], format!("e_{:032x}", 4711));
    }
}

#[test]
fn an_archive_without_the_sessions_own_records_comes_in_parts_as_well() {
    let here = store();
    import(&here, &large_log(MESSAGES), Mode::Write).unwrap();
    let archive = opa::archive_of(&here, ID, true);
    let there = store();
    let taken = block_on(there.import(&mut Cursor::new(archive.clone()), Mode::Write)).unwrap();
    let id = taken.sessions[0].session_id.to_string();
    assert_eq!((taken.sessions[0].created, taken.sessions[0].added), (true, MESSAGES as u64));
    let text = |store: &Banyan, id: &str| -> Vec<Value> {
        let page = call(store, "messages", json!({"session_id": id, "limit": 200}));
        page["messages"].as_array().unwrap().iter().map(|item| item["message"]["content"].clone()).collect()
    };
    assert_eq!(text(&there, &id), text(&here, ID));
    let (before, head) = (log_of(&there, &id), there.head());
    let again = block_on(there.import(&mut Cursor::new(archive), Mode::Write)).unwrap();
    assert_eq!((again.sessions[0].unchanged, there.head()), (MESSAGES as u64, head));
    assert_eq!(log_of(&there, &id), before);
}

#[test]
fn nobody_sees_or_hears_anything_before_the_end() {
    let store = store();
    let filters = EventType::ALL.map(EventFilter::all).to_vec();
    let mut heard = store.subscribe(Subscribe { filters: filters.clone(), start: Start::Now }).unwrap();
    let begun = store.head();
    let mut looked = 0;
    let mut looking = watched(large_log(MESSAGES), |read| {
        if read > 6 << 20 {
            looked += 1;
            assert_eq!(seen(&store), nothing());
            assert!(heard.try_next().unwrap().is_none());
            let hits = call(&store, "search", json!({"query": "message5", "wait_ms": 0}));
            assert_eq!(hits["hits"], json!([]));
        }
        Ok(())
    });
    block_on(store.import(&mut looking, Mode::Write)).unwrap();
    drop(looking);
    assert!(looked > 10 && store.head().0 > begun.0 + 2, "it came in parts");
    // Those who come later hear the same.
    let mut later =
        store.subscribe(Subscribe { filters, start: Start::After(banyan::model::Position::BEGINNING) }).unwrap();
    for heard in [&mut heard, &mut later] {
        let mut kinds = Vec::new();
        while let Some(Delivery::Event(event)) = heard.try_next().unwrap() {
            kinds.push(event.event_type().as_str().to_owned());
        }
        assert_eq!(kinds, ["session::created"]);
    }
}

#[test]
fn what_is_refused_or_given_up_half_way_leaves_nothing() {
    let here = store();
    let log = large_log(MESSAGES);
    import(&here, &log, Mode::Write).unwrap();
    let archive = opa::archive_of(&here, ID, false);
    let dir = tempfile::tempdir().unwrap();
    let there = Banyan::open(dir.path(), Options::default()).unwrap();
    for file in [log.clone().into_bytes(), archive] {
        let mut all = 0;
        let mut input = watched(file.clone(), |read| {
            all = read;
            Ok(())
        });
        block_on(there.import(&mut input, Mode::DryRun)).unwrap();
        drop(input);
        let (before, mut input) = (there.head(), watched(file, fails_at(all - (1 << 20))));
        let refused = block_on(there.import(&mut input, Mode::Write)).unwrap_err();
        assert!(refused.message.contains("the disk is gone"), "{refused}");
        assert_eq!(seen(&there), nothing());
        assert!(there.head() > before, "a part was put");
    }
    // Somebody who does not wait for the answer.
    let mut input = Cursor::new(log.clone());
    let mut import_of_it = Box::pin(there.import(&mut input, Mode::Write));
    let mut context = Context::from_waker(Waker::noop());
    let before = there.head();
    while there.head() < before || there.head().0 < before.0 + 2 {
        assert!(pin!(&mut import_of_it).poll(&mut context).is_pending(), "it is given up before it ends");
    }
    drop(import_of_it);
    assert_eq!(seen(&there), nothing());
    there.close().unwrap();
    assert_eq!(files(dir.path()), Vec::<String>::new());
    let there = Banyan::open(dir.path(), Options::default()).unwrap();
    assert!(import(&there, &log, Mode::Write).unwrap().sessions[0].created);
    assert_eq!(log_of(&there, ID), log_of(&here, ID));
}

#[test]
fn a_power_cut_leaves_all_of_it_or_nothing() {
    let log = large_log(9_000);
    let options = || {
        let mut options = Options::default();
        options.log.background = false;
        options
    };
    let open = |disk: &MemDisk| Banyan::open_on(Arc::new(disk.clone()), None, options()).unwrap();
    let whole = {
        let disk = MemDisk::crashable(0);
        let store = open(&disk);
        import(&store, &log, Mode::Write).unwrap();
        (disk.ops(), log_of(&store, ID))
    };
    let (mut lost, mut kept) = (0, 0);
    let fates = [Fate::LoseUnsynced, Fate::KeepAll, Fate::TornLast].into_iter().cycle();
    let some = (8..whole.0 - 8).step_by(whole.0 as usize / 16);
    for (cut, fate) in some.chain(whole.0 - 8..whole.0 + 2).zip(fates) {
        let disk = MemDisk::crashable(cut);
        disk.crash_at(cut);
        let Ok(store) = Banyan::open_on(Arc::new(disk.clone()), None, options()) else { continue };
        let answered = import(&store, &log, Mode::Write).is_ok();
        drop(store);
        let after = disk.after_crash(fate);
        let store = open(&after);
        if seen(&store) == nothing() {
            assert!(!answered, "cut {cut}: what was answered is lost");
            lost += 1;
            assert!(!after.paths().iter().any(|path| path.ends_with("large.jsonl")), "cut {cut}: a part is left");
            assert!(import(&store, &log, Mode::Write).unwrap().sessions[0].created);
        } else {
            kept += 1;
        }
        assert_eq!(log_of(&store, ID), whole.1, "cut {cut}");
        store.close().unwrap();
        let blobs = after.paths().into_iter().filter(|path| path.contains("/blobs/")).count();
        assert_eq!(blobs, 1, "cut {cut}: only the content that is used is there");
    }
    assert!(lost > 3 && kept > 0, "{lost} lost, {kept} kept");
}

#[test]
fn what_is_new_to_a_session_is_added_however_large_the_log_is() {
    let store = store();
    import(&store, &large_log(MESSAGES / 2), Mode::Write).unwrap();
    let taken = import(&store, &large_log(MESSAGES), Mode::Write).unwrap();
    let session = &taken.sessions[0];
    let half = MESSAGES as u64 / 2;
    assert_eq!((session.created, session.added, session.unchanged), (false, half, half + 2));
    let other = self::store();
    import(&other, &large_log(MESSAGES), Mode::Write).unwrap();
    let tree =
        |store: &Banyan| call(store, "tree", json!({"session_id": ID}))["entries"].as_array().unwrap().len();
    assert_eq!(tree(&store), tree(&other));
}

#[test]
fn an_import_that_ended_is_not_taken_for_one_that_did_not_though_its_last_lines_are_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Banyan::open(dir.path(), Options::default()).unwrap();
    let store = open();
    import(&store, &large_log(MESSAGES), Mode::Write).unwrap();
    store.close().unwrap();
    drop(store);
    let file = dir.path().join(format!("{ID}.jsonl"));
    let whole = std::fs::read(&file).unwrap();
    let created = memchr_of(&whole, b"\"type\":\"created\"");
    for at in [created - 20, created + 30, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        std::fs::write(&file, &bytes).unwrap();
        for name in ["catalogue.sqlite", "catalogue.sqlite.sealed"] {
            let _ = std::fs::remove_file(dir.path().join(".banyan/index").join(name));
        }
        for _ in 0..2 {
            open().close().unwrap();
            let length = std::fs::metadata(&file).unwrap().len();
            assert!(length >= created as u64, "byte {at}: {length} of {} bytes are left", whole.len());
        }
        std::fs::write(&file, &whole).unwrap();
        let _ = std::fs::remove_dir_all(dir.path().join(".banyan/index"));
        assert_eq!(call(&open(), "get", json!({"session_id": ID}))["meta"]["session_id"], ID, "byte {at}");
    }
}

fn memchr_of(bytes: &[u8], needle: &[u8]) -> usize {
    bytes.windows(needle.len()).position(|window| window == needle).unwrap()
}
