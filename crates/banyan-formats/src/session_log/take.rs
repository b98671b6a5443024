//! What lines mean: events are put together into entries, whoever wrote them.

use std::collections::HashMap;

use banyan_model::{
    AgentMessage, AttachmentMeta, CustomEntry, EntryId, Json, MessageEntry, Object, Origin, Raw, Revision,
    SessionEntry, SessionId, SessionMeta, SessionStatus,
};
use serde::Deserialize;
use serde_json::Value;

use super::events::Open;
use super::ids::Ids;
use super::kind;
use super::read::Log;
use super::record::{Own, Record};
use super::report::Report;
use crate::audit;
use crate::history::{identity, milliseconds};
use crate::turns::{LOG, TURN_ID};

/// The custom type of entries that hold a line of a type that is not known, after which the type follows.
const UNKNOWN: &str = "session-log.";

/// Puts lines together into entries.
#[derive(Default)]
pub(super) struct Taker {
    meta: Option<Meta>,
    title: Option<String>,
    /// What a session is called whose log does not say.
    fallback_id: Option<String>,
    report: Report,
    /// The assistant message that is being told.
    pub(super) open: Option<Open>,
    seen: Ids,
    /// The newest entry of the path.
    pub(super) before: Option<EntryId>,
    /// The turn of the newest line.
    turn: Option<String>,
    given: Vec<SessionEntry>,
    last_seq: Option<u64>,
    /// Lines that could not be read since the last one that could.
    unread: u64,
    pub(super) time: i64,
    first_time: Option<i64>,
    pub(super) line: u64,
    /// The functions that calls without a result name.
    pub(super) calls: HashMap<String, String>,
}

/// What the first line says.
struct Meta {
    id: String,
    fields: Object,
    time: i64,
    own: Option<OwnMeta>,
}

#[derive(Deserialize)]
struct OwnMeta {
    meta: SessionMeta,
    #[serde(default)]
    active_leaf: Option<EntryId>,
    #[serde(default)]
    attachments: Vec<AttachmentMeta>,
}

/// An entry in the making.
pub(super) struct Draft {
    /// The id that the line names.
    pub(super) id: Option<String>,
    pub(super) own: Option<Own>,
    pub(super) time: i64,
    /// Fields that have no place in the message.
    pub(super) rest: Object,
}

/// What is around the content of an entry.
struct Placed {
    id: EntryId,
    parent_id: Option<EntryId>,
    timestamp: i64,
    revision: Revision,
    origin: Option<Origin>,
}

impl Taker {
    /// Takes a line. Broken ones are set aside.
    pub(super) fn line(&mut self, number: u64, line: &[u8]) {
        self.line = number;
        if line.is_empty() {
            return;
        }
        self.report.lines += 1;
        let taken = Record::read(line).and_then(|record| {
            if self.fallback_id.is_none() {
                self.fallback_id = Some(hashed("session", &[line]));
            }
            self.envelope(&record);
            self.record(&record)
        });
        if let Err(why) = taken {
            self.unread += 1;
            self.report.unreadable(number, &why, line);
        }
    }

    pub(super) fn too_long(&mut self, number: u64, bytes: u64, longest: usize) {
        self.report.lines += 1;
        self.unread += 1;
        self.report.aside(number, format!("the line has {bytes} bytes, and {longest} are the most that is read"));
    }

    /// The log has ended.
    pub(super) fn end(&mut self) {
        self.flush();
    }

