//! Reads a chat: every line is an entry, or a few.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use banyan_model::{
    AgentMessage, ContentBlock, EntryId, FunctionResultMessage, Json, Object, SessionId, SessionStatus,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ID;
use super::place::metadata_of;
use super::record::{Line, Piece, Told, origin, pieces, text};
use crate::build::{Place, title_of};
use crate::{Between, Head, Lines, Mark, Note, Own, Problem, Sink, Source, Taken, entry_id, session_id};

/// What is known after a part of a chat was read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct State {
    place: Between,
    head: Option<Head>,
    #[serde(default)]
    model: String,
    /// The last line, and the entry that it became.
    last: Option<(String, EntryId)>,
    /// Lines whose entries have other ids than their own would give them.
    #[serde(default)]
    others: HashMap<String, Option<EntryId>>,
    /// The last entry, while it is an answer of which more can come.
    answer: Option<Answer>,
}

/// An answer of which more can come.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Answer {
    entry: EntryId,
    parent: Option<EntryId>,
    at: i64,
    message: AgentMessage,
    pieces: Vec<Piece>,
}

pub(super) fn read(source: &Source, mark: Option<&Mark>, sink: &mut dyn Sink) -> Result<Mark, Problem> {
    let state: State = mark.and_then(|mark| mark.0.parse().ok()).unwrap_or_default();
    let lines = Lines::open(&source.path, state.place)?;
    let state = if lines.anew() { State::default() } else { state };
    let told = state.head.clone();
    if let Some(head) = &told {
        sink.head(head)?;
    }
    let mut reader = Reader { path: &source.path, state, seen: HashSet::new() };
    let place = lines.each(sink, |line, sink| reader.line(line, sink))?;
    let Reader { mut state, .. } = reader;
    state.place = place;
    if let Some(head) = &state.head {
        if told.as_ref() != Some(head) {
            sink.head(head)?;
        }
        if let Some((_, entry)) = &state.last {
            sink.leaf(&head.session, entry)?;
        }
    }
    Ok(Mark(Json::of(&state)?))
}

struct Reader<'a> {
    path: &'a Path,
    state: State,
    /// The entries that this reading told.
    seen: HashSet<EntryId>,
}

