//! Claude Code: genuine sessions are read as they were lived, and written so that they come back.

use std::path::{Path, PathBuf};

use crate::common::generate::{sessions, told};
use crate::common::lines::{assert_same, go_on, read, same_when_cut};
use crate::common::transcript::{lines, transcript};
use crate::common::{Collected, copy};
use banyan_agents::{Destination, Outgoing, Written, agent};
use banyan_model::{AgentMessage, SessionEntry};
use proptest::prelude::*;
use serde_json::{Value, json};

const MAIN: &str = "claude_4d1d7e21-ec5d-406b-8fe3-0bf3cc616743";
const CHILD: &str = "claude_4d1d7e21-ec5d-406b-8fe3-0bf3cc616743.agent-abec10c84dd64ae7d";
const NAMED: &str = "claude_c72a8137-53de-4d7a-82c0-2cd74cd127ad";

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/claude")
}

fn outgoing(all: &Collected, id: &str) -> Outgoing {
    all.sessions[id].outgoing()
}

/// What was said and done, without what Claude added.
fn conversation(all: &Collected, id: &str) -> Vec<String> {
    transcript(&outgoing(all, id)).into_iter().filter(|line| !line.starts_with("claude.")).collect()
}

fn write(session: &Outgoing, home: &Path) -> Written {
    let to = Destination { home: home.to_owned(), cwd: "/home/dev/proj01".into(), now_ms: 1_800_000_000_000 };
    agent("claude").unwrap().write(session, &to).unwrap()
}

#[test]
fn the_main_session_is_read_as_it_was_lived() {
    let all = read("claude", &fixtures());
    assert_eq!(all.notes, []);
    assert_eq!(all.sessions.keys().collect::<Vec<_>>(), [MAIN, CHILD, NAMED]);
    let command = r#"{"command":"echo hello-from-tool; ls","description":"Run the scripted command"}"#;
    let wanted = [
        "user: Please list the files. @@shell@@",
        "assistant: I will run a tool.",
        &format!("assistant calls Bash toolu_0127e514fdb7b34eef893357f5 {command}"),
        "result of Bash toolu_0127e514fdb7b34eef893357f5: hello-from-tool|AGENTS.md|README.md|calc.py",
        "assistant: Final answer. The tool said: ",
        "user: Read two things @@two@@",
        "assistant: I will run a tool.",
        &format!("assistant calls Bash toolu_01c542e3e68c0a440489c3244c {command}"),
        "assistant calls Read toolu_015f76094a6e824f09b28658f2",
        "result of Read toolu_015f76094a6e824f09b28658f2: 1\t# Scratch repo",
        "result of Bash toolu_01c542e3e68c0a440489c3244c: hello-from-tool",
        "assistant: Final answer. The tool said: 1\t# Scratch repo",
        "user: Think please @@thinkshell@@",
        "assistant thinks: Let me think: the user wants a scripted reply.",
        "assistant: I will run a tool.",
        &format!("assistant calls Bash toolu_015fd1dd72e07b457a886f96ad {command}"),
        "result of Bash toolu_015fd1dd72e07b457a886f96ad: hello-from-tool",
        "assistant: Final answer. The tool said: hello-from-tool",
        "user: Run a bad thing @@fail@@",
        "assistant: I will run a tool.",
        "assistant calls Bash toolu_0184fec6f9e279464aa420ca3c",
        "result of Bash toolu_0184fec6f9e279464aa420ca3c failed: Exit code 3|bad-thing",
        "assistant: Final answer. The tool said: Exit code 3",
        "user: Fail now @@err400@@",
        "assistant failed: API Error: 400 scripted error 400",
        "user: Go on after the error",
        "assistant failed: API Error: 400 scripted error 400",
        "user: Delegate @@sub@@",
        "assistant: I will run a tool.",
        "assistant calls Agent toolu_01b143ea6ef4b8467a89a2aadd",
        "result of Agent toolu_01b143ea6ef4b8467a89a2aadd: ",
        "assistant: Final answer. The tool said: ",
        "user: Look at the picture",
        "user: [image/png]",
        "assistant: Reply to: ",
        "compaction: This session is being continued from a previous conversation",
        "user: After compaction, hello",
        "assistant: Reply to: ",
    ];
    let lived = conversation(&all, MAIN);
    assert_eq!(lived.len(), wanted.len());
    for (line, wanted) in lived.iter().zip(wanted) {
        assert!(line.starts_with(wanted), "{line:?} is not {wanted:?}");
    }
    let head = &all.sessions[MAIN].head;
    assert_eq!(head.title, "Please list the files. @@shell@@");
    assert_eq!(head.metadata["cwd"], "/home/dev/proj01");
    assert_eq!(head.metadata["model"], "claude-sonnet-4-5");
    assert_eq!(head.metadata["version"], "2.1.325");
    assert_eq!(head.metadata["git_branch"], "main");
    let session = outgoing(&all, MAIN);
    assert_eq!(session.path().len(), session.entries.len(), "parallel results are no branches");
}

