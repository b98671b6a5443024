//! A session as OpenCode's messages: those that came from OpenCode as they were, all others made anew.

use std::collections::HashMap;

use banyan_model::{AgentMessage, AssistantMessage, ContentBlock, EntryId, MessageEntry, Object, SessionEntry};
use serde_json::{Value, json};

use super::ids::Ids;
use super::{ID, SESSION, SESSION_RECORD, content};
use crate::own::OwnIds;
use crate::{Destination, Outgoing, Step, Story, records};

/// Enough ids for one writing.
const IDS: usize = 1 << 20;
/// What a call that was never answered is answered with.
const INTERRUPTED: &str = "[The call was interrupted before it had a result.]";

/// Messages in the form of the export.
pub(super) struct Messages {
    pub(super) messages: Vec<Value>,
    pub(super) own: OwnIds,
    pub(super) lost: Vec<String>,
    /// OpenCode's own record of the session.
    pub(super) info: Object,
    pub(super) ids: Ids,
    directory: Value,
    /// The last message of the user, which answers name.
    asked: Option<String>,
    signatures: usize,
}

impl Messages {
    /// The messages on a session's active path.
    pub(super) fn of(session: &Outgoing, to: &Destination) -> Self {
        let id = &session.meta.session_id;
        let mut messages = Self {
            messages: Vec::new(),
            own: OwnIds::new(id),
            lost: Vec::new(),
            info: Object::new(),
            ids: Ids::new(to.now_ms, IDS, id.as_str()),
            directory: json!(to.cwd),
            asked: None,
            signatures: 0,
        };
        if session.native_id(ID).is_some() {
            messages.as_they_were(session);
        } else {
            messages.anew(session);
        }
        messages.settle();
        if messages.signatures > 0 {
            let what =
                format!("{} x the seal of thinking, which only its own provider takes back", messages.signatures);
            messages.lost.push(what);
        }
        messages
    }

    fn anew(&mut self, session: &Outgoing) {
        let story = Story::of(session);
        for step in &story.steps {
            match step {
                Step::User { entry, content, at } => self.user(entry, content, *at),
                Step::Assistant { entry, message, calls, at } => {
                    self.assistant(entry, message, *at);
                    for call in calls {
                        let outcome = &call.outcome;
                        let state = |input: &Value| {
                            content::state_out(input, &outcome.content, outcome.is_error, *at, outcome.at)
                        };
                        self.fill(&call.call.id, outcome.entry.as_ref(), state);
                        self.lost_pictures(&outcome.content, outcome.is_error);
                    }
                }
            }
        }
        self.lost.extend(story.lost);
    }

    fn as_they_were(&mut self, session: &Outgoing) {
        for entry in session.path() {
            match entry {
                SessionEntry::Custom(entry) if entry.custom_type == SESSION_RECORD => {
                    self.info = entry.data.parse().unwrap_or_default();
                    self.own.entries.insert(SESSION.to_owned(), entry.id.clone());
                }
                SessionEntry::Custom(entry) if entry.custom_type.starts_with("opencode.") => {
                    let record: Value = entry.data.parse().unwrap_or_default();
                    if record.get("info").is_some() {
                        self.push_kept(&entry.id, record);
                    }
                }
                SessionEntry::Custom(_) => {}
                SessionEntry::Message(entry) => {
                    if let Ok(message) = entry.message.parse() {
                        self.one(entry, &message);
                    }
                }
            }
        }
    }

