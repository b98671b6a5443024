//! pi: genuine sessions are read as they were lived, and written so that they come back.

use std::path::{Path, PathBuf};

use crate::common::Collected;
use crate::common::generate::{sessions, told};
use crate::common::lines::{assert_same, go_on, read, same_when_cut};
use crate::common::transcript::{lines, transcript};
use banyan_agents::{Destination, Outgoing, Written, agent};
use banyan_model::SessionEntry;
use proptest::prelude::*;
use serde_json::Value;

const ID: &str = "pi_01a1e068-f856-7074-9100-6b6eec37c721";
const MAIN: &str =
    "sessions/--home-dev-proj01--/2026-11-15T18-12-18-135Z_01a1e068-f856-7074-9100-6b6eec37c721.jsonl";
const BRANCHED: &str = "branched_with_label_custom_branch_summary.jsonl";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/pi").join(name)
}

fn write(session: &Outgoing, home: &Path) -> Written {
    let to = Destination { home: home.to_owned(), cwd: "/home/dev/proj01".into(), now_ms: 1_800_000_000_000 };
    agent("pi").unwrap().write(session, &to).unwrap()
}

#[test]
fn the_main_session_is_read_as_it_was_lived() {
    let all = read("pi", &fixture(MAIN));
    assert_eq!(all.notes, []);
    let session = all.sessions[ID].outgoing();
    let command = r#"{"command":"echo hello-from-tool; ls"}"#;
    let wanted = [
        "user: Please list the files. @@shell@@",
        "assistant: I will run a tool.",
        &format!("assistant calls bash toolu_01496047cc0a574d668da6d14a {command}"),
        "result of bash toolu_01496047cc0a574d668da6d14a: hello-from-tool|AGENTS.md|README.md|calc.py|",
        "assistant: Final answer. The tool said: hello-from-tool",
        "user: Read two things @@two@@",
        "assistant: I will run a tool.",
        &format!("assistant calls bash toolu_0195cbd3b46bc8463c88b3d133 {command}"),
        r#"assistant calls read toolu_01bfb825bb3eb1455aab072fa8 {"path":"/home/dev/proj01/README.md"}"#,
        "result of bash toolu_0195cbd3b46bc8463c88b3d133: hello-from-tool",
        "result of read toolu_01bfb825bb3eb1455aab072fa8: # Scratch repo",
        "assistant: Final answer. The tool said: ",
        "user: Think please @@thinkshell@@",
        "assistant thinks: Let me think: the user wants a scripted reply.",
        "assistant: I will run a tool.",
        &format!("assistant calls bash toolu_013466dbfe22b54ae1b43f0c08 {command}"),
        "result of bash toolu_013466dbfe22b54ae1b43f0c08: hello-from-tool",
        "assistant: Final answer. The tool said: ",
        "user: Run a bad thing @@fail@@",
        "assistant: I will run a tool.",
        r#"assistant calls bash toolu_01aad5bfcabbe9405bb8ae1701 {"command":"echo bad-thing >&2; exit 3"}"#,
        "result of bash toolu_01aad5bfcabbe9405bb8ae1701 failed: bad-thing|||Command exited with code 3",
        "assistant: Final answer. The tool said: bad-thing",
        "user: Fail now @@err400@@",
        "assistant failed: 400 {",
        "user: Go on after the error",
        "assistant: Reply to: Go on after the error",
        "user: <file name=\"/home/dev/a/pic.png\"></file>|Look at the picture",
        "user: [image/png]",
        "assistant: Reply to: <file",
        "user: Via chat completions @@thinkshell@@",
        "assistant thinks: Let me think: the user wants a scripted reply.",
        "assistant: I will run a tool.",
        &format!("assistant calls bash call_fae5c9a5d0aa434db0a88c4d {command}"),
        "result of bash call_fae5c9a5d0aa434db0a88c4d: hello-from-tool",
        "assistant: Final answer. The tool said: ",
        "pi.bashExecution: $ echo user-bash|user-bash|",
        "user: After the bash command",
        "assistant: Reply to: After the bash command",
        "compaction: <summary>FAKE SUMMARY",
        "user: After compaction, hello",
        "assistant: Reply to: After compaction, hello",
    ];
    let lived = transcript(&session);
    assert_eq!(lived.len(), wanted.len());
    for (line, wanted) in lived.iter().zip(wanted) {
        assert!(line.starts_with(wanted), "{line:?} is not {wanted:?}");
    }
    let head = &all.sessions[ID].head;
    assert_eq!(head.title, "My pi session");
    assert_eq!(head.created_at, 1_794_766_338_135);
    assert_eq!(head.metadata["cwd"], "/home/dev/proj01");
    assert_eq!(head.metadata["model"], "fake-model");
    assert_eq!(head.metadata["provider"], "fake");
}

