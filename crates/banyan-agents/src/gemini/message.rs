//! One message as Gemini CLI writes it, and what it is to us.

use banyan_model::{
    AgentMessage, AssistantMessage, ContentBlock, CustomMessage, FunctionCallBlock, Json, Object, StopReason,
    ThinkingBlock, Usage, UserMessage,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::tree::Kind;
use crate::build::millis;
use crate::parts::{self, Parts, Pictures, Response};
use crate::{COMPACTION, OWN, Own};

/// What a message of the list is to us.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) native: String,
    pub(super) kind: Kind,
    pub(super) at: i64,
    pub(super) own: Option<Own>,
    pub(super) body: Body,
    pub(super) origin: Object,
    pub(super) answers: Vec<Answer>,
    pub(super) full: u64,
    pub(super) loose: u64,
    /// Whether it has everything that the agent knew of it, and not only what a resume leaves.
    pub(super) whole: bool,
}

/// What becomes of a message.
#[derive(Debug)]
pub(super) enum Body {
    /// A message.
    Message(AgentMessage),
    /// Something that only people were shown.
    Record(String),
    /// Nothing but answers.
    Nothing,
}

/// The result of a call, with when it was there and whose it is.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) response: Response,
    pub(super) at: i64,
    pub(super) own: Option<Own>,
}

impl Told {
    /// Reads a message. `model` is the model that was last heard of.
    pub(super) fn of(record: &Object, model: &str, now: i64) -> Option<Self> {
        let native = record.get("id")?.as_str()?.to_owned();
        let kind = record.get("type")?.as_str()?;
        let at = time(record).unwrap_or(now);
        let content = record.get("content").unwrap_or(&Value::Null);
        let said = parts::read(content, Pictures::Beside);
        let mut origin = rest(record, content, &said);
        let mut told = Self {
            native,
            kind: Kind::Said,
            at,
            own: own(record),
            body: Body::Nothing,
            origin: Object::new(),
            answers: said.responses.iter().cloned().map(|response| Answer { response, at, own: None }).collect(),
            full: 0,
            loose: 0,
            whole: ["toolCalls", "thoughts", "tokens"].iter().any(|key| record.contains_key(*key)),
        };
        match kind {
            "user" => told.user(said.blocks),
            "gemini" => told.model(record, &mut origin, said, model),
            "error" => told.failed(said.blocks, model),
            other => {
                told.kind = Kind::Beside;
                told.body = Body::Record(other.to_owned());
            }
        }
        told.hash(&origin);
        told.origin.insert(super::ID.to_owned(), Value::Object(origin));
        Some(told)
    }

    fn user(&mut self, blocks: Vec<ContentBlock>) {
        if blocks.is_empty() && !self.answers.is_empty() {
            return;
        }
        let (content, timestamp) = (blocks, self.at);
        let first = content.iter().find_map(text).unwrap_or_default().trim_start().to_owned();
        let kind = if first.starts_with("<session_context>") {
            "gemini.session_context"
        } else if first.starts_with("<hook_context>") {
            "gemini.hook_context"
        } else if first.starts_with("<state_snapshot>") {
            COMPACTION
        } else {
            self.body = Body::Message(AgentMessage::User(UserMessage { content, timestamp }));
            return;
        };
        self.kind = if kind == COMPACTION { Kind::Compaction } else { Kind::Beside };
        let custom_type = kind.to_owned();
        let message = CustomMessage { custom_type, content, display: None, details: None, timestamp };
        self.body = Body::Message(AgentMessage::Custom(message));
    }

    fn failed(&mut self, blocks: Vec<ContentBlock>, model: &str) {
        self.kind = Kind::Beside;
        let mut message = assistant(Vec::new(), model, self.at);
        message.stop_reason = StopReason::Error;
        message.error_message = Some(blocks.iter().filter_map(text).collect::<Vec<_>>().join("\n"));
        self.body = Body::Message(AgentMessage::Assistant(message));
    }

    /// Thoughts and calls stand beside the content, or, after a resume, in it.
    fn model(&mut self, record: &Object, origin: &mut Object, said: Parts, model: &str) {
        let list = |key: &str| record.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut blocks = said.blocks;
        let in_content =
            |block: &ContentBlock| matches!(block, ContentBlock::Thinking(_) | ContentBlock::FunctionCall(_));
        let is_ordered = blocks.iter().any(in_content);
        if !is_ordered {
            blocks.splice(0..0, list("thoughts").iter().map(thought));
        }
        let mut beside = Vec::new();
        for call in list("toolCalls") {
            let Some(block) = call_of(call) else { continue };
            let known =
                |known: &ContentBlock| matches!(known, ContentBlock::FunctionCall(known) if known.id == block.id);
            self.answers.extend(answer(call, &block, self.at));
            beside.push(Value::Object(without(call, &["id", "name", "args", "result", OWN])));
            if !blocks.iter().any(known) {
                blocks.push(ContentBlock::FunctionCall(block));
            }
        }
        if !beside.is_empty() {
            origin.insert("toolCalls".to_owned(), Value::Array(beside));
        }
        let times: Vec<&Value> = list("thoughts").iter().filter_map(|thought| thought.get("timestamp")).collect();
        if !times.is_empty() {
            origin.insert("thoughts".to_owned(), json!(times));
        }
        if is_ordered && !said.kept.is_empty() {
            origin.insert("parts".to_owned(), Value::Array(said.kept));
        }
        let calls = blocks.iter().any(|block| matches!(block, ContentBlock::FunctionCall(_)));
        let model = record.get("model").and_then(Value::as_str).unwrap_or(model);
        let mut message = assistant(blocks, model, self.at);
        if calls {
            message.stop_reason = StopReason::FunctionCall;
        }
        message.usage = record.get("tokens").and_then(usage);
        self.body = Body::Message(AgentMessage::Assistant(message));
    }

