//! OpenCode's messages, one after another, into entries.

use std::path::Path;

use banyan_model::{
    AgentMessage, AssistantMessage, ContentBlock, CustomMessage, EntryId, FunctionResultMessage, Json, Object,
    UserMessage,
};
use serde_json::{Value, json};

use super::head::{Kin, Session};
use super::{ID, SESSION, SESSION_RECORD, content};
use crate::teller::Teller;
use crate::{COMPACTION, Mark, Problem, Sink, entry_id, records};

/// A session that is being read.
pub(super) struct Reading<'a> {
    session: Session,
    pub(super) teller: Teller<'a>,
    /// Whether anything of the first generation, and of the second, was told.
    pub(super) any: [bool; 2],
}

impl<'a> Reading<'a> {
    pub(super) fn new(
        session: Session,
        source: &Path,
        kin: Kin,
        mark: Option<&Mark>,
        sink: &'a mut dyn Sink,
    ) -> Result<Self, Problem> {
        let mut teller = Teller::new(sink, session.head(source, kin), mark)?;
        let id = match &session.own {
            Some(own) => own.entries.get(SESSION).cloned(),
            None => Some(entry_id(&teller.session(), SESSION)),
        };
        if let Some(id) = id {
            let mut record = session.info.clone();
            for changing in ["time", "revert", "summary", "cost", "tokens", "title"] {
                record.shift_remove(changing);
            }
            teller.custom(id, 0, SESSION_RECORD, Json::of(&record)?)?;
        }
        Ok(Self { session, teller, any: [false; 2] })
    }

    pub(super) fn note(&mut self, place: &str, what: String, lost: bool) {
        self.teller.note(place, what, lost);
    }

    /// Takes the next message, in the form of the export.
    pub(super) fn take(&mut self, record: Value) -> Result<(), Problem> {
        self.teller.progress(record.to_string().len());
        let info = record.get("info").cloned().unwrap_or_default();
        let Some(native) = text(&info, "id").map(str::to_owned) else {
            self.note("", "a message has no id; it is left out".to_owned(), true);
            return Ok(());
        };
        if self.session.reverted_from() == Some(&native) {
            self.teller.leaf_is_here();
        }
        self.any[0] = true;
        let parts = record.get("parts").and_then(Value::as_array).cloned().unwrap_or_default();
        let at = info.pointer("/time/created").and_then(Value::as_i64).unwrap_or_default();
        // A picture is the user's, also when OpenCode has put it there at the user's word.
        let is_synthetic = |part: &&Value| {
            part.get("synthetic") == Some(&Value::Bool(true)) && text(part, "type") == Some("text")
        };
        let content: Vec<ContentBlock> =
            parts.iter().filter(|part| !is_synthetic(part)).filter_map(content::block).collect();
        match text(&info, "role") {
            // It is being written right now: its parts come next.
            Some("user") if parts.is_empty() => Ok(()),
            Some("assistant") if info.get("summary") == Some(&Value::Bool(true)) && !content.is_empty() => {
                let details = Some(Json::of(&info)?);
                let message = custom(COMPACTION, content, details, at);
                self.tell(&native, ID, vec![record], &message)
            }
            Some("assistant") => self.answer(&native, info, record, content, at),
            Some("user") if !content.is_empty() => {
                let message = AgentMessage::User(UserMessage { content, timestamp: at });
                self.tell(&native, ID, vec![record], &message)?;
                let given: Vec<ContentBlock> =
                    parts.iter().filter(is_synthetic).filter_map(content::block).collect();
                if given.is_empty() {
                    return Ok(());
                }
                let message = custom("opencode.synthetic", given, None, at);
                self.tell_with(&native, &format!("{native} synthetic"), &message)
            }
            _ => {
                let kind = parts.first().and_then(|part| text(part, "type")).unwrap_or("message").to_owned();
                if info.get("unreadable").is_some() {
                    self.note(&native, "its data cannot be read; it is kept as it is".to_owned(), true);
                }
                let (id, _) = self.entry(&native);
                self.teller.custom(id, at, &format!("opencode.{kind}"), Json::of(&record)?)
            }
        }
    }

