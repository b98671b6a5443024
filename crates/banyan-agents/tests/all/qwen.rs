//! Qwen Code: genuine chats are read as they were lived, and written so that they come back.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::generate::{sessions, told};
use crate::common::lines::{read, same_when_cut};
use crate::common::transcript::transcript;
use crate::common::{Collected, copy};
use banyan_agents::{Destination, Outgoing, Written, agent};
use banyan_model::{AgentMessage, SessionEntry};
use proptest::prelude::*;
use serde_json::{Value, json};

const MAIN: &str = "qwen_4586710b-3abd-4b8f-ab3a-dc0410db29f5";
const CHILD: &str = "qwen_4586710b-3abd-4b8f-ab3a-dc0410db29f5.general-purpose-call_ae2a2ac71642469cbcdf3288";

fn fixtures(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn write(session: &Outgoing, home: &Path) -> Written {
    let to = Destination { home: home.to_owned(), cwd: "/home/dev/proj01".into(), now_ms: 1_800_000_000_000 };
    agent("qwen").unwrap().write(session, &to).unwrap()
}

fn line(uuid: &str, parent: Option<&str>, kind: &str, text: &str) -> Value {
    let role = if kind == "assistant" { "model" } else { "user" };
    json!({"uuid": uuid, "parentUuid": parent, "sessionId": "s", "timestamp": "2026-01-02T03:04:05.000Z", "type": kind,
        "cwd": "/p", "version": "0.24.4", "message": {"role": role, "parts": [{"text": text}]}})
}

/// A chat of these lines in a place of its own.
fn chat(lines: &[Value]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let chats = folder.path().join("projects/-p/chats");
    fs::create_dir_all(&chats).unwrap();
    let file = chats.join("s.jsonl");
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(&file, text).unwrap();
    (folder, file)
}

fn said(told: &Collected) -> Vec<String> {
    assert_eq!(told.sessions.len(), 1);
    transcript(&told.sessions.values().next().unwrap().outgoing())
}

#[test]
fn the_main_session_is_read_as_it_was_lived() {
    let all = read("qwen", &fixtures("qwen"));
    assert_eq!(all.sessions.keys().collect::<Vec<_>>(), [MAIN, CHILD]);
    assert_eq!(all.notes, []);
    let main = &all.sessions[MAIN];
    assert_eq!(main.head.title, "Please list the files. @@shell@@");
    for (key, value) in
        [("cwd", "/home/dev/proj01"), ("model", "qwen3-coder-plus"), ("version", "0.24.4"), ("git_branch", "main")]
    {
        assert_eq!(main.head.metadata[key], value);
    }
    let lines: Vec<String> =
        transcript(&main.outgoing()).into_iter().map(|line| line.chars().take(60).collect()).collect();
    assert_eq!(
        lines,
        [
            "user: Please list the files. @@shell@@",
            "assistant: I will run a tool.",
            "assistant calls run_shell_command call_8c6c17eced1d45e8937c0",
            "result of run_shell_command call_8c6c17eced1d45e8937c034b: C",
            "assistant: Final answer. The tool said: Command: echo hello-",
            "user: Read two things @@two@@",
            "assistant: I will run a tool.",
            "assistant calls run_shell_command call_9a2bf432c9454e51ae56e",
            "assistant calls read_file call_630fab088d8c4224a7ddbe81 {\"fi",
            "result of run_shell_command call_9a2bf432c9454e51ae56e528: C",
            "result of read_file call_630fab088d8c4224a7ddbe81: # Scratch",
            "assistant: Final answer. The tool said: # Scratch repo||Hell",
            "user: Think please @@thinkshell@@",
            "assistant thinks: Let me think: the user wants a scripted re",
            "assistant: I will run a tool.",
            "assistant calls run_shell_command call_ca7d778a0ee74e98bc80a",
            "result of run_shell_command call_ca7d778a0ee74e98bc80aee8: C",
            "assistant: Final answer. The tool said: Command: echo hello-",
            "user: Run a bad thing @@fail@@",
            "assistant: I will run a tool.",
            "assistant calls run_shell_command call_691f9c8ac85b46af99e43",
            "result of run_shell_command call_691f9c8ac85b46af99e43070 fa",
            "assistant: Final answer. The tool said: Command: echo bad-th",
            "user: Fail now @@err400@@",
            "assistant failed: 400 scripted error 400",
            "user: Go on after the error",
            "assistant failed: 400 scripted error 400",
            "compaction: <summary>FAKE SUMMARY: user asked scripted thing",
            "user: After compression, hello",
            "assistant: Reply to: [vendor text removed]..................",
            "user: Delegate @@sub@@",
            "assistant: I will run a tool.",
            "assistant calls agent call_ae2a2ac71642469cbcdf3288 {\"descri",
            "result of agent call_ae2a2ac71642469cbcdf3288: Final answer.",
            "assistant: Final answer. The tool said: Final answer. The to",
        ]
    );
}

#[test]
fn usage_is_on_the_answer() {
    let all = read("qwen", &fixtures("qwen"));
    let main = all.sessions[MAIN].outgoing();
    let first = main.path().into_iter().find_map(|entry| match entry {
        SessionEntry::Message(entry) => match entry.message.parse().unwrap() {
            AgentMessage::Assistant(message) => Some(message),
            _ => None,
        },
        SessionEntry::Custom(_) => None,
    });
    let usage = first.unwrap().usage.unwrap();
    assert_eq!((usage.input, usage.output, usage.cache_read), (Some(1220), Some(42), Some(300)));
}

#[test]
fn a_sub_agent_is_a_session_and_its_answers_are_whole() {
    let all = read("qwen", &fixtures("qwen"));
    let child = &all.sessions[CHILD];
    assert_eq!(child.head.metadata["parent_session_id"], MAIN);
    assert_eq!(child.head.metadata["parent_call_id"], "call_ae2a2ac71642469cbcdf3288");
    let lines = transcript(&child.outgoing());
    assert_eq!(lines.len(), 5);
    assert_eq!(child.entries.len(), 4, "text and call of one answer are one message");
}

#[test]
fn every_chat_can_be_read_in_two_goes() {
    let folder = tempfile::tempdir().unwrap();
    copy(&fixtures("qwen"), folder.path());
    for source in agent("qwen").unwrap().sources(folder.path()).unwrap() {
        same_when_cut("qwen", &source.path);
    }
}

#[test]
fn a_rewind_leaves_a_branch() {
    let (_folder, file) = chat(&[
        line("a", None, "user", "One"),
        line("b", Some("a"), "assistant", "Two"),
        line("c", Some("b"), "user", "Wrong"),
        json!({"uuid": "r", "parentUuid": "b", "sessionId": "s", "timestamp": "2026-01-02T03:04:05.000Z", "type": "system", "subtype": "rewind", "cwd": "/p", "version": "0.24.4", "systemPayload": {}}),
        line("d", Some("r"), "user", "Right"),
    ]);
    let told = read("qwen", &file);
    assert_eq!(said(&told), ["user: One", "assistant: Two", "user: Right"]);
    assert_eq!(told.sessions["qwen_s"].entries.len(), 5);
    same_when_cut("qwen", &file);
}

#[test]
fn a_fork_is_a_session_with_what_it_shares() {
    let mut lines = [line("a", None, "user", "One"), line("b", Some("a"), "assistant", "Two")];
    for line in &mut lines {
        line["forkedFrom"] = json!({"sessionId": "before", "messageUuid": line["uuid"]});
    }
    let [one, two] = lines;
    let title = json!({"uuid": "t", "parentUuid": "c", "sessionId": "s", "timestamp": "2026-01-02T03:04:05.000Z", "type": "system", "subtype": "custom_title", "systemPayload": {"customTitle": "Another way", "titleSource": "manual"}});
    let (_folder, file) = chat(&[one, two, line("c", Some("b"), "user", "Three"), title]);
    let told = read("qwen", &file);
    let head = &told.sessions["qwen_s"].head;
    assert_eq!(head.forked_from.as_ref().unwrap().as_str(), "qwen_before");
    assert_eq!(head.title, "Another way");
    assert_eq!(said(&told), ["user: One", "assistant: Two", "user: Three"]);
}

#[test]
fn a_line_whose_parent_was_torn_follows_the_line_before() {
    let (_folder, file) = chat(&[line("a", None, "user", "One"), line("b", Some("a"), "assistant", "Two")]);
    let mut text = fs::read_to_string(&file).unwrap();
    text.push_str("{\"uuid\":\"c\",\"parentUuid\":\"b\",\"sess");
    text.push_str(&format!("{}\n", line("d", Some("c"), "user", "Glued")));
    text.push_str("nonsense\n{\"type\":\"of another kind\"}\n");
    text.push_str(&format!("{}\n", line("d", Some("d"), "assistant", "Twice the id")));
    text.push_str(&format!("{}\n", line("e", Some("f"), "user", "Round")));
    text.push_str(&format!("{}\n", line("f", Some("e"), "user", "and round")));
    fs::write(&file, text).unwrap();
    let told = read("qwen", &file);
    let expected = [
        "user: One",
        "assistant: Two",
        "user: Glued",
        "assistant: Twice the id",
        "user: Round",
        "user: and round",
    ];
    assert_eq!(said(&told), expected);
    let places: Vec<&str> = told.notes.iter().map(|note| note.place.as_str()).collect();
    assert_eq!(places, ["line 3", "line 3", "line 4", "line 6", "line 7"]);
}

#[test]
fn injected_lines_are_not_what_the_human_typed() {
    let mut control = line("a", None, "user", "Go for the goal");
    control["provenance"] = "goal_control".into();
    let reminder = line("b", Some("a"), "user", "<system-reminder>mind</system-reminder>");
    let (_folder, file) = chat(&[control, reminder, line("c", Some("b"), "user", "Real")]);
    let told = read("qwen", &file);
    assert_eq!(
        said(&told),
        [
            "qwen.goal_control: Go for the goal",
            "qwen.system_reminder: <system-reminder>mind</system-reminder>",
            "user: Real"
        ]
    );
    assert_eq!(told.sessions["qwen_s"].head.title, "Real");
}

#[test]
fn lines_of_its_own_come_back_as_they_were() {
    let all = read("qwen", &fixtures("qwen"));
    let home = tempfile::tempdir().unwrap();
    let written = write(&all.sessions[MAIN].outgoing(), home.path());
    assert_eq!(written.lost, Vec::<String>::new());
    assert_eq!(written.command, ["qwen", "--resume", "4586710b-3abd-4b8f-ab3a-dc0410db29f5"]);
    let lines = |path: &Path| -> Vec<Value> {
        let text = fs::read_to_string(path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let original = lines(&PathBuf::from(all.sessions[MAIN].head.metadata["source"].as_str().unwrap()));
    let mut again = lines(&written.paths[0]);
    for line in &mut again {
        line.as_object_mut().unwrap().shift_remove("x_banyan");
    }
    let title = again.pop().unwrap();
    assert_eq!(title["systemPayload"]["customTitle"], "Please list the files. @@shell@@");
    assert_eq!(again, original);
}

#[test]
fn the_same_session_comes_back_from_its_own_agent() {
    let all = read("qwen", &fixtures("qwen"));
    for (id, session) in &all.sessions {
        let home = tempfile::tempdir().unwrap();
        let session = session.outgoing();
        let written = write(&session, home.path());
        let back = read("qwen", &written.paths[0]);
        let back = back.sessions[id].outgoing();
        let entries = |session: &Outgoing| -> Vec<_> {
            session
                .path()
                .into_iter()
                .map(|entry| (entry.id().clone(), crate::common::transcript::lines(entry)))
                .collect()
        };
        assert_eq!(entries(&back), entries(&session));
        let second = write(&session, home.path());
        assert_ne!(second.native_id, written.native_id);
    }
}

#[test]
fn what_the_agent_adds_is_an_append() {
    let all = read("qwen", &fixtures("qwen-minimal"));
    let mut session = all.sessions.values().next().unwrap().outgoing();
    session.meta.session_id = "s_ours".into();
    session.meta.metadata = None;
    for entry in &mut session.entries {
        let SessionEntry::Message(entry) = entry else { continue };
        entry.origin = None;
    }
    let home = tempfile::tempdir().unwrap();
    let written = write(&session, home.path());
    let mut text = fs::read_to_string(&written.paths[0]).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    text.push_str(&format!("{}\n", line("new", last["uuid"].as_str(), "user", "More")));
    fs::write(&written.paths[0], text).unwrap();
    let back = read("qwen", home.path());
    let back = &back.sessions["s_ours"];
    assert_eq!(transcript(&back.outgoing()).last().unwrap(), "user: More");
    let ids: Vec<_> = session.path().into_iter().map(|entry| entry.id().clone()).collect();
    let read: Vec<_> = back.outgoing().path().into_iter().map(|entry| entry.id().clone()).collect();
    assert_eq!(read[..ids.len()], ids);
    assert_eq!(read.len(), ids.len() + 1);
    assert_eq!(back.head.title, session.meta.title);
    same_when_cut("qwen", &written.paths[0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn whatever_is_written_is_read_again(session in sessions()) {
        let home = tempfile::tempdir().unwrap();
        write(&session, home.path());
        let back = read("qwen", home.path());
        let back = &back.sessions[session.meta.session_id.as_str()];
        prop_assert_eq!(told(&back.outgoing(), true), told(&session, true));
        prop_assert_eq!(&back.head.title, &session.meta.title);
        let known: Vec<_> = session.entries.iter().map(SessionEntry::id).collect();
        prop_assert!(back.entries.iter().all(|entry| known.contains(&entry.id())));
    }
}