#[test]
fn titles_and_sub_agents_are_known() {
    let all = read("claude", &fixtures());
    assert_eq!(all.sessions[NAMED].head.title, "My named session");
    let child = &all.sessions[CHILD].head;
    assert_eq!(child.title, "child_task");
    assert_eq!(child.metadata["parent_session_id"], MAIN);
    assert_eq!(child.metadata["parent_call_id"], "toolu_01b143ea6ef4b8467a89a2aadd");
    assert_eq!(conversation(&all, CHILD).len(), 5);
}

#[test]
fn a_response_is_one_message_with_its_usage_and_seal() {
    let all = read("claude", &fixtures());
    let thinking =
        all.sessions[MAIN].entries.iter().find(|entry| lines(entry).concat().contains("assistant thinks"));
    let Some(SessionEntry::Message(entry)) = thinking else { panic!("no thinking") };
    let AgentMessage::Assistant(message) = entry.message.parse().unwrap() else { panic!("no response") };
    assert_eq!(message.content.len(), 3);
    assert_eq!((message.model.as_str(), message.provider.as_str()), ("claude-sonnet-4-5", "anthropic"));
    assert_eq!(message.native_stop_reason.as_deref(), Some("tool_use"));
    assert!(message.usage.unwrap().output.is_some());
    assert_eq!(serde_json::to_value(&message.content[0]).unwrap()["signature"], "RkFLRV9TSUdOQVRVUkU=");
    assert_eq!(entry.revision.get(), 2);
}

#[test]
fn a_file_that_grows_is_read_as_if_at_once() {
    let home = tempfile::tempdir().unwrap();
    copy(&fixtures(), home.path());
    for source in agent("claude").unwrap().sources(home.path()).unwrap() {
        same_when_cut("claude", &source.path);
    }
}

/// A small file, made of records.
fn file(home: &Path, name: &str, records: &[Value]) -> PathBuf {
    let path = home.join("projects/-w").join(format!("{name}.jsonl"));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text: String = records.iter().map(|record| format!("{record}\n")).collect();
    std::fs::write(&path, text).unwrap();
    path
}

fn record(kind: &str, uuid: &str, parent: Option<&str>, content: Value) -> Value {
    let message = match kind {
        "assistant" => json!({"id": format!("msg_{uuid}"), "type": "message", "role": kind, "content": content}),
        _ => json!({"role": kind, "content": content}),
    };
    json!({
        "type": kind, "uuid": uuid, "parentUuid": parent, "isSidechain": false, "message": message,
        "timestamp": "2026-01-02T03:04:05.000Z", "sessionId": "s1", "version": "1.0.124", "cwd": "/w",
    })
}

