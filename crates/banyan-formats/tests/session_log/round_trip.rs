use banyan_formats::redact::Redactor;
use banyan_model::SessionEntry;
use proptest::prelude::*;
use serde_json::Value;

use crate::given::{Session, any_session, taken};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn given_any_session_when_it_is_written_and_read_then_it_is_the_same(session in any_session()) {
        let log = taken(&session.log());
        prop_assert_eq!((&log.report.invented, &log.report.aside), (&Vec::new(), &Vec::new()));
        prop_assert_eq!(Session::of(log), session);
    }

    #[test]
    fn given_any_session_when_it_is_written_then_every_line_has_the_envelope_and_a_number_of_its_own(session in any_session()) {
        for (at, line) in session.log().lines().enumerate() {
            let line: Value = serde_json::from_str(line).unwrap();
            let keys: Vec<&String> = line.as_object().unwrap().keys().take(4).collect();
            prop_assert_eq!(keys, ["schema_version", "seq", "time", "type"]);
            prop_assert_eq!(&line["seq"], at as u64);
            prop_assert_eq!(&line["schema_version"], 1);
        }
    }

    #[test]
    fn given_any_session_when_its_log_is_cut_anywhere_then_what_is_left_is_read(session in any_session(), cut in any::<prop::sample::Index>()) {
        let log = session.log();
        let log = taken(&String::from_utf8_lossy(&log.as_bytes()[..cut.index(log.len() + 1)]));
        let mut seen = Vec::new();
        for entry in &log.entries {
            prop_assert!(entry.parent_id().is_none_or(|parent| seen.contains(&parent)), "parents come first");
            seen.push(entry.id());
        }
    }

    #[test]
    fn given_any_session_when_a_line_is_lost_then_the_entries_of_the_others_are_there(session in any_session(), lost in any::<prop::sample::Index>()) {
        let log = session.log();
        let lines: Vec<&str> = log.lines().collect();
        let lost = lost.index(lines.len());
        let broken: Vec<&str> = lines.iter().enumerate().map(|(at, line)| if at == lost { "{\"broken" } else { *line }).collect();
        let read = taken(&broken.join("\n"));
        prop_assert_eq!(read.report.aside[0].line, Some(lost as u64 + 1));
        let missing = session.entries.iter().filter(|entry| !read.entries.iter().any(|it| it.id() == entry.id()));
        prop_assert!(missing.count() <= 1);
    }

    #[test]
    fn given_a_log_that_was_tampered_with_when_what_is_read_is_written_then_it_is_read_as_the_same(
        session in any_session(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), "[\\PC]{0,3}|banyan|user|null|\"|e 1|\n"), 1..6),
    ) {
        let mut log = session.log();
        for (at, text) in changes {
            let mut at = at.index(log.len());
            while !log.is_char_boundary(at) {
                at -= 1;
            }
            let end = (at..=log.len()).skip(text.len().min(4)).find(|end| log.is_char_boundary(*end)).unwrap_or(log.len());
            log.replace_range(at..end, &text);
        }
        let read = Session::of(taken(&log));
        let again = taken(&read.log());
        prop_assert_eq!(&again.report.aside, &Vec::new());
        prop_assert_eq!(Session::of(again), read);
    }

    #[test]
    fn given_any_bytes_when_they_are_read_as_a_log_then_something_is_said(lines in prop::collection::vec(any::<Vec<u8>>(), 0..5)) {
        let log = banyan_formats::session_log::read(lines.join(&b'\n').as_slice()).unwrap();
        prop_assert!(log.report.aside.len() as u64 <= log.report.lines);
    }

    #[test]
    fn given_any_session_without_secrets_when_it_is_redacted_then_it_is_the_same(session in any_session()) {
        let mut redactor = Redactor::new();
        let clean: Vec<SessionEntry> = session.entries.iter().map(|entry| redactor.entry(entry.clone()).unwrap()).collect();
        if redactor.findings().is_empty() {
            prop_assert_eq!(clean, session.entries);
        }
    }
}
