//! Copilot CLI: a genuine session is read as it was lived, and written so that it comes back.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::generate::{sessions, told};
use crate::common::lines::{read, same_when_cut};
use crate::common::transcript::transcript;
use crate::common::{Collected, copy};
use banyan_agents::{Destination, Outgoing, Written, agent};
use banyan_model::{AgentMessage, ContentBlock, SessionEntry};
use proptest::prelude::*;
use serde_json::{Value, json};

const MAIN: &str = "copilot_442599e6-4c73-4490-b966-8270a4a1b61d";
const CHILD: &str = "copilot_77fc80e2-3123-41cb-a7ef-15d27060251f";

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/copilot")
}

fn write(session: &Outgoing, home: &Path) -> Written {
    let to = Destination { home: home.to_owned(), cwd: "/home/dev/proj01".into(), now_ms: 1_800_000_000_000 };
    agent("copilot").unwrap().write(session, &to).unwrap()
}

fn event(id: &str, parent: Option<&str>, kind: &str, data: Value) -> Value {
    json!({"type": kind, "data": data, "id": id, "timestamp": "2026-01-02T03:04:05.000Z", "parentId": parent})
}

fn start() -> Value {
    event("0", None, "session.start", json!({"sessionId": "s", "version": 1, "context": {"cwd": "/p"}}))
}

/// A session of these events in a place of its own.
fn log(events: &[Value]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let session = folder.path().join("session-state/s");
    fs::create_dir_all(&session).unwrap();
    let file = session.join("events.jsonl");
    let text: String = events.iter().map(|event| format!("{event}\n")).collect();
    fs::write(&file, text).unwrap();
    (folder, file)
}

fn said(told: &Collected) -> Vec<String> {
    assert_eq!(told.sessions.len(), 1);
    transcript(&told.sessions.values().next().unwrap().outgoing())
}

fn short(session: &Outgoing) -> Vec<String> {
    transcript(session).into_iter().map(|line| line.chars().take(60).collect()).collect()
}

#[test]
fn the_main_session_is_read_as_it_was_lived() {
    let all = read("copilot", &fixtures());
    assert_eq!(all.sessions.keys().collect::<Vec<_>>(), [MAIN, CHILD]);
    assert_eq!(all.notes, []);
    let main = &all.sessions[MAIN];
    assert_eq!(main.head.title, "Please list the files. @@shell@@");
    let known = [
        ("cwd", "/home/dev/proj01"),
        ("model", "claude-sonnet-4"),
        ("version", "1.0.102"),
        ("git_branch", "main"),
        ("git_commit", "907ac20500a91c68d3184f7758ef2a160f6c52ab"),
    ];
    for (key, value) in known {
        assert_eq!(main.head.metadata[key], value);
    }
    assert_eq!(
        short(&main.outgoing()),
        [
            "user: Please list the files. @@shell@@",
            "copilot.system_message: [vendor text removed]...............",
            "assistant: I will run a tool.",
            "assistant calls bash toolu_016f1ca7ee0b844bc7b344885c {\"comm",
            "result of bash toolu_016f1ca7ee0b844bc7b344885c: hello-from-",
            "assistant: Final answer. The tool said: hello-from-tool|AGEN",
            "user: Read two things @@two@@",
            "assistant: I will run a tool.",
            "assistant calls bash toolu_01b22b377bb25143e2928b5f81 {\"comm",
            "assistant calls view toolu_01702d86f02c5d41d49f1243a2 {\"path",
            "result of view toolu_01702d86f02c5d41d49f1243a2: # Scratch r",
            "result of bash toolu_01b22b377bb25143e2928b5f81: hello-from-",
            "assistant: Final answer. The tool said: hello-from-tool|AGEN",
            "user: Think please @@thinkshell@@",
            "assistant thinks: Let me think: the user wants a scripted re",
            "assistant: I will run a tool.",
            "assistant calls bash toolu_01e8536b8df229464fab47e488 {\"comm",
            "result of bash toolu_01e8536b8df229464fab47e488: hello-from-",
            "assistant: Final answer. The tool said: hello-from-tool|AGEN",
            "user: Run a bad thing @@fail@@",
            "assistant: I will run a tool.",
            "assistant calls bash toolu_01943f720e655242f5b878d145 {\"comm",
            "result of bash toolu_01943f720e655242f5b878d145: bad-thing|<",
            "assistant: Final answer. The tool said: bad-thing|<shellId: ",
            "user: Fail now @@err400@@",
            "assistant failed: 400 scripted error 400",
            "user: Go on after the error",
            "assistant: Reply to: <current_datetime>2026-11-15T18:16:55.8",
            "user: Look at the picture @/home/dev/a/pic.png",
            "assistant: Reply to: t_datetime>2026-11-15T18:16:56.640+00:0",
            "user: Delegate @@sub@@",
            "assistant: I will run a tool.",
            "assistant calls task toolu_0123c917ef309d414093e2694b {\"desc",
            "result of task toolu_0123c917ef309d414093e2694b: Final answe",
            "assistant: Final answer. The tool said: Final answer. The to",
            "compaction: Reply to: [vendor text removed].................",
            "user: After compaction, hello",
            "copilot.system_message: [vendor text removed]...............",
            "assistant: Reply to: <current_datetime>2026-11-15T18:17:59.6",
        ]
    );
}

