//! Aider: what its file says, and what we write.

use std::path::{Path, PathBuf};

use crate::common::generate::{sessions, told};
use crate::common::shown::{transcript, tree};
use crate::common::{Collected, Session};
use banyan_agents::{Destination, Mark, Outgoing, Source, Written, agent};
use banyan_model::SessionEntry;
use proptest::prelude::*;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/aider/.aider.chat.history.md")
}

fn source(place: &Path) -> Source {
    agent("aider").unwrap().sources(place).unwrap().remove(0)
}

fn read_on(place: &Path, mark: Option<&Mark>, all: &mut Collected) -> Mark {
    agent("aider").unwrap().read(&source(place), mark, all).unwrap()
}

fn read(place: &Path) -> Collected {
    let mut all = Collected::default();
    read_on(place, None, &mut all);
    all
}

fn write(session: &Outgoing, home: &Path) -> Written {
    let to = Destination { home: home.to_owned(), cwd: home.to_owned(), now_ms: 1_794_767_400_000 };
    agent("aider").unwrap().write(session, &to).unwrap()
}

fn by_title<'a>(all: &'a Collected, title: &str) -> &'a Session {
    all.sessions.values().find(|session| session.head.title == title).expect(title)
}

#[test]
fn the_sample_is_what_its_note_says() {
    let all = read(&fixture());
    assert_eq!(all.sessions.len(), 6);
    let first = by_title(&all, "What does calc.py do?");
    assert_eq!(first.head.metadata["version"], "0.86.2");
    assert_eq!(
        (&first.head.metadata["provider"], &first.head.metadata["model"]),
        (&"openai".into(), &"gpt-4o".into())
    );
    let said = |session: &Session| -> Vec<String> {
        transcript(session).into_iter().filter(|line| !line.starts_with("aider.console")).collect()
    };
    assert_eq!(said(first), ["user: What does calc.py do?", "assistant: Plain reply: What does calc.py do?"]);
    let SessionEntry::Message(answer) = &first.entries[2] else { panic!() };
    let usage = "\"usage\":{\"input\":1200,\"output\":42,\"cost_usd\":0.0032}";
    assert!(answer.message.get().contains(usage), "{}", answer.message.get());
    let edit = by_title(&all, "Add a docstring @@edit@@");
    assert_eq!(said(edit).len(), 2);
    assert!(transcript(edit)[3].starts_with("aider.console: Tokens"));
    // What was quoted did not change who said it.
    let hostile = by_title(&all, "A multi-line");
    assert_eq!(said(hostile).len(), 2);
    assert!(told(&hostile.outgoing(), false)[1].ends_with("> with a quote\n#### and a heading\n@@think@@"));
    assert_eq!(said(by_title(&all, "Continue after restore")).len(), 2);
    let failed = by_title(&all, "Fail @@err400@@");
    assert_eq!(said(failed)[1], "assistant failed [litellm.BadRequestError: OpenAIException]: ");
    let commands = by_title(&all, "Hello from stdin session");
    assert_eq!(
        said(commands)[2..],
        [
            "user: /run echo hello-run",
            "user: /ask Why?",
            "user: Why?",
            "assistant: Plain reply: Why?",
            "user: /clear",
            "user: After clear",
            "assistant: Plain reply: After clear",
            "user: /exit",
        ]
    );
}