#[test]
fn rewinds_are_branches_and_the_live_one_is_known() {
    let home = tempfile::tempdir().unwrap();
    let mut records = vec![
        record("user", "u1", None, json!("one")),
        record("assistant", "a1", Some("u1"), json!([{"type": "text", "text": "to one"}])),
        record("user", "u2", Some("a1"), json!("two")),
        record("assistant", "a2", Some("u2"), json!([{"type": "text", "text": "to two"}])),
        record("user", "u3", Some("a1"), json!("three")),
        record("assistant", "a3", Some("u3"), json!([{"type": "text", "text": "to three"}])),
    ];
    let path = file(home.path(), "s1", &records);
    let all = read("claude", home.path());
    let three = ["user: one", "assistant: to one", "user: three", "assistant: to three"];
    assert_eq!(conversation(&all, "claude_s1"), three);
    same_when_cut("claude", &path);
    records.push(json!({"type": "last-prompt", "lastPrompt": "two", "leafUuid": "a2", "sessionId": "s1"}));
    let path = file(home.path(), "s1", &records);
    let all = read("claude", home.path());
    assert_eq!(
        conversation(&all, "claude_s1"),
        ["user: one", "assistant: to one", "user: two", "assistant: to two"]
    );
    assert_eq!(all.sessions["claude_s1"].entries.len(), 7);
    same_when_cut("claude", &path);
}

#[test]
fn a_line_with_several_results_and_words_is_several_messages() {
    let home = tempfile::tempdir().unwrap();
    let result = |call: &str| json!({"type": "tool_result", "tool_use_id": call, "content": format!("of {call}")});
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "Bash", "input": {}});
    let records = [
        record("user", "u1", None, json!("go")),
        record("assistant", "a1", Some("u1"), json!([call("c1"), call("c2")])),
        record("user", "u2", Some("a1"), json!([result("c1"), result("c2"), {"type": "text", "text": "stop"}])),
        record("assistant", "a2", Some("u2"), json!([{"type": "text", "text": "done"}])),
    ];
    let path = file(home.path(), "s1", &records);
    let all = read("claude", home.path());
    let lived = conversation(&all, "claude_s1");
    assert_eq!(
        lived[3..],
        ["result of Bash c1: of c1", "result of Bash c2: of c2", "user: stop", "assistant: done"]
    );
    same_when_cut("claude", &path);
    let other = tempfile::tempdir().unwrap();
    let written = write(&outgoing(&all, "claude_s1"), other.path());
    let text = std::fs::read_to_string(&written.paths[0]).unwrap();
    for (line, record) in text.lines().zip(records) {
        let mut line: Value = serde_json::from_str(line).unwrap();
        line.as_object_mut().unwrap().remove("x_banyan");
        line["sessionId"] = "s1".into();
        assert_eq!(line, record);
    }
}

#[test]
fn old_versions_keep_sub_agents_inline_and_titles_elsewhere() {
    let home = tempfile::tempdir().unwrap();
    let side = |mut record: Value| {
        record["isSidechain"] = true.into();
        record
    };
    let records = [
        record("user", "u1", None, json!("go")),
        record(
            "assistant",
            "a1",
            Some("u1"),
            json!([{"type": "tool_use", "id": "c1", "name": "Task", "input": {}}]),
        ),
        side(record("user", "x1", None, json!("be the child"))),
        side(record("assistant", "x2", Some("x1"), json!([{"type": "text", "text": "hello"}]))),
        record(
            "user",
            "u2",
            Some("a1"),
            json!([{"type": "tool_result", "tool_use_id": "c1", "content": "hello"}]),
        ),
        record("assistant", "a2", Some("u2"), json!([{"type": "text", "text": "done"}])),
    ];
    let path = file(home.path(), "s1", &records);
    file(home.path(), "s2", &[json!({"type": "summary", "summary": "An old title", "leafUuid": "a2"})]);
    let all = read("claude", &path);
    assert_eq!(all.sessions["claude_s1"].head.title, "An old title");
    assert_eq!(all.sessions["claude_s1.x1"].head.metadata["parent_session_id"], "claude_s1");
    assert_eq!(conversation(&all, "claude_s1.x1"), ["user: be the child", "assistant: hello"]);
    assert_eq!(conversation(&all, "claude_s1").len(), 4);
    same_when_cut("claude", &path);
}

