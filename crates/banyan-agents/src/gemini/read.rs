//! Reads a chat: every record of the log in turn, or the one object that it is.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use banyan_model::{AgentMessage, EntryId, FunctionResultMessage, Json, Object, SessionId, SessionStatus};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ID;
use super::message::{Answer, Body, Told, hash, own, text};
use super::place::{is_a_conversation, metadata_in, metadata_of};
use super::tree::{Found, Kind, Node, Tree};
use crate::build::{Place, millis, title_of};
use crate::{Between, Head, Line, Lines, Mark, Note, Problem, Sink, Source, Taken, entry_id, session_id};

/// What is known after a part of a chat was read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct State {
    place: Between,
    head: Option<Head>,
    #[serde(default)]
    model: String,
    /// Calls whose result was made up by us.
    #[serde(default)]
    made_up: HashSet<String>,
    tree: Tree,
}

pub(super) fn read(source: &Source, mark: Option<&Mark>, sink: &mut dyn Sink) -> Result<Mark, Problem> {
    let path = &source.path;
    let mut state: State = mark.and_then(|mark| mark.0.parse().ok()).unwrap_or_default();
    state.tree.index();
    let told = state.head.clone();
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

/// How a message was told.
#[derive(Clone, Copy)]
enum Via<'a> {
    /// By a line of its own: it is new, or replaces the one of that id.
    Line,
    /// In a list of all messages; before it, the path ended there.
    List { before: Option<usize>, all: &'a [Value] },
}

struct Reader<'a> {
    path: &'a Path,
    state: State,
}

