//! The lines of a chat that is being written.

use std::collections::HashSet;

use banyan_model::{
    AssistantMessage, ContentBlock, CustomMessage, MessageEntry, Object, SessionEntry, SessionId, ThinkingBlock,
};
use serde_json::{Map, Value, json};

use super::ID;
use super::message::text;
use crate::build::iso;
use crate::parts::{self, Pictures, SHIELD};
use crate::{Call, OWN, Outgoing, Own};

/// A chat that is being written.
pub(super) struct Chat {
    session: SessionId,
    ids: HashSet<String>,
    pub(super) lines: Vec<Value>,
}

/// What this agent had written of a message, beside its content.
pub(super) fn from_us(entry: &MessageEntry) -> Option<Object> {
    match entry.origin.as_ref()?.get(ID)? {
        Value::Object(written) => Some(written),
        _ => None,
    }
}

impl Chat {
    pub(super) fn new(session: SessionId) -> Self {
        Self { session, ids: HashSet::new(), lines: Vec::new() }
    }

    pub(super) fn user(&mut self, entry: &MessageEntry, content: &[ContentBlock], at: i64) {
        let mut line = self.begin(entry, "user", at);
        let record = from_us(entry);
        let record = record.as_ref();
        let mut written = parts::write(content, &kept(record));
        if record.is_none() && is_ignored(content) {
            written.insert(0, json!({"text": SHIELD}));
        }
        let as_text = record.and_then(|record| record.get("content")).is_some();
        let content = match (as_text, content) {
            (true, [ContentBlock::Text(text)]) => text.text.clone().into(),
            _ => Value::Array(written),
        };
        line.insert("content".to_owned(), content);
        self.finish(line, entry, record);
    }

    pub(super) fn model(
        &mut self,
        session: &Outgoing,
        entry: &MessageEntry,
        message: &AssistantMessage,
        calls: &[Call],
        at: i64,
        lost: &mut Vec<String>,
    ) {
        let mut line = self.begin(entry, "gemini", at);
        let record = from_us(entry);
        let record = record.as_ref();
        let signed = |block: &ContentBlock| matches!(block, ContentBlock::Thinking(thinking) if thinking.signature.is_some());
        if message.content.iter().any(signed) {
            lost.push("the signature of thinking, which Gemini CLI does not keep".to_owned());
        }
        line.insert("content".to_owned(), content(&message.content, record));
        line.insert("thoughts".to_owned(), Value::Array(thoughts(&message.content, record, at)));
        if let Some(tokens) = record.and_then(|record| record.get("tokens")).cloned().or_else(|| tokens(message)) {
            line.insert("tokens".to_owned(), tokens);
        }
        // What is left of a message after a resume does not say its model.
        if !message.model.is_empty() && record.is_none_or(|record| record.contains_key("model")) {
            line.insert("model".to_owned(), message.model.clone().into());
        }
        if !calls.is_empty() {
            let beside = record.and_then(|record| record.get("toolCalls")).and_then(Value::as_array);
            let calls = calls.iter().enumerate().map(|(at, call)| {
                let beside = beside.and_then(|beside| beside.get(at)?.as_object());
                self.call(session, call, beside)
            });
            line.insert("toolCalls".to_owned(), calls.collect());
        }
        if let Some(error) = &message.error_message {
            lost.push(format!("that an answer failed: {error}"));
        }
        self.finish(line, entry, record);
    }

    /// An answer that is nothing but a failure is shown, and never sent.
    pub(super) fn failed(&mut self, entry: &MessageEntry, message: &AssistantMessage) {
        let mut line = self.begin(entry, "error", message.timestamp);
        line.insert("content".to_owned(), message.error_message.clone().unwrap_or_default().into());
        self.finish(line, entry, from_us(entry).as_ref());
    }

    /// A summary takes the place of all messages but those that were kept.
    pub(super) fn compaction(&mut self, entry: &MessageEntry, summary: &CustomMessage) {
        let known = self.lines.len();
        self.user(entry, &summary.content, summary.timestamp);
        let stayed: HashSet<String> =
            summary.details.as_ref().and_then(|details| details.parse().ok()).unwrap_or_default();
        let id = |line: &Value| line.get("id").and_then(Value::as_str).map(str::to_owned);
        let mut messages: Vec<Value> = self.lines.drain(known..).collect();
        messages.extend(self.lines.iter().filter(|line| id(line).is_some_and(|id| stayed.contains(&id))).cloned());
        self.lines.push(json!({"$set": {"messages": messages, "lastUpdated": iso(summary.timestamp)}}));
    }

