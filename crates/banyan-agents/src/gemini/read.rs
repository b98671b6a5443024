//! Reads a chat: every record of the log in turn, or the one object that it is.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use banyan_model::{Json, Object, SessionId, SessionStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ID;
use super::message::own;
use super::place::{is_a_conversation, metadata_in, metadata_of};
use super::tell::Via;
use super::tree::Tree;
use crate::build::millis;
use crate::{Between, Head, Line, Lines, Mark, Problem, Sink, Source, Taken, session_id};

/// What is known after a part of a chat was read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct State {
    place: Between,
    pub(super) head: Option<Head>,
    #[serde(default)]
    pub(super) model: String,
    /// Calls whose result was made up by us.
    #[serde(default)]
    pub(super) made_up: HashSet<String>,
    pub(super) tree: Tree,
}

pub(super) fn read(source: &Source, mark: Option<&Mark>, sink: &mut dyn Sink) -> Result<Mark, Problem> {
    let path = &source.path;
    let mut state: State = mark.and_then(|mark| mark.0.parse().ok()).unwrap_or_default();
    state.tree.index();
    let told = state.head.clone();
    if let Some(head) = &told {
        sink.head(head)?;
    }
    let mut reader = Reader { path, state };
    if path.extension().is_some_and(|suffix| suffix == "json") {
        reader.whole(sink)?;
    } else {
        reader.lines(sink)?;
    }
    let Reader { state, .. } = reader;
    if let Some(head) = &state.head {
        if told.as_ref() != Some(head) {
            sink.head(head)?;
        }
        if let Some(tail) = state.tree.tail.and_then(|at| state.tree.get(at)) {
            sink.leaf(&head.session, &tail.entry)?;
        }
    }
    Ok(Mark(Json::of(&state)?))
}

/// Whether a record has what records have and their parts do not.
fn is_whole(record: &Object) -> bool {
    let has = |keys: &[&str]| keys.iter().all(|key| record.contains_key(*key));
    has(&["$rewindTo"])
        || has(&["$set"])
        || has(&["sessionId", "projectHash"])
        || has(&["id", "type", "timestamp"])
}

pub(super) struct Reader<'a> {
    path: &'a Path,
    pub(super) state: State,
}

