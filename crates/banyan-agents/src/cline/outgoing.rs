//! A session as Cline's messages: those that came from Cline 3.x as they were, all others made anew.

use std::collections::HashSet;

use banyan_model::{
    AgentMessage, AssistantMessage, ContentBlock, EntryId, FunctionResultMessage, MessageEntry, SessionEntry,
    SessionId,
};
use serde_json::{Value, json};

use super::{ID, SESSION_RECORD, content};
use crate::{Call, OWN, Outgoing, Own, Step, Story, records};

/// Messages as they stand in the file.
pub(super) struct Messages {
    pub(super) messages: Vec<Value>,
    pub(super) lost: Vec<String>,
    /// Cline's records of the session, and the entry that has them.
    pub(super) record: Option<(EntryId, Value)>,
    session: SessionId,
    thinking: usize,
}

impl Messages {
    /// The messages on a session's active path.
    pub(super) fn of(session: &Outgoing) -> Self {
        let id = session.meta.session_id.clone();
        let mut messages = Self { messages: Vec::new(), lost: Vec::new(), record: None, session: id, thinking: 0 };
        let story = Story::of(session);
        let of_cline = |entry: &&SessionEntry| matches!(entry, SessionEntry::Custom(entry) if entry.custom_type == SESSION_RECORD);
        if session.native_id(ID).is_some() && session.path().iter().any(of_cline) {
            messages.as_they_were(session, &story);
        } else {
            messages.anew(&story);
        }
        if messages.thinking > 0 {
            messages
                .lost
                .push(format!("{} x thinking, which only its own provider takes back", messages.thinking));
        }
        messages
    }

    fn anew(&mut self, story: &Story) {
        for step in &story.steps {
            match step {
                Step::User { entry, content, at } => self.user(entry, content, *at),
                Step::Assistant { entry, message, calls, at } => {
                    self.assistant(entry, message, *at);
                    calls.iter().for_each(|call| self.outcome(call));
                }
            }
        }
        self.lost.extend(story.lost.iter().cloned());
    }

    fn as_they_were(&mut self, session: &Outgoing, story: &Story) {
        let mut kept = HashSet::new();
        for entry in session.path() {
            match entry {
                SessionEntry::Custom(entry) if entry.custom_type == SESSION_RECORD => {
                    self.record = Some((entry.id.clone(), entry.data.parse().unwrap_or_default()));
                }
                SessionEntry::Custom(entry) if entry.custom_type.starts_with("cline.") => {
                    let record = entry.data.parse().unwrap_or_default();
                    self.push(record, Some(&entry.id));
                }
                SessionEntry::Custom(_) => {}
                SessionEntry::Message(entry) => {
                    if let Ok(message) = entry.message.parse() {
                        self.one(entry, &message, story, &mut kept);
                    }
                }
            }
        }
    }

