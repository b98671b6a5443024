//! Gemini CLI: genuine chats are read as they were lived, and written so that they come back.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::generate::{sessions, told};
use crate::common::lines::{assert_same, read, same_when_cut};
use crate::common::transcript::transcript;
use crate::common::{Collected, copy};
use banyan_agents::{Destination, Outgoing, Written, agent, session_id};
use banyan_model::SessionEntry;
use proptest::prelude::*;
use serde_json::{Value, json};

const MAIN: &str = "gemini_45b8522b-1ddb-45fe-b66c-87b928f10b22";
const CALLER: &str = "gemini_450df03f-ef34-4857-b906-b5276e9b7e28";
const CHILD: &str = "gemini_0d2fb26d-04ad-493f-b13a-7667bad5a2ac";

fn fixtures(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn write(session: &Outgoing, home: &Path) -> Written {
    let to = Destination { home: home.to_owned(), cwd: "/home/dev/proj01".into(), now_ms: 1_800_000_000_000 };
    agent("gemini").unwrap().write(session, &to).unwrap()
}

/// A chat of these lines in a place of its own.
fn chat(lines: &[Value]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let chats = folder.path().join("tmp/p/chats");
    fs::create_dir_all(&chats).unwrap();
    let file = chats.join("session-2026-01-02T03-04-00000000.jsonl");
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(&file, text).unwrap();
    (folder, file)
}

fn begin() -> Value {
    json!({"sessionId": "00000000-0000-4000-8000-000000000001", "projectHash": "x",
        "startTime": "2026-01-02T03:04:05.000Z", "lastUpdated": "2026-01-02T03:04:05.000Z", "kind": "main"})
}

fn user(id: &str, text: &str) -> Value {
    json!({"id": id, "timestamp": "2026-01-02T03:04:06.000Z", "type": "user", "content": [{"text": text}]})
}

fn model(id: &str, text: &str) -> Value {
    json!({"id": id, "timestamp": "2026-01-02T03:04:07.000Z", "type": "gemini", "content": text, "thoughts": [], "model": "m"})
}

fn said(told: &Collected) -> Vec<String> {
    assert_eq!(told.sessions.len(), 1);
    transcript(&told.sessions.values().next().unwrap().outgoing())
}

#[test]
fn the_main_session_is_read_as_it_was_lived() {
    let all = read("gemini", &fixtures("gemini"));
    assert_eq!(all.sessions.keys().collect::<Vec<_>>(), [CHILD, CALLER, MAIN]);
    assert_eq!(all.notes, []);
    let main = &all.sessions[MAIN];
    assert_eq!(main.head.title, "Please list the files. @@shell@@");
    assert_eq!(main.head.metadata["cwd"], "/home/dev/proj01");
    assert_eq!(main.head.metadata["model"], "gemini-2.5-pro");
    let lines: Vec<String> =
        transcript(&main.outgoing()).into_iter().map(|line| line.chars().take(70).collect()).collect();
    assert_eq!(
        lines,
        [
            "gemini.session_context: <session_context>|[vendor text removed].......",
            "user: Please list the files. @@shell@@",
            "assistant: I will run a tool.",
            "assistant calls run_shell_command run_shell_command__run_shell_command",
            "result of run_shell_command run_shell_command__run_shell_command_17947",
            "assistant: Final answer. The tool said: [{\"output\": \"<untrusted_contex",
            "user: Read two things @@two@@",
            "assistant: I will run a tool.",
            "assistant calls run_shell_command run_shell_command__run_shell_command",
            "assistant calls read_file read_file__read_file_1794766454056_1 {\"file_",
            "result of run_shell_command run_shell_command__run_shell_command_17947",
            "result of read_file read_file__read_file_1794766454056_1: # Scratch re",
            "assistant: Final answer. The tool said: [{\"output\": \"<untrusted_contex",
            "user: Think please @@thinkshell@@",
            "assistant thinks: **Planning** Let me think: the user wants a scripted",
            "assistant: I will run a tool.",
            "assistant calls run_shell_command run_shell_command__run_shell_command",
            "result of run_shell_command run_shell_command__run_shell_command_17947",
            "assistant: Final answer. The tool said: [{\"output\": \"<untrusted_contex",
            "user: Run a bad thing @@fail@@",
            "assistant: I will run a tool.",
            "assistant calls run_shell_command run_shell_command__run_shell_command",
            "result of run_shell_command run_shell_command__run_shell_command_17947",
            "assistant: Final answer. The tool said: [{\"output\": \"<untrusted_contex",
            "user: Go on after the error",
            "assistant: Reply to: Go on after the error",
            "user: Look at the picture @pic.png",
            "user: |--- Content from referenced files ---",
            "user: [image/png]",
            "user: |--- End of content ---",
            "assistant: Reply to: Look at the picture @pic.png --- Content from ref",
            "assistant: Reply to: /compress",
            "user: After compression, hello",
            "assistant: Reply to: After compression, hello",
        ]
    );
}

#[test]
fn what_left_the_list_stays_as_a_branch() {
    let all = read("gemini", &fixtures("gemini"));
    let main = all.sessions[MAIN].outgoing();
    let path: Vec<_> = main.path().into_iter().map(SessionEntry::id).collect();
    let off = main.entries.iter().filter(|entry| !path.contains(&entry.id()));
    let off: Vec<String> = off.flat_map(crate::common::transcript::lines).collect();
    assert_eq!(off, ["user: Fail now @@err400@@", "user: /compress", "assistant: Reply to: /compress"]);
}

#[test]
fn a_sub_agent_is_a_session_that_knows_who_called_it() {
    let all = read("gemini", &fixtures("gemini"));
    let child = &all.sessions[CHILD].head;
    assert_eq!(child.metadata["parent_session_id"], CALLER);
    assert_eq!(child.metadata["parent_call_id"], "invoke_agent__invoke_agent_1794766473420_0");
    let title = "<summary>FAKE SUMMARY: user asked scripted things; tool printed hello-from-tool.</summary>";
    assert_eq!(all.sessions[CALLER].head.title, title);
}

#[test]
fn the_old_form_and_the_smallest_one_are_read_alike() {
    let folder = tempfile::tempdir().unwrap();
    let chats = folder.path().join("tmp/0123/chats");
    fs::create_dir_all(&chats).unwrap();
    let minimal = fixtures("gemini-minimal").join("tmp/proj01/chats/session-2026-01-02T03-04-00000000.jsonl");
    let mut records = fs::read_to_string(minimal).unwrap();
    let new = read("gemini", &fixtures("gemini-minimal"));
    let lines: Vec<Value> = records.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut whole = lines[0].clone();
    whole["messages"] = json!(lines[1..4]);
    whole["summary"] = lines[4]["$set"]["summary"].clone();
    records = serde_json::to_string_pretty(&whole).unwrap();
    fs::write(chats.join("session-2026-01-02T03-04-00000000.json"), records).unwrap();
    let old = read("gemini", folder.path());
    let id = session_id("gemini", "00000000-0000-4000-8000-000000000001");
    assert_eq!(old.sessions[id.as_str()].head.title, "Exported title");
    let expected = [
        "user: EXPORTED user turn one",
        "assistant thinks: **S** exported thinking",
        "assistant: EXPORTED assistant text",
        "assistant calls my_tool call_exp_1 {\"x\":1}",
        "result of my_tool call_exp_1: exported result",
        "assistant: EXPORTED final",
    ];
    assert_eq!(said(&new), expected);
    assert_eq!(said(&old), expected);
}

#[test]
fn an_old_chat_that_grew_tells_only_what_is_new() {
    let folder = tempfile::tempdir().unwrap();
    let chats = folder.path().join("tmp/0123/chats");
    fs::create_dir_all(&chats).unwrap();
    let file = chats.join("session-2026-01-02T03-04-00000000.json");
    let whole = |messages: &[Value]| {
        let mut whole = begin();
        whole["messages"] = json!(messages);
        fs::write(&file, whole.to_string()).unwrap();
    };
    let gemini = agent("gemini").unwrap();
    let (one, two, three) = (user("u1", "One"), model("m1", "Two"), user("u2", "Three"));
    whole(&[one.clone(), two.clone()]);
    let mut told = Collected::default();
    let mark = gemini.read(&gemini.sources(&file).unwrap()[0], None, &mut told).unwrap();
    whole(&[one, two, three]);
    gemini.read(&gemini.sources(&file).unwrap()[0], Some(&mark), &mut told).unwrap();
    assert_eq!(said(&told), ["user: One", "assistant: Two", "user: Three"]);
}

#[test]
fn a_rewind_leaves_a_branch() {
    let (_folder, file) = chat(&[
        begin(),
        user("u1", "One"),
        model("m1", "Two"),
        user("u2", "Wrong"),
        model("m2", "Wrong again"),
        json!({"$rewindTo": "u2"}),
        user("u3", "Right"),
    ]);
    let told = read("gemini", &file);
    assert_eq!(said(&told), ["user: One", "assistant: Two", "user: Right"]);
    assert_eq!(told.sessions.values().next().unwrap().entries.len(), 6);
    same_when_cut("gemini", &file);
}

#[test]
fn a_summary_follows_what_it_sums_up_and_comes_back() {
    let summary = user("s", "<state_snapshot>All of it</state_snapshot>");
    let list = json!({"$set": {"messages": [summary, model("a", "Got it."), user("u2", "Kept")]}});
    let (_folder, file) =
        chat(&[begin(), user("u1", "One"), model("m1", "Two"), user("u2", "Kept"), list, model("m3", "On")]);
    let told = read("gemini", &file);
    let expected = [
        "user: One",
        "assistant: Two",
        "user: Kept",
        "compaction: <state_snapshot>All of it</state_snapshot>",
        "assistant: Got it.",
        "assistant: On",
    ];
    assert_eq!(said(&told), expected);
    same_when_cut("gemini", &file);
    let home = tempfile::tempdir().unwrap();
    let session = told.sessions.values().next().unwrap().outgoing();
    let written = write(&session, home.path());
    assert_eq!(written.lost, Vec::<String>::new());
    assert_eq!(said(&read("gemini", &written.paths[0])), expected);
    let text = fs::read_to_string(&written.paths[0]).unwrap();
    let set: Value = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .find(|line: &Value| line["$set"]["messages"].is_array())
        .unwrap();
    let ids: Vec<&Value> =
        set["$set"]["messages"].as_array().unwrap().iter().map(|message| &message["id"]).collect();
    assert_eq!(ids, ["s", "u2"]);
}

#[test]
fn every_chat_can_be_read_in_two_goes() {
    let folder = tempfile::tempdir().unwrap();
    copy(&fixtures("gemini"), folder.path());
    for source in agent("gemini").unwrap().sources(folder.path()).unwrap() {
        same_when_cut("gemini", &source.path);
    }
}

#[test]
fn a_chat_in_which_nobody_spoke_is_no_session_until_somebody_does() {
    let context = json!({"$set": {"messages": [user("c", "<session_context>\nToday is")]}});
    let (_folder, file) = chat(&[begin(), context.clone()]);
    let gemini = agent("gemini").unwrap();
    let mut told = Collected::default();
    let mark = gemini.read(&gemini.sources(&file).unwrap()[0], None, &mut told).unwrap();
    assert!(told.sessions.is_empty());
    let lines = [begin(), context, user("u1", "One")];
    fs::write(&file, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    gemini.read(&gemini.sources(&file).unwrap()[0], Some(&mark), &mut told).unwrap();
    assert_eq!(said(&told), ["gemini.session_context: <session_context>|Today is", "user: One"]);
}

#[test]
fn torn_and_glued_lines_cost_only_themselves() {
    let (_folder, file) = chat(&[begin(), user("u1", "One"), model("m1", "Two")]);
    let mut text = fs::read_to_string(&file).unwrap();
    text.push_str("{\"id\":\"u2\",\"timestamp\":\"2026-01-02T03:04:08.000Z\",\"type\":\"us");
    text.push_str(&format!("{}\n", model("m2", "Glued")));
    text.push_str("[1,2]\n{\"something\":\"else\"}\n");
    fs::write(&file, text).unwrap();
    let told = read("gemini", &file);
    assert_eq!(said(&told), ["user: One", "assistant: Two", "assistant: Glued"]);
    let notes: Vec<&str> = told.notes.iter().map(|note| note.place.as_str()).collect();
    assert_eq!(notes, ["line 4", "line 5"]);
    assert_eq!(told.sessions.values().next().unwrap().entries.len(), 5);
}

#[test]
fn the_same_session_comes_back_from_its_own_agent() {
    let all = read("gemini", &fixtures("gemini"));
    for (id, session) in &all.sessions {
        let home = tempfile::tempdir().unwrap();
        let session = session.outgoing();
        let written = write(&session, home.path());
        assert_eq!(format!("gemini_{}", written.native_id), *id);
        let back = read("gemini", home.path());
        let back = &back.sessions[id];
        assert_eq!(transcript(&back.outgoing()), transcript(&session));
        assert_eq!(back.head.title, session.meta.title);
        let ids = |session: &Outgoing| -> Vec<_> {
            let messages = session.path().into_iter().filter(|entry| matches!(entry, SessionEntry::Message(_)));
            messages.map(|entry| (entry.id().clone(), entry.origin().cloned())).collect()
        };
        assert_eq!(ids(&back.outgoing()), ids(&session));
    }
}

#[test]
fn lines_of_its_own_come_back_as_they_were() {
    let fixture = fixtures("gemini").join("tmp/proj01/chats/session-2026-11-15T18-14-450df03f.jsonl");
    let home = tempfile::tempdir().unwrap();
    let all = read("gemini", &fixture);
    let written = write(&all.sessions[CALLER].outgoing(), home.path());
    let records =
        |text: &str| -> Vec<Value> { text.lines().map(|line| serde_json::from_str(line).unwrap()).collect() };
    let original = records(&fs::read_to_string(fixture).unwrap());
    let mut again = records(&fs::read_to_string(&written.paths[0]).unwrap());
    for record in &mut again {
        let fields = record.as_object_mut().unwrap();
        fields.shift_remove("x_banyan");
        for call in fields.get_mut("toolCalls").and_then(Value::as_array_mut).into_iter().flatten() {
            call.as_object_mut().unwrap().shift_remove("x_banyan");
        }
    }
    // Line 3 asks, 7 is the call with its result, 10 answers; what lies between says the same again.
    assert_eq!(again[2], original[2]);
    assert_eq!(again[3], original[6]);
    assert_eq!(again[4], original[9]);
    assert_eq!(again[5], original[11]);
}

#[test]
fn nothing_is_overwritten_and_a_second_writing_has_another_id() {
    let all = read("gemini", &fixtures("gemini"));
    let home = tempfile::tempdir().unwrap();
    let session = all.sessions[MAIN].outgoing();
    let first = write(&session, home.path());
    let bytes = fs::read(&first.paths[0]).unwrap();
    let second = write(&session, home.path());
    assert_ne!(first.native_id, second.native_id);
    assert_eq!(fs::read(&first.paths[0]).unwrap(), bytes);
    assert_eq!(first.command, ["gemini", "--resume", "45b8522b-1ddb-45fe-b66c-87b928f10b22"]);
}

#[test]
fn what_the_agent_adds_after_a_resume_is_an_append() {
    let (_folder, file) = chat(&[begin(), user("u1", "One"), model("m1", "Two")]);
    let told = read("gemini", &file);
    let mut session = told.sessions.values().next().unwrap().outgoing();
    session.meta.metadata = None;
    session.entries.remove(0);
    for entry in &mut session.entries {
        let SessionEntry::Message(entry) = entry else { panic!("a message") };
        entry.origin = None;
        entry.parent_id =
            if entry.parent_id == Some(session.leaf.clone().unwrap()) { None } else { entry.parent_id.take() };
    }
    let home = tempfile::tempdir().unwrap();
    let written = write(&session, home.path());
    let lines: Vec<Value> = fs::read_to_string(&written.paths[0])
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let context = user("c", "<session_context>\nToday is");
    let shorn = |line: &Value, parts: Value| json!({"id": line["id"], "timestamp": "2026-01-03T00:00:00.000Z", "type": line["type"], "content": parts});
    let list =
        [context.clone(), shorn(&lines[1], json!([{"text": "One"}])), shorn(&lines[2], json!([{"text": "Two"}]))];
    let added = [
        begin(),
        json!({"$set": {"messages": [context]}}),
        json!({"$set": {"messages": list}}),
        user("u9", "More"),
    ];
    let mut text = fs::read_to_string(&written.paths[0]).unwrap();
    for line in added {
        text.push_str(&format!("{line}\n"));
    }
    fs::write(&written.paths[0], text).unwrap();
    let back = read("gemini", &written.paths[0]);
    assert_eq!(back.sessions.keys().collect::<Vec<_>>(), [session.meta.session_id.as_str()]);
    let back = back.sessions.values().next().unwrap();
    assert_eq!(transcript(&back.outgoing()), ["user: One", "assistant: Two", "user: More"]);
    let known: Vec<_> =
        back.entries.iter().filter(|entry| session.entries.iter().any(|known| known.id() == entry.id())).collect();
    assert_eq!(known.len(), 2);
}

#[test]
fn a_question_that_looks_like_a_command_reaches_the_model() {
    let (_folder, file) = chat(&[begin(), user("u1", "/tmp is full"), model("m1", "Two")]);
    let told = read("gemini", &file);
    let mut session = told.sessions.values().next().unwrap().outgoing();
    for entry in &mut session.entries {
        if let SessionEntry::Message(entry) = entry {
            entry.origin = None;
        }
    }
    let home = tempfile::tempdir().unwrap();
    let written = write(&session, home.path());
    let line = fs::read_to_string(&written.paths[0]).unwrap().lines().nth(1).unwrap().to_owned();
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["content"], json!([{"text": "\u{200b}"}, {"text": "/tmp is full"}]));
    let back = read("gemini", &written.paths[0]);
    assert_eq!(said(&back), ["user: /tmp is full", "assistant: Two"]);
    assert_same(&back, &read("gemini", home.path()), "file or home");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn whatever_is_written_is_read_again(session in sessions()) {
        let home = tempfile::tempdir().unwrap();
        write(&session, home.path());
        let back = read("gemini", home.path());
        let back = &back.sessions[session.meta.session_id.as_str()];
        prop_assert_eq!(told(&back.outgoing(), true), told(&session, true));
        prop_assert_eq!(&back.head.title, &session.meta.title);
        let known: Vec<_> = session.entries.iter().map(SessionEntry::id).collect();
        prop_assert!(back.entries.iter().all(|entry| known.contains(&entry.id())));
    }
}