#[test]
fn branches_stay_and_the_last_line_is_live() {
    let all = read("pi", &fixture(BRANCHED));
    assert_eq!(all.notes, []);
    let session = all.sessions[ID].outgoing();
    let lived = transcript(&session);
    let end =
        ["pi.branch_summary: Branch explored approach A", "user: On the new branch", "user: Continue on branch"];
    assert_eq!(lived[lived.len() - 4..lived.len() - 1], end);
    assert_eq!(lived.len(), 16);
    let everything: Vec<String> = session.entries.iter().flat_map(lines).collect();
    assert!(everything.contains(&"pi.custom_message: Injected context from extension".to_owned()));
    let kinds: Vec<&str> = session
        .entries
        .iter()
        .filter_map(|entry| match entry {
            SessionEntry::Custom(custom) => Some(custom.custom_type.as_str()),
            SessionEntry::Message(_) => None,
        })
        .collect();
    assert!(kinds.contains(&"pi.label") && kinds.contains(&"pi.custom") && kinds.contains(&"pi.model_change"));
}

#[test]
fn a_file_that_grows_is_read_as_if_at_once() {
    for name in [MAIN, BRANCHED] {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("s.jsonl");
        std::fs::copy(fixture(name), &file).unwrap();
        same_when_cut("pi", &file);
    }
}

#[test]
fn the_first_version_had_no_ids() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("2025-12-01T00-00-00-000Z_abc.jsonl");
    let text = [
        r#"{"type":"session","id":"abc","timestamp":"2025-12-01T00:00:00.000Z","cwd":"/w","provider":"anthropic","modelId":"m"}"#,
        r#"{"type":"message","timestamp":"2025-12-01T00:00:01.000Z","message":{"role":"user","content":"hello","timestamp":1764547201000}}"#,
        r#"{"type":"message","timestamp":"2025-12-01T00:00:02.000Z","message":{"role":"assistant","content":[{"type":"text","text":"hi"}],"api":"anthropic-messages","provider":"anthropic","model":"m","usage":{"input":1,"output":1,"cacheRead":0,"cacheWrite":0,"cost":{"total":0.5}},"stopReason":"stop","timestamp":1764547202000}}"#,
    ];
    std::fs::write(&file, text.join("\n") + "\n").unwrap();
    let all = read("pi", &file);
    assert_eq!(transcript(&all.sessions["pi_abc"].outgoing()), ["user: hello", "assistant: hi"]);
    assert_eq!(all.sessions["pi_abc"].head.title, "hello");
    same_when_cut("pi", &file);
    let other = tempfile::tempdir().unwrap();
    let written = write(&all.sessions["pi_abc"].outgoing(), other.path());
    let again = read("pi", &written.paths[0]);
    assert_eq!(transcript(&again.sessions["pi_abc"].outgoing()), ["user: hello", "assistant: hi"]);
    let text = std::fs::read_to_string(&written.paths[0]).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert!(last["id"].is_string() && last["parentId"].is_string());
}

