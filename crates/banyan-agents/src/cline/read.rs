//! The two files of a session of Cline 3.x, which are written whole each time.

use std::collections::HashMap;
use std::path::Path;

use banyan_model::{
    AgentMessage, AssistantMessage, ContentBlock, CustomMessage, EntryId, FunctionResultMessage, Json, Object,
    StopReason, UserMessage,
};
use serde_json::{Value, json};

use super::head::Session;
use super::{ID, SESSION_RECORD, content, manifest};
use crate::teller::Teller;
use crate::{Mark, OWN, Own, Problem, Sink, entry_id, records};

/// A session that is being read.
struct Reading<'a> {
    teller: Teller<'a>,
    functions: HashMap<String, String>,
    model: String,
    provider: String,
}

/// Reads a session.
pub(super) fn session(path: &Path, mark: Option<&Mark>, sink: &mut dyn Sink) -> Result<Mark, Problem> {
    let bytes = std::fs::read(path).map_err(|error| Problem::io(path, error))?;
    let file: Value = serde_json::from_slice(&bytes).map_err(|error| Problem::form(path, error.to_string()))?;
    let Value::Object(mut file) = file else { return Err(Problem::form(path, "it is not a session")) };
    let messages = file.shift_remove("messages");
    let session = Session::new(manifest_of(path), file);
    let messages = messages.as_ref().and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let call = session.parent().and_then(|parent| spawning_call(path, parent, messages));
    let head = session.head(path, call.as_deref());
    let known = |key: &str| head.metadata.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (model, provider) = (known("model"), known("provider"));
    let mut teller = Teller::new(sink, head, mark)?;
    teller.progress(bytes.len());
    let record = json!({ "manifest": session.manifest, "file": session.file });
    let id = match &session.own {
        Some(own) => own.entry.clone(),
        None => Some(entry_id(&teller.session(), "session")),
    };
    if let Some(id) = id {
        teller.custom(id, 0, SESSION_RECORD, Json::of(&record)?)?;
    }
    let mut reading = Reading { teller, functions: HashMap::new(), model, provider };
    for (number, message) in messages.iter().enumerate() {
        reading.take(message.clone(), number)?;
    }
    reading.teller.finish()
}