    /// Entries that are whole.
    pub(super) fn given(&mut self) -> std::vec::Drain<'_, SessionEntry> {
        self.given.drain(..)
    }

    /// The session that a line has named.
    pub(super) fn session_id(&self) -> Option<&str> {
        self.meta.as_ref().map(|meta| meta.id.as_str())
    }

    pub(super) fn finish(mut self) -> Log {
        let fallback = self.fallback_id.take().unwrap_or_else(|| hashed("session", &[b""]));
        let meta = self.meta.take().unwrap_or_else(|| {
            self.report
                .invented(None, "the log has no session_meta line; the session's id is made of its first line");
            Meta { id: fallback, fields: Object::new(), time: self.first_time.unwrap_or_default(), own: None }
        });
        let last = self.before.take();
        let (mut session, active_leaf, attachments) = match meta.own {
            Some(own) => (own.meta, own.active_leaf, own.attachments),
            None => (foreign_meta(meta.id, meta.fields, meta.time, self.time), last.clone(), Vec::new()),
        };
        if let Some(title) = self.title {
            session.title = title;
        }
        let active_leaf = active_leaf.and_then(|leaf| {
            if self.seen.contains(&leaf) {
                return Some(leaf);
            }
            let note = format!("the active leaf `{leaf}` is not in the log; the path ends with its last entry");
            self.report.invented(None, note);
            last
        });
        Log { meta: session, active_leaf, entries: Vec::new(), attachments, report: self.report }
    }

    /// What every line says first. Nothing of it makes a line unreadable.
    fn envelope(&mut self, record: &Record) {
        if record.get("schema_version").is_none() {
            self.invented("the line has no schema_version; it is read as version 1");
        }
        let time = record.word("time").and_then(|time| milliseconds(&time));
        let time = time.or_else(|| record.parse::<i64>("time"));
        if time.is_none() {
            self.invented("the line has no time; that of the line before is taken");
        }
        self.time = time.unwrap_or(self.time);
        self.first_time.get_or_insert(self.time);
        let seq = record.parse::<u64>("seq");
        match (seq, self.last_seq) {
            (Some(seq), Some(last)) if seq <= last => {
                self.invented(format!("seq {seq} comes after {last}; the order of the lines is taken"));
            }
            (Some(seq), Some(last)) if seq - last - 1 > self.unread => {
                let note =
                    format!("by their seq, {} lines are missing before this one", seq - last - 1 - self.unread);
                self.report.aside(self.line, note);
            }
            _ => {}
        }
        self.unread = 0;
        self.last_seq = seq.or(self.last_seq);
    }

    fn record(&mut self, record: &Record) -> Result<(), String> {
        let word = record.word("type").unwrap_or_default();
        let own = match word.as_ref() {
            kind::SESSION_META => return self.session_meta(record),
            kind::ENTRY => return self.whole(record),
            kind::REDACTIONS => return Ok(()),
            _ => record.own()?,
        };
        if own.as_ref().is_some_and(|own| own.derived) {
            return Ok(());
        }
        match word.as_ref() {
            kind::USER => self.user(record, own),
            kind::ASSISTANT_STARTED => self.assistant_started(record),
            kind::REASONING_FINISHED => self.reasoning_finished(record),
            kind::TOOL_STARTED => self.tool_started(record),
            kind::ASSISTANT_FINISHED => self.assistant_finished(record, own),
            kind::TOOL_FINISHED => self.tool_finished(record, own),
            kind::CANCELLED | kind::FAILED => self.ended_badly(record, &word),
            kind::SESSION_RENAMED => {
                self.title = Some(record.text("title").ok_or("the line has no `title`")?);
                Ok(())
            }
            kind::CONTEXT => {
                let data = record.rest(&["turn_id", "message_id", "banyan"]).unwrap_or_default();
                self.flush();
                self.custom(record, own, audit::CONTEXT.to_owned(), &data)
            }
            unknown => {
                let data = record.rest(&[]).unwrap_or_default();
                let custom_type = format!("{UNKNOWN}{unknown}");
                self.flush();
                self.custom(record, None, custom_type, &data)
            }
        }
    }

    fn session_meta(&mut self, record: &Record) -> Result<(), String> {
        let id = record.text("session_id").filter(|id| !id.is_empty()).ok_or("the line has no `session_id`")?;
        match &self.meta {
            Some(meta) if meta.id != id => {
                return Err(format!("session `{id}` begins here, and this log is one of session `{}`", meta.id));
            }
            _ => {}
        }
        let own = record.get("banyan").map(|own| serde_json::from_str::<OwnMeta>(own.get())).transpose();
        let own = own.map_err(|error| format!("`banyan` cannot be read: {error}"))?;
        if own.as_ref().is_some_and(|own| own.meta.session_id.as_str() != id) {
            return Err("`session_id` and `banyan` name two different sessions".to_owned());
        }
        if own.is_none() || self.meta.is_some() {
            self.title = record.text("title").or(self.title.take());
        }
        let fields = record.rest_object(&["session_id", "title", "banyan"])?;
        match &mut self.meta {
            // A session that was taken up again says so with another such line.
            Some(meta) => meta.fields.extend(fields),
            None => self.meta = Some(Meta { id, fields, time: self.time, own }),
        }
        Ok(())
    }

    fn whole(&mut self, record: &Record) -> Result<(), String> {
        let entry = record.get("entry").ok_or("the line has no `entry`")?;
        let entry: SessionEntry =
            serde_json::from_str(entry.get()).map_err(|error| format!("`entry` cannot be read: {error}"))?;
        if let SessionEntry::Message(entry) = &entry {
            entry.message.parse().map_err(|error| format!("`entry` cannot be read: {}", error.message))?;
        }
        self.flush();
        let (id, on_path) = (entry.id().clone(), record.parse::<bool>("on_path") == Some(true));
        if self.give(entry) && on_path {
            self.before = Some(id);
        }
        Ok(())
    }

    /// A message that a line tells.
    pub(super) fn message(&mut self, draft: Draft, word: &str, message: AgentMessage) -> Result<(), String> {
        let given = draft.own.as_ref().and_then(|own| own.message.as_ref());
        let message: Raw<AgentMessage> = match given {
            Some(raw) => {
                let raw = Raw::<AgentMessage>::from_text(raw.get().to_owned()).map_err(|error| error.message)?;
                raw.parse().map_err(|error| error.message)?;
                raw
            }
            None => Raw::of(&message).map_err(|error| error.message)?,
        };
        let Placed { id, parent_id, timestamp, revision, origin } = self.place(draft, word);
        let next = id.clone();
        let entry = MessageEntry { id, parent_id, timestamp, revision, origin, message };
        if self.give(SessionEntry::Message(entry)) {
            self.before = Some(next);
        }
        Ok(())
    }

    fn custom(
        &mut self,
        record: &Record,
        own: Option<Own>,
        custom_type: String,
        data: &str,
    ) -> Result<(), String> {
        let data = Json::from_text(data).map_err(|error| error.message)?;
        let word = custom_type.clone();
        let draft = Draft { id: record.text("message_id"), own, time: self.time, rest: Object::new() };
        let Placed { id, parent_id, timestamp, revision, origin } = self.place(draft, &word);
        let next = id.clone();
        let entry = CustomEntry { id, parent_id, timestamp, revision, origin, custom_type, data };
        if self.give(SessionEntry::Custom(entry)) {
            self.before = Some(next);
        }
        Ok(())
    }

    /// The entry around what a line tells.
    fn place(&mut self, draft: Draft, word: &str) -> Placed {
        let id = self.id_for(draft.id, word);
        match draft.own {
            Some(own) => {
                let parent_id =
                    own.parent_id.map_or_else(|| self.before.clone(), |parent| parent.map(EntryId::from));
                let timestamp = own.timestamp.unwrap_or(draft.time);
                Placed { id, parent_id, timestamp, revision: own.revision, origin: own.origin }
            }
            None => {
                let mut log = Object::new();
                let named = self.before.is_none() || word == kind::USER;
                let turn = self.turn.as_ref().filter(|turn| named && **turn != identity::interaction_id(&id));
                if let Some(turn) = turn {
                    log.insert(TURN_ID.to_owned(), Value::String(turn.clone()));
                }
                if !draft.rest.is_empty() {
                    log.insert("more".to_owned(), Value::Object(draft.rest));
                }
                let origin =
                    (!log.is_empty()).then(|| Object::from_iter([(LOG.to_owned(), Value::Object(log))]).into());
                Placed { id, parent_id: self.before.clone(), timestamp: draft.time, revision: Revision(0), origin }
            }
        }
    }

    /// The id of an entry: what the line names, or always the same one for the same line.
    fn id_for(&mut self, named: Option<String>, word: &str) -> EntryId {
        if let Some(named) = named.filter(|named| !named.is_empty()) {
            let id = EntryId::from(named.as_str());
            if !self.seen.contains(&id) {
                return id;
            }
        }
        let session = self.meta.as_ref().map(|meta| &meta.id).or(self.fallback_id.as_ref()).cloned();
        let session = session.unwrap_or_default();
        let mut again = 0_u64;
        loop {
            // A log is only ever added to, so the number of a line stays its own.
            let at = self.last_seq.unwrap_or(self.line).to_le_bytes();
            let id = EntryId::from(format!(
                "e_{}",
                hashed("entry", &[session.as_bytes(), word.as_bytes(), &at, &again.to_le_bytes()])
            ));
            if !self.seen.contains(&id) {
                return id;
            }
            again += 1;
        }
    }

    /// Gives an entry, with its parent put right. Says whether it is new.
    fn give(&mut self, mut entry: SessionEntry) -> bool {
        // Most entries follow the one before them, which needs no search.
        let is_known = |parent: &EntryId| Some(parent) == self.before.as_ref() || self.seen.contains(parent);
        let lost = entry.parent_id().is_some_and(|parent| !is_known(parent));
        if entry.id().is_empty() || !self.seen.insert(entry.id()) {
            self.report.aside(self.line, format!("entry `{}` is in the log already", entry.id()));
            return false;
        }
        if lost {
            let note = format!(
                "what entry `{}` follows is not in the log; it is put after the entry before it",
                entry.id()
            );
            self.invented(note);
            match &mut entry {
                SessionEntry::Message(entry) => entry.parent_id.clone_from(&self.before),
                SessionEntry::Custom(entry) => entry.parent_id.clone_from(&self.before),
            }
        }
        self.given.push(entry);
        true
    }

    pub(super) fn of_turn(&mut self, record: &Record) {
        if let Some(turn) = record.word(TURN_ID)
            && self.turn.as_deref() != Some(&*turn)
        {
            self.turn = Some(turn.into_owned());
        }
    }

    pub(super) fn invented(&mut self, note: impl Into<String>) {
        let line = Some(self.line).filter(|line| *line > 0);
        self.report.invented(line, note);
    }

    /// The model and provider that the session was begun with.
    pub(super) fn default_model(&self) -> (String, String) {
        let fields = self.meta.as_ref().map(|meta| &meta.fields);
        let of = |key: &str| fields.and_then(|fields| fields.get(key)?.as_str()).unwrap_or_default().to_owned();
        (of("model"), of("provider"))
    }
}

fn foreign_meta(id: String, fields: Object, time: i64, last: i64) -> SessionMeta {
    SessionMeta {
        session_id: SessionId::from(id),
        title: String::new(),
        description: String::new(),
        status: SessionStatus::Idle,
        status_reason: None,
        metadata: (!fields.is_empty()).then_some(fields),
        forked_from: None,
        message_count: 0,
        created_at: time,
        updated_at: last.max(time),
    }
}

/// A name that is always the same for the same things.
fn hashed(what: &str, parts: &[&[u8]]) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("banyan 2026 names for what a session log does not name");
    for part in std::iter::once(what.as_bytes()).chain(parts.iter().copied()) {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    hasher.finalize().to_hex()[..32].to_owned()
}
