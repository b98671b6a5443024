//! Lines that are broken, hostile or missing: set aside with their number and the reason, and the rest is read.

use banyan_formats::session_log::{Reader, read};
use serde_json::json;

use crate::given::{assistant, call, result, session, taken, user};

#[test]
fn given_broken_lines_when_a_log_is_read_then_each_is_set_aside_with_its_number_and_why() {
    let good = |seq: u64| {
        format!(
            r#"{{"schema_version":1,"seq":{seq},"time":"2026-01-01T00:00:00Z","type":"user","text":"t{seq}"}}"#
        )
    };
    let deep = format!(
        r#"{{"schema_version":1,"seq":8,"time":"2026-01-01T00:00:00Z","type":"tool_started","call_id":"c","name":"f","input":{}1{}}}"#,
        "[".repeat(5000),
        "]".repeat(5000)
    );
    let lines: Vec<(String, &str)> = vec![
        (good(1), ""),
        ("{\"schema_version\":1,".to_owned(), "not a JSON object"),
        ("[1,2]".to_owned(), "not a JSON object"),
        ("null".to_owned(), "not a JSON object"),
        (r#"{"schema_version":9,"seq":2,"type":"user","text":"x"}"#.to_owned(), "schema_version 9 is newer"),
        (r#"{"schema_version":1,"seq":2}"#.to_owned(), "no `type`"),
        (r#"{"schema_version":1,"seq":2,"time":"2026-01-01T00:00:00Z","type":"user"}"#.to_owned(), "no `text`"),
        (r#"{"schema_version":1,"seq":3,"time":"2026-01-01T00:00:00Z","type":"banyan_entry","entry":{"id":"e"}}"#.to_owned(), "`entry` cannot be read"),
        (r#"{"schema_version":1,"seq":4,"time":"2026-01-01T00:00:00Z","type":"user","text":"x","banyan":7}"#.to_owned(), "`banyan` cannot be read"),
        (r#"{"schema_version":1,"seq":5,"time":"2026-01-01T00:00:00Z","type":"user","text":"x","banyan":{"message":{"role":"nobody"}}}"#.to_owned(), "nobody"),
        (r#"{"schema_version":1,"seq":6,"time":"2026-01-01T00:00:00Z","type":"session_meta"}"#.to_owned(), "no `session_id`"),
        (r#"{"schema_version":1,"seq":7,"time":"2026-01-01T00:00:00Z","type":"tool_finished"}"#.to_owned(), "no `call_id`"),
        (deep, "`input`"),
        (good(9), ""),
    ];
    let text: Vec<&str> = lines.iter().map(|(line, _)| line.as_str()).collect();
    let log = read([text.join("\n").as_bytes(), b"\n\xff\xfe{}\n"].concat().as_slice()).unwrap();
    let expected: Vec<u64> =
        lines.iter().zip(1..).filter(|((_, why), _)| !why.is_empty()).map(|(_, at)| at).chain([15]).collect();
    let aside: Vec<u64> = log.report.aside.iter().map(|note| note.line.unwrap()).collect();
    assert_eq!(aside, expected, "{:#?}", log.report.aside);
    for (note, (_, why)) in log.report.aside.iter().zip(lines.iter().filter(|(_, why)| !why.is_empty())) {
        assert!(note.note.contains(why), "{note:?} should say {why}");
        assert!(note.note.len() < 700, "{note:?}");
    }
    assert!(log.report.aside.last().unwrap().note.contains("not UTF-8"));
    assert_eq!(log.entries.len(), 2);
    assert_eq!(log.report.lines, 15);
}

#[test]
fn given_a_log_without_its_first_line_when_it_is_read_then_the_session_gets_an_id_that_stays() {
    let log = session(&[user("a"), assistant(json!([]), "end")]).log();
    let (_, rest) = log.split_once('\n').unwrap();
    let (once, again) = (taken(rest), taken(rest));
    assert_eq!(once, again);
    assert_eq!(once.entries.len(), 2);
    assert_eq!(once.active_leaf, Some("e1".into()));
    assert!(once.report.invented.iter().any(|note| note.note.contains("no session_meta")));
}

#[test]
fn given_the_end_of_a_message_is_lost_when_the_log_is_read_then_what_is_known_of_it_is_there() {
    let whole = session(&[user("a"), assistant(json!([call("c")]), "function_call"), result("c", "x")]);
    let log: Vec<String> =
        whole.log().lines().filter(|line| !line.contains("assistant_finished")).map(str::to_owned).collect();
    let log = taken(&log.join("\n"));
    // The id is known from the lines before, and so is what the result follows.
    let ids: Vec<&str> = log.entries.iter().map(|entry| entry.id().as_str()).collect();
    assert_eq!(ids, ["e0", "e1", "e2"]);
    assert_eq!(log.entries, whole.entries);
    assert_eq!(log.report.aside[0].note, "by their seq, 1 lines are missing before this one");
}

#[test]
fn given_an_entry_twice_or_another_session_when_a_log_is_read_then_the_second_is_set_aside() {
    let log = session(&[user("a")]).log();
    let other =
        r#"{"schema_version":1,"seq":3,"time":"2026-01-01T00:00:00Z","type":"session_meta","session_id":"other"}"#;
    let entry = r#"{"schema_version":1,"seq":4,"time":"2026-01-01T00:00:00Z","type":"banyan_entry","entry":{"kind":"custom","id":"e0","parent_id":null,"timestamp":1,"revision":0,"custom_type":"t","data":1}}"#;
    let read = taken(&format!("{log}{other}\n{entry}\n"));
    let notes: Vec<&str> = read.report.aside.iter().map(|note| note.note.as_str()).collect();
    assert!(notes.iter().any(|note| note.contains("session `other` begins here")), "{notes:?}");
    assert!(notes.contains(&"entry `e0` is in the log already"), "{notes:?}");
    assert_eq!(read.entries.len(), 1);
}

#[test]
fn given_lines_longer_than_allowed_when_a_log_is_read_then_they_are_skipped_without_being_held() {
    let long = format!(r#"{{"schema_version":1,"seq":0,"type":"user","text":"{}"}}"#, "x".repeat(10_000));
    let good = r#"{"schema_version":1,"seq":1,"time":"2026-01-01T00:00:00Z","type":"user","text":"ok"}"#;
    let text = format!("{long}\n{good}\n{long}");
    let mut reader = Reader::with_longest_line(text.as_bytes(), 1000);
    let mut entries = 0;
    while reader.next_entry().unwrap().is_some() {
        entries += 1;
    }
    let log = reader.finish();
    assert_eq!((entries, log.report.lines), (1, 3));
    let aside: Vec<_> = log.report.aside.iter().map(|note| note.line).collect();
    assert_eq!(aside, [Some(1), Some(3)]);
}

#[test]
fn given_nothing_but_broken_lines_when_a_log_is_read_then_the_notes_are_bounded_and_counted() {
    let log = taken(&"?\n".repeat(5000));
    assert_eq!((log.report.aside.len(), log.report.more), (1000, 4000));
}
