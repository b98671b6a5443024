//! The events of a turn: what a person said, what a model said, what tools gave back.

use std::borrow::Cow;

use banyan_model::{FunctionCallBlock, Json, Object, StopReason, ThinkingBlock, ToolState, Usage};
use serde_json::Value;

use super::parts::{Assistant, End, ToolResult, user};
use super::record::{Own, Record};
use super::take::{Draft, Taker};
use super::{finish_reason, kind};
use crate::turns::tools::details_of;

/// An assistant message whose end has not come yet.
pub(super) struct Open {
    id: Option<String>,
    parts: Assistant,
    time: i64,
    rest: Object,
}

const OF_EVERY: [&str; 3] = ["turn_id", "message_id", "banyan"];

/// The fields that have no place, besides those that do.
fn rest(record: &Record, known: &[&str]) -> Result<Object, String> {
    let known: Vec<&str> = OF_EVERY.iter().chain(known).copied().collect();
    record.rest_object(&known)
}

impl Taker {
    pub(super) fn user(&mut self, record: &Record, own: Option<Own>) -> Result<(), String> {
        self.flush();
        self.of_turn(record);
        let text = record.word("text").ok_or("the line has no `text`")?;
        let said_at = own.as_ref().and_then(|own| own.said_at.or(own.timestamp)).unwrap_or(self.time);
        let rest = rest(record, &["text"])?;
        let draft = Draft { id: record.text("message_id"), own, time: self.time, rest };
        self.message(draft, kind::USER, user(&text, said_at))
    }

    pub(super) fn assistant_started(&mut self, record: &Record) -> Result<(), String> {
        self.flush();
        self.of_turn(record);
        let mut open = self.opened(record);
        open.parts.model = record.text("model").unwrap_or(open.parts.model);
        open.parts.provider = record.text("provider").unwrap_or(open.parts.provider);
        open.parts.agent = json(record, "agent")?;
        open.rest = rest(record, &["model", "provider", "agent"])?;
        self.open = Some(open);
        Ok(())
    }

    pub(super) fn reasoning_finished(&mut self, record: &Record) -> Result<(), String> {
        let text = record.text("text").or_else(|| record.text("summary")).ok_or("the line has no `text`")?;
        let signature = record.text("signature");
        self.continued(record).parts.reasoning.push(ThinkingBlock { text, signature });
        Ok(())
    }

    pub(super) fn tool_started(&mut self, record: &Record) -> Result<(), String> {
        let id = record.text("call_id").ok_or("the line has no `call_id`")?;
        let function_id = record.text("name").ok_or("the line has no `name`")?;
        let arguments = json(record, "input")?.unwrap_or_default();
        self.calls.insert(id.clone(), function_id.clone());
        self.continued(record).parts.calls.push(FunctionCallBlock { id, function_id, arguments });
        Ok(())
    }

    pub(super) fn assistant_finished(&mut self, record: &Record, own: Option<Own>) -> Result<(), String> {
        let word = record.text("finish_reason");
        let known = word.as_deref().map(finish_reason::of_word);
        let no_calls = self.continued(record).parts.calls.is_empty();
        let end = End {
            stop_reason: Some(match known {
                Some(reason) => reason.unwrap_or(StopReason::End),
                None if record.get("error").is_some() => StopReason::Error,
                None if no_calls => StopReason::End,
                None => StopReason::FunctionCall,
            }),
            native_stop_reason: record.text("native_finish_reason").or(word.filter(|_| known == Some(None))),
            usage: record.parse::<Usage>("usage").map(|usage| by_other_names(usage, record)),
            error_kind: record.parse("error_kind"),
            error: record.text("error"),
            warnings: record.parse("warnings"),
        };
        let text = record.text("text").unwrap_or_default();
        let mut known = vec!["text", "finish_reason", "native_finish_reason", "model", "provider"];
        let understood = [
            ("usage", end.usage.is_some()),
            ("error_kind", end.error_kind.is_some()),
            ("error", end.error.is_some()),
            ("warnings", end.warnings.is_some()),
        ];
        known.extend(understood.iter().filter(|(_, understood)| *understood).map(|(key, _)| *key));
        let more = rest(record, &known)?;
        let Some(mut open) = self.open.take() else { return Ok(()) };
        open.parts.model = record.text("model").unwrap_or(open.parts.model);
        open.parts.provider = record.text("provider").unwrap_or(open.parts.provider);
        open.parts.text = text;
        open.parts.end = Some(end);
        open.rest.extend(more);
        self.close(open, own)
    }

    pub(super) fn tool_finished(&mut self, record: &Record, own: Option<Own>) -> Result<(), String> {
        let call_id = record.text("call_id").ok_or("the line has no `call_id`")?;
        let status = record.text("status").unwrap_or_default();
        self.flush();
        self.of_turn(record);
        let known = self.calls.remove(&call_id);
        let name = record.text("name").or(known).unwrap_or_else(|| {
            self.invented(format!("the function of call `{call_id}` is not named; it is called `unknown`"));
            "unknown".to_owned()
        });
        let error = record.text("error");
        let named = match status.as_str() {
            "ok" | "success" | "completed" => Some(ToolState::Ok),
            "failed" | "error" => Some(ToolState::Failed),
            "interrupted" | "cancelled" | "canceled" | "aborted" => Some(ToolState::Interrupted),
            "skipped" | "denied" | "rejected" => Some(ToolState::Skipped),
            _ => None,
        };
        let state = named.unwrap_or(if error.is_some() { ToolState::Failed } else { ToolState::Ok });
        let output = Output::of(record)?;
        let details = match (&own, details_of(state)) {
            (None, Some(details)) if output.details.is_none() => Some(details),
            (None, None) => with_duration(output.details, record),
            _ => output.details,
        };
        // What we wrote says by its fields whether it failed; a state of its own is in the details then.
        let is_error = if own.is_some() { error.is_some() } else { state != ToolState::Ok };
        let parts = ToolResult {
            call_id,
            name,
            is_error,
            text: [output.text, error].into_iter().flatten().collect::<Vec<_>>().join("\n"),
            details: details.unwrap_or_default(),
        };
        let said_at = own.as_ref().and_then(|own| own.said_at.or(own.timestamp)).unwrap_or(self.time);
        let mut known = vec!["call_id", "name", "duration_ms", "output", "error"];
        known.extend(named.map(|_| "status"));
        let rest = rest(record, &known)?;
        let draft = Draft { id: record.text("message_id"), own, time: self.time, rest };
        self.message(draft, kind::TOOL_FINISHED, parts.message(said_at))
    }

