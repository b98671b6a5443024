//! One rollout, line by line.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use banyan_model::{
    AgentMessage, AssistantMessage, ContentBlock, CustomMessage, EntryId, FunctionResultMessage, Json,
    SessionEntry, SessionId, StopReason, ThinkingBlock, Usage, UserMessage,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::events::{Event, TokenUsage};
use super::items::{self, Item};
use super::response::Response;
use crate::build::{Place, millis};
use crate::lines::{Line, Taken};
use crate::native::{self, Left, take_own, take_text};
use crate::outline::{Found, Outline, sought};
use crate::rest::{self, Rest, without_own};
use crate::telling::Telling;
use crate::{COMPACTION, Own, Problem, Sink, entry_id};

/// So many records may stand between the items of one response before it is told without waiting for more.
const WAITING: usize = 64;
/// So many turns back a rollback is understood.
const TURNS: usize = 64;

sought! {
    /// A line of a rollout. The oldest versions wrote items without anything around them.
    struct Envelope<'a> {
        timestamp: Cow<'a, str> = "timestamp",
        ordinal: u64 = "ordinal",
        kind: Cow<'a, str> = "type",
        payload: Found<'a> = "payload",
        x_banyan: Own = "x_banyan",
    }
}

/// What a reading has to remember between two lines.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct State {
    /// The entry that the next one follows.
    pub(super) tip: Option<EntryId>,
    pub(super) model: String,
    /// Whether usage comes in records of its own, so that counts in events are only repetitions.
    pub(super) records: bool,
    /// The total of the last count of tokens.
    total: u64,
    /// Usage that was told before the response that it belongs to.
    pub(super) held: Option<Usage>,
    /// The functions of calls that have no result yet.
    pub(super) calls: BTreeMap<String, String>,
    /// Where the last turns began.
    turns: VecDeque<Option<EntryId>>,
    pub(super) at: i64,
}

impl State {
    /// When the last line was written.
    pub(super) fn at(&self) -> i64 {
        self.at
    }
}

/// How a reading ended.
pub(super) struct Finished {
    /// The offset and the lines before the place to go on from; none if that is the end.
    pub(super) from: Option<(u64, u64)>,
    /// What is remembered there.
    pub(super) before: State,
    /// What is remembered at the end.
    pub(super) now: State,
}

/// Reads the lines of one rollout into a session.
pub(super) struct Rollout<'a> {
    pub(super) session: SessionId,
    /// The rollout's own id: it and a line's number make an entry's id.
    pub(super) id: String,
    pub(super) telling: &'a mut Telling,
    /// Whatever begins before was told in an earlier reading.
    pub(super) told: u64,
    /// Records from this ordinal on are left out.
    pub(super) end: u64,
    pub(super) state: State,
    pub(super) response: Option<Response>,
}

impl<'a> Rollout<'a> {
    pub(super) fn new(session: SessionId, id: &str, telling: &'a mut Telling, state: State) -> Self {
        Self { session, id: id.to_owned(), telling, told: 0, end: u64::MAX, state, response: None }
    }

    /// Takes a line.
    pub(super) fn line(&mut self, line: &Line<'_>, sink: &mut dyn Sink) -> Result<Taken, Problem> {
        let outline = match Outline::of(&line.text) {
            Ok(outline) => outline,
            Err(why) => return Ok(Taken::NotARecord(why)),
        };
        let envelope = Envelope::of(Some(outline.root()));
        if line.glued && (envelope.timestamp.is_none() || envelope.kind.is_none() || envelope.payload.is_none()) {
            return Ok(Taken::is_a_part());
        }
        if envelope.ordinal.is_some_and(|ordinal| ordinal >= self.end)
            || envelope.x_banyan.as_ref().is_some_and(|own| own.made_up)
        {
            return Ok(Taken::Yes);
        }
        if envelope.x_banyan.is_none() {
            self.record(&envelope, &Record::new(line, outline.root(), &envelope, None), sink)?;
            return Ok(Taken::Yes);
        }
        // What we added is no part of the record. A copy that Codex itself made of our lines is another session.
        let own = envelope.x_banyan.filter(|_| self.telling.own).and_then(|own| own.entry);
        let text = without_own(&line.text).unwrap_or_else(|| line.text.clone().into_owned());
        match Outline::of(&text) {
            Ok(bare) => {
                let envelope = Envelope::of(Some(bare.root()));
                self.record(&envelope, &Record::new(line, bare.root(), &envelope, own), sink)?;
            }
            Err(why) => return Ok(Taken::NotARecord(why)),
        }
        Ok(Taken::Yes)
    }

