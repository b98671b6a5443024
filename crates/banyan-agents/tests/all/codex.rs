//! Codex: genuine rollouts are read as they were lived, and written so that they come back.

use std::path::{Path, PathBuf};

use crate::common::generate::{sessions, told};
use crate::common::lines::{assert_same, go_on, read, same_when_cut};
use crate::common::transcript::{lines, transcript};
use crate::common::{Collected, copy};
use banyan_agents::{Destination, Outgoing, Written, agent};
use banyan_model::{AgentMessage, SessionEntry};
use proptest::prelude::*;
use serde_json::Value;

const MAIN: &str = "codex_01a1e056-cb67-7272-a2a2-b98ab2fa24b7";
const PARENT: &str = "codex_01a1e057-951f-7bf3-ba61-c0d73ab8256f";
const CHILD: &str = "codex_01a1e057-95a5-7c43-82c8-8ee537cb61db";
const REVERTED: &str = "codex_01a1e058-62af-7830-b123-fd531c9636f3";
const RENAMED: &str = "codex_01a1e07a-9717-7c00-9232-83a3e4be212c";
const FORK: &str = "codex_01a1e07a-98fc-7a02-8e16-b51f230ceffb";
const ARCHIVED: &str = "codex_01a1e07a-99f2-7d83-9354-1009a76a7a99";

fn fixtures(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(version)
}

fn outgoing(all: &Collected, id: &str) -> Outgoing {
    all.sessions[id].outgoing()
}

/// What was said and done, without what Codex added.
fn conversation(all: &Collected, id: &str) -> Vec<String> {
    transcript(&outgoing(all, id)).into_iter().filter(|line| !line.starts_with("codex.")).collect()
}

fn write(session: &Outgoing, home: &Path) -> Written {
    let to = Destination { home: home.to_owned(), cwd: "/home/dev/proj01".into(), now_ms: 1_800_000_000_000 };
    agent("codex").unwrap().write(session, &to).unwrap()
}

/// Packs every rollout below a folder, as Codex does with those that were not touched for long.
fn pack(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pack(&path);
        } else if path.extension().is_some_and(|extension| extension == "jsonl") {
            let level = ruzstd::encoding::CompressionLevel::Fastest;
            let packed = ruzstd::encoding::compress_to_vec(std::fs::read(&path).unwrap().as_slice(), level);
            std::fs::write(path.with_extension("jsonl.zst"), packed).unwrap();
            std::fs::remove_file(&path).unwrap();
        }
    }
}

#[test]
fn packed_rollouts_are_read_like_others() {
    let home = tempfile::tempdir().unwrap();
    copy(&fixtures("codex"), home.path());
    pack(&home.path().join("sessions"));
    let (packed, plain) = (read("codex", home.path()), read("codex", &fixtures("codex")));
    assert_eq!(packed.notes, []);
    assert_eq!(packed.sessions.keys().collect::<Vec<_>>(), plain.sessions.keys().collect::<Vec<_>>());
    for id in plain.sessions.keys() {
        assert_eq!(transcript(&outgoing(&packed, id)), transcript(&outgoing(&plain, id)), "{id}");
    }
    let sources = agent("codex").unwrap().sources(home.path()).unwrap();
    let main = sources.iter().find(|source| source.path.to_string_lossy().contains(&MAIN[6..])).unwrap();
    std::fs::write(&main.path, "no frame").unwrap();
    let problem = agent("codex").unwrap().read(main, None, &mut Collected::default()).unwrap_err();
    assert!(problem.to_string().contains(&*main.path.to_string_lossy()), "{problem}");
}