#[test]
fn usage_provider_and_signature_are_on_the_answer() {
    let all = read("copilot", &fixtures());
    let main = all.sessions[MAIN].outgoing();
    let answers = main.path().into_iter().filter_map(|entry| match entry {
        SessionEntry::Message(entry) => match entry.message.parse().unwrap() {
            AgentMessage::Assistant(message) => Some(message),
            _ => None,
        },
        SessionEntry::Custom(_) => None,
    });
    let answers: Vec<_> = answers.collect();
    let usage = answers[0].usage.clone().unwrap();
    assert_eq!(
        (usage.input, usage.output, usage.cache_read, usage.cache_write),
        (Some(1610), Some(42), Some(300), Some(100))
    );
    assert_eq!(
        (answers[0].provider.as_str(), answers[0].native_stop_reason.as_deref()),
        ("anthropic", Some("tool_calls"))
    );
    let signed = answers.iter().flat_map(|answer| &answer.content).find_map(|block| match block {
        ContentBlock::Thinking(thinking) => thinking.signature.clone(),
        _ => None,
    });
    assert_eq!(signed.unwrap(), "RkFLRV9TSUdOQVRVUkU=");
}

#[test]
fn a_sub_agent_is_a_session_that_knows_who_called_it() {
    let all = read("copilot", &fixtures());
    let child = &all.sessions[CHILD];
    assert_eq!(child.head.title, "child_task");
    assert_eq!(child.head.metadata["parent_session_id"], MAIN);
    assert_eq!(child.head.metadata["parent_call_id"], "toolu_0123c917ef309d414093e2694b");
    let lines = [
        "user: You are the child. Say hello. @@shell@@",
        "copilot.system_message: [vendor text removed]...............",
        "assistant: I will run a tool.",
        "assistant calls bash toolu_012a98867922a8401c862cf8f4 {\"comm",
        "result of bash toolu_012a98867922a8401c862cf8f4: hello-from-",
        "assistant: Final answer. The tool said: hello-from-tool|AGEN",
    ];
    assert_eq!(short(&child.outgoing()), lines);
}

#[test]
fn a_log_can_be_read_in_two_goes() {
    let folder = tempfile::tempdir().unwrap();
    copy(&fixtures(), folder.path());
    for source in agent("copilot").unwrap().sources(folder.path()).unwrap() {
        same_when_cut("copilot", &source.path);
    }
}