    fn hash(&mut self, origin: &Object) {
        let Body::Message(message) = &self.body else {
            self.full = hash(origin);
            self.loose = self.full;
            return;
        };
        let left = |block: &&ContentBlock| !matches!(block, ContentBlock::Thinking(_));
        self.loose = hash(&message.content().iter().filter(left).collect::<Vec<_>>());
        let mut origin = origin.clone();
        origin.retain(|key, _| key != "timestamp" && key != "content");
        let usage = if let AgentMessage::Assistant(message) = message { message.usage.clone() } else { None };
        self.full = hash(&(message.content(), usage, origin));
    }
}

/// A hash of whatever has a JSON form.
pub(super) fn hash(value: &impl Serialize) -> u64 {
    let text = serde_json::to_vec(value).unwrap_or_default();
    blake3::hash(&text).as_bytes().first_chunk::<8>().map_or(0, |first| u64::from_le_bytes(*first))
}

/// The time of a record.
pub(super) fn time(record: &Object) -> Option<i64> {
    millis(record.get("timestamp")?.as_str()?)
}

/// What we wrote beside the agent's own words.
pub(super) fn own(record: &Object) -> Option<Own> {
    serde_json::from_value(record.get(OWN)?.clone()).ok()
}

/// What the record has and the message has no place for. Users mostly write parts, models mostly one text; whatever else is marked.
fn rest(record: &Object, content: &Value, said: &Parts) -> Object {
    let mut rest = without(&Value::Object(record.clone()), &["content", "thoughts", "toolCalls", OWN]);
    let is_user = record.get("type").and_then(Value::as_str) == Some("user");
    match content {
        Value::String(_) if is_user => rest.insert("content".to_owned(), "text".into()),
        Value::Array(_) if !is_user => rest.insert("content".to_owned(), "parts".into()),
        _ => None,
    };
    if !said.kept.is_empty() {
        rest.insert("parts".to_owned(), Value::Array(said.kept.clone()));
    }
    rest
}

fn without(value: &Value, keys: &[&str]) -> Map<String, Value> {
    let mut rest = value.as_object().cloned().unwrap_or_default();
    rest.retain(|key, _| !keys.contains(&key.as_str()));
    rest
}

fn assistant(content: Vec<ContentBlock>, model: &str, timestamp: i64) -> AssistantMessage {
    AssistantMessage {
        content,
        model: model.to_owned(),
        provider: "google".to_owned(),
        stop_reason: StopReason::End,
        native_stop_reason: None,
        error_kind: None,
        error_message: None,
        usage: None,
        warnings: None,
        agent: None,
        timestamp,
    }
}

fn thought(thought: &Value) -> ContentBlock {
    let text = |key: &str| thought.get(key).and_then(Value::as_str).unwrap_or_default();
    let (subject, description) = (text("subject"), text("description"));
    let text = if subject.is_empty() { description.to_owned() } else { format!("**{subject}** {description}") };
    ContentBlock::Thinking(ThinkingBlock { text, signature: None })
}

fn call_of(call: &Value) -> Option<FunctionCallBlock> {
    let text = |key: &str| call.get(key).and_then(Value::as_str).map(str::to_owned);
    let arguments = call.get("args").and_then(|args| Json::of(args).ok()).unwrap_or_default();
    Some(FunctionCallBlock { id: text("id")?, function_id: text("name").unwrap_or_default(), arguments })
}

/// The result of a call, if it is there. The list can hold those of the calls beside it as well.
fn answer(call: &Value, block: &FunctionCallBlock, at: i64) -> Option<Answer> {
    let record = call.as_object()?;
    let result = record.get("result").filter(|result| !result.is_null())?;
    let status = record.get("status").and_then(Value::as_str).unwrap_or_default();
    let found = parts::read(result, Pictures::Beside);
    let mut response = found.responses.into_iter().find(|response| response.call == block.id);
    if response.is_none() && result.is_string() {
        let content = found.blocks;
        let (call, name) = (block.id.clone(), block.function_id.clone());
        response = Some(Response { call, name, content, is_error: false, kept: Some(result.clone()) });
    }
    let mut response = response?;
    response.is_error |= matches!(status, "error" | "cancelled");
    Some(Answer { response, at: time(record).unwrap_or(at), own: own(record) })
}

fn usage(tokens: &Value) -> Option<Usage> {
    let count = |key: &str| tokens.get(key).and_then(Value::as_u64);
    let (input, output, cache_read, reasoning) =
        (count("input"), count("output"), count("cached"), count("thoughts"));
    Some(Usage { input, output, cache_read, reasoning, ..Usage::default() })
}

/// The text of a block.
pub(super) fn text(block: &ContentBlock) -> Option<&str> {
    if let ContentBlock::Text(text) = block { Some(&text.text) } else { None }
}