#[test]
fn the_main_session_is_read_as_it_was_lived() {
    let all = read("codex", &fixtures("codex"));
    assert_eq!(all.notes, []);
    assert_eq!(all.sessions.keys().collect::<Vec<_>>(), [MAIN, PARENT, CHILD, REVERTED, RENAMED, FORK, ARCHIVED]);
    let ran = "Chunk ID: ";
    let wanted = [
        "user: Please list the files. @@shell@@",
        "assistant: I will run a tool.",
        r#"assistant calls exec_command call_8dfce11773864005aa72b84d {"cmd":"echo hello-from-tool; ls"}"#,
        &format!("result of exec_command call_8dfce11773864005aa72b84d: {ran}17578d"),
        "assistant: Final answer. The tool said: ",
        "user: Read the readme @@two@@",
        "assistant: I will run a tool.",
        r#"assistant calls exec_command call_c2818f47637e4edf8bd0cdaa {"cmd":"echo hello-from-tool; ls"}"#,
        r#"assistant calls exec_command call_17e4d8d4182946a686672294 {"cmd":"echo hello-from-tool; ls"}"#,
        &format!("result of exec_command call_c2818f47637e4edf8bd0cdaa: {ran}dee856"),
        &format!("result of exec_command call_17e4d8d4182946a686672294: {ran}315d6f"),
        "assistant: Final answer. The tool said: ",
        "user: Think please @@thinkshell@@",
        "assistant thinks: Let me think: the user wants a scripted reply.",
        "assistant: I will run a tool.",
        r#"assistant calls exec_command call_cba6f06d8f784164bd1b9d95 {"cmd":"echo hello-from-tool; ls"}"#,
        &format!("result of exec_command call_cba6f06d8f784164bd1b9d95: {ran}859c4a"),
        "assistant: Final answer. The tool said: ",
        "user: Run a bad thing @@fail@@",
        "assistant: I will run a tool.",
        r#"assistant calls exec_command call_9cadbd32d0ab4ec895257c90 {"cmd":"echo bad-thing >&2; exit 3"}"#,
        &format!("result of exec_command call_9cadbd32d0ab4ec895257c90 failed: {ran}239b87"),
        "assistant: Final answer. The tool said: ",
        "user: <image name=[Image #1]",
        "user: [image/png]",
        "user: </image>",
        "user: Look at the picture",
        "assistant: Reply to: <image name=[Image #1]",
        "user: Fail now @@err400@@",
        "assistant failed: {\"type\": \"error\"",
        "user: Go on after the error",
        "assistant failed: {\"type\": \"error\"",
        "user: Go on after the error",
        "assistant: Reply to: Go on after the error",
    ];
    let lived = conversation(&all, MAIN);
    assert_eq!(lived.len(), wanted.len());
    for (line, wanted) in lived.iter().zip(wanted) {
        assert!(line.starts_with(wanted), "{line:?} is not {wanted:?}");
    }
    let head = &all.sessions[MAIN].head;
    assert_eq!(head.title, "Please list the files. @@shell@@");
    assert_eq!(head.created_at, 1_794_765_146_998);
    assert_eq!(head.metadata["cwd"], "/home/dev/proj01");
    assert_eq!(head.metadata["model"], "gpt-5");
    assert_eq!(head.metadata["provider"], "fake");
    assert_eq!(head.metadata["version"], "0.166.0");
    assert_eq!(head.metadata["git_branch"], "main");
}

#[test]
fn a_response_is_one_message_with_its_usage_and_seal() {
    let all = read("codex", &fixtures("codex"));
    let thinking =
        all.sessions[MAIN].entries.iter().find(|entry| lines(entry).concat().contains("assistant thinks"));
    let Some(SessionEntry::Message(entry)) = thinking else { panic!("no thinking") };
    let AgentMessage::Assistant(message) = entry.message.parse().unwrap() else { panic!("no response") };
    assert_eq!(message.content.len(), 3);
    assert_eq!((message.model.as_str(), message.provider.as_str()), ("gpt-5", "fake"));
    let usage = message.usage.unwrap();
    assert_eq!((usage.cache_read, usage.output, usage.reasoning), (Some(300), Some(42), Some(12)));
    let seal = serde_json::to_value(&message.content[0]).unwrap();
    assert_eq!(seal["signature"], "RkFLRS1FTkNSWVBURUQ=");
    assert_eq!(entry.revision.get(), 3);
}

#[test]
fn names_forks_reverts_archives_and_sub_agents_are_known() {
    let all = read("codex", &fixtures("codex"));
    assert_eq!(all.sessions[RENAMED].head.title, "My twice renamed session");
    assert_eq!(all.sessions[FORK].head.title, "My twice renamed session");
    assert_eq!(all.sessions[FORK].head.forked_from.as_ref().unwrap().as_str(), RENAMED);
    assert_eq!(all.sessions[ARCHIVED].head.metadata["archived"], true);
    assert_eq!(all.sessions[CHILD].head.metadata["parent_session_id"], PARENT);

    let (renamed, fork) = (conversation(&all, RENAMED), conversation(&all, FORK));
    assert_eq!(fork[..11], renamed[..11]);
    assert_eq!(fork[11..][..1], ["user: Question in the fork @@think@@"]);
    assert!(renamed.iter().any(|line| line.starts_with("compaction: ")));
    assert_eq!(renamed.last().unwrap(), "assistant: Reply to: Fifth, after compaction");

    let reverted = conversation(&all, REVERTED);
    assert_eq!(reverted[reverted.len() - 3..][..1], ["assistant: Reply to: R2 plain"]);
    assert_eq!(reverted.last().unwrap(), "assistant: Reply to: R4 after the revert");
    let branch: Vec<String> = all.sessions[REVERTED].entries.iter().flat_map(lines).collect();
    assert!(branch.contains(&"user: R3 will be reverted".to_owned()));
}