    fn one(&mut self, entry: &MessageEntry, message: &AgentMessage) {
        let own = entry.origin.as_ref().and_then(|origin| origin.get(ID));
        let with = own.as_ref().and_then(|own| own.get("with")?.as_str());
        if let Some(with) = with {
            self.own.entries.insert(format!("{with} synthetic"), entry.id.clone());
            return;
        }
        let kept = records::kept(ID, entry.origin.as_ref(), message).and_then(|kept| kept.into_iter().next());
        let at = message.timestamp();
        match (message, kept) {
            (AgentMessage::FunctionResult(result), kept) => {
                let state = |input: &Value| match kept {
                    Some(mut state) => {
                        state["input"] = input.clone();
                        state
                    }
                    None => content::state_out(input, &result.content, result.is_error, at, at),
                };
                self.fill(&result.function_call_id, Some(&entry.id), state);
            }
            (_, Some(record)) => self.push_kept(&entry.id, record),
            (AgentMessage::Assistant(message), None) => self.assistant(&entry.id, message, at),
            (AgentMessage::User(_), None) => self.user(&entry.id, message.content(), at),
            (AgentMessage::Custom(_), None) => self.lost.push("context of the agent".to_owned()),
        }
    }

    fn push_kept(&mut self, entry: &EntryId, record: Value) {
        let id = record.pointer("/info/id").and_then(Value::as_str).unwrap_or_default().to_owned();
        if record.pointer("/info/role") == Some(&json!("user")) {
            self.asked = Some(id.clone());
        }
        self.own.entries.insert(id, entry.clone());
        self.messages.push(record);
    }

    fn user(&mut self, entry: &EntryId, content: &[ContentBlock], at: i64) {
        let parts: Vec<Value> = content
            .iter()
            .filter_map(|block| match block {
                ContentBlock::Text(text) => Some(json!({ "type": "text", "text": text.text })),
                ContentBlock::Image(image) => Some(content::file_out(image)),
                _ => None,
            })
            .collect();
        // Without a model the user's own choice counts. A foreign one would be asked for, and not be found.
        let info = json!({ "role": "user", "time": { "created": at }, "agent": "build" });
        self.push(entry, info, parts);
    }

    fn assistant(&mut self, entry: &EntryId, message: &AssistantMessage, at: i64) {
        let mut parts = vec![json!({ "type": "step-start" })];
        let mut has_calls = false;
        for block in &message.content {
            match block {
                ContentBlock::Text(text) => {
                    parts.push(json!({ "type": "text", "text": text.text, "time": { "start": at, "end": at } }));
                }
                ContentBlock::Thinking(thinking) => {
                    self.signatures += usize::from(thinking.signature.is_some());
                    let time = json!({ "start": at, "end": at });
                    parts.push(json!({ "type": "reasoning", "text": thinking.text, "time": time }));
                }
                ContentBlock::FunctionCall(call) => {
                    has_calls = true;
                    let mut input: Value = call.arguments.parse().unwrap_or_default();
                    if !input.is_object() {
                        self.lost.push(format!("the form of the arguments of call {}", call.id));
                        input = if input.is_null() { json!({}) } else { json!({ "arguments": input }) };
                    }
                    let state = json!({ "input": input });
                    parts.push(
                        json!({ "type": "tool", "tool": call.function_id, "callID": call.id, "state": state }),
                    );
                }
                ContentBlock::Image(_) => self.lost.push("a picture that a model made".to_owned()),
                ContentBlock::FunctionResult(_) | ContentBlock::File(_) => {}
            }
        }
        let usage = message.usage.clone().unwrap_or_default();
        let (input, output) = (usage.input.unwrap_or_default(), usage.output.unwrap_or_default());
        let cache = json!({ "read": usage.cache_read.unwrap_or_default(), "write": usage.cache_write.unwrap_or_default() });
        let tokens = json!({ "input": input, "output": output, "reasoning": usage.reasoning.unwrap_or_default(), "cache": cache });
        let cost = usage.cost_usd.unwrap_or_default();
        let finish = if has_calls { "tool-calls" } else { "stop" };
        parts.push(json!({ "type": "step-finish", "reason": finish, "tokens": tokens, "cost": cost }));
        let info = json!({
            "parentID": self.asked, "role": "assistant", "mode": "build", "agent": "build",
            "path": { "cwd": self.directory, "root": self.directory }, "cost": cost, "tokens": tokens,
            "modelID": message.model, "providerID": message.provider,
            "time": { "created": at, "completed": at }, "finish": finish,
        });
        self.push(entry, info, parts);
    }

