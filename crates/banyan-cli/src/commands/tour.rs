//! `banyan tour`: a first session, step by step.

use std::io::{self, BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, thread};

use banyan::model::*;
use clap::Args;

use super::ls::Table;
use crate::args::Globals;
use crate::calls::ask;
use crate::client::{Access, Client, Directory};
use crate::failure::Failure;
use crate::screen::{Screen, Style};
use crate::words::{clip, size};

/// Walk through a first session.
///
/// Each step says what it does and which command does the same. The walk takes place in the directory given with
/// --data, beside what is there, or else in a new one among the system's temporary files.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TourArgs {}

const EXAMPLES: &str = "\
Examples:
  banyan tour
  banyan tour --data ./sessions";

const QUESTION: &str = "What is the weather like in Lisbon?";
const REPLY: [&str; 11] =
    ["Sunny", ", ", "24 degrees", ", ", "and ", "a light ", "wind ", "from ", "the ", "sea", "."];
const OTHER_REPLY: &str = "Let me look that up. Today or tomorrow?";

pub(crate) fn run(_args: &TourArgs, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    if globals.url.is_some() {
        return Err(Failure::usage("the tour takes place in a data directory; leave --url out"));
    }
    let dir = match &globals.data {
        Some(dir) => dir.clone(),
        None => fresh_dir()?,
    };
    let globals = Globals { data: Some(dir.clone()), ..globals.clone() };
    screen.line("Banyan keeps the conversations of agents and people. This walk makes one, and looks at it.")?;
    screen.line(&format!("It takes place in {}", dir.display()))?;
    let client = Directory::open_at(&dir, &globals, Access::Create)?;
    let mut walk = Walk { client: &client, prompt: globals.prompt(), screen, steps: 0 };
    let walked = walk.through();
    client.close()?;
    let session = walked?;
    walk.file(&dir, &session)?;
    walk.farewell(&session)
}

struct Walk<'a> {
    client: &'a dyn Client,
    prompt: String,
    screen: &'a mut Screen,
    steps: usize,
}