impl Reader<'_> {
    fn line(&mut self, line: &crate::Line<'_>, sink: &mut dyn Sink) -> Result<Taken, Problem> {
        let read: Line<'_> = match serde_json::from_str(&line.text) {
            Ok(read) => read,
            Err(error) => return self.strange(line, &error.to_string(), sink),
        };
        let record: Object = match serde_json::from_str(&line.text) {
            Ok(record) => record,
            Err(error) => return Ok(Taken::NotARecord(error.to_string())),
        };
        let session = self.session(&read, &record, sink)?;
        self.heard(&read, &record);
        let own = read.own.clone().filter(|own| own.session == session);
        let parent = self.parent(&session, &read, line.number, sink)?;
        if own.as_ref().is_some_and(|own| own.made_up) {
            self.state.others.insert(read.uuid.to_owned(), parent.clone());
            self.state.last = parent.map(|parent| (read.uuid.to_owned(), parent));
            return Ok(Taken::Yes);
        }
        let at = read.at().or(self.state.head.as_ref().map(|head| head.updated_at)).unwrap_or_default();
        let told = read.told(record, &self.state.model, at);
        if self.goes_on(&read, own.as_ref(), &told) {
            return self.more(&session, &read, told, sink);
        }
        let (id, is_other) = self.id(&session, &read, own.as_ref(), line.number, sink);
        self.state.answer = None;
        match told {
            Told::Message(message, origin) => {
                self.title(&message);
                let place =
                    Place { id: id.clone(), parent: parent.clone(), at, revision: 0, origin: Some(origin.into()) };
                let pieces = pieces(place.origin.as_ref());
                self.tell(&session, place.message(&message)?, sink)?;
                if matches!(*message, AgentMessage::Assistant(_)) && !pieces.is_empty() {
                    self.state.answer = Some(Answer { entry: id.clone(), parent, at, message: *message, pieces });
                }
            }
            Told::Results(results, origin) => self.results(&session, &id, parent, results, origin, sink)?,
            Told::Record(kind, record) => {
                let place = Place { id: id.clone(), parent, at, revision: 0, origin: None };
                let entry = place.custom(format!("{ID}.{kind}"), Json::of(&record)?);
                self.tell(&session, entry, sink)?;
            }
        }
        if is_other {
            self.state.others.insert(read.uuid.to_owned(), Some(id.clone()));
        }
        self.state.last = Some((read.uuid.to_owned(), id));
        Ok(Taken::Yes)
    }

    /// A line that is not like the others is kept if it is an object.
    fn strange(&mut self, line: &crate::Line<'_>, why: &str, sink: &mut dyn Sink) -> Result<Taken, Problem> {
        if line.glued {
            return Ok(Taken::is_a_part());
        }
        let record = serde_json::from_str::<Object>(&line.text);
        let (Ok(_), Some(head)) = (record, &self.state.head) else { return Ok(Taken::NotARecord(why.to_owned())) };
        let session = head.session.clone();
        let parent = self.state.last.as_ref().map(|(_, entry)| entry.clone());
        let id = entry_id(&session, &format!("line:{}", line.number));
        let place = Place { id: id.clone(), parent, at: head.updated_at, revision: 0, origin: None };
        let entry = place.custom(format!("{ID}.record"), Json::from_text(&line.text)?);
        self.tell(&session, entry, sink)?;
        let last = self.state.last.take().map(|(uuid, _)| uuid).unwrap_or_default();
        self.state.others.insert(last.clone(), Some(id.clone()));
        self.state.last = Some((last, id));
        Ok(Taken::Yes)
    }

    fn session(&mut self, line: &Line<'_>, record: &Object, sink: &mut dyn Sink) -> Result<SessionId, Problem> {
        if let Some(head) = &self.state.head {
            return Ok(head.session.clone());
        }
        let native = match &line.agent {
            Some(agent) => format!("{}.{}", &*line.session, &**agent),
            None => (*line.session).to_owned(),
        };
        let session = line.own.as_ref().map_or_else(|| session_id(ID, &native), |own| own.session.clone());
        let at = line.at().unwrap_or_default();
        let head = Head {
            session: session.clone(),
            title: String::new(),
            created_at: at,
            updated_at: at,
            status: SessionStatus::Idle,
            metadata: metadata_of(self.path, &native, line, record),
            forked_from: None,
        };
        sink.head(&head)?;
        self.state.head = Some(head);
        Ok(session)
    }

    /// Takes from a line what is of interest to the whole session.
    fn heard(&mut self, line: &Line<'_>, record: &Object) {
        let Some(head) = &mut self.state.head else { return };
        head.updated_at = head.updated_at.max(line.at().unwrap_or_default());
        let mut put = |key: &str, value: &str| {
            if head.metadata.get(key).and_then(Value::as_str) != Some(value) {
                head.metadata.insert(key.to_owned(), value.into());
            }
        };
        let text = |key: &str| record.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        if let Some(model) = text("model") {
            put("model", model);
            model.clone_into(&mut self.state.model);
        }
        for (key, name) in [("version", "version"), ("gitBranch", "git_branch")] {
            if let Some(value) = text(key) {
                put(name, value);
            }
        }
        let payload = |key: &str| record.get("systemPayload").and_then(|payload| payload.get(key)?.as_str());
        match line.subtype.as_deref() {
            Some("custom_title") => head.title = payload("customTitle").unwrap_or_default().to_owned(),
            Some("parent_session") => {
                let parent = session_id(ID, payload("parentSessionId").unwrap_or_default());
                head.metadata.insert("parent_session_id".to_owned(), parent.as_str().into());
            }
            _ => {}
        }
        if let (None, Some(forked)) = (&head.forked_from, &line.forked_from) {
            head.forked_from = Some(session_id(ID, &forked.session));
        }
    }

    fn title(&mut self, message: &AgentMessage) {
        let (AgentMessage::User(message), Some(head)) = (message, &mut self.state.head) else { return };
        if head.title.is_empty() {
            head.title = message.content.iter().find_map(text).map(title_of).unwrap_or_default();
        }
    }

    /// The entry that a line follows. One that is not there was lost with its line, and the line before takes its place.
    fn parent(
        &mut self,
        session: &SessionId,
        line: &Line<'_>,
        number: u64,
        sink: &mut dyn Sink,
    ) -> Result<Option<EntryId>, Problem> {
        let Some(parent) = line.parent.as_deref() else { return Ok(None) };
        if let Some(known) = self.state.others.get(parent) {
            return Ok(known.clone());
        }
        if let Some((_, last)) = self.state.last.as_ref().filter(|(last, _)| last == parent) {
            return Ok(Some(last.clone()));
        }
        let id = entry_id(session, parent);
        if sink.knows(session, &id)? {
            return Ok(Some(id));
        }
        let what = format!("what it follows ({parent}) is not there; it was put after the line before");
        sink.note(Note { place: format!("line {number}"), what, lost: false });
        Ok(self.state.last.as_ref().map(|(_, last)| last.clone()))
    }

    /// The id of a line's entry, and whether it is another one than the line's own id would give.
    fn id(
        &mut self,
        session: &SessionId,
        line: &Line<'_>,
        own: Option<&Own>,
        number: u64,
        sink: &mut dyn Sink,
    ) -> (EntryId, bool) {
        let id = entry_id(session, &line.uuid);
        if let Some(own) = own.and_then(|own| own.entry.clone()) {
            let is_other = own != id;
            return (own, is_other);
        }
        if !self.seen.insert(id.clone()) {
            let what = format!("the id {} stands twice; the second line has another one now", &*line.uuid);
            sink.note(Note { place: format!("line {number}"), what, lost: false });
            return (entry_id(session, &format!("{}#{number}", &*line.uuid)), true);
        }
        (id, false)
    }

    /// Whether a line has more of the answer before it: the calls of a sub-agent stand on a line of their own, and lines of ours say so.
    fn goes_on(&self, line: &Line<'_>, own: Option<&Own>, told: &Told) -> bool {
        let Some(answer) = &self.state.answer else { return false };
        let is_next = self.state.last.as_ref().is_some_and(|(last, _)| line.parent.as_deref() == Some(last));
        let Told::Message(message, _) = told else { return false };
        let AgentMessage::Assistant(message) = &**message else { return false };
        if let Some(own) = own {
            return is_next && own.entry.as_ref() == Some(&answer.entry);
        }
        let calls = message.content.iter().all(|block| matches!(block, ContentBlock::FunctionCall(_)));
        is_next && calls && !message.content.is_empty() && message.usage.is_none() && line.agent.is_some()
    }

    fn more(
        &mut self,
        session: &SessionId,
        line: &Line<'_>,
        told: Told,
        sink: &mut dyn Sink,
    ) -> Result<Taken, Problem> {
        let (Told::Message(more, from), Some(answer)) = (told, &mut self.state.answer) else {
            return Ok(Taken::Yes);
        };
        let AgentMessage::Assistant(more) = *more else { return Ok(Taken::Yes) };
        answer.pieces.extend(pieces(Some(&from.into())));
        if let AgentMessage::Assistant(message) = &mut answer.message {
            message.content.extend(more.content);
            message.stop_reason = more.stop_reason;
            message.usage = message.usage.take().or(more.usage);
        }
        let Answer { entry, parent, at, message, pieces } = answer.clone();
        let revision = pieces.len() as u64 - 1;
        let place = Place { id: entry.clone(), parent, at, revision, origin: Some(origin(pieces).into()) };
        let told = place.message(&message)?;
        self.state.others.insert((*line.uuid).to_owned(), Some(entry.clone()));
        self.state.last = Some(((*line.uuid).to_owned(), entry));
        self.tell(session, told, sink)?;
        Ok(Taken::Yes)
    }

    /// Results of one line stand one after the other; the last one has the line's id, so that what follows finds it.
    fn results(
        &mut self,
        session: &SessionId,
        id: &EntryId,
        mut parent: Option<EntryId>,
        results: Vec<FunctionResultMessage>,
        origin: Object,
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        let mut origin = Some(origin);
        let last = results.len().saturating_sub(1);
        for (place, result) in results.into_iter().enumerate() {
            let id = if place == last { id.clone() } else { entry_id(session, &format!("{id}#{place}")) };
            let at = result.timestamp;
            let place = Place {
                id: id.clone(),
                parent: parent.replace(id),
                at,
                revision: 0,
                origin: origin.take().map(Object::into),
            };
            self.tell(session, place.message(&AgentMessage::FunctionResult(result))?, sink)?;
        }
        Ok(())
    }

    fn tell(
        &self,
        session: &SessionId,
        entry: banyan_model::SessionEntry,
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        Ok(sink.entry(session, entry)?)
    }
}
