//! Damaged directories: what is lost is never more than what was damaged, and damaged text is never served.

mod support;

use std::path::Path;
use std::sync::Arc;

use banyan::model::Position;
use banyan::verify::verify;
use banyan::{Banyan, Delivery, Options, Start, Subscribe};
use banyan_log::disk::MemDisk;
use serde_json::{Value, json};
use support::*;
use tempfile::TempDir;

fn door(store: &Banyan) -> &dyn Door {
    store
}

const TEXTS: [&str; 6] = ["zero", "one", "two", "three", "four", "five"];

/// A closed directory: `mine` says six things, `other` says two.
fn written() -> TempDir {
    let on_disk = OnDisk::new();
    let store = door(&on_disk.store);
    store.ok("ensure", json!({"session_id": "mine", "title": "Title", "metadata": {"owner": "u"}}));
    store.ok("ensure", json!({"session_id": "other", "title": "Other"}));
    for (n, said) in TEXTS.iter().enumerate() {
        store.append(&json!("mine"), json!({"message": user(said), "entry_id": format!("e{n}"), "origin": {"n": n}}));
    }
    store.say(&json!("other"), "untouched");
    on_disk.close()
}

/// The other session is as it always was.
fn check_other(store: &Banyan) {
    assert_eq!(door(store).path(&json!("other")), ["untouched"]);
    assert_eq!(door(store).meta(&json!("other"))["title"], "Other");
}

/// Changes a byte within a line of `mine`, at the first place of a text.
fn spoil(dir: &Path, text: &str) -> usize {
    let mut lines = lines_of(dir, "mine");
    let (number, line) = lines.iter_mut().enumerate().find(|(_, line)| line.contains(text)).unwrap();
    *line = line.replacen(text, &text.replacen(|_: char| true, "X", 1), 1);
    write_lines(dir, "mine", &lines);
    number + 1
}

#[test]
fn a_damaged_message_is_left_out_and_what_follows_it_is_answered() {
    for (n, damaged) in TEXTS.iter().enumerate() {
        let dir = written();
        let line = spoil(dir.path(), &format!("\"{damaged}\"").replace('"', ""));
        let (store, warnings) = open_hearing_warnings(dir.path());
        let id = json!("mine");
        let rest: Vec<&str> = TEXTS.into_iter().filter(|said| said != damaged).collect();
        assert_eq!(door(&store).path(&id), rest);
        let entry = format!("e{n}");
        assert_eq!(door(&store).ok("get-message", json!({"session_id": id, "entry_id": entry})), Value::Null);
        assert_eq!(door(&store).meta(&id)["title"], "Title");
        assert!(warnings.all().iter().any(|warning| warning.contains("mine") && warning.contains(&format!("line {line}"))), "{:?}", warnings.all());
        let next = door(&store).ok("append", json!({"session_id": id, "message": user("next")}));
        assert_eq!(next["parent_id"], "e5", "the next append follows the old leaf");
        check_other(&store);
        drop(store);
        let store = open(dir.path());
        assert_eq!(door(&store).path(&id), [rest, vec!["next"]].concat());
        let report = { drop(store); verify(dir.path(), &()).unwrap() };
        let found = |finding: &&banyan::verify::Finding| finding.file == "mine.jsonl" && finding.line == Some(line as u64);
        assert!(!report.is_sound() && report.findings.iter().any(|finding| found(&finding)), "{report:?}");
    }
}

#[test]
fn a_line_of_which_nothing_can_be_read_is_passed_over() {
    for line in 1..=6 {
        let dir = written();
        let mut lines = lines_of(dir.path(), "mine");
        lines[line] = "#".repeat(lines[line].len());
        write_lines(dir.path(), "mine", &lines);
        let store = open(dir.path());
        let rest: Vec<&str> = TEXTS.iter().enumerate().filter(|(n, _)| n + 1 != line).map(|(_, said)| *said).collect();
        assert_eq!(door(&store).path(&json!("mine")), rest);
        door(&store).say(&json!("mine"), "next");
        assert_eq!(door(&store).path(&json!("mine")), [rest, vec!["next"]].concat());
        check_other(&store);
    }
}

