//! A task of Cline 2.x or of the VS Code extension.

use std::path::Path;

use banyan_model::{
    AgentMessage, AssistantMessage, ContentBlock, CustomMessage, FunctionCallBlock, FunctionResultMessage, Json,
    Object, SessionId, SessionStatus, StopReason, UserMessage,
};
use serde_json::{Value, json};

use super::{ID, ID_OLD, content, xml};
use crate::teller::Teller;
use crate::{Head, Mark, Problem, Sink, entry_id, records, session_id};

/// The elements that hold what a person typed.
const TYPED: &[&str] = &["task", "feedback", "answer", "user_message"];

/// A call that waits for its result.
struct Waiting {
    id: String,
    function: String,
}

/// Reads a task.
pub(super) fn task(path: &Path, mark: Option<&Mark>, sink: &mut dyn Sink) -> Result<Mark, Problem> {
    let bytes = std::fs::read(path).map_err(|error| Problem::io(path, error))?;
    let file: Value = serde_json::from_slice(&bytes).map_err(|error| Problem::form(path, error.to_string()))?;
    let Value::Array(messages) = file else { return Err(Problem::form(path, "it is not a list of messages")) };
    let mut teller = Teller::new(sink, head(path, &messages), mark)?;
    teller.progress(bytes.len());
    let begun = teller.head().created_at;
    let mut waiting = Vec::new();
    for (number, record) in messages.into_iter().enumerate() {
        let at = record.get("ts").and_then(Value::as_i64).unwrap_or(begun + number as i64);
        let items = match record.get("content") {
            Some(Value::String(text)) => vec![json!({ "type": "text", "text": text })],
            Some(Value::Array(items)) => items.clone(),
            _ => Vec::new(),
        };
        let told = match record.get("role").and_then(Value::as_str) {
            Some("assistant") => answer(&record, &items, number, at, &mut waiting),
            _ => said(&items, at, &mut waiting),
        };
        for (place, message) in told.iter().enumerate() {
            let id = entry_id(&teller.session(), &format!("message {number} {place}"));
            let records = if place == 0 { vec![record.clone()] } else { Vec::new() };
            teller.message(id, false, Some(records::keep(ID_OLD, records, message)), message)?;
        }
        if told.is_empty() {
            let id = entry_id(&teller.session(), &format!("message {number} 0"));
            teller.custom(id, at, "cline.message", Json::of(&record)?)?;
        }
    }
    teller.finish()
}

/// A task's id is only the time, so what was asked first has to tell machines apart.
fn head(path: &Path, messages: &[Value]) -> Head {
    let native = path.parent().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default();
    let first = messages.first().map(Value::to_string).unwrap_or_default();
    let hash = blake3::hash(first.as_bytes()).to_hex();
    let session: SessionId = session_id(ID, &format!("{native}_{}", &hash[..8]));
    let created_at = native.parse().unwrap_or_default();
    let mut metadata = Object::new();
    let mut know = |key: &str, value: Option<&str>| {
        if let Some(value) = value {
            metadata.insert(key.to_owned(), value.into());
        }
    };
    let model = |key: &str| messages.iter().rev().find_map(|message| message.get("modelInfo")?.get(key)?.as_str());
    know("agent", Some(ID));
    know("native_id", Some(native));
    know(
        "cwd",
        first
            .split_once("# Current Working Directory (")
            .and_then(|(_, rest)| rest.split_once(')'))
            .map(|(cwd, _)| cwd),
    );
    know("model", model("modelId"));
    know("provider", model("providerId"));
    know("source", path.to_str());
    let updated_at = messages.last().and_then(|last| last.get("ts")?.as_i64()).unwrap_or(created_at);
    Head {
        session,
        title: String::new(),
        created_at,
        updated_at,
        status: SessionStatus::Idle,
        metadata,
        forked_from: None,
    }
}