impl Walk<'_> {
    /// Everything that needs the store; gives the session that was made.
    fn through(&mut self) -> Result<SessionId, Failure> {
        self.step("A session is one conversation. Make one:")?;
        self.command("call session::create '{\"title\":\"Weather in Lisbon\"}'")?;
        let title = Some("Weather in Lisbon".to_owned());
        let session = ask(self.client, &CreateRequest { title, ..CreateRequest::default() })?.session_id;
        self.result(session.as_str())?;

        self.step("Say something in it. Messages follow one another, and each gets an id:")?;
        self.command("call session::append - < question.json")?;
        let asked = self.append(&session, user(QUESTION))?;
        self.result(&format!("user: {QUESTION}"))?;
        self.result(asked.as_str())?;

        self.step("An agent answers token by token. Each token is stored before the next one comes:")?;
        self.command("call session::extend-message '{\"text\":\"Sunny\", …}'")?;
        self.stream(&session)?;

        self.step("Try another answer without losing the first. A fork shares what came before:")?;
        self.command(&format!("fork {session} {asked} --title 'Weather, asked again'"))?;
        let title = Some("Weather, asked again".to_owned());
        let fork =
            ask(self.client, &ForkRequest { session_id: session.clone(), entry_id: asked, title })?.session_id;
        self.append(&fork, assistant(OTHER_REPLY))?;
        self.result(fork.as_str())?;
        self.result(&format!("assistant: {OTHER_REPLY}"))?;

        self.step("Both are there:")?;
        self.command("ls")?;
        let sessions = ask(self.client, &ListRequest { limit: Some(10), ..ListRequest::default() })?.sessions;
        let table = Table::for_rows(&sessions, self.screen);
        table.head(self.screen)?;
        sessions.iter().try_for_each(|meta| table.row(meta, self.screen))?;
        Ok(session)
    }

    /// Streams the reply into a session.
    fn stream(&mut self, session: &SessionId) -> Result<(), Failure> {
        let status = |status| SetStatusRequest { session_id: session.clone(), status, reason: None };
        ask(self.client, &status(SessionStatus::Working))?;
        let entry_id = self.append(session, assistant(""))?;
        self.screen.now("  assistant: ")?;
        let mut revision = Revision(0);
        for token in REPLY {
            let request = ExtendMessageRequest {
                session_id: session.clone(),
                entry_id: entry_id.clone(),
                text: token.to_owned(),
                block: None,
                expected_revision: None,
                origin: None,
            };
            revision = ask(self.client, &request)?.revision;
            self.screen.now(token)?;
            if self.screen.is_terminal() {
                thread::sleep(Duration::from_millis(80));
            }
        }
        ask(self.client, &status(SessionStatus::Done))?;
        self.screen.line("")?;
        self.result(&format!("{} calls, {revision} revisions, each durable when it was answered.", REPLY.len()))
    }

    /// The session's file, once the store is closed.
    fn file(&mut self, dir: &Path, session: &SessionId) -> Result<(), Failure> {
        let path = dir.join(format!("{session}.jsonl"));
        self.step("A session is one file, a record a line, that any tool can read:")?;
        let text = fs::read_to_string(&path)
            .map_err(|error| Failure::storage(format!("{} could not be read: {error}", path.display())))?;
        self.result(&format!("{} ({})", path.display(), size(text.len() as u64)))?;
        let room = self.screen.columns().unwrap_or(120).saturating_sub(2);
        let mut lines = text.lines();
        self.result(lines.next().unwrap_or_default())?;
        // What stands before the type is the same kind of thing in every record.
        let told =
            |line: &str| line.find("\"type\"").map_or(line.to_owned(), |from| format!("… {}", &line[from..]));
        lines.try_for_each(|line| self.result(&clip(&told(line), room)))
    }

    fn farewell(&mut self, session: &SessionId) -> Result<(), Failure> {
        self.step("Go on by yourself:")?;
        for (command, what) in [
            (format!("show {session}"), "read it"),
            (format!("tail {session}"), "see how it came to be, event by event"),
            ("call --list".to_owned(), "everything that can be called"),
            ("call session::append --schema".to_owned(), "what a call takes"),
            ("--help".to_owned(), "the other commands"),
        ] {
            self.result(&self.screen.paint(Style::Aside, &format!("# {what}")))?;
            self.result(&format!("{} {command}", self.prompt))?;
        }
        Ok(())
    }

    fn append(&self, session_id: &SessionId, message: AgentMessage) -> Result<EntryId, Failure> {
        let request = AppendRequest {
            session_id: session_id.clone(),
            message: Some(message),
            custom: None,
            parent_id: None,
            entry_id: None,
            origin: None,
            expected_leaf: None,
        };
        Ok(ask(self.client, &request)?.entry_id)
    }

    /// The next step; a person at a terminal says when.
    fn step(&mut self, about: &str) -> Result<(), Failure> {
        if self.screen.is_terminal() && io::stdin().is_terminal() && self.steps > 0 {
            self.screen.now(&self.screen.paint(Style::Aside, "\n(press Enter) "))?;
            // Without an answer the walk goes on just the same.
            let _ = io::stdin().lock().read_line(&mut String::new());
        } else {
            self.screen.line("")?;
        }
        self.steps += 1;
        let about = format!("{}. {about}", self.steps);
        self.screen.line(&self.screen.paint(Style::Heading, &about))
    }

    fn command(&mut self, rest: &str) -> Result<(), Failure> {
        self.screen.line(&format!("  $ banyan {rest}"))
    }

    fn result(&mut self, line: &str) -> Result<(), Failure> {
        self.screen.line(&format!("  {line}"))
    }
}

fn user(text: &str) -> AgentMessage {
    AgentMessage::User(UserMessage { content: vec![ContentBlock::text(text)], timestamp: now_ms() })
}

fn assistant(text: &str) -> AgentMessage {
    AgentMessage::Assistant(AssistantMessage {
        content: vec![ContentBlock::text(text)],
        model: "a-model".to_owned(),
        provider: "a-provider".to_owned(),
        stop_reason: StopReason::End,
        native_stop_reason: None,
        error_kind: None,
        error_message: None,
        usage: None,
        warnings: None,
        agent: None,
        timestamp: now_ms(),
    })
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A new directory, which nobody had before.
fn fresh_dir() -> Result<PathBuf, Failure> {
    let mut number = now_ms();
    loop {
        let dir = std::env::temp_dir().join(format!("banyan-tour-{number}"));
        match fs::create_dir(&dir) {
            Ok(()) => return Ok(dir),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => {
                let message = format!("{} could not be made: {error}; pass --data DIR", dir.display());
                return Err(Failure::storage(message));
            }
        }
    }
}
