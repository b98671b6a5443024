//! Files that grow between two imports.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Machine, fixtures};
use crate::common::said;

/// Where each agent's home lies below the user's, and a file in it.
const GROWING: [(&str, &str, &str); 7] = [
    (
        "codex",
        ".codex",
        "sessions/2026/11/15/rollout-2026-11-15T17-52-26-01a1e056-cb67-7272-a2a2-b98ab2fa24b7.jsonl",
    ),
    ("claude", ".claude", "projects/-home-dev-proj01/4d1d7e21-ec5d-406b-8fe3-0bf3cc616743.jsonl"),
    (
        "pi",
        ".pi/agent",
        "sessions/--home-dev-proj01--/2026-11-15T18-12-18-135Z_01a1e068-f856-7074-9100-6b6eec37c721.jsonl",
    ),
    ("gemini", ".gemini", "tmp/proj01/chats/session-2026-11-15T18-14-45b8522b.jsonl"),
    ("qwen", ".qwen", "projects/-home-dev-proj01/chats/4586710b-3abd-4b8f-ab3a-dc0410db29f5.jsonl"),
    ("copilot", ".copilot", "session-state/442599e6-4c73-4490-b966-8270a4a1b61d/events.jsonl"),
    ("cline", ".cline/data", "sessions/1794766734784_318s2/1794766734784_318s2.messages.json"),
];

#[test]
fn given_a_file_that_grew_when_it_is_imported_again_then_it_is_as_if_it_had_been_imported_at_once() {
    for (agent, home, name) in GROWING {
        let (pieces, whole) = (Machine::new(), Machine::new());
        copy(&fixtures(agent), &pieces.home().join(home));
        let file = pieces.home().join(home).join(name);
        for percent in [0, 1, 2, 3, 30, 60, 100] {
            grow(&file, &fixtures(agent).join(name), percent);
            let reports = pieces.import(&[agent]);
            assert!(reports.iter().all(|report| report["problem"].is_null()), "{reports:?}");
        }
        let mut at_once = whole.command(&["import", agent]);
        said(at_once.env("HOME", pieces.home()).current_dir(pieces.home())).ok();
        let (pieces, whole) = (everything(&pieces), everything(&whole));
        assert!(!whole.is_empty(), "{agent}");
        assert_eq!(pieces.len(), whole.len(), "{agent}");
        for (piece, wanted) in pieces.iter().zip(&whole) {
            assert_eq!(piece["meta"], wanted["meta"], "{agent}");
            assert_eq!(piece["tree"], wanted["tree"], "{agent}");
            assert_eq!(bodies(piece), bodies(wanted), "{agent}");
        }
    }
}

/// What the entries say. That a title was another one before is no part of that.
fn bodies(session: &Value) -> Vec<&str> {
    let lines = session["log"].as_array().unwrap().iter().map(|line| line.as_str().unwrap());
    lines.filter(|line| !line.contains("\"type\":\"session_renamed\"")).collect()
}

/// Writes a share of a file.
fn grow(file: &Path, sample: &Path, percent: usize) {
    let text = fs::read_to_string(sample).unwrap();
    let part = |all: usize| (all * percent).div_ceil(100);
    if sample.extension().is_some_and(|end| end == "json") {
        let mut object: Value = serde_json::from_str(&text).unwrap();
        let messages = object["messages"].as_array_mut().unwrap();
        messages.truncate(part(messages.len()));
        return fs::write(file, object.to_string()).unwrap();
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    fs::write(file, lines[..part(lines.len())].concat()).unwrap();
}

#[test]
fn given_a_console_that_says_more_when_aiders_file_is_imported_again_then_all_of_it_is_there() {
    let machine = Machine::new();
    let whole = fs::read_to_string(fixtures("aider").join(".aider.chat.history.md")).unwrap();
    let path = machine.home().join(".aider.chat.history.md");
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    // The last line of the first part is the middle of what the console says, and is odd only with what follows.
    let said = |machine: &Machine| -> String {
        let session =
            machine.run(&["ls", "--json"]).ok().ids().into_iter().find(|id| id.contains("182154")).unwrap();
        machine.run(&["show", &session]).ok().out
    };
    fs::write(&path, lines[..48].concat()).unwrap();
    machine.import(&["aider"]);
    assert!(!said(&machine).contains("Commit f99838c"));
    fs::write(&path, lines[..95].concat()).unwrap();
    machine.import(&["aider"]);
    assert!(said(&machine).contains("Commit f99838c"), "{}", said(&machine));
}

#[test]
fn given_files_without_a_record_when_they_are_imported_then_no_session_begins() {
    let machine = Machine::new();
    for (_, home, name) in &GROWING[..6] {
        let file = machine.home().join(home).join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "").unwrap();
    }
    machine.import(&["--yes"]);
    assert_eq!(everything(&machine), Vec::<Value>::new());
}

#[test]
fn given_a_thread_that_was_reverted_when_it_is_imported_again_then_what_follows_the_revert_is_the_active_path() {
    let revert = "sessions/2026/11/15/rollout-2026-11-15T17-54-11-01a1e058-62af-7830-b123-fd531c9636f3_01a1e058-6487-7e23-923c-0c4c1c8731af.jsonl";
    let (later, whole) = (Machine::new(), Machine::new());
    for machine in [&later, &whole] {
        copy(&fixtures("codex"), &machine.home().join(".codex"));
    }
    whole.import(&["codex"]);
    fs::remove_file(later.home().join(".codex").join(revert)).unwrap();
    later.import(&["codex"]);
    fs::copy(fixtures("codex").join(revert), later.home().join(".codex").join(revert)).unwrap();
    later.import(&["codex"]);
    let leaf = |machine: &Machine| {
        let id = "codex_01a1e058-62af-7830-b123-fd531c9636f3";
        machine.call("session::tree", &json!({"session_id": id}))["active_leaf"].clone()
    };
    assert_eq!(leaf(&later), leaf(&whole));
}

/// All that is to be seen of all sessions.
fn everything(machine: &Machine) -> Vec<Value> {
    let mut ids = machine.run(&["ls", "--json"]).ok().ids();
    ids.sort();
    ids.iter().map(|id| machine.all_of(id)).collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target: PathBuf = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), &target).unwrap()),
        }
    }
}