    fn record(
        &mut self,
        envelope: &Envelope<'_>,
        record: &Record<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        if let Some(at) = envelope.timestamp.as_deref().and_then(millis) {
            self.state.at = at;
        }
        self.telling.begin(Some(self.state.at), sink)?;
        match (envelope.kind.as_deref(), envelope.payload) {
            (Some("response_item"), payload) => self.item(record, payload, sink),
            (Some("event_msg"), Some(payload)) => self.event(record, payload, sink),
            (Some("token_usage_record"), Some(payload)) => {
                let usage: TokenUsage = payload.read().unwrap_or_default();
                self.state.records = true;
                self.usage(usage.usage(), record);
                self.custom("token_usage_record", record, sink)?;
                self.close(sink)
            }
            (Some("turn_context"), Some(payload)) => {
                if let Some(model) = payload.get("model").and_then(Found::text) {
                    self.telling.model(&model);
                    self.state.model = model.into_owned();
                }
                self.custom("turn_context", record, sink)
            }
            (Some("compacted"), Some(payload)) => self.compacted(record, payload, sink),
            (Some(kind), Some(_)) => self.custom(kind, record, sink),
            (Some(_), None) => self.item(record, None, sink),
            (None, _) => self.custom("record", record, sink),
        }
    }

    /// The end of the file: tells what is still open.
    pub(super) fn finish(mut self, sink: &mut dyn Sink) -> Result<Finished, Problem> {
        // More of an open response may come, so it is read again from its beginning.
        let open = self.response.as_ref().map(|open| ((open.offset, open.line - 1), open.before.clone()));
        self.close(sink)?;
        let now = self.state;
        Ok(match open {
            Some((from, before)) => Finished { from: Some(from), before, now },
            None => Finished { from: None, before: now.clone(), now },
        })
    }

    fn item(
        &mut self,
        record: &Record<'_>,
        payload: Option<Found<'_>>,
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        let mut rest = Rest::new(record.found);
        match items::take(payload.unwrap_or(record.found), &mut rest) {
            Item::Assistant(content) => self.response(record, rest.text(), content, sink),
            Item::User(content) => {
                self.close(sink)?;
                self.state.turns.push_back(self.state.tip.clone());
                if self.state.turns.len() > TURNS {
                    self.state.turns.pop_front();
                }
                self.telling.said(&content, sink)?;
                let message = AgentMessage::User(UserMessage { content, timestamp: self.state.at });
                self.message(record, rest.text(), &message, sink)
            }
            Item::Context(kind, content) => {
                self.close(sink)?;
                let custom_type = format!("codex.{kind}");
                let timestamp = self.state.at;
                let message = CustomMessage { custom_type, content, display: None, details: None, timestamp };
                self.message(record, rest.text(), &AgentMessage::Custom(message), sink)
            }
            Item::Result { call, content, is_error } => {
                self.close(sink)?;
                let message = FunctionResultMessage {
                    function_id: self.state.calls.remove(&call).unwrap_or_default(),
                    function_call_id: call,
                    content,
                    details: Json::null(),
                    is_error,
                    timestamp: self.state.at,
                };
                self.message(record, rest.text(), &AgentMessage::FunctionResult(message), sink)
            }
            Item::Other if payload.is_none() => self.custom("record", record, sink),
            Item::Other => self.custom("response_item", record, sink),
        }
    }

    fn event(&mut self, record: &Record<'_>, payload: Found<'_>, sink: &mut dyn Sink) -> Result<(), Problem> {
        // Most events, and the large ones, only repeat an item.
        if payload.spelled().starts_with("{\"type\":\"item_completed\"") {
            return self.custom("event_msg", record, sink);
        }
        let event = Event::of(Some(payload));
        if let Some(error) = event.failure() {
            self.close(sink)?;
            return self.failed(record, error, sink);
        }
        match event.kind() {
            "agent_reasoning" if event.is_own() => self.own_thinking(record, event.entry(), sink),
            "token_count" => {
                if let Some((total, usage)) = event.count().filter(|(total, _)| *total != self.state.total) {
                    self.state.total = total;
                    if !self.state.records {
                        self.usage(usage, record);
                        let told = self.response.as_ref().is_some_and(|latest| latest.told);
                        if told {
                            self.tell_response(sink)?;
                        }
                    }
                }
                // A count that we wrote ourselves says only what the response used.
                if event.is_own() { Ok(()) } else { self.custom("event_msg", record, sink) }
            }
            "task_started" | "task_complete" | "turn_aborted" | "user_message" | "thread_rolled_back" => {
                self.close(sink)?;
                self.custom("event_msg", record, sink)?;
                for _ in 0..event.rolled_back() {
                    if let Some(tip) = self.state.turns.pop_back() {
                        self.state.tip = tip;
                    }
                }
                Ok(())
            }
            _ => self.custom("event_msg", record, sink),
        }
    }

    /// Thinking that came from elsewhere, which we wrote as an event: Codex does not send it.
    fn own_thinking(
        &mut self,
        record: &Record<'_>,
        entry: Option<EntryId>,
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        let Ok(mut value) = serde_json::from_str::<Value>(&record.line.text) else {
            return self.custom("event_msg", record, sink);
        };
        take_own(&mut value["payload"]);
        let text = take_text(&mut value["payload"], "text").unwrap_or_default();
        let thinking = ContentBlock::Thinking(ThinkingBlock { text, signature: None });
        let own = record.own.clone().or(entry);
        let record = Record { line: record.line, found: record.found, own, at: record.at };
        self.response(&record, Some(value.to_string()), vec![thinking], sink)
    }

