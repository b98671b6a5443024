//! Goose's messages, one after another, into entries.
//!
//! Goose stores one answer of a model as several rows: what was said, then each call by itself, with results in between.

use std::collections::HashMap;
use std::path::Path;

use banyan_model::{
    AgentMessage, AssistantMessage, ContentBlock, CustomMessage, EntryId, FunctionResultMessage, Json, Object,
    SessionId, StopReason, UserMessage,
};
use serde_json::{Value, json};

use super::head::Session;
use super::{ID, SESSION, SESSION_RECORD, content};
use crate::teller::Teller;
use crate::{COMPACTION, Mark, Problem, Sink, entry_id, records};

/// A session that is being read.
pub(super) struct Reading<'a> {
    session: Session,
    teller: Teller<'a>,
    /// The answer that is being put together.
    open: Option<Answer>,
    /// The functions of the calls that were made.
    functions: HashMap<String, String>,
    /// How many messages there were.
    count: u64,
    /// Whether the model does not see the message before any more.
    hidden: bool,
}

/// One answer of a model: its rows, and the results that stand between them.
struct Answer {
    records: Vec<Value>,
    results: Vec<(Value, u64)>,
    /// The number of the first row.
    number: u64,
}

impl<'a> Reading<'a> {
    pub(super) fn new(
        session: Session,
        source: &Path,
        parent: Option<(SessionId, Option<String>)>,
        mark: Option<&Mark>,
        sink: &'a mut dyn Sink,
    ) -> Result<Self, Problem> {
        let head = session.head(source, parent);
        let mut teller = Teller::new(sink, head, mark)?;
        let id = match &session.own {
            Some(own) => own.entries.get(SESSION).cloned(),
            None => Some(entry_id(&teller.session(), SESSION)),
        };
        if let Some(id) = id {
            let mut record = session.record.clone();
            record.shift_remove("updated_at");
            teller.custom(id, 0, SESSION_RECORD, Json::of(&record)?)?;
        }
        Ok(Self { session, teller, open: None, functions: HashMap::new(), count: 0, hidden: false })
    }

    pub(super) fn note(&mut self, place: &str, what: String, lost: bool) {
        self.teller.note(place, what, lost);
    }