    /// An answer of a model, and what came of its calls.
    fn answer(
        &mut self,
        native: &str,
        info: Value,
        mut record: Value,
        content: Vec<ContentBlock>,
        at: i64,
    ) -> Result<(), Problem> {
        let message = AgentMessage::Assistant(assistant(&info, content, at));
        let mut results = Vec::new();
        let parts = record.get_mut("parts").and_then(Value::as_array_mut);
        for part in parts.into_iter().flatten() {
            let Some(result) = content::result(part, at) else { continue };
            let key = text(part, "id").unwrap_or_default().to_owned();
            // What came of a call is kept with that, and only what it was called with here.
            let input = part["state"].get("input").cloned().unwrap_or_default();
            let mut state = std::mem::replace(&mut part["state"], json!({ "input": input }));
            state["input"] = Value::Null;
            results.push((key, state, result));
        }
        self.tell(native, ID, vec![record], &message)?;
        for (key, state, result) in results {
            self.result(&key, ID, vec![state], result)?;
        }
        Ok(())
    }

    /// What came of a call.
    pub(super) fn result(
        &mut self,
        part: &str,
        agent: &str,
        records: Vec<Value>,
        result: FunctionResultMessage,
    ) -> Result<(), Problem> {
        self.tell(part, agent, records, &AgentMessage::FunctionResult(result))
    }

    /// Tells a message that has records of its own.
    pub(super) fn tell(
        &mut self,
        native: &str,
        agent: &str,
        records: Vec<Value>,
        message: &AgentMessage,
    ) -> Result<(), Problem> {
        if self.session.own.as_ref().is_some_and(|own| own.made_up.iter().any(|made_up| made_up == native)) {
            return Ok(());
        }
        let (id, own) = self.entry(native);
        let origin = records::keep(agent, records, message);
        self.teller.message(id, own, Some(origin), message)
    }

    /// Tells a message whose records are kept with another.
    fn tell_with(&mut self, with: &str, native: &str, message: &AgentMessage) -> Result<(), Problem> {
        let (id, own) = self.entry(native);
        let mut origin = Object::new();
        origin.insert(ID.to_owned(), json!({ "with": with }));
        self.teller.message(id, own, Some(origin), message)
    }

    pub(super) fn finish(self) -> Result<Mark, Problem> {
        self.teller.finish()
    }

    /// The id of an entry, and whether we gave it.
    pub(super) fn entry(&self, native: &str) -> (EntryId, bool) {
        match self.session.own.as_ref().and_then(|own| own.entries.get(native)) {
            Some(own) => (own.clone(), true),
            None => (entry_id(&self.teller.session(), native), false),
        }
    }
}

/// An answer of a model, of either generation.
pub(super) fn assistant(info: &Value, content: Vec<ContentBlock>, at: i64) -> AssistantMessage {
    let model = |old: &str, new: &str| {
        let model = info.get(old).or_else(|| info.pointer(new));
        model.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    AssistantMessage {
        content,
        model: model("modelID", "/model/id"),
        provider: model("providerID", "/model/providerID"),
        stop_reason: content::stop_reason(info),
        native_stop_reason: text(info, "finish").map(str::to_owned),
        error_kind: None,
        error_message: content::error_message(info),
        usage: content::usage(info),
        warnings: None,
        agent: None,
        timestamp: at,
    }
}

pub(super) fn custom(kind: &str, content: Vec<ContentBlock>, details: Option<Json>, at: i64) -> AgentMessage {
    let custom_type = kind.to_owned();
    AgentMessage::Custom(CustomMessage { custom_type, content, display: None, details, timestamp: at })
}

/// Reads an exported session.
pub(super) fn export(path: &Path, mark: Option<&Mark>, sink: &mut dyn Sink) -> Result<Mark, Problem> {
    let bytes = std::fs::read(path).map_err(|error| Problem::io(path, error))?;
    let mut export: Value =
        serde_json::from_slice(&bytes).map_err(|error| Problem::form(path, error.to_string()))?;
    let Some(Value::Object(info)) = export.get_mut("info").map(Value::take) else {
        return Err(Problem::form(path, "it is not a session"));
    };
    let mut reading = Reading::new(Session::new(info), path, Kin::default(), mark, sink)?;
    if let Some(Value::Array(messages)) = export.get_mut("messages").map(Value::take) {
        messages.into_iter().try_for_each(|message| reading.take(message))?;
    }
    reading.finish()
}

fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key)?.as_str()
}