#[test]
fn damage_costs_only_what_is_damaged() {
    let home = tempfile::tempdir().unwrap();
    let path = file(
        home.path(),
        "s1",
        &[
            record("user", "u1", None, json!("one")),
            record("assistant", "a1", Some("u1"), json!([{"type": "text", "text": "to one"}])),
            record("user", "u2", Some("gone"), json!("two")),
            record("user", "u2", Some("a1"), json!("twice")),
            record("user", "u3", Some("u4"), json!("three")),
            record("user", "u4", Some("u3"), json!("four")),
        ],
    );
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.splice(0..0, b"{\"type\":\"user\",\"uu\xff\n".iter().copied());
    bytes.extend_from_slice(b"{\"type\":\"user\",\"uuid\":\"torn\",\"mess");
    std::fs::write(&path, bytes).unwrap();
    let mut all = Collected::default();
    go_on(agent("claude").unwrap(), &path, None, &mut all);
    assert_eq!(
        conversation(&all, "claude_s1"),
        ["user: one", "assistant: to one", "user: two", "user: three", "user: four"]
    );
    let notes: Vec<&str> = all.notes.iter().map(|note| note.place.as_str()).collect();
    assert_eq!(notes, ["line 1", "line 4", "line 5", "line 6", "line 8"]);
}

#[test]
fn a_session_goes_back_line_by_line() {
    let all = read("claude", &fixtures());
    for id in [MAIN, NAMED] {
        let session = outgoing(&all, id);
        let home = tempfile::tempdir().unwrap();
        let written = write(&session, home.path());
        assert_eq!(written.lost, [""; 0]);
        let before = std::fs::read_to_string(session.metadata("source").unwrap()).unwrap();
        let after = std::fs::read_to_string(&written.paths[0]).unwrap();
        let bare = |line: &str| {
            let mut value: Value = serde_json::from_str(line).unwrap();
            value.as_object_mut().unwrap().remove("x_banyan");
            value
        };
        // A note of which record is live is left out when that record came only after it and is another's.
        assert_eq!(before.lines().count(), after.lines().count());
        for (before, after) in before.lines().zip(after.lines()) {
            assert_eq!(bare(before).to_string(), bare(after).to_string());
        }
        let mut again = read("claude", home.path());
        let head = &mut again.sessions.get_mut(id).unwrap().head;
        head.metadata.insert("source".to_owned(), all.sessions[id].head.metadata["source"].clone());
        let session = &all.sessions[id];
        let session = crate::common::Session {
            head: session.head.clone(),
            entries: session.entries.clone(),
            leaf: session.leaf.clone(),
        };
        let one = Collected { sessions: [(id.to_owned(), session)].into(), ..Collected::default() };
        assert_same(&again, &one, id);
        assert_ne!(write(&outgoing(&all, id), home.path()).native_id, written.native_id);
    }
}

#[test]
fn a_copy_that_claude_made_of_our_file_is_another_session() {
    let home = tempfile::tempdir().unwrap();
    let all = read("claude", &fixtures());
    let written = write(&outgoing(&all, NAMED), home.path());
    let text = std::fs::read_to_string(&written.paths[0]).unwrap();
    let fork = written.paths[0].with_file_name("c72a8137-0000-4d7a-82c0-2cd74cd127ad.jsonl");
    std::fs::write(&fork, text.replace(r#""sessionId":"c72a8137-53de"#, r#""sessionId":"c72a8137-0000"#)).unwrap();
    let again = read("claude", home.path());
    assert_eq!(again.sessions.keys().collect::<Vec<_>>(), ["claude_c72a8137-0000-4d7a-82c0-2cd74cd127ad", NAMED]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_was_said_elsewhere_comes_back(session in sessions()) {
        let home = tempfile::tempdir().unwrap();
        write(&session, home.path());
        let all = read("claude", home.path());
        prop_assert_eq!(&all.notes, &[]);
        let again = all.sessions[session.meta.session_id.as_str()].outgoing();
        prop_assert_eq!(&again.meta.title, &session.meta.title);
        let said = |session: &Outgoing| told(session, false);
        prop_assert_eq!(said(&again), said(&session));
        let known: Vec<_> = session.entries.iter().map(SessionEntry::id).collect();
        prop_assert!(again.entries.iter().all(|entry| known.contains(&entry.id())));
    }
}
