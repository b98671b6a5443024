//! Entries become lines.

use std::io::{self, Write};

use banyan_model::{
    AgentMessage, AttachmentMeta, CustomEntry, EntryId, LongText, MessageEntry, Origin, Raw, SessionEntry,
    SessionMeta, ToolState, Turn, TurnStatus,
};
use serde::Serialize;
use serde_json::json;

use super::line::Line;
use super::parts::{Assistant, ToolResult, shown, user};
use super::record::{ENVELOPE, Record};
use super::{finish_reason, kind};
use crate::audit::{self, Facts};
use crate::body::Body;
use crate::history::{Entry, milliseconds, rfc3339};
use crate::redact::Finding;
use crate::turns::{Outlook, Turns};

/// What a log says first.
#[derive(Clone, Debug)]
pub struct Head {
    /// The session, as it is now.
    pub meta: SessionMeta,
    /// The entry that the active path ends in.
    pub active_leaf: Option<EntryId>,
    /// What is known of the surroundings. A model that only the messages name can be put in by whoever has read them.
    pub facts: Facts,
    /// Titles that the session had, and since when, oldest first. The last one is the title that it has.
    pub titles: Vec<(i64, String)>,
    /// The session's attachments. Their bytes are not in a log.
    pub attachments: Vec<AttachmentMeta>,
}

/// Writes a log: first the head, then entries as they come, each after the one that it follows.
pub struct Writer<W> {
    out: W,
    seq: u64,
    turns: Turns,
    /// The newest entry of the path.
    before: Option<EntryId>,
    time: i64,
    /// Titles that are still to be told, newest first.
    titles: Vec<(i64, String)>,
}

impl<W: Write> Writer<W> {
    /// Begins a log with what the session is known by.
    pub fn new(out: W, head: &Head) -> io::Result<Self> {
        let mut titles = head.titles.clone();
        titles.reverse();
        let first = titles.pop().map(|(_, title)| title);
        let mut writer = Self {
            out,
            seq: 0,
            turns: Turns::new(head.facts.clone()),
            before: None,
            time: head.meta.created_at,
            titles,
        };
        writer.head(head, first.as_ref().unwrap_or(&head.meta.title))?;
        Ok(writer)
    }

    /// Writes an entry of the active path.
    pub fn on_path(&mut self, entry: &SessionEntry) -> io::Result<()> {
        self.rename_until(entry.timestamp())?;
        let read = Entry::from(entry);
        if let Some(over) = self.turns.push_read(entry, &read) {
            self.settle(&over)?;
        }
        self.time = entry.timestamp();
        match entry {
            SessionEntry::Message(message) => self.message(entry, message, &read.body)?,
            SessionEntry::Custom(custom) => self.custom(entry, custom)?,
        }
        self.before = Some(entry.id().clone());
        Ok(())
    }

    /// Writes an entry of another branch.
    pub fn off_path(&mut self, entry: &SessionEntry) -> io::Result<()> {
        let mut line = Line::new(self.seq, entry.timestamp(), kind::ENTRY);
        line.field("entry", entry);
        self.write(line)
    }

    /// Where it is written to.
    pub fn out(&mut self) -> &mut W {
        &mut self.out
    }

    /// Ends the log: says how the newest turn stands, and what was taken out.
    pub fn finish(mut self, outlook: &Outlook, redactions: &[Finding]) -> io::Result<W> {
        if let Some(turn) = std::mem::take(&mut self.turns).finish(outlook) {
            self.settle(&turn)?;
        }
        self.rename_until(i64::MAX)?;
        if !redactions.is_empty() {
            let mut line = self.line(kind::REDACTIONS);
            line.field("redactions", redactions);
            self.write(line)?;
        }
        Ok(self.out)
    }

    fn head(&mut self, head: &Head, title: &str) -> io::Result<()> {
        let mut line = self.line(kind::SESSION_META);
        line.field("session_id", &head.meta.session_id);
        line.optional("cwd", head.facts.directory.as_ref());
        line.field("title", title);
        line.optional("model", head.facts.model.as_ref());
        line.optional("provider", head.facts.provider.as_ref());
        line.field("app", "banyan");
        line.field("app_version", env!("CARGO_PKG_VERSION"));
        line.field(
            "banyan",
            &json!({"meta": head.meta, "active_leaf": head.active_leaf, "attachments": head.attachments}),
        );
        self.write(line)?;
        if !head.facts.sources.is_empty() {
            let mut line = self.line(kind::CONTEXT);
            line.field("sources", &head.facts.sources);
            line.field("banyan", &json!({"derived": true}));
            self.write(line)?;
        }
        Ok(())
    }