#[test]
fn a_damaged_first_record_does_not_hide_the_session() {
    let whole = |lines: &mut Vec<String>| lines[0] = "#".repeat(lines[0].len());
    let title = |lines: &mut Vec<String>| lines[0] = lines[0].replacen("Title", "Xitle", 1);
    let gone = |lines: &mut Vec<String>| drop(lines.remove(0));
    for damage in [&whole as &dyn Fn(&mut Vec<String>), &title, &gone] {
        let dir = written();
        let mut lines = lines_of(dir.path(), "mine");
        damage(&mut lines);
        write_lines(dir.path(), "mine", &lines);
        let mut store = open(dir.path());
        for _ in 0..2 {
            assert_eq!(door(&store).path(&json!("mine")), TEXTS);
            let meta = door(&store).meta(&json!("mine"));
            assert_eq!((&meta["session_id"], &meta["message_count"]), (&json!("mine"), &json!(6)));
            assert_ne!(meta["title"], "Xitle", "damaged text is not served");
            assert_eq!(door(&store).ok("list", json!({}))["sessions"].as_array().unwrap().len(), 2);
            assert_eq!(door(&store).ok("ensure", json!({"session_id": "mine"}))["created"], false);
            check_other(&store);
            store.close().unwrap();
            drop(store);
            store = open(dir.path());
        }
        door(&store).ok("set-meta", json!({"session_id": "mine", "title": "Again"}));
        door(&store).say(&json!("mine"), "next");
        drop(store);
        let store = open(dir.path());
        assert_eq!(door(&store).meta(&json!("mine"))["title"], "Again");
        assert_eq!(door(&store).path(&json!("mine")).last().unwrap(), "next");
    }
}