impl Reader<'_> {
    fn lines(&mut self, sink: &mut dyn Sink) -> Result<(), Problem> {
        let lines = Lines::open(self.path, self.state.place)?;
        if self.state.head.is_none() && !is_a_conversation(self.path) {
            return Ok(());
        }
        if lines.anew() {
            // What was told stays known, so nothing is told twice.
            self.state.tree.tail = None;
        }
        let place = lines.each(sink, |line, sink| self.line(line, sink))?;
        self.state.place = place;
        Ok(())
    }

    /// The form before the log: one object with a list of messages.
    fn whole(&mut self, sink: &mut dyn Sink) -> Result<(), Problem> {
        let bytes = fs::read(self.path).map_err(|error| Problem::io(self.path, error))?;
        sink.progress(bytes.len() as u64);
        let chat: Object = serde_json::from_slice(&bytes)
            .map_err(|error| Problem::form(self.path, format!("not a chat of Gemini CLI: {error}")))?;
        let mut metadata = chat;
        let messages = metadata.remove("messages").unwrap_or_default();
        let session = self.session(&metadata, sink)?;
        self.metadata(&session, 1, &metadata, sink)?;
        if let Some(summary) = metadata.get("summary").and_then(Value::as_str) {
            self.rename(summary);
        }
        self.list(&session, messages.as_array().map(Vec::as_slice).unwrap_or_default(), sink)
    }

    fn line(&mut self, line: &Line<'_>, sink: &mut dyn Sink) -> Result<Taken, Problem> {
        let record: Object = match serde_json::from_str(&line.text) {
            Ok(record) => record,
            Err(error) => return Ok(Taken::NotARecord(error.to_string())),
        };
        if line.glued && !is_whole(&record) {
            return Ok(Taken::is_a_part());
        }
        let session = self.session(&record, sink)?;
        if let Some(rewound) = record.get("$rewindTo").and_then(Value::as_str) {
            self.state.tree.rewind(rewound);
        } else if let Some(Value::Object(set)) = record.get("$set") {
            self.set(&session, line.number, set, &record, sink)?;
        } else if record.contains_key("sessionId") {
            self.metadata(&session, line.number, &record, sink)?;
        } else if record.get("id").is_some_and(Value::is_string)
            && record.get("type").is_some_and(Value::is_string)
        {
            self.message(&session, &record, Via::Line, sink)?;
        } else {
            self.beside(&session, &format!("line:{}", line.number), "gemini.record", &record, sink)?;
        }
        Ok(Taken::Yes)
    }

    /// The session that the file holds. The first record says, or else the first that has an id, or else the file's name.
    fn session(&mut self, first: &Object, sink: &mut dyn Sink) -> Result<SessionId, Problem> {
        if let Some(head) = &self.state.head {
            return Ok(head.session.clone());
        }
        let metadata = if first.contains_key("sessionId") {
            first.clone()
        } else {
            metadata_in(self.path).unwrap_or_default()
        };
        let stem = self.path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let native = metadata.get("sessionId").and_then(Value::as_str).unwrap_or(&stem).to_owned();
        let session = own(&metadata).map_or_else(|| session_id(ID, &native), |own| own.session);
        let time = |key: &str| metadata.get(key).and_then(Value::as_str).and_then(millis);
        let created_at = time("startTime").or_else(|| super::message::time(first)).unwrap_or_default();
        let head = Head {
            session: session.clone(),
            title: String::new(),
            created_at,
            updated_at: time("lastUpdated").unwrap_or(created_at),
            status: SessionStatus::Idle,
            metadata: metadata_of(self.path, &native, &metadata),
            forked_from: None,
        };
        sink.head(&head)?;
        self.state.head = Some(head);
        Ok(session)
    }

    fn metadata(
        &mut self,
        session: &SessionId,
        number: u64,
        record: &Object,
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        self.touched(record.get("lastUpdated"));
        if own(record).is_some() {
            return Ok(());
        }
        self.beside(session, &format!("line:{number}"), "gemini.metadata", record, sink)
    }

    fn set(
        &mut self,
        session: &SessionId,
        number: u64,
        set: &Object,
        record: &Object,
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        self.touched(set.get("lastUpdated"));
        if let Some(Value::Array(messages)) = set.get("messages") {
            self.list(session, messages, sink)?;
        }
        if let Some(summary) = set.get("summary").and_then(Value::as_str) {
            self.rename(summary);
        }
        let is_known = |key: &String| matches!(key.as_str(), "messages" | "lastUpdated" | "sessionId" | "summary");
        if set.keys().all(is_known) {
            return Ok(());
        }
        let mut rest = set.clone();
        rest.retain(|key, _| key != "messages");
        let mut record = record.clone();
        record.insert("$set".to_owned(), Value::Object(rest));
        self.beside(session, &format!("line:{number}"), "gemini.set", &record, sink)
    }

    /// The list of messages as it is from now on. What is on the path stays where it is, and what left the list stays as a branch.
    fn list(&mut self, session: &SessionId, messages: &[Value], sink: &mut dyn Sink) -> Result<(), Problem> {
        let before = self.state.tree.tail;
        self.state.tree.go_to_the_beginning();
        for message in messages {
            let Some(record) = message.as_object() else { continue };
            self.message(session, record, Via::List { before, all: messages }, sink)?;
        }
        self.state.tree.pass_what_is_beside();
        Ok(())
    }

    fn touched(&mut self, time: Option<&Value>) {
        let time = time.and_then(Value::as_str).and_then(millis);
        if let (Some(head), Some(time)) = (&mut self.state.head, time) {
            head.updated_at = head.updated_at.max(time);
        }
    }

    fn rename(&mut self, summary: &str) {
        if let Some(head) = &mut self.state.head {
            summary.trim().clone_into(&mut head.title);
        }
    }
}