    fn one(&mut self, entry: &MessageEntry, message: &AgentMessage, story: &Story, kept: &mut HashSet<String>) {
        let own = entry.origin.as_ref().and_then(|origin| origin.get(ID));
        let with = own.as_ref().and_then(|own| own.get("with")?.as_str());
        if with.is_some_and(|with| kept.contains(with)) {
            return;
        }
        let record = records::kept(ID, entry.origin.as_ref(), message).and_then(|kept| kept.into_iter().next());
        if let Some(mut record) = record {
            for item in record.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
                put_together(item);
            }
            kept.insert(entry.id.as_str().to_owned());
            self.push(record, Some(&entry.id));
            return;
        }
        let at = message.timestamp();
        match message {
            AgentMessage::Assistant(message) => {
                self.assistant(&entry.id, message, at);
                let calls = story.steps.iter().find_map(|step| match step {
                    Step::Assistant { entry: id, calls, .. } if *id == entry.id => Some(calls),
                    _ => None,
                });
                let open = calls.into_iter().flatten().filter(|call| call.outcome.entry.is_none());
                open.for_each(|call| self.outcome(call));
            }
            AgentMessage::FunctionResult(result) => self.result(&entry.id, result),
            AgentMessage::User(message) => self.user(&entry.id, &message.content, at),
            AgentMessage::Custom(_) => self.lost.push("context of the agent".to_owned()),
        }
    }

    fn user(&mut self, entry: &EntryId, content: &[ContentBlock], at: i64) {
        let content: Vec<Value> = content
            .iter()
            .filter_map(|block| match block {
                ContentBlock::Text(text) => {
                    Some(json!({ "type": "text", "text": content::typed_out(&text.text) }))
                }
                ContentBlock::Image(image) => Some(content::image_out(image)),
                _ => None,
            })
            .collect();
        self.push(json!({ "id": entry, "role": "user", "content": content, "ts": at }), Some(entry));
    }

    fn assistant(&mut self, entry: &EntryId, message: &AssistantMessage, at: i64) {
        let mut content = Vec::new();
        for block in &message.content {
            match block {
                ContentBlock::Text(text) => content.push(json!({ "type": "text", "text": text.text })),
                ContentBlock::Image(image) => content.push(content::image_out(image)),
                ContentBlock::Thinking(_) => self.thinking += 1,
                ContentBlock::FunctionCall(call) => {
                    let mut input: Value = call.arguments.parse().unwrap_or_default();
                    if !input.is_object() {
                        self.lost.push(format!("the form of the arguments of call {}", call.id));
                        input = if input.is_null() { json!({}) } else { json!({ "arguments": input }) };
                    }
                    content.push(
                        json!({ "type": "tool_use", "id": call.id, "name": call.function_id, "input": input }),
                    );
                }
                ContentBlock::FunctionResult(_) | ContentBlock::File(_) => {}
            }
        }
        if content.is_empty() {
            return;
        }
        let mut record = json!({ "id": entry, "role": "assistant", "content": content, "ts": at });
        if !message.model.is_empty() {
            record["modelInfo"] = json!({ "id": message.model, "provider": message.provider });
        }
        if let Some(usage) = &message.usage {
            record["metrics"] = content::usage_out(usage);
        }
        self.push(record, Some(entry));
    }

    fn outcome(&mut self, Call { call, outcome }: &Call) {
        let item = result_item(&call.id, &call.function_id, &outcome.content, outcome.is_error);
        let made_up = format!("x_banyan_{}", call.id);
        let id = outcome.entry.as_ref().map_or(made_up.as_str(), EntryId::as_str);
        let record = json!({ "id": id, "role": "user", "content": [item], "ts": outcome.at });
        self.push(record, outcome.entry.as_ref());
    }

    fn result(&mut self, entry: &EntryId, result: &FunctionResultMessage) {
        let item = result_item(&result.function_call_id, &result.function_id, &result.content, result.is_error);
        self.push(json!({ "id": entry, "role": "user", "content": [item], "ts": result.timestamp }), Some(entry));
    }

    fn push(&mut self, mut record: Value, entry: Option<&EntryId>) {
        if !record.is_object() {
            return;
        }
        let own = Own { session: self.session.clone(), entry: entry.cloned(), made_up: entry.is_none() };
        if !record.get("metadata").is_some_and(Value::is_object) {
            record["metadata"] = json!({});
        }
        record["metadata"][OWN] = json!(own);
        self.messages.push(record);
    }
}

fn result_item(call: &str, function: &str, content: &[ContentBlock], is_error: bool) -> Value {
    let content = match content {
        [ContentBlock::Text(text)] => json!(text.text),
        content => content
            .iter()
            .filter_map(|block| match block {
                ContentBlock::Text(text) => Some(json!({ "type": "text", "text": text.text })),
                ContentBlock::Image(image) => Some(content::image_out(image)),
                _ => None,
            })
            .collect(),
    };
    let mut item = json!({ "type": "tool_result", "tool_use_id": call, "name": function, "content": content });
    if is_error {
        item["is_error"] = json!(true);
    }
    item
}

/// Puts what was typed back into what is around it.
fn put_together(item: &mut Value) {
    let parts = item.pointer("/text/typed").and_then(Value::as_array);
    let text = parts.map(|parts| parts.iter().filter_map(Value::as_str).collect::<String>());
    if let Some(text) = text {
        item["text"] = json!(text);
    }
}
