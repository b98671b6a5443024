//! Fields that another version writes as something else: what a record says besides is taken all the same.

use std::fs;
use std::path::Path;

use crate::common::lines::read;
use crate::common::{Collected, copy, shown};
use serde_json::{Value, json};

/// What was said in all sessions.
fn said(all: &Collected) -> Vec<Vec<String>> {
    all.sessions.values().map(shown::transcript).collect()
}

/// Reads a copy of an agent's files, each line changed.
fn read_changed(agent: &str, change: &dyn Fn(&str) -> String) -> Collected {
    let home = tempfile::tempdir().unwrap();
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(agent), home.path());
    let mut changed = 0;
    let mut folders = vec![home.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for found in fs::read_dir(folder).unwrap().map(|found| found.unwrap().path()) {
            if found.is_dir() {
                folders.push(found);
            } else if found.extension().is_some_and(|is| is == "jsonl") {
                let before = fs::read_to_string(&found).unwrap();
                let after: String = before.lines().map(|line| change(line) + "\n").collect();
                changed += u32::from(after != before);
                fs::write(found, after).unwrap();
            }
        }
    }
    assert!(changed > 0, "{agent}: nothing was changed");
    read(agent, home.path())
}

#[test]
fn given_a_field_of_another_type_when_a_session_is_read_then_every_message_is_there() {
    let cases = [
        ("claude", "timestamp", json!(1_763_400_000_000_i64)),
        ("claude", "version", json!(3)),
        ("claude", "gitBranch", json!({"name": "main"})),
        ("claude", "isSidechain", json!("no")),
        ("codex", "timestamp", json!(1_763_400_000.5)),
        ("codex", "ordinal", json!("first")),
        ("copilot", "timestamp", json!([2026, 11])),
        ("qwen", "timestamp", json!(7)),
    ];
    for (agent, field, odd) in cases {
        let plain = read(agent, &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(agent));
        let put = |line: &str| {
            let mut record: Value = serde_json::from_str(line).unwrap();
            record[field] = odd.clone();
            record.to_string()
        };
        assert_eq!(said(&read_changed(agent, &put)), said(&plain), "{agent} {field}");
    }
}

#[test]
fn given_letters_that_are_escaped_when_a_session_is_read_then_they_are_the_same_letters() {
    for agent in ["claude", "codex", "copilot", "qwen", "pi"] {
        let plain = read(agent, &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(agent));
        let escape = |line: &str| {
            let kinds = ["user", "assistant", "message", "response_item", "session"];
            kinds.iter().fold(line.to_owned(), |line, kind| {
                let escaped = format!("\"type\":\"\\u00{:x}{}", kind.as_bytes()[0], &kind[1..]);
                line.replace(&format!("\"type\":\"{kind}"), &escaped)
            })
        };
        assert_eq!(said(&read_changed(agent, &escape)), said(&plain), "{agent}");
    }
}
