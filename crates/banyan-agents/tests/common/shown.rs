//! Sessions as a few lines of text, and readings that are cut and taken up again.

#![allow(dead_code, unreachable_pub, reason = "each test program uses some of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

use banyan_agents::{Agent, Destination, Mark, Source, Written, agent};
use banyan_model::{AgentMessage, ContentBlock, SessionEntry};

use crate::common::{Collected, Session};

/// Where the samples of an agent are.
pub fn fixtures(agent: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(agent)
}

/// The agent of a name.
pub fn the(name: &str) -> &'static dyn Agent {
    agent(name).unwrap()
}

/// Reads every source of a place.
pub fn read(name: &str, place: &Path) -> Collected {
    let mut told = Collected::default();
    for source in the(name).sources(place).unwrap() {
        the(name).read(&source, None, &mut told).unwrap();
    }
    told
}

/// The session whose id ends so.
pub fn session<'a>(told: &'a Collected, end: &str) -> &'a Session {
    let found: Vec<_> = told.sessions.iter().filter(|(id, _)| id.ends_with(end)).collect();
    assert_eq!(found.len(), 1, "sessions that end in {end}: {:?}", told.sessions.keys());
    found[0].1
}

/// The active path, one line an entry.
pub fn path(session: &Session) -> Vec<String> {
    session.outgoing().path().into_iter().map(line).collect()
}

/// The messages of the active path, without an agent's own context and records.
pub fn said(session: &Session) -> Vec<String> {
    let beside = |line: &String| line.starts_with('(');
    path(session).into_iter().filter(|line| !beside(line)).collect()
}

/// An entry as one line.
pub fn line(entry: &SessionEntry) -> String {
    let entry = match entry {
        SessionEntry::Custom(entry) => return format!("({})", entry.custom_type),
        SessionEntry::Message(entry) => entry,
    };
    match entry.message.parse().unwrap() {
        AgentMessage::User(message) => format!("user: {}", blocks(&message.content)),
        AgentMessage::Assistant(message) => {
            let error = message.error_message.map(|error| format!(" ERROR {error}")).unwrap_or_default();
            format!("assistant: {}{error}", blocks(&message.content))
        }
        AgentMessage::FunctionResult(message) => {
            let failed = if message.is_error { " failed" } else { "" };
            format!("result{failed} {}: {}", message.function_call_id, blocks(&message.content))
        }
        AgentMessage::Custom(message) => format!("({} {})", message.custom_type, blocks(&message.content)),
    }
}

fn blocks(content: &[ContentBlock]) -> String {
    let shown = content.iter().map(|block| match block {
        ContentBlock::Text(text) => short(&text.text),
        ContentBlock::Image(image) => format!("[{} {}]", image.mime, image.data.len()),
        ContentBlock::Thinking(thinking) => format!("[thinking {}]", short(&thinking.text)),
        ContentBlock::FunctionCall(call) => {
            format!("[call {} {} {}]", call.id, call.function_id, short(call.arguments.get()))
        }
        ContentBlock::FunctionResult(result) => format!("[result {}]", result.function_call_id),
        ContentBlock::File(file) => format!("[file {}]", file.name),
    });
    shown.collect::<Vec<_>>().join(" ")
}

fn short(text: &str) -> String {
    let line = text.replace('\n', "⏎");
    if line.chars().count() <= 60 { line } else { format!("{}…", line.chars().take(59).collect::<String>()) }
}

/// Everything that two readings told is the same.
pub fn assert_same(left: &Collected, right: &Collected, why: &str) {
    let ids = |told: &Collected| told.sessions.keys().cloned().collect::<Vec<_>>();
    assert_eq!(ids(left), ids(right), "{why}");
    for (id, left) in &left.sessions {
        let right = &right.sessions[id];
        assert_eq!(left.head, right.head, "{why}: head of {id}");
        assert_eq!(left.leaf, right.leaf, "{why}: leaf of {id}");
        assert_eq!(left.entries, right.entries, "{why}: entries of {id}");
    }
}

/// Reads a file that grows line by line, each time from where the last reading stopped; and, for every line, once before it and then all of it.
pub fn assert_can_be_continued(name: &str, file: &Path) {
    let agent = the(name);
    let lines: Vec<Vec<u8>> =
        fs::read(file).unwrap().split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let source = || -> Source {
        let found = agent.sources(file).unwrap();
        assert_eq!(found.len(), 1);
        found.into_iter().next().unwrap()
    };
    let mut at_once = Collected::default();
    agent.read(&source(), None, &mut at_once).unwrap();
    let mut grown = Collected::default();
    let mut mark: Option<Mark> = None;
    for end in 1..=lines.len() {
        fs::write(file, lines[..end].concat()).unwrap();
        mark = Some(agent.read(&source(), mark.as_ref(), &mut grown).unwrap());
    }
    assert_same(&grown, &at_once, "line by line");
    for cut in 1..lines.len() {
        fs::write(file, lines[..cut].concat()).unwrap();
        let mut told = Collected::default();
        let mark = agent.read(&source(), None, &mut told).unwrap();
        fs::write(file, lines.concat()).unwrap();
        let mark = agent.read(&source(), Some(&mark), &mut told).unwrap();
        assert_same(&told, &at_once, &format!("cut after line {cut}"));
        let bytes = told.bytes;
        agent.read(&source(), Some(&mark), &mut told).unwrap();
        assert_eq!(told.bytes, bytes, "nothing new is read again");
    }
}

/// Writes a session to an agent and gives the file.
pub fn write(name: &str, session: &Session, home: &Path, cwd: &str) -> Written {
    let to = Destination { home: home.to_owned(), cwd: cwd.into(), now_ms: 1_800_000_000_000 };
    the(name).write(&session.outgoing(), &to).unwrap()
}
