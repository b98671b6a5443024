//! One message of a history, by its role.

use std::io::{Read, Seek};

use banyan_model::{
    AgentMessage, AssistantMessage, ContentBlock, CustomMessage, EntryId, FunctionResultMessage, Json, Object,
    StopReason, UserMessage,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::super::error::Error;
use super::super::mark::{Mark, fingerprint};
use super::super::render::{AsImported, Outgoing, render};
use super::super::time;
use super::super::{identity, numbers};
use super::{Imported, Messages};
use crate::history::milliseconds;

const UNKNOWN: &str = "unknown";

/// What a Banyan that wrote the history put into a message's metadata: whatever else the message has no field for.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Rest {
    entry: Option<String>,
    message: Object,
    thinking: Vec<Thought>,
}

#[derive(Deserialize)]
struct Thought {
    at: usize,
    text: String,
    signature: Option<String>,
}

impl Rest {
    fn take<T: DeserializeOwned>(&mut self, field: &str) -> Option<T> {
        serde_json::from_value(self.message.remove(field)?).ok()
    }
}

/// Values that are kept as text, read again from the text because numbers in them would lose digits otherwise.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Exact {
    content: Vec<Input>,
    metadata: ExactMetadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Input {
    input: Option<Json>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ExactMetadata {
    banyan: ExactRest,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ExactRest {
    message: std::collections::HashMap<String, Json>,
}

impl Exact {
    /// What the `at`th block was called with.
    pub(super) fn input(&mut self, at: usize) -> Option<Json> {
        self.content.get_mut(at)?.input.take()
    }

    fn field(&mut self, name: &str) -> Option<Json> {
        self.metadata.banyan.message.remove(name)
    }
}

/// A message that is being made.
struct Draft<'a> {
    object: &'a Object,
    exact: Exact,
    rest: Rest,
    mark: Mark,
    time: i64,
}

impl<R: Read + Seek + Send> Messages<'_, R> {
    /// Makes entries of a message and puts them with those that are ready.
    pub(super) fn take(&mut self, text: &str) -> Result<(), Error> {
        self.report.messages += 1;
        let Ok(Value::Object(object)) = serde_json::from_str::<Value>(text) else {
            self.keep_whole(text);
            return Ok(());
        };
        let is_exact = numbers::are_exact(text);
        let exact = if is_exact { Exact::default() } else { serde_json::from_str(text).unwrap_or_default() };
        let (mark, rest) = self.mark(&object);
        let time = self.last_time;
        let role = object.get("role").and_then(Value::as_str).unwrap_or_default();
        let draft = Draft { object: &object, exact, rest, mark, time };
        let mut made = match role.to_ascii_lowercase().as_str() {
            "user" => vec![self.user(draft)?],
            "assistant" => vec![self.assistant(draft)?],
            "system" => vec![self.custom(draft, "system")?],
            "tool" => self.tool(draft)?,
            _ => vec![self.unknown(draft, role)?],
        };
        let is_whole =
            (is_exact && is_plain(&object, role)) || self.is_written_the_same(&made, text, &object, is_exact);
        if !is_whole {
            if let Some((_, _, mark)) = made.first_mut() {
                mark.raw = Some(text.to_owned());
            }
            for (_, message, mark) in &mut made {
                mark.was = fingerprint(message);
            }
        }
        let entries = made.into_iter();
        self.ready.extend(entries.map(|(entry_id, message, mark)| Imported {
            entry_id,
            message,
            origin: mark.into_origin(),
        }));
        Ok(())
    }

    /// Whether a writer makes the same message again of what was made of it.
    fn is_written_the_same(
        &self,
        made: &[(EntryId, AgentMessage, Mark)],
        text: &str,
        object: &Object,
        is_exact: bool,
    ) -> bool {
        let group: Vec<Outgoing<'_>> = made
            .iter()
            .map(|(entry_id, message, mark)| Outgoing { entry_id, message, mark: Some(mark) })
            .collect();
        let Some(written) = render(&group, &AsImported, 0) else { return false };
        // What a Banyan wrote is the same to the byte.
        if written == text {
            return true;
        }
        let same = serde_json::from_str::<Value>(&written).is_ok_and(|value| value.as_object() == Some(object));
        same && (is_exact || numbers::are_same(text, &written))
    }

    /// What can be said of a message whatever its role.
    fn mark(&mut self, object: &Object) -> (Mark, Rest) {
        let mut mark = Mark { id: object.get("id").filter(|id| !id.is_null()).cloned(), ..Mark::default() };
        let text = object.get("timestamp").and_then(Value::as_str);
        match text.and_then(milliseconds) {
            Some(ms) => self.last_time = ms,
            None => {
                mark.make_up("timestamp");
                self.invented("timestamp");
            }
        }
        mark.timestamp = text.filter(|text| *text != time::written(self.last_time)).map(str::to_owned);
        let mut metadata = object.get("metadata").filter(|metadata| !metadata.is_null()).cloned();
        let own =
            metadata.as_mut().and_then(Value::as_object_mut).and_then(|fields| fields.shift_remove("banyan"));
        let rest = own.and_then(|own| Rest::deserialize(own).ok());
        let is_empty = metadata.as_ref().and_then(Value::as_object).is_some_and(Object::is_empty);
        mark.metadata = metadata.filter(|_| !(is_empty && rest.is_some()));
        (mark, rest.unwrap_or_default())
    }

    fn id(&mut self, draft: &mut Draft<'_>, part: usize) -> EntryId {
        let given = draft.rest.entry.take().filter(|id| !id.is_empty() && !self.is_given(id));
        if let Some(given) = given {
            self.given_ids.insert(super::short(&given));
            draft.mark.entry = true;
            return EntryId::from(given);
        }
        let id = draft.mark.id.as_ref().map(Value::to_string).unwrap_or_default();
        identity::entry(&self.session, self.report.messages, &id, part)
    }

    fn content(&mut self, draft: &mut Draft<'_>) -> Result<Vec<ContentBlock>, Error> {
        let given = draft.object.get("content").unwrap_or(&Value::Null);
        let mut content = self.blocks(given, &mut draft.mark, &mut draft.exact)?;
        for thought in std::mem::take(&mut draft.rest.thinking) {
            let block = banyan_model::ThinkingBlock { text: thought.text, signature: thought.signature };
            content.insert(thought.at.min(content.len()), ContentBlock::Thinking(block));
        }
        Ok(content)
    }

    fn user(&mut self, mut draft: Draft<'_>) -> Result<(EntryId, AgentMessage, Mark), Error> {
        let content = self.content(&mut draft)?;
        let id = self.id(&mut draft, 0);
        Ok((id, AgentMessage::User(UserMessage { content, timestamp: draft.time }), draft.mark))
    }

    fn assistant(&mut self, mut draft: Draft<'_>) -> Result<(EntryId, AgentMessage, Mark), Error> {
        let content = self.content(&mut draft)?;
        let mut named = |field: &'static str| {
            let given = draft.rest.take(field).or_else(|| {
                let metadata = draft.mark.metadata.as_ref()?;
                metadata.get(field)?.as_str().map(str::to_owned)
            });
            given.unwrap_or_else(|| {
                draft.mark.make_up(field);
                self.invented(field);
                UNKNOWN.to_owned()
            })
        };
        let (model, provider) = (named("model"), named("provider"));
        let stop_reason = draft.rest.take("stop_reason").unwrap_or_else(|| {
            draft.mark.make_up("stop_reason");
            self.invented("stop_reason");
            usual_stop(&content)
        });
        let message = AssistantMessage {
            content,
            model,
            provider,
            stop_reason,
            native_stop_reason: draft.rest.take("native_stop_reason"),
            error_kind: draft.rest.take("error_kind"),
            error_message: draft.rest.take("error_message"),
            usage: draft.rest.take("usage"),
            warnings: draft.rest.take("warnings"),
            agent: draft.exact.field("agent").or_else(|| Json::of(&draft.rest.message.remove("agent")?).ok()),
            timestamp: draft.time,
        };
        let id = self.id(&mut draft, 0);
        Ok((id, AgentMessage::Assistant(message), draft.mark))
    }

    fn custom(&mut self, mut draft: Draft<'_>, custom_type: &str) -> Result<(EntryId, AgentMessage, Mark), Error> {
        let content = self.content(&mut draft)?;
        let message = CustomMessage {
            custom_type: custom_type.to_owned(),
            content,
            display: draft.rest.take("display"),
            details: draft
                .exact
                .field("details")
                .or_else(|| Json::of(&draft.rest.message.remove("details")?).ok()),
            timestamp: draft.time,
        };
        let id = self.id(&mut draft, 0);
        Ok((id, AgentMessage::Custom(message), draft.mark))
    }

    fn unknown(&mut self, mut draft: Draft<'_>, role: &str) -> Result<(EntryId, AgentMessage, Mark), Error> {
        let shown: String = role.chars().filter(|c| !c.is_control()).take(64).collect();
        self.unplaced(format!("the role `{shown}`"));
        draft.mark.role = Some(role.to_owned());
        self.custom(draft, &format!("opa:{shown}"))
    }

    /// Results of tools: one entry each. Without a result's block the content is the result of the one call that is open.
    fn tool(&mut self, mut draft: Draft<'_>) -> Result<Vec<(EntryId, AgentMessage, Mark)>, Error> {
        let is_result = |block: &Value| {
            block.get("type").and_then(Value::as_str) == Some("tool_result")
                && block.get("tool_use_id").is_some_and(Value::is_string)
        };
        let given = draft.object.get("content").and_then(Value::as_array);
        let results: Vec<&Value> = given.into_iter().flatten().collect();
        if results.is_empty() || !results.iter().all(|block| is_result(block)) {
            if self.open_calls.len() != 1 {
                draft.mark.role = Some("tool".to_owned());
                self.unplaced("a result that does not say which call it is of");
                return Ok(vec![self.custom(draft, "opa:tool")?]);
            }
            let (call, function) = self.open_calls.pop_front().unwrap_or_default();
            self.invented("function_call_id");
            draft.mark.make_up("function_call_id");
            let content = self.content(&mut draft)?;
            return Ok(vec![self.result(&mut draft, 0, (call, Some(function)), content, false)]);
        }
        let many = results.len();
        let mut made = Vec::with_capacity(many);
        for (part, block) in results.into_iter().enumerate() {
            if many > 1 {
                draft.mark.part = Some((part as u64, many as u64));
            }
            (draft.mark.paths, draft.mark.result_lists) = (Vec::new(), false);
            let call = block.get("tool_use_id").and_then(Value::as_str).unwrap_or_default().to_owned();
            let is_error = block.get("is_error").and_then(Value::as_bool).unwrap_or_default();
            let content = self.result_content(block.get("content"), &mut draft.mark)?;
            let open = self.open_calls.iter().position(|(open, _)| *open == call);
            let function = open.and_then(|at| self.open_calls.remove(at)).map(|(_, function)| function);
            made.push(self.result(&mut draft, part, (call, function), content, is_error));
        }
        Ok(made)
    }

    fn result(
        &mut self,
        draft: &mut Draft<'_>,
        part: usize,
        (function_call_id, function): (String, Option<String>),
        content: Vec<ContentBlock>,
        is_error: bool,
    ) -> (EntryId, AgentMessage, Mark) {
        let function_id = match draft.rest.take("function_id") {
            Some(given) => given,
            None => {
                if !draft.mark.is_made_up("function_id") {
                    draft.mark.make_up("function_id");
                }
                function.unwrap_or_else(|| {
                    self.invented("function_id");
                    UNKNOWN.to_owned()
                })
            }
        };
        let given = draft.rest.message.remove("details");
        let details = draft.exact.field("details").or_else(|| Json::of(&given?).ok()).unwrap_or_default();
        let timestamp = draft.time;
        let message =
            FunctionResultMessage { function_call_id, function_id, content, details, is_error, timestamp };
        let id = self.id(draft, part);
        (id, AgentMessage::FunctionResult(message), draft.mark.clone())
    }

    /// A message that is not even an object, or that holds what no string can.
    fn keep_whole(&mut self, text: &str) {
        self.unplaced("a message that cannot be read");
        self.invented("timestamp");
        let mut mark = Mark { role: Some("message".to_owned()), raw: Some(text.to_owned()), ..Mark::default() };
        mark.make_up("timestamp");
        let message = AgentMessage::Custom(CustomMessage {
            custom_type: "opa:message".to_owned(),
            content: vec![ContentBlock::text("[a message that cannot be read, kept in its entry's origin]")],
            display: None,
            details: None,
            timestamp: self.last_time,
        });
        mark.was = fingerprint(&message);
        let entry_id = identity::entry(&self.session, self.report.messages, "", 0);
        self.ready.push_back(Imported { entry_id, message, origin: mark.into_origin() });
    }
}

/// Why a model stopped, when nobody says: it waits for what it called last, or it was done.
pub(crate) fn usual_stop(content: &[ContentBlock]) -> StopReason {
    match content.last() {
        Some(ContentBlock::FunctionCall(_)) => StopReason::FunctionCall,
        _ => StopReason::End,
    }
}

/// Whether a message is of the simplest kind, which is always written as it was read.
fn is_plain(object: &Object, role: &str) -> bool {
    matches!(role, "user" | "assistant" | "system")
        && object.get("content").is_some_and(Value::is_string)
        && object.iter().all(|(key, value)| match key.as_str() {
            "role" | "content" => true,
            "timestamp" => value.is_string(),
            "id" => !value.is_null(),
            _ => false,
        })
}
