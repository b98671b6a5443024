//! Cline: what its files say, and what we write.

use std::path::{Path, PathBuf};

use crate::common::Collected;
use crate::common::generate::{sessions, told};
use crate::common::shown::{transcript, tree};
use banyan_agents::{Destination, Outgoing, Source, Written, agent};
use banyan_model::SessionEntry;
use proptest::prelude::*;
use serde_json::{Value, json};

const MAIN: &str = "cline_1794766734784_318s2";
const MAIN_ID: &str = "1794766734784_318s2";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cline").join(name)
}

fn sources(place: &Path) -> Vec<Source> {
    agent("cline").unwrap().sources(place).unwrap()
}

fn read(place: &Path) -> Collected {
    let mut all = Collected::default();
    for source in sources(place) {
        agent("cline").unwrap().read(&source, None, &mut all).unwrap();
    }
    all
}

fn write(session: &Outgoing, home: &Path) -> Written {
    let to = Destination { home: home.to_owned(), cwd: "/home/dev/proj01".into(), now_ms: 1_794_767_400_000 };
    agent("cline").unwrap().write(session, &to).unwrap()
}

fn json_of(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn the_sample_is_what_its_note_says() {
    let all = read(&fixture(""));
    assert_eq!(all.sessions.len(), 3);
    assert!(all.notes.is_empty(), "{:?}", all.notes);
    let main = &all.sessions[MAIN];
    assert_eq!(main.head.title, "My renamed cline session");
    assert_eq!(main.head.metadata["git_branch"], "main");
    assert_eq!(main.head.metadata["version"], "3.0.65");
    let expected = [
        "(cline.session)",
        "user: Please list the files. @@shell@@",
        "assistant: I will run a tool. | calls run_commands#f913 {\"commands\":[\"echo hello-from-tool; ls\"]",
        "run_commands#f913 gave: hello-from-tool AGENTS.md README.md calc",
        "assistant: Final answer. The tool said: [{\"query\":\"",
        "user: Read two things @@two@@",
        "assistant: I will run a tool. | calls run_commands#b611 {\"commands\":[\"echo hello-from-tool; ls\"] | calls read_files#3533 {\"files\":[{\"path\":\"/home/dev/proj01/READ",
        "run_commands#b611 gave: hello-from-tool AGENTS.md README.md calc",
        "read_files#3533 gave: 1 | # Scratch repo 2 |  3 | Hello from t",
        "assistant: Final answer. The tool said: [{\"query\":\"",
        "user: Think please @@thinkshell@@",
        "assistant: thinks Let me think: the user wants a scripted  | I will run a tool. | calls run_commands#db3a {\"commands\":[\"echo hello-from-tool; ls\"]",
        "run_commands#db3a gave: hello-from-tool AGENTS.md README.md calc",
        "assistant: Final answer. The tool said: [{\"query\":\"",
        "user: Fail now @@err400@@",
        "assistant failed [scripted error 400]: ",
    ];
    assert_eq!(transcript(main), expected);
    let child = &all.sessions["cline_1794766760878_qfx74__agent_1794766761351_eol2k4"];
    assert_eq!(child.head.metadata["parent_session_id"], "cline_1794766760878_qfx74");
    assert_eq!(child.head.metadata["parent_call_id"], "call_aae47bfaddab4dcd81beec47");
    assert_eq!(child.head.title, "You are the child. Say hello. @@shell@@");
    assert_eq!(child.head.created_at, 1_794_766_761_351);
    assert_eq!(all.sessions["cline_1794766760878_qfx74"].head.title, "Delegate @@sub@@");
}

#[test]
fn cline_to_cline_gives_the_same_messages() {
    let home = tempfile::tempdir().unwrap();
    let all = read(&fixture(""));
    let written = write(&all.sessions[MAIN].outgoing(), home.path());
    assert_eq!(written.command, ["cline", "--id", MAIN_ID]);
    let original = fixture("sessions").join(MAIN_ID);
    let mut file = json_of(&written.paths[0]);
    for message in file["messages"].as_array_mut().unwrap() {
        let metadata = message["metadata"].as_object_mut().unwrap();
        assert!(metadata.remove("x_banyan").is_some());
        if metadata.is_empty() {
            message.as_object_mut().unwrap().remove("metadata");
        }
    }
    assert_eq!(file, json_of(&original.join(format!("{MAIN_ID}.messages.json"))));
    let mut manifest = json_of(&written.paths[1]);
    let mut expected = json_of(&original.join(format!("{MAIN_ID}.json")));
    assert!(manifest["metadata"].as_object_mut().unwrap().remove("x_banyan").is_some());
    expected["messages_path"] = manifest["messages_path"].clone();
    assert_eq!(manifest, expected);
    // It is the same session again, and it never overwrites one.
    assert_eq!(tree(&read(home.path()).sessions[MAIN]), tree(&all.sessions[MAIN]));
    let second = write(&all.sessions[MAIN].outgoing(), home.path());
    assert_ne!(second.native_id, MAIN_ID);
    // A sub-agent becomes a session that can be resumed.
    let child = &all.sessions["cline_1794766760878_qfx74__agent_1794766761351_eol2k4"];
    let written = write(&child.outgoing(), home.path());
    assert_eq!(json_of(&written.paths[0])["agent"], "lead");
    assert_eq!(json_of(&written.paths[1])["provider"], "openai-compatible");
}

#[test]
fn a_session_that_grows_is_read_on() {
    let whole = tree(&read(&fixture("")).sessions[MAIN]);
    let name = format!("{MAIN_ID}.messages.json");
    let file = json_of(&fixture("sessions").join(MAIN_ID).join(&name));
    let messages = file["messages"].as_array().unwrap();
    for cut in 0..=messages.len() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(&name);
        let manifest = fixture("sessions").join(MAIN_ID).join(format!("{MAIN_ID}.json"));
        std::fs::copy(manifest, home.path().join(format!("{MAIN_ID}.json"))).unwrap();
        let mut part = file.clone();
        part["messages"] = json!(messages[..cut]);
        std::fs::write(&path, part.to_string()).unwrap();
        let mut all = Collected::default();
        let source = sources(&path).remove(0);
        let mark = agent("cline").unwrap().read(&source, None, &mut all).unwrap();
        std::fs::write(&path, file.to_string()).unwrap();
        let source = sources(&path).remove(0);
        let mark = agent("cline").unwrap().read(&source, Some(&mark), &mut all).unwrap();
        assert_eq!(tree(&all.sessions[MAIN]), whole);
        assert_eq!(agent("cline").unwrap().read(&source, Some(&mark), &mut all).unwrap(), mark);
    }
}