    fn push(&mut self, entry: &EntryId, mut info: Value, parts: Vec<Value>) {
        if parts.is_empty() {
            return;
        }
        let id = self.ids.next("msg");
        info["id"] = json!(id);
        let mut list = Vec::new();
        for mut part in parts {
            part["id"] = json!(self.ids.next("prt"));
            part["messageID"] = json!(id);
            list.push(part);
        }
        self.push_kept(entry, json!({ "info": info, "parts": list }));
    }

    /// Puts what came of a call where the call is. `state` is given what it was called with.
    fn fill(&mut self, call: &str, entry: Option<&EntryId>, state: impl FnOnce(&Value) -> Value) {
        let parts = self.messages.iter_mut().rev().filter_map(|message| message.get_mut("parts")?.as_array_mut());
        let open = |part: &&mut Value| {
            part.get("callID").and_then(Value::as_str) == Some(call) && part.pointer("/state/status").is_none()
        };
        let Some(part) = parts.flatten().find(open) else {
            self.lost.push(format!("a result of call {call}, which is not there"));
            return;
        };
        part["state"] = state(&part["state"]["input"].clone());
        let id = part.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        match entry {
            Some(entry) => drop(self.own.entries.insert(id, entry.clone())),
            None => self.own.made_up.push(id),
        }
    }

    /// Answers the calls that have no answer on this path, and puts the session's id into everything.
    fn settle(&mut self) {
        for message in &mut self.messages {
            let at = message.pointer("/info/time/created").and_then(Value::as_i64).unwrap_or_default();
            for part in message.get_mut("parts").and_then(Value::as_array_mut).into_iter().flatten() {
                let is_open = part.get("callID").is_some() && part.pointer("/state/status").is_none();
                if is_open {
                    let input = part["state"]["input"].clone();
                    part["state"] = content::state_out(&input, &[ContentBlock::text(INTERRUPTED)], true, at, at);
                    let id = part.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
                    self.own.made_up.push(id);
                }
            }
        }
    }

    fn lost_pictures(&mut self, content: &[ContentBlock], is_error: bool) {
        if is_error && content.iter().any(|block| matches!(block, ContentBlock::Image(_))) {
            self.lost.push("a picture in the result of a call that failed".to_owned());
        }
    }

    /// Gives everything new ids, because the old ones are taken.
    pub(super) fn rename(&mut self) {
        let mut new: HashMap<String, String> = HashMap::new();
        for message in &self.messages {
            let id = |value: &Value| value.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
            new.insert(id(&message["info"]), self.ids.next("msg"));
            for part in message.get("parts").and_then(Value::as_array).into_iter().flatten() {
                new.insert(id(part), self.ids.next("prt"));
            }
        }
        self.messages.iter_mut().for_each(|message| replace(message, &new));
        let renamed = |id: &str| match id.split_once(' ') {
            Some((id, rest)) => new.get(id).map(|new| format!("{new} {rest}")),
            None => new.get(id).cloned(),
        };
        let entries = std::mem::take(&mut self.own.entries);
        self.own.entries = entries.into_iter().map(|(id, entry)| (renamed(&id).unwrap_or(id), entry)).collect();
        self.own.made_up.iter_mut().for_each(|id| *id = renamed(id).unwrap_or_else(|| id.clone()));
    }
}

fn replace(value: &mut Value, new: &HashMap<String, String>) {
    match value {
        Value::String(text) => {
            if let Some(new) = new.get(text) {
                text.clone_from(new);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, new)),
        Value::Object(fields) => fields.values_mut().for_each(|field| replace(field, new)),
        _ => {}
    }
}