#[test]
fn a_new_name_is_seen_without_a_new_event() {
    let (_folder, file) = log(&[start(), event("1", Some("0"), "user.message", json!({"content": "One"}))]);
    let copilot = agent("copilot").unwrap();
    let before = copilot.sources(&file).unwrap().remove(0);
    let mut told = Collected::default();
    let mark = copilot.read(&before, None, &mut told).unwrap();
    assert_eq!(told.sessions["copilot_s"].head.title, "One");
    fs::write(file.with_file_name("workspace.yaml"), "id: s\nname: 'It''s: renamed'\nuser_named: true\n").unwrap();
    let after = copilot.sources(&file).unwrap().remove(0);
    assert_ne!(before.stamp, after.stamp);
    copilot.read(&after, Some(&mark), &mut told).unwrap();
    assert_eq!(told.sessions["copilot_s"].head.title, "It's: renamed");
}

#[test]
fn an_event_that_goes_back_makes_a_branch() {
    let (_folder, file) = log(&[
        start(),
        event("1", Some("0"), "user.message", json!({"content": "One"})),
        event("2", Some("1"), "assistant.message", json!({"content": "Two", "toolRequests": []})),
        event("3", Some("2"), "user.message", json!({"content": "Wrong"})),
        event("4", Some("2"), "user.message", json!({"content": "Right"})),
        event("5", Some("lost"), "assistant.message", json!({"content": "Fine"})),
    ]);
    let told = read("copilot", &file);
    assert_eq!(said(&told), ["user: One", "assistant: Two", "user: Right", "assistant: Fine"]);
    same_when_cut("copilot", &file);
}

#[test]
fn damage_costs_only_itself() {
    let (_folder, file) = log(&[start(), event("1", Some("0"), "user.message", json!({"content": "One"}))]);
    let mut bytes = fs::read(&file).unwrap();
    bytes.extend_from_slice(b"{\"type\":\"user.message\",\"data\":{\"content\":\"half");
    bytes.extend_from_slice(
        format!("{}\n", event("3", Some("2"), "assistant.message", json!({"content": "Glued"}))).as_bytes(),
    );
    bytes.extend_from_slice(b"\xff\xfe\n");
    bytes.extend_from_slice(
        format!("{}\n", event("4", Some("3"), "user.message", json!({"content": "bad \u{1}"})))
            .replace("bad", "b\u{fffd}d")
            .as_bytes(),
    );
    bytes.extend_from_slice(
        format!("{}\n", event("1", Some("4"), "user.message", json!({"content": "Again"}))).as_bytes(),
    );
    bytes.extend_from_slice(format!("{}\n", event("5", Some("4"), "some.news", json!([1]))).as_bytes());
    fs::write(&file, bytes).unwrap();
    fs::write(file.with_file_name("workspace.yaml"), "name: [\n: :").unwrap();
    let told = read("copilot", &file);
    assert_eq!(said(&told), ["user: One", "assistant: Glued", "user: b\u{fffd}d \u{1}"]);
    let places: Vec<&str> = told.notes.iter().map(|note| note.place.as_str()).collect();
    assert_eq!(places, ["line 3", "line 4", "line 6"]);
    assert_eq!(told.sessions["copilot_s"].entries.len(), 5);
}

#[test]
fn pictures_and_failures_are_read() {
    let call = json!({"content": "", "toolRequests": [{"toolCallId": "c", "name": "look", "arguments": {}}]});
    let shown = json!({"toolCallId": "c", "success": true, "result": {"content": "seen", "contents": [{"type": "image", "data": "QUJD", "mimeType": "image/png"}]}});
    let failed =
        json!({"toolCallId": "d", "success": false, "error": {"message": "no such file", "code": "failure"}});
    let (_folder, file) = log(&[
        start(),
        event(
            "1",
            Some("0"),
            "user.message",
            json!({"content": "Look", "attachments": [{"type": "blob", "data": "QUJD", "mimeType": "image/png"}]}),
        ),
        event("2", Some("1"), "assistant.message", call),
        event("3", Some("2"), "tool.execution_complete", shown),
        event("4", Some("3"), "tool.execution_complete", failed),
    ]);
    let told = read("copilot", &file);
    assert_eq!(
        said(&told),
        [
            "user: Look",
            "user: [image/png]",
            "assistant calls look c {}",
            "result of look c: seen",
            "result of look c: [image/png]",
            "result of  d failed: no such file",
        ]
    );
}