    fn message(&mut self, entry: &SessionEntry, stored: &MessageEntry, body: &Body) -> io::Result<()> {
        let Body::Message(message) = body else { return self.whole(entry) };
        let own = self.own(entry, message.timestamp());
        let same = |made: AgentMessage| {
            serde_json::to_string(&made).is_ok_and(|made| made.as_str() == stored.message.get())
        };
        let own = |told: AgentMessage| match same(told) {
            true => own,
            false => OwnFields { message: Some(stored.message.clone()), ..own },
        };
        match &**message {
            AgentMessage::User(said) => {
                let text = shown(&said.content);
                let mut line = self.of_turn(kind::USER);
                line.field("message_id", &stored.id);
                line.text("text", &text);
                line.field("banyan", &own(user(&text, said.timestamp)));
                self.write(line)
            }
            AgentMessage::Assistant(said) => {
                let parts = Assistant::of(said);
                let own = own(parts.clone().message(said.timestamp));
                self.assistant(&stored.id, &parts, &own)
            }
            AgentMessage::FunctionResult(said) => {
                let parts = ToolResult::of(said);
                let own = own(parts.clone().message(said.timestamp));
                self.tool_result(&stored.id, &parts, &own)
            }
            AgentMessage::Custom(_) => self.whole(entry),
        }
    }

    fn assistant(&mut self, id: &EntryId, parts: &Assistant, own: &OwnFields<'_>) -> io::Result<()> {
        let mut line = self.of_turn(kind::ASSISTANT_STARTED);
        line.field("message_id", id);
        line.field("model", &parts.model);
        line.field("provider", &parts.provider);
        line.optional("agent", parts.agent.as_ref());
        self.write(line)?;
        for thought in &parts.reasoning {
            let mut line = self.of_turn(kind::REASONING_FINISHED);
            line.field("message_id", id);
            line.text("text", &thought.text);
            line.optional("signature", thought.signature.as_ref());
            self.write(line)?;
        }
        for call in &parts.calls {
            let mut line = self.of_turn(kind::TOOL_STARTED);
            line.field("message_id", id);
            line.field("call_id", &call.id);
            line.field("name", &call.function_id);
            line.field("input", &call.arguments);
            self.write(line)?;
        }
        let mut line = self.of_turn(kind::ASSISTANT_FINISHED);
        line.field("message_id", id);
        line.text("text", &parts.text);
        if let Some(end) = &parts.end {
            line.optional("finish_reason", end.stop_reason.map(finish_reason::word).as_ref());
            line.optional("native_finish_reason", end.native_stop_reason.as_ref());
            line.optional("usage", end.usage.as_ref());
            line.optional("error_kind", end.error_kind.as_ref());
            line.optional("error", end.error.as_ref());
            line.optional("warnings", end.warnings.as_ref());
        }
        line.field("banyan", own);
        self.write(line)
    }

    fn tool_result(&mut self, id: &EntryId, parts: &ToolResult, own: &OwnFields<'_>) -> io::Result<()> {
        let tool = self.turns.settled_by(id).cloned();
        let plain = if parts.is_error { ToolState::Failed } else { ToolState::Ok };
        let mut line = self.of_turn(kind::TOOL_FINISHED);
        line.field("message_id", id);
        line.field("call_id", &parts.call_id);
        line.field("name", &parts.name);
        line.field("status", tool.as_ref().map_or(plain, |tool| tool.state).as_str());
        line.optional("duration_ms", tool.and_then(|tool| tool.duration_ms).as_ref());
        if parts.is_error {
            line.text("error", &parts.text);
        }
        if !parts.is_error || !parts.details.is_null() {
            let text = (!parts.is_error).then_some(LongText(&parts.text));
            let details = Some(&parts.details).filter(|details| !details.is_null());
            line.field("output", &Output { text, details });
        }
        line.field("banyan", own);
        self.write(line)
    }