    /// A turn that failed: a response without content.
    fn failed(&mut self, record: &Record<'_>, error: String, sink: &mut dyn Sink) -> Result<(), Problem> {
        let message = AgentMessage::Assistant(AssistantMessage {
            content: Vec::new(),
            model: self.state.model.clone(),
            provider: self.telling.provider(),
            stop_reason: StopReason::Error,
            native_stop_reason: None,
            error_kind: None,
            error_message: Some(error),
            usage: None,
            warnings: None,
            agent: None,
            timestamp: self.state.at,
        });
        self.message(record, Rest::new(record.found).text(), &message, sink)
    }

    fn compacted(&mut self, record: &Record<'_>, payload: Found<'_>, sink: &mut dyn Sink) -> Result<(), Problem> {
        self.close(sink)?;
        let message = rest::text(payload.get("message")).into_owned();
        let Some(details) = record.found.json() else { return self.custom("compacted", record, sink) };
        let message = AgentMessage::Custom(CustomMessage {
            custom_type: COMPACTION.to_owned(),
            content: vec![ContentBlock::text(message)],
            display: None,
            details: Some(details),
            timestamp: self.state.at,
        });
        self.message(record, None, &message, sink)
    }

    /// A message that is one line.
    fn message(
        &mut self,
        record: &Record<'_>,
        left: Option<String>,
        message: &AgentMessage,
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        let place = self.place(record, left);
        let entry = place.message(message)?;
        self.push(record.line.offset, entry, sink)
    }

    /// A record that is no message.
    fn custom(&mut self, kind: &str, record: &Record<'_>, sink: &mut dyn Sink) -> Result<(), Problem> {
        let Some(data) = record.found.json() else {
            sink.note(record.note("the record is too deep or too odd to be kept"));
            return Ok(());
        };
        let entry = self.place(record, None).custom(format!("codex.{kind}"), data);
        self.push(record.line.offset, entry, sink)
    }

    fn place(&self, record: &Record<'_>, left: Option<String>) -> Place {
        let origin = native::origin("codex", &[Left { line: record.line.number, record: left }]);
        let parent = self.state.tip.clone();
        Place { id: self.entry_id(record), parent, at: self.state.at, revision: 0, origin: Some(origin) }
    }

    pub(super) fn entry_id(&self, record: &Record<'_>) -> EntryId {
        let made = || {
            // Lines that follow our own may have the numbers of lines that we left out.
            let apart = if self.telling.own { record.at } else { "" };
            entry_id(&self.session, &format!("{}:{}{apart}", self.id, record.line.number))
        };
        record.own.clone().unwrap_or_else(made)
    }

    /// Tells an entry, or keeps it until the response before it is told.
    fn push(&mut self, offset: u64, entry: SessionEntry, sink: &mut dyn Sink) -> Result<(), Problem> {
        self.state.tip = Some(entry.id().clone());
        if let Some(open) = self.response.as_mut().filter(|open| !open.told) {
            open.behind.push((offset, entry));
            let full = open.behind.len() >= WAITING;
            return if full { self.close(sink) } else { Ok(()) };
        }
        self.tell(offset, entry, sink)
    }

    pub(super) fn tell(&self, offset: u64, entry: SessionEntry, sink: &mut dyn Sink) -> Result<(), Problem> {
        if offset >= self.told {
            sink.entry(&self.session, entry)?;
        }
        Ok(())
    }
}

/// A line, and the entry that we wrote it for.
pub(super) struct Record<'a> {
    pub(super) line: &'a Line<'a>,
    /// The record as it is, without what we added.
    found: Found<'a>,
    pub(super) own: Option<EntryId>,
    /// When it was written, as it says.
    at: &'a str,
}

impl<'a> Record<'a> {
    fn new(line: &'a Line<'a>, found: Found<'a>, envelope: &'a Envelope<'a>, own: Option<EntryId>) -> Self {
        Self { line, found, own, at: envelope.timestamp.as_deref().unwrap_or_default() }
    }

    fn note(&self, what: &str) -> crate::Note {
        crate::Note { place: format!("line {}", self.line.number), what: what.to_owned(), lost: true }
    }
}

/// The id that a rollout's name ends in, and the thread that it belongs to.
pub(super) fn ids_of(path: &Path) -> (String, String) {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let stem = stem.strip_suffix(".jsonl").unwrap_or(stem);
    let ids = stem.strip_prefix("rollout-").and_then(|rest| rest.get(20..)).filter(|ids| ids.len() >= 36);
    let ids = ids.unwrap_or(stem);
    let (thread, own) = ids.split_once('_').unwrap_or((ids, ids));
    (own.to_owned(), thread.to_owned())
}
