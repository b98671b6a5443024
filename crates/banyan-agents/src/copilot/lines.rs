//! The events of a log that is being written.

use std::collections::HashSet;

use banyan_model::{
    AssistantMessage, ContentBlock, CustomMessage, EntryId, FunctionCallBlock, ImageBlock, MessageEntry, Object,
};
use serde_json::{Value, json};

use super::ID;
use super::event::attachment;
use crate::build::iso;
use crate::{Call, OWN, Outgoing, Own};

/// The version that sessions of other agents are written as.
const VERSION: &str = "1.0.102";

/// A log that is being written.
pub(super) struct Log<'a> {
    session: &'a Outgoing,
    native: &'a str,
    cwd: &'a str,
    ids: HashSet<String>,
    last: Option<String>,
    lines: String,
}

/// What this agent had written of a message, beside its content.
pub(super) fn from_us(entry: &MessageEntry) -> Option<Object> {
    match entry.origin.as_ref()?.get(ID)? {
        Value::Object(written) => Some(written),
        _ => None,
    }
}

impl<'a> Log<'a> {
    pub(super) fn new(session: &'a Outgoing, native: &'a str, cwd: &'a str) -> Self {
        Self { session, native, cwd, ids: HashSet::new(), last: None, lines: String::new() }
    }

    pub(super) fn text(self) -> String {
        self.lines
    }

    /// The first event, of a session that has none yet.
    pub(super) fn start(&mut self) {
        let at = self.session.meta.created_at;
        let mut data = json!({
            "sessionId": self.native,
            "version": 1,
            "producer": "copilot-agent",
            "copilotVersion": VERSION,
            "startTime": iso(at),
            "context": {"cwd": self.cwd},
        });
        if let Some(branch) = self.session.metadata("git_branch") {
            data["context"]["branch"] = branch.into();
        }
        self.push(event("session.start", data, at), None);
    }

    pub(super) fn user(&mut self, entry: &MessageEntry, content: &[ContentBlock], at: i64) {
        let mut record = from_us(entry).unwrap_or_else(|| event("user.message", json!({}), at));
        if let Some(data) = record.get_mut("data") {
            data["content"] = text(content).into();
            let mut pictures = images(content);
            fill_pictures(data.get_mut("attachments"), &mut pictures);
            let more: Vec<Value> = pictures.map(|image| attachment(image, "blob")).collect();
            if !more.is_empty() {
                data["attachments"] = more.into();
            }
        }
        self.push(record, Some(&entry.id));
    }

    pub(super) fn assistant(
        &mut self,
        entry: &MessageEntry,
        message: &AssistantMessage,
        at: i64,
        lost: &mut Vec<String>,
    ) {
        if let Some(error) = &message.error_message {
            lost.push(format!("that an answer failed: {error}"));
        }
        if images(&message.content).next().is_some() {
            lost.push("a picture in an answer".to_owned());
        }
        let again = from_us(entry).and_then(|record| answer_again(&record, message));
        let record = again.unwrap_or_else(|| {
            if thinking(&message.content).next().is_some() {
                lost.push("thinking is there to be read, and is not sent again".to_owned());
            }
            event("assistant.message", answer(entry, message), at)
        });
        self.push(record, Some(&entry.id));
    }

    pub(super) fn result(&mut self, call: &Call, record: Option<&Object>, model: &str, lost: &mut Vec<String>) {
        let Call { call, outcome } = call;
        let said = text(&outcome.content);
        if let Some(record) = record {
            let mut record = record.clone();
            if let Some(data) = record.get_mut("data") {
                let key = if data["result"].get("content").is_some_and(Value::is_null) {
                    ("result", "content")
                } else {
                    ("error", "message")
                };
                data[key.0][key.1] = said.into();
                fill_pictures(data["result"].get_mut("contents"), &mut images(&outcome.content));
            }
            return self.push(record, outcome.entry.as_ref());
        }
        if images(&outcome.content).next().is_some() {
            lost.push("a picture in a result is there to be seen, and is not sent again".to_owned());
        }
        let start = json!({"toolCallId": call.id, "toolName": call.function_id, "arguments": arguments(call)});
        self.push(event("tool.execution_start", start, outcome.at), None);
        let mut data = json!({"toolCallId": call.id, "model": model, "success": !outcome.is_error});
        if outcome.is_error {
            data["error"] = json!({"message": said, "code": "failure"});
        } else {
            data["result"] = json!({"content": said});
        }
        let shown: Vec<Value> = images(&outcome.content).map(|image| attachment(image, "image")).collect();
        if !shown.is_empty() {
            data["result"]["contents"] = shown.into();
        }
        self.push(event("tool.execution_complete", data, outcome.at), outcome.entry.as_ref());
    }

    /// An event that was put there by this agent.
    pub(super) fn context(&mut self, entry: &MessageEntry, message: &CustomMessage) {
        let Some(mut record) = from_us(entry) else { return };
        if let Some(data) = record.get_mut("data") {
            let key = if data.get("summaryContent").is_some() { "summaryContent" } else { "content" };
            data[key] = text(&message.content).into();
        }
        self.push(record, Some(&entry.id));
    }

    pub(super) fn failed(&mut self, entry: &MessageEntry, message: &AssistantMessage) {
        let made = || {
            let data = json!({"errorType": "query", "message": message.error_message});
            event("session.error", data, message.timestamp)
        };
        self.push(from_us(entry).unwrap_or_else(made), Some(&entry.id));
    }