#[test]
fn events_of_its_own_come_back_as_they_were() {
    let all = read("copilot", &fixtures());
    let home = tempfile::tempdir().unwrap();
    let written = write(&all.sessions[MAIN].outgoing(), home.path());
    assert_eq!(written.lost, Vec::<String>::new());
    assert_eq!(written.command, ["copilot", "--resume=442599e6-4c73-4490-b966-8270a4a1b61d"]);
    let events = |path: &Path| -> Vec<Value> {
        let text = fs::read_to_string(path).unwrap();
        let mut events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for event in &mut events {
            event.as_object_mut().unwrap().shift_remove("x_banyan");
            event.as_object_mut().unwrap().shift_remove("parentId");
        }
        events
    };
    let mut original = events(&PathBuf::from(all.sessions[MAIN].head.metadata["source"].as_str().unwrap()));
    // The sub-agent's events are a session of their own, and a trace of requests stands beside the path.
    original
        .retain(|event| event.get("agentId").is_none() && !event["type"].as_str().unwrap().starts_with("model."));
    assert_eq!(events(&written.paths[0]), original);
}

#[test]
fn the_same_session_comes_back_from_its_own_agent() {
    let all = read("copilot", &fixtures());
    for (id, session) in &all.sessions {
        let home = tempfile::tempdir().unwrap();
        let session = session.outgoing();
        let written = write(&session, home.path());
        let back = read("copilot", home.path());
        let back = &back.sessions[id];
        assert_eq!(transcript(&back.outgoing()), transcript(&session));
        assert_eq!(back.head.title, session.meta.title);
        let second = write(&session, home.path());
        assert_ne!(second.native_id, written.native_id);
    }
}

#[test]
fn what_the_agent_adds_is_an_append() {
    let (_folder, file) = log(&[start(), event("1", Some("0"), "user.message", json!({"content": "One"}))]);
    let mut session = read("copilot", &file).sessions.remove("copilot_s").unwrap().outgoing();
    session.meta.session_id = "s_ours".into();
    session.meta.metadata = None;
    session.entries.remove(0);
    for entry in &mut session.entries {
        let SessionEntry::Message(entry) = entry else { panic!("a message") };
        (entry.origin, entry.parent_id) = (None, None);
    }
    let home = tempfile::tempdir().unwrap();
    let written = write(&session, home.path());
    let mut text = fs::read_to_string(&written.paths[0]).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    text.push_str(&format!("{}\n", event("9", last["id"].as_str(), "user.message", json!({"content": "More"}))));
    fs::write(&written.paths[0], text).unwrap();
    let back = read("copilot", home.path());
    let back = &back.sessions["s_ours"];
    assert_eq!(transcript(&back.outgoing()), ["user: One", "user: More"]);
    assert_eq!(back.entries[0].id(), session.entries[0].id());
    assert_eq!(back.entries.len(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn whatever_is_written_is_read_again(session in sessions()) {
        let home = tempfile::tempdir().unwrap();
        write(&session, home.path());
        let back = read("copilot", home.path());
        let back = &back.sessions[session.meta.session_id.as_str()];
        prop_assert_eq!(told(&back.outgoing(), true), told(&session, true));
        prop_assert_eq!(&back.head.title, &session.meta.title);
        let known: Vec<_> = session.entries.iter().map(SessionEntry::id).collect();
        prop_assert!(back.entries.iter().all(|entry| known.contains(&entry.id())));
    }
}