    fn call(&self, session: &Outgoing, call: &Call, beside: Option<&Map<String, Value>>) -> Value {
        let Call { call, outcome } = call;
        let is_outcome = |entry: &&SessionEntry| Some(entry.id()) == outcome.entry.as_ref();
        let origin = session.entries.iter().find(is_outcome).and_then(SessionEntry::origin);
        let kept = origin.and_then(|origin| origin.get(ID)?.get("result").cloned());
        let made = || {
            parts::response_parts(
                &call.id,
                &call.function_id,
                &outcome.content,
                outcome.is_error,
                Pictures::Beside,
            )
        };
        let mut line = Object::new();
        let mut put = |key: &str, value: Value| line.insert(key.to_owned(), value);
        put("id", call.id.clone().into());
        put("name", call.function_id.clone().into());
        put("args", parts::arguments(call));
        put("result", kept.unwrap_or_else(|| made().into()));
        put("status", if outcome.is_error { "error" } else { "success" }.into());
        put("timestamp", iso(outcome.at).into());
        line.extend(beside.into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())));
        let made_up = outcome.entry.is_none();
        let own = Own { session: self.session.clone(), entry: outcome.entry.clone(), made_up };
        line.insert(OWN.to_owned(), json!(own));
        Value::Object(line)
    }

    fn begin(&mut self, entry: &MessageEntry, kind: &str, at: i64) -> Object {
        let record = from_us(entry);
        let record = record.as_ref();
        let native = record.and_then(|record| record.get("id")?.as_str()).map(str::to_owned);
        let native = native.filter(|id| !self.ids.contains(id));
        let id = native.unwrap_or_else(|| match entry.id.as_uuid() {
            Some(uuid) => uuid.to_string(),
            None => entry.id.to_string(),
        });
        self.ids.insert(id.clone());
        let time = record.and_then(|record| record.get("timestamp")).cloned().unwrap_or_else(|| iso(at).into());
        let pairs = [("id", id.into()), ("timestamp", time), ("type", kind.into())];
        pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    fn finish(&mut self, mut line: Object, entry: &MessageEntry, record: Option<&Object>) {
        for (key, value) in record.into_iter().flatten() {
            if !matches!(key.as_str(), "content" | "parts" | "thoughts" | "toolCalls") && !line.contains_key(key) {
                line.insert(key.clone(), value.clone());
            }
        }
        let own = Own { session: self.session.clone(), entry: Some(entry.id.clone()), made_up: false };
        line.insert(OWN.to_owned(), json!(own));
        self.lines.push(Value::Object(line));
    }
}

fn kept(record: Option<&Object>) -> Vec<Value> {
    record.and_then(|record| record.get("parts")?.as_array().cloned()).unwrap_or_default()
}

/// Whether the agent would take a text for a command or for its own context, and not send it.
fn is_ignored(content: &[ContentBlock]) -> bool {
    let said: String = content.iter().filter_map(text).collect();
    let said = said.trim();
    said.is_empty()
        || ["/", "?", "<session_context>", "<hook_context>", "<state_snapshot>"]
            .iter()
            .any(|start| said.starts_with(start))
}

/// One text where that is all, else parts; and thoughts and calls among them if the order would be lost otherwise.
fn content(blocks: &[ContentBlock], record: Option<&Object>) -> Value {
    let rank = |block: &ContentBlock| match block {
        ContentBlock::Thinking(_) => 0,
        ContentBlock::FunctionCall(_) => 2,
        _ => 1,
    };
    if !blocks.is_sorted_by_key(rank) {
        return parts::write(blocks, &kept(record)).into();
    }
    let said: Vec<ContentBlock> = blocks.iter().filter(|block| rank(block) == 1).cloned().collect();
    let as_parts = record.and_then(|record| record.get("content")).is_some();
    match &*said {
        [] if !as_parts => "".into(),
        [ContentBlock::Text(text)] if !as_parts => text.text.clone().into(),
        said => parts::write(said, &kept(record)).into(),
    }
}

fn thoughts(blocks: &[ContentBlock], record: Option<&Object>, at: i64) -> Vec<Value> {
    let times = record.and_then(|record| record.get("thoughts")?.as_array());
    let thinking = blocks.iter().filter_map(|block| match block {
        ContentBlock::Thinking(thinking) => Some(thinking),
        _ => None,
    });
    let thought = |(place, ThinkingBlock { text, .. }): (usize, &ThinkingBlock)| {
        let time = times.and_then(|times| times.get(place)).cloned().unwrap_or_else(|| iso(at).into());
        let split = text.strip_prefix("**").and_then(|rest| rest.split_once("** "));
        let (subject, description) = split.unwrap_or(("", text));
        json!({"subject": subject, "description": description, "timestamp": time})
    };
    thinking.enumerate().map(thought).collect()
}

fn tokens(message: &AssistantMessage) -> Option<Value> {
    let usage = message.usage.as_ref()?;
    let count = |count: Option<u64>| count.unwrap_or_default();
    let (input, output, thoughts) = (count(usage.input), count(usage.output), count(usage.reasoning));
    let (cached, total) = (count(usage.cache_read), input + output + thoughts);
    Some(
        json!({"input": input, "output": output, "cached": cached, "thoughts": thoughts, "tool": 0, "total": total}),
    )
}