    /// An event that is written as it was, but for the session's id and directory.
    pub(super) fn again(&mut self, mut record: Object, entry: &EntryId) {
        let kind = record.get("type").and_then(Value::as_str).unwrap_or_default();
        if record.contains_key("agentId") && kind.starts_with("subagent.") {
            return;
        }
        if kind == "session.start"
            && let Some(data) = record.get_mut("data")
        {
            data["sessionId"] = self.native.into();
            data["context"]["cwd"] = self.cwd.into();
        }
        self.push(record, Some(entry));
    }

    /// Adds an event after the last one. Without an entry it was made up so that the agent is content.
    fn push(&mut self, mut record: Object, entry: Option<&EntryId>) {
        let known = record.get("id").and_then(Value::as_str).map(str::to_owned);
        let ours = || entry.and_then(EntryId::as_uuid).map(|uuid| uuid.to_string());
        let number = self.ids.len();
        let fresh = || {
            let hash =
                blake3::hash(format!("{}\0{}\0{number}", self.native, self.session.meta.session_id).as_bytes());
            let bytes = hash.as_bytes().first_chunk::<16>().copied().unwrap_or_default();
            uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
        };
        let unused = |id: &String| !self.ids.contains(id);
        let id = known.filter(unused).or_else(|| ours().filter(unused)).unwrap_or_else(fresh);
        let own =
            Own { session: self.session.meta.session_id.clone(), entry: entry.cloned(), made_up: entry.is_none() };
        self.ids.insert(id.clone());
        record.insert("id".to_owned(), id.clone().into());
        record.insert("parentId".to_owned(), self.last.replace(id).into());
        if record.shift_remove("agentId").is_some() {
            // A sub-agent's session goes out as one that can be resumed by itself.
            if let Some(data) = record.get_mut("data").and_then(Value::as_object_mut) {
                data.shift_remove("parentToolCallId");
            }
        }
        record.insert(OWN.to_owned(), json!(own));
        crate::native::push_line(&mut self.lines, &Value::Object(record));
    }
}

fn event(kind: &str, data: Value, at: i64) -> Object {
    let fields = [
        ("type", kind.into()),
        ("data", data),
        ("id", Value::Null),
        ("timestamp", iso(at).into()),
        ("parentId", Value::Null),
    ];
    fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// An answer of another agent.
fn answer(entry: &MessageEntry, message: &AssistantMessage) -> Value {
    let requests: Vec<Value> = calls(&message.content)
        .map(|call| json!({"toolCallId": call.id, "name": call.function_id, "arguments": arguments(call), "type": "function"}))
        .collect();
    let mut data = json!({
        "messageId": entry.id.as_uuid().map_or_else(|| entry.id.to_string(), |uuid| uuid.to_string()),
        "model": message.model,
        "content": text(&message.content),
        "toolRequests": requests,
    });
    let thought: Vec<&str> = thinking(&message.content).collect();
    if !thought.is_empty() {
        data["reasoningText"] = thought.join("\n\n").into();
    }
    data
}

/// An answer of this agent, if what it says fits what it was.
fn answer_again(record: &Object, message: &AssistantMessage) -> Option<Object> {
    let mut record = record.clone();
    let data = record.get_mut("data")?.as_object_mut()?;
    let mut calls = calls(&message.content);
    if let Some(Value::Array(requests)) = data.get_mut("toolRequests") {
        for request in requests {
            let call = calls.next()?;
            request["toolCallId"] = call.id.clone().into();
            request["name"] = call.function_id.clone().into();
            request["arguments"] = call.arguments.parse().ok()?;
        }
    }
    let thought: Vec<&str> = thinking(&message.content).collect();
    let mut each = thought.iter();
    let blocks = data.get_mut("reasoningBlocks").and_then(|blocks| blocks.get_mut("blocks")?.as_array_mut());
    for block in blocks.into_iter().flatten() {
        if block.get("thinking").is_some_and(Value::is_null) {
            block["thinking"] = (*each.next()?).into();
        }
    }
    if data.contains_key("reasoningText") {
        data.insert("reasoningText".to_owned(), thought.join("\n\n").into());
    }
    data.insert("content".to_owned(), text(&message.content).into());
    calls.next().is_none().then_some(record)
}

/// Puts pictures back to where their bytes were taken from.
fn fill_pictures<'b>(list: Option<&mut Value>, pictures: &mut impl Iterator<Item = &'b ImageBlock>) {
    for shown in list.and_then(Value::as_array_mut).into_iter().flatten() {
        if shown.get("data").is_some_and(Value::is_null)
            && let Some(image) = pictures.next()
        {
            shown["data"] = image.data.clone().into();
        }
    }
}

fn text(content: &[ContentBlock]) -> String {
    let texts = content.iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn images(content: &[ContentBlock]) -> impl Iterator<Item = &ImageBlock> {
    content.iter().filter_map(|block| match block {
        ContentBlock::Image(image) => Some(image),
        _ => None,
    })
}

fn calls(content: &[ContentBlock]) -> impl Iterator<Item = &FunctionCallBlock> {
    content.iter().filter_map(|block| match block {
        ContentBlock::FunctionCall(call) => Some(call),
        _ => None,
    })
}

fn thinking(content: &[ContentBlock]) -> impl Iterator<Item = &str> {
    content.iter().filter_map(|block| match block {
        ContentBlock::Thinking(thinking) => Some(thinking.text.as_str()),
        _ => None,
    })
}

fn arguments(call: &FunctionCallBlock) -> Value {
    crate::parts::arguments(call)
}