/// The manifest, if it is there and can be read.
fn manifest_of(messages: &Path) -> Object {
    let text = std::fs::read_to_string(manifest(messages)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// The call of the parent that started a sub-agent: the only one that gave it this task.
fn spawning_call(path: &Path, parent: &str, messages: &[Value]) -> Option<String> {
    let task = messages.first()?.pointer("/content/0/text")?.as_str()?;
    let text = std::fs::read_to_string(path.with_file_name(format!("{parent}.messages.json"))).ok()?;
    let parent: Value = serde_json::from_str(&text).ok()?;
    let items =
        parent.get("messages")?.as_array()?.iter().filter_map(|message| message.get("content")?.as_array());
    let mut calls =
        items.flatten().filter(|item| item.pointer("/input/task").and_then(Value::as_str) == Some(task));
    let call = calls.next()?.get("id")?.as_str()?.to_owned();
    calls.next().is_none().then_some(call)
}

impl Reading<'_> {
    fn take(&mut self, mut record: Value, number: usize) -> Result<(), Problem> {
        let own: Option<Own> = own_of(&mut record);
        if own.as_ref().is_some_and(|own| own.made_up) {
            return Ok(());
        }
        let (id, own) = match own.and_then(|own| own.entry) {
            Some(entry) => (entry, true),
            None => {
                let native = record
                    .get("id")
                    .and_then(Value::as_str)
                    .map_or_else(|| format!("message {number}"), str::to_owned);
                (entry_id(&self.teller.session(), &native), false)
            }
        };
        let items = match record.get("content") {
            Some(Value::String(text)) => vec![json!({ "type": "text", "text": text })],
            Some(Value::Array(items)) => items.clone(),
            _ => Vec::new(),
        };
        let at = record.get("ts").and_then(Value::as_i64).unwrap_or_default();
        let messages = match record.get("role").and_then(Value::as_str) {
            Some("assistant") => self.answer(&record, &items, at),
            _ => self.said(&mut record, &items, at),
        };
        if messages.is_empty() {
            let kind = items.first().and_then(|item| item.get("type")?.as_str()).unwrap_or("message");
            return self.teller.custom(id, at, &format!("cline.{kind}"), Json::of(&record)?);
        }
        self.tell(&id, own, record, &messages)
    }

    /// An answer of a model, or a failure that Cline shows in its place.
    fn answer(&mut self, record: &Value, items: &[Value], at: i64) -> Vec<AgentMessage> {
        let mut content: Vec<ContentBlock> = items.iter().filter_map(content::block).collect();
        let is_failure = record.pointer("/metadata/displayRole").and_then(Value::as_str) == Some("error");
        let only_shown = record.pointer("/metadata/displayOnly") == Some(&Value::Bool(true));
        if content.is_empty() {
            return Vec::new();
        }
        if only_shown && !is_failure {
            let custom_type = "cline.shown".to_owned();
            return vec![AgentMessage::Custom(CustomMessage {
                custom_type,
                content,
                display: None,
                details: None,
                timestamp: at,
            })];
        }
        let mut error_message = None;
        if is_failure {
            error_message = Some(text_of(&content));
            content.clear();
        }
        let mut stop_reason = if is_failure { StopReason::Error } else { StopReason::End };
        for block in &content {
            if let ContentBlock::FunctionCall(call) = block {
                self.functions.insert(call.id.clone(), call.function_id.clone());
                stop_reason = StopReason::FunctionCall;
            }
        }
        let model = |place: &str, otherwise: &str| {
            record.pointer(place).and_then(Value::as_str).unwrap_or(otherwise).to_owned()
        };
        vec![AgentMessage::Assistant(AssistantMessage {
            content,
            model: model("/modelInfo/id", &self.model),
            provider: model("/modelInfo/provider", &self.provider),
            stop_reason,
            native_stop_reason: None,
            error_kind: None,
            error_message,
            usage: record.get("metrics").filter(|metrics| metrics.is_object()).map(content::usage),
            warnings: None,
            agent: None,
            timestamp: at,
        })]
    }

    /// What a person typed, what functions gave back, and what Cline added.
    fn said(&mut self, record: &mut Value, items: &[Value], at: i64) -> Vec<AgentMessage> {
        let mut messages = Vec::new();
        let (mut said, mut added) = (Vec::new(), Vec::new());
        for (place, item) in items.iter().enumerate() {
            if item.get("type").and_then(Value::as_str) == Some("tool_result") {
                messages.extend(self.result(item, at));
                continue;
            }
            let Some(block) = content::block(item) else { continue };
            match &block {
                ContentBlock::Text(text) => match content::typed(&text.text) {
                    Some((before, typed, after)) => {
                        said.push(ContentBlock::text(typed));
                        // What was typed is in the message. What is around it is kept beside it.
                        if let Some(item) = record.pointer_mut(&format!("/content/{place}/text")) {
                            *item = json!({ "typed": [before, typed, after] });
                        }
                    }
                    None if is_added(&text.text) => added.push(block),
                    None => said.push(block),
                },
                _ => said.push(block),
            }
        }
        if !said.is_empty() {
            messages.push(AgentMessage::User(UserMessage { content: said, timestamp: at }));
        }
        if !added.is_empty() {
            let custom_type = "cline.context".to_owned();
            messages.push(AgentMessage::Custom(CustomMessage {
                custom_type,
                content: added,
                display: None,
                details: None,
                timestamp: at,
            }));
        }
        messages
    }

    fn result(&self, item: &Value, at: i64) -> Option<AgentMessage> {
        let call = item.get("tool_use_id")?.as_str()?.to_owned();
        let (content, is_error) = content::result(item);
        let name = item.get("name").and_then(Value::as_str).map(str::to_owned);
        let is_plain = item.get("content").is_none_or(Value::is_string);
        let details = item.get("content").filter(|_| !is_plain).map(Json::of).and_then(Result::ok);
        Some(AgentMessage::FunctionResult(FunctionResultMessage {
            function_id: name.or_else(|| self.functions.get(&call).cloned()).unwrap_or_default(),
            function_call_id: call,
            content,
            details: details.unwrap_or_default(),
            is_error,
            timestamp: at,
        }))
    }

    fn tell(&mut self, id: &EntryId, own: bool, record: Value, messages: &[AgentMessage]) -> Result<(), Problem> {
        for (place, message) in messages.iter().enumerate() {
            if place == 0 {
                let origin = records::keep(ID, vec![record.clone()], message);
                self.teller.message(id.clone(), own, Some(origin), message)?;
            } else {
                // The record is kept once, with the first of the entries that it is.
                let mut origin = Object::new();
                origin.insert(ID.to_owned(), json!({ "with": id.as_str() }));
                let id = entry_id(&self.teller.session(), &format!("{} {place}", id.as_str()));
                self.teller.message(id, own, Some(origin), message)?;
            }
        }
        Ok(())
    }
}

/// Takes what is ours out of a message.
fn own_of(record: &mut Value) -> Option<Own> {
    let metadata = record.get_mut("metadata")?.as_object_mut()?;
    let own = metadata.shift_remove(OWN)?;
    let is_empty = metadata.is_empty();
    if let (true, Some(record)) = (is_empty, record.as_object_mut()) {
        record.shift_remove("metadata");
    }
    serde_json::from_value(own).ok()
}

/// Whether a text was put there by Cline.
fn is_added(text: &str) -> bool {
    let begins = ["<environment_details>", "<task_resumption>", "[TASK RESUMPTION]", "<file_content"];
    begins.iter().any(|begin| text.trim_start().starts_with(begin))
}

fn text_of(content: &[ContentBlock]) -> String {
    let texts = content.iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