#[test]
fn a_task_of_the_old_form_is_read() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("tasks/1735787045000");
    std::fs::create_dir_all(&folder).unwrap();
    let text = |text: &str| json!({ "type": "text", "text": text });
    let history = json!([
        { "role": "user", "content": [text("<task>\nList the files.\n</task>"),
            text("<environment_details>\n# Current Working Directory (/home/dev/proj01) Files\ncalc.py\n</environment_details>")] },
        { "role": "assistant", "content": [text("<thinking>easy</thinking>I will look.\n\n<execute_command>\n<command>ls</command>\n<requires_approval>false</requires_approval>\n</execute_command>")] },
        { "role": "user", "content": [text("[execute_command for 'ls'] Result:"), text("Command executed.\nOutput:\ncalc.py"), text("<environment_details>\nx\n</environment_details>")] },
        { "role": "assistant", "content": [text("<write_to_file>\n<path>a.html</path>\n<content>\n<b>bold</b>\n</content>\n</write_to_file>")] },
        { "role": "user", "content": [text("[write_to_file for 'a.html'] Result:\nThe tool execution failed with the following error:\n<error>\nno\n</error>")] },
        { "role": "assistant", "content": [{ "type": "tool_use", "id": "call_n", "name": "read_file", "input": { "path": "a" } }] },
        { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "call_n", "content": [text("A")] },
            text("[TASK RESUMPTION] This task was interrupted"),
            text("<feedback>\nGo on.\n</feedback>"),
            { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AAAA" } }] },
        { "role": "assistant", "content": "Done." },
    ]);
    std::fs::write(folder.join("api_conversation_history.json"), history.to_string()).unwrap();
    let all = read(home.path());
    let session = all.sessions.values().next().unwrap();
    assert!(session.head.session.as_str().starts_with("cline_1735787045000_"));
    assert_eq!(
        (session.head.title.as_str(), &session.head.metadata["cwd"]),
        ("List the files.", &json!("/home/dev/proj01"))
    );
    let expected = [
        "user: List the files.",
        "cline.context: <environment_details> # Current Working ",
        "assistant: <thinking>easy</thinking>I will look. | calls execute_command#ll_1 {\"command\":\"ls\",\"requires_approval\":\"fal",
        "execute_command#ll_1 gave: Command executed. Output: calc.py",
        "cline.context: <environment_details> x </environment_de",
        "assistant: calls write_to_file#ll_3 {\"path\":\"a.html\",\"content\":\"<b>bold</b>\"",
        "write_to_file#ll_3 failed: The tool execution failed with the follo",
        "assistant: calls read_file#ll_n {\"path\":\"a\"}",
        "read_file#ll_n gave: A",
        "user: Go on. | picture image/png 4",
        "cline.context: [TASK RESUMPTION] This task was interrup",
        "assistant: Done.",
    ];
    assert_eq!(transcript(session), expected);
    let back = read(&write(&session.outgoing(), home.path()).paths[0]);
    assert_eq!(told(&back.sessions.values().next().unwrap().outgoing(), false), told(&session.outgoing(), false));
}

#[test]
fn damage_is_said_and_the_rest_is_read() {
    let home = tempfile::tempdir().unwrap();
    crate::common::copy(&fixture("sessions"), &home.path().join("sessions"));
    let folder = home.path().join("sessions").join(MAIN_ID);
    let path = folder.join(format!("{MAIN_ID}.messages.json"));
    let mut file = json_of(&path);
    file["messages"][0] = json!({ "role": "user", "content": null });
    file["messages"][1] = json!(7);
    file["messages"][3]["id"] = file["messages"][2]["id"].clone();
    file["messages"][4]["content"] = json!([{ "type": "new_thing" }, { "no": "type" }]);
    std::fs::write(&path, file.to_string()).unwrap();
    std::fs::write(folder.join(format!("{MAIN_ID}.json")), "{\"session_id\"").unwrap();
    let all = read(home.path());
    let lines = transcript(&all.sessions[MAIN]);
    assert_eq!(lines.len(), 16, "{lines:#?}");
    assert_eq!(lines[5], "(cline.new_thing)");
    assert_eq!(all.notes.len(), 1, "{:?}", all.notes);
    std::fs::write(&path, "{\"version\":1,\"messa").unwrap();
    let source = sources(&path).remove(0);
    assert!(agent("cline").unwrap().read(&source, None, &mut Collected::default()).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_written_is_read_again(session in sessions()) {
        let home = tempfile::tempdir().unwrap();
        let written = write(&session, home.path());
        let back = read(&written.paths[0]);
        let back = back.sessions["s_generated"].outgoing();
        prop_assert_eq!(told(&back, false), told(&session, false));
        let known: Vec<_> = session.entries.iter().map(SessionEntry::id).collect();
        prop_assert!(back.entries.iter().all(|entry| known.contains(&entry.id())));
    }
}