impl Reader<'_> {
    fn lines(&mut self, sink: &mut dyn Sink) -> Result<(), Problem> {
        if self.state.head.is_none() && !is_a_conversation(self.path) {
            return Ok(());
        }
        let lines = Lines::open(self.path, self.state.place)?;
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

    fn message(
        &mut self,
        session: &SessionId,
        record: &Object,
        from: Via<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        let now = self.state.head.as_ref().map_or(0, |head| head.updated_at);
        let Some(mut told) = Told::of(record, &self.state.model, now) else {
            let what = "a message without id or type was left out".to_owned();
            sink.note(Note { place: String::new(), what, lost: true });
            return Ok(());
        };
        if let (Via::List { before, all }, Kind::Compaction) = (from, told.kind) {
            // A summary begins the list anew; here it follows what it sums up, and says what is in the list still.
            self.state.tree.tail = before.or(self.state.tree.tail);
            let ids: Vec<&Value> = all.iter().filter_map(|message| message.get("id")).collect();
            if let Body::Message(message) = &mut told.body
                && let AgentMessage::Custom(message) = &mut **message
            {
                message.details = Some(Json::of(&ids)?);
            }
        }
        if !matches!(told.body, Body::Nothing) {
            self.place(session, &told, record, from, sink)?;
        }
        for answer in told.answers {
            self.answer(session, answer, sink)?;
        }
        Ok(())
    }

    fn place(
        &mut self,
        session: &SessionId,
        told: &Told,
        record: &Object,
        from: Via<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        let tree = &mut self.state.tree;
        let found = tree.find(&told.native, tree.tail);
        let at = match found {
            Found::Passed(at) => at,
            Found::Next(at) => {
                tree.tail = Some(at);
                at
            }
            Found::No => {
                let entry = self.entry(session, told.own.as_ref(), &told.native);
                let native = told.native.clone();
                let (full, loose, kind) = (told.full, told.loose, told.kind);
                let node = Node { native, entry, parent: None, revision: 0, full, loose, kind };
                let at = self.state.tree.add(session, node);
                self.heard(told);
                return self.tell(session, at, told, record, sink);
            }
        };
        let Some(node) = tree.get_mut(at) else { return Ok(()) };
        let is_whole = told.whole || matches!(from, Via::Line);
        let changed = if is_whole { node.full != told.full } else { node.loose != told.loose };
        if !changed || matches!(told.body, Body::Record(_)) {
            return Ok(());
        }
        node.revision += 1;
        (node.full, node.loose) = (told.full, told.loose);
        self.heard(told);
        self.tell(session, at, told, record, sink)
    }

    /// Takes from a message what is of interest to the whole session.
    fn heard(&mut self, told: &Told) {
        let Some(head) = &mut self.state.head else { return };
        head.updated_at = head.updated_at.max(told.at);
        let Body::Message(message) = &told.body else { return };
        match &**message {
            AgentMessage::Assistant(message) if !message.model.is_empty() => {
                self.state.model.clone_from(&message.model);
                head.metadata.insert("model".to_owned(), message.model.clone().into());
            }
            AgentMessage::User(message) if head.title.is_empty() => {
                head.title = message.content.iter().find_map(text).map(title_of).unwrap_or_default();
            }
            _ => {}
        }
    }

    fn tell(
        &self,
        session: &SessionId,
        at: usize,
        told: &Told,
        record: &Object,
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        let Some(mut place) = self.at(at, told.at) else { return Ok(()) };
        let entry = match &told.body {
            Body::Message(message) => {
                place.origin = Some(told.origin.clone());
                place.message(message)?
            }
            Body::Record(kind) => place.custom(format!("{ID}.{kind}"), Json::of(record)?),
            Body::Nothing => return Ok(()),
        };
        Ok(sink.entry(session, entry)?)
    }

    fn answer(&mut self, session: &SessionId, answer: Answer, sink: &mut dyn Sink) -> Result<(), Problem> {
        let Answer { response, at, own } = answer;
        let call = response.call.clone();
        if own.as_ref().is_some_and(|own| own.made_up) {
            self.state.made_up.insert(call.clone());
        }
        if self.state.made_up.contains(&call) {
            return Ok(());
        }
        let native = format!("result:{call}");
        // Not whether it failed: after a resume that is not always known.
        let full = hash(&response.content);
        let tree = &mut self.state.tree;
        let at_node = match tree.find(&native, tree.tail) {
            Found::Passed(node) => node,
            Found::Next(node) => {
                tree.tail = Some(node);
                node
            }
            Found::No => {
                let entry = self.entry(session, own.as_ref(), &native);
                let kind = Kind::Said;
                let node = Node { native, entry, parent: None, revision: 0, full, loose: full, kind };
                let node = self.state.tree.add(session, node);
                return self.tell_answer(session, node, response, at, sink);
            }
        };
        let Some(node) = tree.get_mut(at_node).filter(|node| node.full != full) else { return Ok(()) };
        node.revision += 1;
        node.full = full;
        self.tell_answer(session, at_node, response, at, sink)
    }

    fn tell_answer(
        &self,
        session: &SessionId,
        node: usize,
        response: crate::parts::Response,
        timestamp: i64,
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        let Some(mut place) = self.at(node, timestamp) else { return Ok(()) };
        place.origin = response.kept.map(|kept| Object::from_iter([(ID.to_owned(), json!({"result": kept}))]));
        let message = AgentMessage::FunctionResult(FunctionResultMessage {
            function_call_id: response.call,
            function_id: response.name,
            content: response.content,
            details: Json::null(),
            is_error: response.is_error,
            timestamp,
        });
        Ok(sink.entry(session, place.message(&message)?)?)
    }

    /// A record that is no message, kept as it is.
    fn beside(
        &mut self,
        session: &SessionId,
        native: &str,
        custom_type: &str,
        record: &Object,
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        match self.state.tree.find(native, self.state.tree.tail) {
            Found::Passed(_) => return Ok(()),
            Found::Next(at) => {
                self.state.tree.tail = Some(at);
                return Ok(());
            }
            Found::No => {}
        }
        let entry = entry_id(session, native);
        let kind = Kind::Beside;
        let node = Node { native: native.to_owned(), entry, parent: None, revision: 0, full: 0, loose: 0, kind };
        let at = self.state.tree.add(session, node);
        let time = super::message::time(record).or(self.state.head.as_ref().map(|head| head.updated_at));
        let Some(place) = self.at(at, time.unwrap_or_default()) else { return Ok(()) };
        Ok(sink.entry(session, place.custom(custom_type, Json::of(record)?))?)
    }

    fn at(&self, at: usize, time: i64) -> Option<Place> {
        let node = self.state.tree.get(at)?;
        let parent = node.parent.and_then(|parent| self.state.tree.get(parent)).map(|parent| parent.entry.clone());
        Some(Place { id: node.entry.clone(), parent, at: time, revision: node.revision, origin: None })
    }

    fn entry(&self, session: &SessionId, own: Option<&crate::Own>, native: &str) -> EntryId {
        let own = own.filter(|own| own.session == *session).and_then(|own| own.entry.clone());
        own.unwrap_or_else(|| entry_id(session, native))
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