fn answer(
    record: &Value,
    items: &[Value],
    number: usize,
    at: i64,
    waiting: &mut Vec<Waiting>,
) -> Vec<AgentMessage> {
    let mut content = Vec::new();
    waiting.clear();
    for item in items {
        match content::block(item) {
            Some(ContentBlock::Text(text)) => match xml::call(&text.text) {
                Some(found) => {
                    content.extend((!found.before.is_empty()).then(|| ContentBlock::text(found.before)));
                    let id = format!("call_{number}");
                    let function_id = found.name.to_owned();
                    waiting.push(Waiting { id: id.clone(), function: function_id.clone() });
                    let arguments = Json::of(&found.arguments).unwrap_or_default();
                    content.push(ContentBlock::FunctionCall(FunctionCallBlock { id, function_id, arguments }));
                    content.extend((!found.after.is_empty()).then(|| ContentBlock::text(found.after)));
                }
                None => content.push(ContentBlock::Text(text)),
            },
            Some(ContentBlock::FunctionCall(call)) => {
                waiting.push(Waiting { id: call.id.clone(), function: call.function_id.clone() });
                content.push(ContentBlock::FunctionCall(call));
            }
            other => content.extend(other),
        }
    }
    if content.is_empty() {
        return Vec::new();
    }
    let model = |key: &str| record.pointer(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    vec![AgentMessage::Assistant(AssistantMessage {
        content,
        model: model("/modelInfo/modelId"),
        provider: model("/modelInfo/providerId"),
        stop_reason: if waiting.is_empty() { StopReason::End } else { StopReason::FunctionCall },
        native_stop_reason: None,
        error_kind: None,
        error_message: None,
        usage: None,
        warnings: None,
        agent: None,
        timestamp: at,
    })]
}

/// A message of the user's side: results, words, and what Cline added, in one list of texts.
fn said(items: &[Value], at: i64, waiting: &mut Vec<Waiting>) -> Vec<AgentMessage> {
    let mut results: Vec<FunctionResultMessage> = Vec::new();
    let (mut typed, mut added) = (Vec::new(), Vec::new());
    let mut in_result = false;
    for item in items {
        if item.get("type").and_then(Value::as_str) == Some("tool_result") {
            let call = item.get("tool_use_id").and_then(Value::as_str).unwrap_or_default();
            let (content, is_error) = content::result(item);
            let place = waiting.iter().position(|waiting| waiting.id == call);
            let function = place.map(|place| waiting.remove(place).function).unwrap_or_default();
            results.push(result(call.to_owned(), function, content, is_error, at));
            in_result = false;
            continue;
        }
        let Some(block) = content::block(item) else { continue };
        let ContentBlock::Text(text) = &block else {
            match results.last_mut() {
                Some(result) if in_result => result.content.push(block),
                _ => typed.push(block),
            }
            continue;
        };
        let text = text.text.as_str();
        if let (Some((_, begin)), false) = (xml::result(text), waiting.is_empty()) {
            let Waiting { id, function } = waiting.remove(0);
            let content = if begin.is_empty() { Vec::new() } else { vec![ContentBlock::text(begin)] };
            let is_error = begin.starts_with("The tool execution failed");
            results.push(result(id, function, content, is_error, at));
            in_result = true;
        } else if let Some(words) = TYPED.iter().find_map(|name| xml::inside(text, name)) {
            typed.push(ContentBlock::text(words));
            in_result = false;
        } else if text.trim_start().starts_with("<environment_details>") || text.starts_with("[TASK RESUMPTION]") {
            added.push(block);
            in_result = false;
        } else if let (Some(result), true) = (results.last_mut(), in_result) {
            result.is_error |= text.starts_with("The tool execution failed");
            result.content.push(block);
        } else if text.starts_with('[') && text.contains("] ") || text.starts_with("# ") {
            added.push(block);
        } else {
            typed.push(block);
        }
    }
    let mut messages: Vec<AgentMessage> = results.into_iter().map(AgentMessage::FunctionResult).collect();
    if !typed.is_empty() {
        messages.push(AgentMessage::User(UserMessage { content: typed, timestamp: at }));
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

fn result(
    call: String,
    function: String,
    content: Vec<ContentBlock>,
    is_error: bool,
    at: i64,
) -> FunctionResultMessage {
    FunctionResultMessage {
        function_call_id: call,
        function_id: function,
        content,
        details: Json::null(),
        is_error,
        timestamp: at,
    }
}