#[test]
fn a_file_that_grows_is_read_on() {
    let text = std::fs::read_to_string(fixture()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(".aider.chat.history.md");
    std::fs::write(&path, &text).unwrap();
    let whole = read(&path);
    let trees = |all: &Collected| -> Vec<Vec<String>> { all.sessions.values().map(transcript).collect() };
    let mut lines = 0;
    for line in text.split_inclusive('\n') {
        lines += line.len();
        std::fs::write(&path, &text[..lines]).unwrap();
        let mut all = Collected::default();
        let mark = read_on(&path, None, &mut all);
        std::fs::write(&path, &text).unwrap();
        let mark = read_on(&path, Some(&mark), &mut all);
        assert_eq!(trees(&all), trees(&whole), "cut after {lines} bytes");
        assert_eq!(read_on(&path, Some(&mark), &mut all), mark);
    }
    // Another file in its place is read from its start.
    let mut all = Collected::default();
    let mark = read_on(&path, None, &mut all);
    std::fs::write(&path, "\n# aider chat started at 2027-01-01 00:00:00\n\n#### New  \n").unwrap();
    read_on(&path, Some(&mark), &mut all);
    assert_eq!(by_title(&all, "New").entries.len(), 1);
}

#[test]
fn aider_to_aider_gives_the_same_text() {
    let all = read(&fixture());
    let original = std::fs::read_to_string(fixture()).unwrap();
    let runs: Vec<&str> = original.split("\n# aider chat started at ").skip(1).collect();
    for (session, run) in all.sessions.values().zip(runs) {
        let home = tempfile::tempdir().unwrap();
        let written = write(&session.outgoing(), home.path());
        assert_eq!(written.command, ["aider", "--restore-chat-history"]);
        let text = std::fs::read_to_string(&written.paths[0]).unwrap();
        // Our own lines, blank lines, and a blank before what a model quoted are all that differs.
        let plain = |text: &str| -> Vec<String> {
            let lines =
                text.lines().skip(1).filter(|line| !line.starts_with("# x_banyan") && !line.trim().is_empty());
            lines.map(|line| line.trim_start().to_owned()).collect()
        };
        assert_eq!(plain(text.trim_start()), plain(run));
        let back = read(&written.paths[0]);
        assert_eq!(tree(&back.sessions[session.head.session.as_str()]), tree(session));
    }
}

#[test]
fn what_aider_adds_to_our_session_is_added_to_ours() {
    let home = tempfile::tempdir().unwrap();
    let session = read(&fixture()).sessions.into_values().nth(2).unwrap();
    std::fs::write(home.path().join(".aider.chat.history.md"), "# aider chat started at 2020-01-01 00:00:00\n")
        .unwrap();
    let written = write(&session.outgoing(), home.path());
    let path = written.paths[0].clone();
    assert_eq!(written.command[2..], ["--chat-history-file", path.to_str().unwrap()]);
    let mut all = Collected::default();
    let mark = read_on(&path, None, &mut all);
    let more = "\n# aider chat started at 2026-11-16 10:00:00\n\n> Aider v0.86.2  \n> Restored previous conversation history.  \n\n#### And now?  \n\nNow this.\n\n";
    let text = std::fs::read_to_string(&path).unwrap() + more;
    std::fs::write(&path, text).unwrap();
    read_on(&path, Some(&mark), &mut all);
    let now = &all.sessions[session.head.session.as_str()];
    assert_eq!(all.sessions.len(), 1);
    assert_eq!(
        transcript(now)[session.entries.len()..],
        ["aider.console: Aider v0.86.2 Restored previous conversa", "user: And now?", "assistant: Now this."]
    );
}

#[test]
fn damage_is_said_and_the_rest_is_read() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(".aider.chat.history.md");
    let mut bytes = b"no header\n#### half \xff\xfe  \n> not finished\nand on".to_vec();
    std::fs::write(&path, &bytes).unwrap();
    let all = read(&path);
    let session = all.sessions.values().next().unwrap();
    assert_eq!(
        transcript(session),
        [
            "assistant: no header",
            "user: half \u{fffd}\u{fffd}",
            "aider.console: not finished",
            "assistant: and on"
        ]
    );
    assert_eq!(all.notes.len(), 1);
    bytes.clear();
    std::fs::write(&path, &bytes).unwrap();
    assert!(read(&path).sessions.is_empty());
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_written_is_read_again(session in sessions()) {
        let home = tempfile::tempdir().unwrap();
        let written = write(&session, home.path());
        let back = read(&written.paths[0]);
        prop_assert_eq!(back.sessions.len(), 1);
        let back = back.sessions["s_generated"].outgoing();
        let ids: Vec<_> = session.entries.iter().map(SessionEntry::id).collect();
        prop_assert!(back.entries.iter().all(|entry| ids.contains(&entry.id())));
        let users = |session: &Outgoing| -> Vec<String> {
            let lines = told(session, false).into_iter();
            lines.filter(|line| line.starts_with("user: ") && !line.starts_with("user: [image")).collect()
        };
        prop_assert_eq!(users(&back), users(&session));
        // Every word is there, in order.
        let all = words(&told(&back, false).join("\n"));
        let mut from = 0;
        for line in told(&session, false) {
            let Some((who, text)) = line.split_once(": ") else { continue };
            // Pictures are lost, calls look otherwise, and what was made up for a call without a result is not read.
            if text.starts_with("[image") || who.contains(" calls ") || text.starts_with("[The call was interrupted") {
                continue;
            }
            let text = words(text);
            let at = all[from..].find(&text);
            prop_assert!(at.is_some(), "{text:?} is not in {:?}", &all[from..]);
            from += at.unwrap() + text.len();
        }
    }
}