#[test]
fn an_older_version_is_read_too() {
    let all = read("codex", &fixtures("codex-0.47"));
    let id = "codex_01a1e072-54f5-7d12-ad9c-a99387bada21";
    let lived = conversation(&all, id);
    assert_eq!(lived.len(), 11);
    assert_eq!(lived[0], "user: Please list the files. @@shell@@");
    assert_eq!(lived[6], "assistant thinks: Let me think: the user wants a scripted reply.");
    let added = transcript(&outgoing(&all, id));
    assert!(added[0].starts_with("codex.user_instructions") && added[1].starts_with("codex.environment_context"));
    let mut used = Vec::new();
    for entry in outgoing(&all, id).path() {
        let SessionEntry::Message(entry) = entry else { continue };
        if let AgentMessage::Assistant(message) = entry.message.parse().unwrap() {
            used.push(message.usage.unwrap().input.unwrap());
        }
    }
    assert_eq!(used, [1230, 1260, 1280, 1310]);
}

#[test]
fn a_file_that_grows_is_read_as_if_at_once() {
    for version in ["codex", "codex-0.47"] {
        let home = tempfile::tempdir().unwrap();
        copy(&fixtures(version), home.path());
        for source in agent("codex").unwrap().sources(home.path()).unwrap() {
            // A thread grows at its last file.
            let last = source.key.as_deref().and_then(|others| others.lines().last()).map(PathBuf::from);
            same_when_cut("codex", &last.unwrap_or(source.path));
        }
    }
}

#[test]
fn damage_costs_only_what_is_damaged() {
    let home = tempfile::tempdir().unwrap();
    copy(&fixtures("codex-0.47"), home.path());
    let file = agent("codex").unwrap().sources(home.path()).unwrap().remove(0).path;
    let whole = std::fs::read_to_string(&file).unwrap();
    let mut parts: Vec<&str> = whole.lines().collect();
    let glued = format!("{}{}", &parts[9][..40], parts[10]);
    parts[10] = &glued;
    parts.remove(9);
    parts.insert(3, "\u{0}\u{0}{ nonsense");
    let mut bytes = parts.join("\n").into_bytes();
    bytes.truncate(bytes.len() - 30);
    std::fs::write(&file, bytes).unwrap();
    let mut all = Collected::default();
    let mark = go_on(agent("codex").unwrap(), &file, None, &mut all);
    let notes: Vec<&str> = all.notes.iter().map(|note| note.place.as_str()).collect();
    assert_eq!(notes, ["line 4", "line 11", "line 33"]);
    let id = "codex_01a1e072-54f5-7d12-ad9c-a99387bada21";
    let lived = conversation(&all, id);
    assert_eq!(lived.len(), 9);
    assert!(lived[1].starts_with("assistant calls shell call_f4740c60d6cd41b69807d5a2"));
    // The last line is finished later.
    std::fs::write(&file, format!("{}\n{}\n", parts[..32].join("\n"), whole.lines().last().unwrap())).unwrap();
    go_on(agent("codex").unwrap(), &file, Some(&mark), &mut all);
    assert_eq!(conversation(&all, id).len(), 10);
}

#[test]
fn turns_that_were_taken_back_are_a_branch() {
    let home = tempfile::tempdir().unwrap();
    let file = home
        .path()
        .join("sessions/2026/01/02/rollout-2026-01-02T03-04-05-0195e000-0000-7000-8000-00000000000b.jsonl");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let item = |role: &str, text: &str| {
        format!(
            r#"{{"timestamp":"2026-01-02T03:04:05.000Z","type":"response_item","payload":{{"type":"message","role":"{role}","content":[{{"type":"input_text","text":"{text}"}}]}}}}"#
        )
    };
    let lines = [
        r#"{"timestamp":"2026-01-02T03:04:05.000Z","type":"session_meta","payload":{"id":"0195e000-0000-7000-8000-00000000000b","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/","originator":"x","cli_version":"0.80.0"}}"#.to_owned(),
        item("user", "one"),
        item("assistant", "to one"),
        item("user", "two"),
        item("assistant", "to two"),
        r#"{"timestamp":"2026-01-02T03:04:05.000Z","type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":1}}"#.to_owned(),
        item("user", "three"),
    ];
    std::fs::write(&file, lines.join("\n") + "\n").unwrap();
    let all = read("codex", home.path());
    let id = "codex_0195e000-0000-7000-8000-00000000000b";
    assert_eq!(conversation(&all, id), ["user: one", "assistant: to one", "user: three"]);
    same_when_cut("codex", &file);
}