    /// A turn that was stopped, or that failed: the message that was being told ends so, or an empty one says it.
    pub(super) fn ended_badly(&mut self, record: &Record, word: &str) -> Result<(), String> {
        self.of_turn(record);
        let stop_reason = if word == kind::FAILED { StopReason::Error } else { StopReason::Aborted };
        let words = ["message", "error", "reason"].iter().find_map(|key| record.text(key));
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.opened(record),
        };
        let error = words.filter(|_| stop_reason == StopReason::Error || record.get("message").is_some());
        open.parts.end = Some(End { stop_reason: Some(stop_reason), error, ..End::default() });
        open.rest.extend(rest(record, &["message", "error"])?);
        self.close(open, None)
    }

    /// Gives the message that is being told, although its end has not come.
    pub(super) fn flush(&mut self) {
        let Some(open) = self.open.take() else { return };
        if open.parts.calls.is_empty() {
            self.invented("an assistant message has no end; it is taken as stopped");
        }
        if let Err(why) = self.close(open, None) {
            self.invented(why);
        }
    }

    fn close(&mut self, open: Open, own: Option<Own>) -> Result<(), String> {
        let said_at = own.as_ref().and_then(|own| own.said_at.or(own.timestamp)).unwrap_or(open.time);
        let message = open.parts.message(said_at);
        let draft = Draft { id: open.id, own, time: open.time, rest: open.rest };
        self.message(draft, kind::ASSISTANT_FINISHED, message)
    }

    /// The message that a line continues, or a new one.
    fn continued(&mut self, record: &Record<'_>) -> &mut Open {
        self.of_turn(record);
        let id = record.word("message_id");
        let other = |open: &Open| open.id.is_some() && id.is_some() && open.id.as_deref() != id.as_deref();
        if self.open.as_ref().is_some_and(other) {
            self.flush();
        }
        let open = match self.open.take() {
            Some(open) => open,
            None => self.opened(record),
        };
        let open = self.open.insert(open);
        open.id = open.id.take().or(id.map(Cow::into_owned));
        open
    }

    fn opened(&self, record: &Record) -> Open {
        let (model, provider) = self.default_model();
        let parts = Assistant { model, provider, ..Assistant::default() };
        Open { id: record.text("message_id"), parts, time: self.time, rest: Object::new() }
    }
}

/// What a tool gave back.
#[derive(Default)]
struct Output {
    text: Option<String>,
    details: Option<Json>,
}

impl Output {
    /// A text is a text; `{"text", "details"}` says both; anything else is shown as JSON and kept.
    fn of(record: &Record) -> Result<Self, String> {
        let Some(output) = json(record, "output")? else { return Ok(Self::default()) };
        if let Ok(text) = output.parse::<String>() {
            return Ok(Self { text: Some(text), details: None });
        }
        let fields = serde_json::from_str::<Record>(output.get()).ok();
        if let Some(fields) =
            fields.filter(|fields| fields.fields().all(|(key, _)| ["text", "details"].contains(&key)))
        {
            return Ok(Self { text: fields.text("text"), details: fields.json("details") });
        }
        Ok(Self { text: Some(output.get().to_owned()), details: Some(output) })
    }
}

/// The value of a key. One that nests too deep makes the line unreadable, so that nothing is lost silently.
fn json(record: &Record, key: &str) -> Result<Option<Json>, String> {
    match record.get(key) {
        None => Ok(None),
        Some(value) if value.get() == "null" => Ok(None),
        Some(value) => {
            Json::from_text(value.get()).map(Some).map_err(|error| format!("`{key}`: {}", error.message))
        }
    }
}

/// Puts how long a tool took into its details, when they are an object or there are none.
fn with_duration(details: Option<Json>, record: &Record) -> Option<Json> {
    let Some(duration) = record.parse::<u64>("duration_ms") else { return details };
    let mut object = match &details {
        None => Object::new(),
        Some(details) => match details.parse::<Object>() {
            Ok(object) => object,
            Err(_) => return Some(details.clone()),
        },
    };
    object.entry("duration_ms").or_insert_with(|| Value::from(duration));
    Json::of(&object).ok()
}

/// Usage as providers name it, where it is not named as here.
fn by_other_names(mut usage: Usage, record: &Record) -> Usage {
    let fields = record.parse::<Object>("usage").unwrap_or_default();
    let number = |keys: &[&str]| keys.iter().find_map(|key| fields.get(*key)?.as_u64());
    usage.input = usage.input.or_else(|| number(&["input_tokens", "prompt_tokens"]));
    usage.output = usage.output.or_else(|| number(&["output_tokens", "completion_tokens"]));
    usage.reasoning = usage.reasoning.or_else(|| number(&["reasoning_tokens"]));
    usage
}