/// What a store in memory finds in a directory's files.
fn in_memory(files: &std::collections::BTreeMap<std::path::PathBuf, Vec<u8>>) -> Banyan {
    let disk = MemDisk::new();
    for (name, bytes) in files {
        disk.write_file(name.to_str().unwrap(), bytes);
    }
    Banyan::open_on(Arc::new(disk), None, Options::default()).unwrap()
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

#[test]
fn whichever_byte_is_changed_only_its_record_is_lost() {
    let files = files_in(written().path());
    let mine = Path::new("mine.jsonl");
    let length = files[mine].len();
    for at in (0..length).step_by(11) {
        let mut files = files.clone();
        let bytes = files.get_mut(mine).unwrap();
        let (was, now) = (bytes[at], if bytes[at] == b'x' { b'y' } else { b'x' });
        bytes[at] = now;
        let store = in_memory(&files);
        let lost = TEXTS.len() - door(&store).path(&json!("mine")).len();
        assert!(lost <= if was == b'\n' { 2 } else { 1 }, "byte {at} of {length}: {lost} messages lost");
        check_mine(&store, &format!("byte {at}"));
    }
}

#[test]
fn wherever_a_file_is_cut_its_beginning_is_there() {
    let files = files_in(written().path());
    let mine = Path::new("mine.jsonl");
    let whole = files[mine].clone();
    let first = whole.iter().position(|byte| *byte == b'\n').unwrap();
    for length in (first + 1..whole.len()).step_by(13) {
        let mut files = files.clone();
        files.get_mut(mine).unwrap().truncate(length);
        let lines = whole[..length].iter().filter(|byte| **byte == b'\n').count();
        let store = in_memory(&files);
        let path = door(&store).path(&json!("mine"));
        assert_eq!(path[..], TEXTS[..path.len()]);
        assert!(path.len() == lines - 1 || path.len() == lines, "cut at {length}");
        check_mine(&store, &format!("cut at {length}"));
    }
}

#[test]
fn lines_that_are_lost_doubled_or_out_of_place_do_no_harm() {
    let lost = |lines: &mut Vec<String>| drop(lines.drain(2..4));
    let doubled = |lines: &mut Vec<String>| lines.insert(3, lines[2].clone());
    let swapped = |lines: &mut Vec<String>| lines.swap(3, 4);
    let blank = |lines: &mut Vec<String>| lines.insert(3, String::new());
    let foreign = |lines: &mut Vec<String>| lines.insert(3, r#"{"hello":"world"}"#.to_owned());
    for damage in [&lost as &dyn Fn(&mut Vec<String>), &doubled, &swapped, &blank, &foreign] {
        let dir = written();
        let mut lines = lines_of(dir.path(), "mine");
        damage(&mut lines);
        write_lines(dir.path(), "mine", &lines);
        let store = open(dir.path());
        let path = door(&store).path(&json!("mine"));
        assert!(path.len() >= 4 && path.last().unwrap() == "five" && path[0] == "zero", "{path:?}");
        let next = door(&store).ok("append", json!({"session_id": "mine", "message": user("next")}));
        assert_eq!(next["parent_id"], "e5");
        check_other(&store);
        drop(store);
        assert_eq!(door(&open(dir.path())).path(&json!("mine")), [path, vec!["next".to_owned()]].concat());
    }
}

#[test]
fn a_damaged_addition_never_leaves_half_a_text() {
    let on_disk = OnDisk::new();
    let store = door(&on_disk.store);
    store.ok("ensure", json!({"session_id": "mine"}));
    let entry = store.append(&json!("mine"), json!({"message": assistant("")}));
    for token in ["alpha ", "beta ", "gamma"] {
        store.ok("extend-message", json!({"session_id": "mine", "entry_id": entry, "text": token}));
    }
    let settled = on_disk.close();
    let lines = lines_of(settled.path(), "mine");
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.contains("beta")) {
        let dir = copied(settled.path());
        let mut lines = lines.clone();
        lines[at] = line.replacen("beta", "Xeta", 1);
        write_lines(dir.path(), "mine", &lines);
        let store = open(dir.path());
        let read = door(&store).path(&json!("mine"));
        assert!(read.is_empty() || read == ["alpha beta gamma"], "{read:?}");
        assert_eq!(door(&store).say(&json!("mine"), "next").is_string(), true);
    }
}

#[test]
fn a_fork_reads_past_damage_in_its_source_and_in_its_own_first_record() {
    let dir = written();
    let store = open(dir.path());
    let fork = door(&store).ok("fork", json!({"session_id": "mine", "entry_id": "e5", "title": "Forked"}))["session_id"].clone();
    door(&store).say(&fork, "own");
    store.close().unwrap();
    drop(store);
    let name = fork.as_str().unwrap();
    let mut lines = lines_of(dir.path(), name);
    lines[0] = lines[0].replacen("Forked", "Xorked", 1);
    write_lines(dir.path(), name, &lines);
    spoil(dir.path(), "three");
    let store = open(dir.path());
    let readable = ["zero", "one", "two", "four", "five", "own"];
    assert_eq!(door(&store).path(&fork), readable);
    assert_ne!(door(&store).meta(&fork)["title"], "Xorked");
    door(&store).ok("delete", json!({"session_id": "mine"}));
    drop(store);
    let store = open(dir.path());
    assert_eq!(door(&store).path(&fork), readable);
    check_other(&store);
}

#[test]
fn content_that_is_missing_or_damaged_is_never_served() {
    let on_disk = OnDisk::new();
    let store = door(&on_disk.store);
    let long = "long ".repeat(20_000);
    store.ok("ensure", json!({"session_id": "mine"}));
    for said in ["before", &long, "after"] {
        store.say(&json!("mine"), said);
    }
    let request = json!({"session_id": "mine", "name": "n", "mime": "m", "data": base64(b"attached")});
    let attachment = store.ok("put-attachment", request)["attachment"].clone();
    let closed = on_disk.close();
    let spoil = |path: &Path| {
        let mut bytes = std::fs::read(path).unwrap();
        bytes[3] ^= 1;
        std::fs::write(path, bytes).unwrap();
    };
    let remove = |path: &Path| std::fs::remove_file(path).unwrap();
    for damage in [&spoil as &dyn Fn(&Path), &remove] {
        let dir = copied(closed.path());
        for name in files_in(dir.path()).keys().filter(|name| name.starts_with(".banyan/blobs")) {
            damage(&dir.path().join(name));
        }
        let store = open(dir.path());
        let id = json!("mine");
        assert_eq!(door(&store).path(&id), ["before", "after"]);
        let listed = door(&store).ok("list-attachments", json!({"session_id": id}));
        assert_eq!(listed, json!({"attachments": [attachment]}));
        let request = json!({"session_id": id, "attachment_id": attachment["attachment_id"]});
        assert_eq!(door(&store).refused("get-attachment", request), "session/storage");
        door(&store).say(&id, "next");
        assert_eq!(door(&store).path(&id), ["before", "after", "next"]);
        drop(store);
        assert!(!verify(dir.path(), &()).unwrap().is_sound());
    }
}

#[test]
fn a_session_file_that_is_gone_is_a_session_that_is_gone() {
    let dir = written();
    std::fs::remove_file(file_of(dir.path(), "mine")).unwrap();
    let store = open(dir.path());
    assert_eq!(door(&store).ok("get", json!({"session_id": "mine"})), Value::Null);
    assert_eq!(door(&store).ok("list", json!({}))["sessions"].as_array().unwrap().len(), 1);
    check_other(&store);
    assert_eq!(door(&store).ok("ensure", json!({"session_id": "mine"}))["created"], true);
}

#[test]
fn files_of_other_programs_are_left_alone() {
    let dir = written();
    let foreign = [("notes.txt", "x"), ("empty.jsonl", ""), ("garbage.jsonl", "\u{0}\u{1}not a record\n"), ("%zz.jsonl", "{}\n"), ("x.jsonl.tmp", "{"), (".hidden", "y"),
        ("config.json", "{}"), ("list.jsonl", "[1,2]\n{\"a\":1}\n")];
    for (name, content) in foreign {
        std::fs::write(dir.path().join(name), content).unwrap();
    }
    std::fs::create_dir(dir.path().join("folder.jsonl")).unwrap();
    let store = open(dir.path());
    let listed = door(&store).ok("list", json!({}));
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 2, "{listed}");
    check_mine(&store, "beside other files");
    store.close().unwrap();
    for (name, content) in foreign {
        assert_eq!(std::fs::read_to_string(dir.path().join(name)).unwrap(), content, "{name}");
    }
}