#[test]
fn damage_costs_only_what_is_damaged() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("s.jsonl");
    let whole = std::fs::read_to_string(fixture(MAIN)).unwrap();
    let mut parts: Vec<String> = whole.lines().map(str::to_owned).collect();
    // The user's second question is torn, and the answer is glued to it, as an older pi does.
    parts[8] = format!("{}{}", &parts[7][..60], parts[8]);
    parts.remove(7);
    parts[10].truncate(50);
    std::fs::write(&file, parts.join("\n") + "\n").unwrap();
    let mut all = Collected::default();
    go_on(agent("pi").unwrap(), &file, None, &mut all);
    let lived = transcript(&all.sessions[ID].outgoing());
    assert_eq!(lived.len(), 40);
    assert_eq!(lived[5], "assistant: I will run a tool.");
    let notes: Vec<(&str, bool)> = all.notes.iter().map(|note| (note.place.as_str(), note.lost)).collect();
    assert_eq!(notes, [("line 8", false), ("line 8", true), ("line 11", true), ("line 12", false)]);
}

#[test]
fn a_session_goes_back_line_by_line() {
    for name in [MAIN, BRANCHED] {
        let all = read("pi", &fixture(name));
        let session = all.sessions[ID].outgoing();
        let home = tempfile::tempdir().unwrap();
        let written = write(&session, home.path());
        assert_eq!(written.lost, [""; 0]);
        let before = std::fs::read_to_string(fixture(name)).unwrap();
        let after = std::fs::read_to_string(&written.paths[0]).unwrap();
        let bare = |line: &str| {
            let mut value: Value = serde_json::from_str(line).unwrap();
            value.as_object_mut().unwrap().remove("x_banyan");
            value.to_string()
        };
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(bare).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&before), sorted(&after));
        assert_eq!(bare(before.lines().last().unwrap()), bare(after.lines().last().unwrap()));
        let again = read("pi", &written.paths[0]);
        assert_eq!(transcript(&again.sessions[ID].outgoing()), transcript(&session));
        if name == MAIN {
            let mut again = again;
            let head = &mut again.sessions.get_mut(ID).unwrap().head;
            head.metadata.insert("source".to_owned(), all.sessions[ID].head.metadata["source"].clone());
            assert_same(&again, &all, name);
        }
        assert_ne!(write(&session, home.path()).native_id, written.native_id);
    }
}

#[test]
fn any_entry_can_be_the_live_one() {
    let all = read("pi", &fixture(BRANCHED));
    let mut session = all.sessions[ID].outgoing();
    for entry in all.sessions[ID].entries.iter().skip(1) {
        session.leaf = Some(entry.id().clone());
        let home = tempfile::tempdir().unwrap();
        let written = write(&session, home.path());
        let again = read("pi", &written.paths[0]);
        assert_eq!(again.notes, []);
        let again = again.sessions[ID].outgoing();
        assert_eq!(transcript(&again), transcript(&session));
        assert_eq!(again.entries.len(), session.entries.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_was_said_elsewhere_comes_back(session in sessions()) {
        let home = tempfile::tempdir().unwrap();
        write(&session, home.path());
        let all = read("pi", home.path());
        prop_assert_eq!(&all.notes, &[]);
        let again = all.sessions[session.meta.session_id.as_str()].outgoing();
        prop_assert_eq!(&again.meta.title, &session.meta.title);
        prop_assert_eq!(told(&again, true), told(&session, true));
        let known: Vec<_> = session.entries.iter().map(SessionEntry::id).collect();
        prop_assert!(again.entries.iter().skip(1).all(|entry| known.contains(&entry.id())));
    }
}

#[test]
fn a_mark_of_utf_8_before_the_first_line_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("marked.jsonl");
    let text = std::fs::read(fixture(BRANCHED)).unwrap();
    std::fs::write(&file, &text).unwrap();
    let plain = read("pi", &file);
    std::fs::write(&file, [&b"\xef\xbb\xbf"[..], &text].concat()).unwrap();
    let marked = read("pi", &file);
    assert_eq!(marked.notes, plain.notes);
    assert_same(&marked, &plain, "with a mark");
}