    /// A custom entry that tells of the surroundings is a `context` line, if that says the same; any other is written whole.
    fn custom(&mut self, entry: &SessionEntry, custom: &CustomEntry) -> io::Result<()> {
        let data = serde_json::from_str::<Record>(custom.data.get()).ok();
        let fits = |data: &Record| {
            let free =
                |key: &str| !ENVELOPE.contains(&key) && key != "turn_id" && key != "message_id" && key != "banyan";
            data.fields().all(|(key, _)| free(key))
                && data.get("sources").is_some()
                && data.rest(&[]).as_deref() == Some(custom.data.get())
        };
        let Some(data) = data.filter(|data| custom.custom_type == audit::CONTEXT && fits(data)) else {
            return self.whole(entry);
        };
        let own = self.own(entry, entry.timestamp());
        let mut line = self.of_turn(kind::CONTEXT);
        line.field("message_id", &custom.id);
        for (key, value) in data.fields() {
            line.field(key, value);
        }
        line.field("banyan", &own);
        self.write(line)
    }

    /// An entry of the path as it is.
    fn whole(&mut self, entry: &SessionEntry) -> io::Result<()> {
        let mut line = self.of_turn(kind::ENTRY);
        line.field("on_path", &true);
        line.field("entry", entry);
        self.write(line)
    }

    /// Says what became of calls without a result, and how the turn ended, if that was not well.
    fn settle(&mut self, turn: &Turn) -> io::Result<()> {
        let derived = json!({"derived": true});
        let unsettled = |state| matches!(state, ToolState::Interrupted | ToolState::Skipped);
        for tool in turn.tools.iter().filter(|tool| tool.result_entry_id.is_none() && unsettled(tool.state)) {
            let mut line = self.line(kind::TOOL_FINISHED);
            line.field("turn_id", &turn.turn_id);
            line.optional("message_id", tool.entry_id.as_ref());
            line.field("call_id", &tool.call_id);
            line.field("name", &tool.name);
            line.field("status", tool.state.as_str());
            line.field("banyan", &derived);
            self.write(line)?;
        }
        let word = match turn.status {
            TurnStatus::Failed => kind::FAILED,
            TurnStatus::Cancelled | TurnStatus::Interrupted => kind::CANCELLED,
            TurnStatus::Finished | TurnStatus::Pending | TurnStatus::Running => return Ok(()),
        };
        let mut line = self.line(word);
        line.field("turn_id", &turn.turn_id);
        line.field("reason", turn.status.as_str());
        line.optional("message", turn.errors.last().map(|error| &error.message));
        line.field("banyan", &derived);
        self.write(line)
    }

    fn rename_until(&mut self, time: i64) -> io::Result<()> {
        while self.titles.last().is_some_and(|(since, _)| *since <= time) {
            let Some((since, title)) = self.titles.pop() else { return Ok(()) };
            let mut line = Line::new(self.seq, since, kind::SESSION_RENAMED);
            line.field("title", &title);
            line.field("banyan", &json!({"derived": true}));
            self.write(line)?;
        }
        Ok(())
    }

    /// What the document's fields do not say about an entry.
    fn own<'e>(&self, entry: &'e SessionEntry, said_at: i64) -> OwnFields<'e> {
        let timestamp = entry.timestamp();
        OwnFields {
            parent_id: Some(entry.parent_id()).filter(|parent| *parent != self.before.as_ref()),
            timestamp: Some(timestamp).filter(|ms| milliseconds(&rfc3339(*ms)) != Some(*ms)),
            said_at: Some(said_at).filter(|said| *said != timestamp),
            revision: Some(entry.revision().get()).filter(|revision| *revision > 0),
            origin: entry.origin(),
            message: None,
        }
    }

    fn line(&self, kind: &str) -> Line {
        Line::new(self.seq, self.time, kind)
    }

    fn of_turn(&self, kind: &str) -> Line {
        let mut line = self.line(kind);
        line.optional("turn_id", self.turns.current().as_ref());
        line
    }

    fn write(&mut self, line: Line) -> io::Result<()> {
        self.seq += 1;
        self.out.write_all(&line.finish())
    }
}

/// What stands under `banyan`.
#[derive(Clone, Serialize)]
struct OwnFields<'e> {
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_id: Option<Option<&'e EntryId>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    said_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<&'e Origin>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Raw<AgentMessage>>,
}

#[derive(Serialize)]
struct Output<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<LongText<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a banyan_model::Json>,
}