#[test]
fn a_catalogue_that_is_missing_foreign_or_damaged_is_made_anew() {
    let closed = written();
    let listed = |dir: &Path| {
        let store = open(dir);
        let listed = door(&store).ok("list", json!({"metadata": {"owner": "u"}}));
        (door(&store).ok("list", json!({})), listed)
    };
    let expected = listed(copied(closed.path()).path());
    let catalogue = |dir: &Path| dir.join(".banyan/index/catalogue.sqlite");
    let foreign = std::fs::read(catalogue(OnDisk::new().close().path())).unwrap();
    let whole = std::fs::read(catalogue(closed.path())).unwrap();
    let no_folder = |dir: &Path| std::fs::remove_dir_all(dir.join(".banyan/index")).unwrap();
    let no_file = |dir: &Path| std::fs::remove_file(catalogue(dir)).unwrap();
    let other_store = |dir: &Path| std::fs::write(catalogue(dir), &foreign).unwrap();
    let garbage = |dir: &Path| std::fs::write(catalogue(dir), "this is no database at all".repeat(200)).unwrap();
    let empty = |dir: &Path| std::fs::write(catalogue(dir), "").unwrap();
    let cut = |dir: &Path| std::fs::write(catalogue(dir), &whole[..whole.len() / 2]).unwrap();
    let holes = |dir: &Path| {
        let mut bytes = whole.clone();
        for page in bytes.chunks_mut(4096).skip(1) {
            page.fill(0xee);
        }
        std::fs::write(catalogue(dir), bytes).unwrap();
    };
    for (what, damage) in [("no folder", &no_folder as &dyn Fn(&Path)), ("no file", &no_file), ("of another store", &other_store), ("garbage", &garbage), ("empty", &empty), ("cut", &cut), ("holes", &holes)] {
        let dir = copied(closed.path());
        damage(dir.path());
        assert_eq!(listed(dir.path()), expected, "{what}");
        assert_eq!(listed(dir.path()), expected, "{what}, once more");
        let store = open(dir.path());
        check_mine(&store, what);
        assert_eq!(door(&store).ok("list", json!({}))["sessions"][0]["session_id"], "mine");
    }
}

#[test]
fn a_catalogue_that_is_older_than_the_files_catches_up() {
    let old = written();
    let new = copied(old.path());
    let store = open(new.path());
    door(&store).say(&json!("mine"), "later");
    door(&store).ok("ensure", json!({"session_id": "new"}));
    door(&store).ok("delete", json!({"session_id": "other"}));
    let expected = door(&store).ok("list", json!({}));
    store.close().unwrap();
    drop(store);
    let catalogue = ".banyan/index/catalogue.sqlite";
    std::fs::copy(old.path().join(catalogue), new.path().join(catalogue)).unwrap();
    assert_eq!(door(&open(new.path())).ok("list", json!({})), expected);
}