/// A line without what we add, and without what a rewriting changes.
fn bare(line: &str) -> Value {
    let mut value: Value = serde_json::from_str(line).unwrap();
    value.as_object_mut().unwrap().remove("x_banyan");
    value
}

#[test]
fn a_thread_goes_back_line_by_line() {
    for version in ["codex", "codex-0.47"] {
        let all = read("codex", &fixtures(version));
        for id in all.sessions.keys().filter(|id| ![REVERTED, FORK].contains(&id.as_str())) {
            let session = outgoing(&all, id);
            let home = tempfile::tempdir().unwrap();
            let written = write(&session, home.path());
            assert_eq!(written.lost, [""; 0]);
            assert_eq!(Some(written.native_id.as_str()), session.native_id("codex"));
            let before = std::fs::read_to_string(session.metadata("source").unwrap()).unwrap();
            let after = std::fs::read_to_string(&written.paths[0]).unwrap();
            assert_eq!(before.lines().count(), after.lines().count());
            for (before, after) in before.lines().zip(after.lines()) {
                assert_eq!(bare(before).to_string(), bare(after).to_string());
            }
            let mut again = read("codex", home.path());
            assert_eq!(again.sessions[id].head.title, all.sessions[id].head.title);
            let source = all.sessions[id].head.metadata["source"].clone();
            let head = &mut again.sessions.get_mut(id).unwrap().head;
            head.metadata.insert("source".to_owned(), source);
            head.metadata.extend(
                all.sessions[id].head.metadata.get("archived").map(|yes| ("archived".to_owned(), yes.clone())),
            );
            let one = Collected { sessions: [(id.clone(), all_session(&all, id))].into(), ..Collected::default() };
            assert_same(&again, &one, id);
        }
    }
}

fn all_session(all: &Collected, id: &str) -> crate::common::Session {
    let session = &all.sessions[id];
    crate::common::Session {
        head: session.head.clone(),
        entries: session.entries.clone(),
        leaf: session.leaf.clone(),
    }
}

#[test]
fn forks_and_reverts_are_written_whole_and_never_over_a_file() {
    let all = read("codex", &fixtures("codex"));
    let home = tempfile::tempdir().unwrap();
    for id in [FORK, REVERTED] {
        let session = outgoing(&all, id);
        let first = write(&session, home.path());
        let second = write(&session, home.path());
        assert_ne!(first.native_id, second.native_id);
        let again = read("codex", &first.paths[0]);
        assert_eq!(again.notes, []);
        assert_eq!(conversation(&again, id), conversation(&all, id));
        // Both copies are the same session here.
        let copy = read("codex", &second.paths[0]);
        assert_eq!(conversation(&copy, id), conversation(&all, id));
        let ids =
            |all: &Collected| outgoing(all, id).path().iter().map(|entry| entry.id().clone()).collect::<Vec<_>>();
        assert_eq!(ids(&again), ids(&copy));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_was_said_elsewhere_comes_back(session in sessions()) {
        let home = tempfile::tempdir().unwrap();
        write(&session, home.path());
        let all = read("codex", home.path());
        prop_assert_eq!(&all.notes, &[]);
        let again = all.sessions[session.meta.session_id.as_str()].outgoing();
        prop_assert_eq!(&again.meta.title, &session.meta.title);
        let plain = |lines: Vec<String>| lines.iter().map(|line| line.replacen("error of", "result of", 1)).collect::<Vec<_>>();
        prop_assert_eq!(plain(told(&again, true)), plain(told(&session, true)));
        // Every message is the entry that it was.
        let path: Vec<_> = session.path().into_iter().filter(|entry| !lines(entry).is_empty()).map(|entry| entry.id().clone()).collect();
        for entry in again.path() {
            prop_assert!(entry.parent_id().is_none() || matches!(entry, SessionEntry::Custom(_)) || path.contains(entry.id()));
        }
    }
}