    /// Takes the next message, in the form of the export.
    pub(super) fn take(&mut self, mut record: Value) -> Result<(), Problem> {
        self.count += 1;
        let number = self.count;
        self.teller.progress(record.to_string().len());
        let made_up = self.session.own.as_ref().map(|own| own.made_up.as_slice()).unwrap_or_default();
        if text(&record, "id").is_some_and(|id| made_up.iter().any(|made_up| made_up == id)) {
            return Ok(());
        }
        let was_hidden = std::mem::replace(&mut self.hidden, flag(&record, "agentVisible") == Some(false));
        if !record.get("content").is_some_and(Value::is_array) {
            self.note(
                &format!("message {number}"),
                "its content cannot be read; it is kept as it is".to_owned(),
                true,
            );
        }
        if let Some(record) = record.as_object_mut() {
            record.insert("at".to_owned(), number.into());
        }
        let from_model = text(&record, "role") == Some("assistant") && flag(&record, "userVisible") != Some(false);
        if from_model {
            if self.belongs(&record) {
                self.open.iter_mut().for_each(|open| open.records.push(record.clone()));
                return Ok(());
            }
            self.close()?;
            self.open = Some(Answer { records: vec![record], results: Vec::new(), number });
            return Ok(());
        }
        let only_results = items(&record).iter().all(|item| text(item, "type") == Some("toolResponse"));
        match &mut self.open {
            Some(open) if only_results && !items(&record).is_empty() => open.results.push((record, number)),
            _ => {
                self.close()?;
                self.tell(record, number, was_hidden)?;
            }
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Mark, Problem> {
        self.close()?;
        self.teller.finish()
    }

    /// Whether a row is more of the answer that is being put together.
    fn belongs(&self, record: &Value) -> bool {
        let Some(open) = &self.open else { return false };
        let id = text(record, "id");
        let ours = self.session.own.as_ref().is_some_and(|own| id.is_some_and(|id| own.entries.contains_key(id)));
        if ours || record.pointer("/metadata/usage").is_some_and(Value::is_object) {
            return false;
        }
        let kind = |item: &Value| text(item, "type").map(str::to_owned).unwrap_or_default();
        let kinds: Vec<String> = items(record).iter().map(kind).collect();
        if open.results.is_empty() {
            let same = id.is_some() && open.records.last().and_then(|last| text(last, "id")) == id;
            return same || kinds.iter().any(|kind| kind == "toolRequest" || kind == "thinking");
        }
        let place = |item: &Value| item.get("_meta")?.get("goose.toolCall.providerIndex")?.as_u64();
        !kinds.iter().any(|kind| kind == "text")
            && items(record).iter().find_map(place).is_some_and(|place| place > 0)
    }

    /// Tells the answer that was put together, and the results that stood between its rows.
    fn close(&mut self) -> Result<(), Problem> {
        let Some(Answer { records, results, number }) = self.open.take() else { return Ok(()) };
        let Some(first) = records.first() else { return Ok(()) };
        let content: Vec<ContentBlock> = records.iter().flat_map(items).filter_map(content::block).collect();
        if content.is_empty() {
            for record in records.clone() {
                self.carry(record, number)?;
            }
        } else {
            let (id, own) = self.entry(first, number);
            let at = at(first);
            let mut has_calls = false;
            for block in &content {
                if let ContentBlock::FunctionCall(call) = block {
                    self.functions.insert(call.id.clone(), call.function_id.clone());
                    has_calls = true;
                }
            }
            let inference = |key: &str| first.get("metadata")?.get("inference")?.get(key)?.as_str();
            let model = inference("requestedModel").or_else(|| self.session.model()).unwrap_or_default();
            let provider =
                inference("provider").or_else(|| self.session.text("provider_name")).unwrap_or_default();
            let usage = records
                .iter()
                .find_map(|record| record.get("metadata")?.get("usage").filter(|usage| usage.is_object()));
            let message = AgentMessage::Assistant(AssistantMessage {
                content,
                model: model.to_owned(),
                provider: provider.to_owned(),
                stop_reason: if has_calls { StopReason::FunctionCall } else { StopReason::End },
                native_stop_reason: None,
                error_kind: None,
                error_message: None,
                usage: usage.map(content::usage),
                warnings: None,
                agent: None,
                timestamp: at,
            });
            let origin = records::keep(ID, records, &message);
            self.teller.message(id, own, Some(origin), &message)?;
        }
        for (record, number) in results {
            self.tell(record, number, false)?;
        }
        Ok(())
    }

    /// Tells a message of the user, of goose, or of functions.
    fn tell(&mut self, record: Value, number: u64, was_hidden: bool) -> Result<(), Problem> {
        let content: Vec<ContentBlock> = items(&record).iter().filter_map(content::block).collect();
        let responses: Vec<content::Response> = items(&record).iter().filter_map(content::response).collect();
        let at = at(&record);
        let (id, own) = self.entry(&record, number);
        let mut messages = Vec::new();
        for content::Response { call, content, details, is_error } in responses {
            let function_id = self.functions.get(&call).cloned().unwrap_or_default();
            messages.push(AgentMessage::FunctionResult(FunctionResultMessage {
                function_call_id: call,
                function_id,
                content,
                details,
                is_error,
                timestamp: at,
            }));
        }
        if !content.is_empty() {
            let custom = |kind: &str, content, details| {
                let custom_type = kind.to_owned();
                AgentMessage::Custom(CustomMessage { custom_type, content, display: None, details, timestamp: at })
            };
            let from_model = text(&record, "role") == Some("assistant");
            let hidden = flag(&record, "userVisible") == Some(false);
            messages.push(if flag(&record, "turnContext") == Some(true) {
                custom("goose.turn_context", content, None)
            } else if from_model {
                custom("goose.continuation", content, None)
            } else if hidden && was_hidden {
                custom(COMPACTION, content, Some(Json::of(&record.get("metadata"))?))
            } else if hidden {
                custom("goose.context", content, None)
            } else {
                AgentMessage::User(UserMessage { content, timestamp: at })
            });
        }
        if messages.is_empty() {
            return self.carry(record, number);
        }
        let with = record.get("at").cloned().unwrap_or_default();
        for (place, message) in messages.iter().enumerate() {
            if place == 0 {
                let origin = records::keep(ID, vec![record.clone()], message);
                self.teller.message(id.clone(), own, Some(origin), message)?;
            } else {
                // The row is kept once, with the first of the entries that it is.
                let mut origin = Object::new();
                origin.insert(ID.to_owned(), json!({ "with": with }));
                let id = entry_id(&self.teller.session(), &format!("{} {place}", id.as_str()));
                self.teller.message(id, own, Some(origin), message)?;
            }
        }
        Ok(())
    }

    /// Carries a message that has nothing which the model knows.
    fn carry(&mut self, record: Value, number: u64) -> Result<(), Problem> {
        let kind = items(&record).first().and_then(|item| text(item, "type")).unwrap_or("message").to_owned();
        let (id, _) = self.entry(&record, number);
        self.teller.custom(id, at(&record), &format!("goose.{kind}"), Json::of(&record)?)
    }

    /// The id of a message's entry, and whether we gave it.
    fn entry(&self, record: &Value, number: u64) -> (EntryId, bool) {
        let id = text(record, "id");
        let own = self.session.own.as_ref().and_then(|own| own.entries.get(id?));
        match (own, id) {
            (Some(own), _) => (own.clone(), true),
            (None, Some(id)) => (entry_id(&self.teller.session(), id), false),
            (None, None) => (entry_id(&self.teller.session(), &format!("message {number}")), false),
        }
    }
}

fn items(record: &Value) -> &[Value] {
    record.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key)?.as_str()
}

fn flag(record: &Value, key: &str) -> Option<bool> {
    record.get("metadata")?.get(key)?.as_bool()
}

/// When it was said, in milliseconds. Goose counts seconds; some versions wrote milliseconds.
pub(super) fn at(record: &Value) -> i64 {
    let created = record.get("created").and_then(Value::as_i64).unwrap_or_default();
    if created > 100_000_000_000 { created } else { created * 1000 }
}