#[test]
fn positions_are_not_given_twice_though_the_journal_and_the_catalogue_are_gone() {
    let dir = written();
    let store = open(dir.path());
    let head = store.head();
    let early = Ears::after(&store, Position::BEGINNING).heard();
    store.close().unwrap();
    drop(store);
    std::fs::remove_dir_all(dir.path().join(".banyan")).unwrap();
    let store = open(dir.path());
    assert!(store.head() >= head);
    let mut live = Ears::open(&store);
    door(&store).say(&json!("mine"), "new");
    let new = live.heard();
    assert!(new[0].position > early.last().unwrap().position);
    let mut back = Ears::after(&store, early[0].position);
    match back.next().unwrap() {
        Delivery::Resync => assert!(back.next().is_none()),
        other => panic!("the order is lost, so the subscriber must read again; not {other:?}"),
    }
    let filters = vec![filter("session::message-added", &json!({"session_id": "mine"})).unwrap()];
    let own = Ears::of(&store, Subscribe { filters, start: Start::After(early[0].position) }).heard();
    let expected: Vec<Heard> = early.iter().filter(|heard| heard.event_type == "session::message-added" && heard.payload["session_id"] == "mine").cloned().chain(new).collect();
    assert_eq!(own, expected, "one session's own stream can always be replayed whole");
}

#[test]
fn a_damaged_journal_is_never_passed_over_in_silence() {
    let closed = written();
    let store = open(closed.path());
    let all = Ears::after(&store, Position::BEGINNING).heard();
    store.close().unwrap();
    drop(store);
    let journal = files_in(closed.path()).into_iter().find(|(name, _)| name.starts_with(".banyan/journal")).unwrap();
    for at in (0..journal.1.len()).step_by(journal.1.len() / 6) {
        let dir = copied(closed.path());
        let mut bytes = journal.1.clone();
        bytes[at] ^= 0x10;
        std::fs::write(dir.path().join(&journal.0), bytes).unwrap();
        let store = open(dir.path());
        assert!(store.head().0 >= all.last().unwrap().position.commit.0, "positions are not given twice");
        let mut told = Vec::new();
        let mut resync = false;
        for delivery in Ears::after(&store, all[0].position).deliveries() {
            match delivery {
                Delivery::Event(event) => told.push(Heard::of(&event)),
                Delivery::Resync => resync = true,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(told[..], all[1..=told.len()], "byte {at}");
        assert!(resync || told.len() + 1 == all.len(), "byte {at}: {} of {} told, and no word of the rest", told.len(), all.len());
    }
}

#[test]
fn a_damaged_write_ahead_log_gives_what_comes_before_the_damage() {
    let on_disk = OnDisk::new();
    let store = door(&on_disk.store);
    store.ok("ensure", json!({"session_id": "other", "title": "Other"}));
    store.say(&json!("other"), "untouched");
    let on_disk = on_disk.reopened();
    let store = door(&on_disk.store);
    store.ok("ensure", json!({"session_id": "mine", "title": "Title"}));
    for said in TEXTS {
        store.say(&json!("mine"), said);
    }
    let killed = copied(on_disk.dir.path());
    let log = files_in(killed.path()).into_iter().filter(|(name, _)| name.starts_with(".banyan/wal"));
    let (name, bytes) = log.max_by_key(|(_, bytes)| bytes.iter().filter(|byte| **byte != 0).count()).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    for at in (0..used).step_by(used / 8) {
        let dir = copied(killed.path());
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x20;
        std::fs::write(dir.path().join(&name), bytes).unwrap();
        let store = open(dir.path());
        check_other(&store);
        if !door(&store).ok("get", json!({"session_id": "mine"})).is_null() {
            let path = door(&store).path(&json!("mine"));
            assert_eq!(path[..], TEXTS[..path.len()], "byte {at}");
            check_mine(&store, &format!("byte {at}"));
        }
    }
}

#[test]
fn a_sound_directory_is_found_sound() {
    let report = verify(written().path(), &()).unwrap();
    assert!(report.is_sound() && report.findings.is_empty(), "{report:?}");
    assert_eq!((report.sessions, report.records), (2, 9));
}
