//! Damage within a session's file.

use std::path::Path;

use banyan::verify::verify;
use serde_json::{Value, json};

use super::super::{TEXTS, check_mine, check_other, in_memory, written};
use crate::support::*;

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
        assert!(
            warnings
                .all()
                .iter()
                .any(|warning| warning.contains("mine") && warning.contains(&format!("line {line}"))),
            "{:?}",
            warnings.all()
        );
        let next = door(&store).ok("append", json!({"session_id": id, "message": user("next")}));
        assert_eq!(next["parent_id"], "e5", "the next append follows the old leaf");
        check_other(&store);
        drop(store);
        let store = open(dir.path());
        assert_eq!(door(&store).path(&id), [rest, vec!["next"]].concat());
        let report = {
            drop(store);
            verify(dir.path(), &()).unwrap()
        };
        let found =
            |finding: &&banyan::verify::Finding| finding.file == "mine.jsonl" && finding.line == Some(line as u64);
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
        let rest: Vec<&str> =
            TEXTS.iter().enumerate().filter(|(n, _)| n + 1 != line).map(|(_, said)| *said).collect();
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
        // With or without its line feed, the last line is whole.
        if whole[length - 1] == b'\n' || whole[length] == b'\n' {
            check_mine(&store, &format!("cut at {length}"));
            continue;
        }
        // It had more when it was registered, so what is left of its end stays until somebody decides.
        let next = json!({"session_id": "mine", "message": user("next")});
        assert_eq!(door(&store).refused("append", next), "session/storage", "cut at {length}");
        assert_eq!(door(&store).path(&json!("mine")), path, "cut at {length}");
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
        assert!(door(&store).say(&json!("mine"), "next").is_string());
    }
}

#[test]
fn a_fork_reads_past_damage_in_its_source_and_in_its_own_first_record() {
    let dir = written();
    let store = open(dir.path());
    let fork =
        door(&store).ok("fork", json!({"session_id": "mine", "entry_id": "e5", "title": "Forked"}))["session_id"]
            .clone();
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
fn a_fork_is_untouched_by_damage_to_its_sources_first_record() {
    let dir = written();
    let store = open(dir.path());
    let fork = door(&store).ok("fork", json!({"session_id": "mine", "entry_id": "e5"}))["session_id"].clone();
    store.close().unwrap();
    drop(store);
    let files = files_in(dir.path());
    let mine = Path::new("mine.jsonl");
    let first = files[mine].iter().position(|byte| *byte == b'\n').unwrap();
    for at in (0..first).step_by(5) {
        let mut files = files.clone();
        files.get_mut(mine).unwrap()[at] ^= 1;
        let store = in_memory(&files);
        assert_eq!(door(&store).path(&fork), TEXTS, "byte {at}");
        check_mine(&store, &format!("byte {at}"));
        assert_eq!(door(&store).path(&fork), TEXTS, "byte {at}");
    }
}
