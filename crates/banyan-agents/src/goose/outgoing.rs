//! A session as goose's messages: those that came from goose as they were, all others made anew.

use std::collections::HashSet;

use banyan_model::{
    AgentMessage, AssistantMessage, ContentBlock, EntryId, FunctionCallBlock, Object, SessionEntry,
};
use serde_json::{Value, json};

use super::{ID, SESSION, SESSION_RECORD, content};
use crate::own::OwnIds;
use crate::{Outcome, Outgoing, Step, Story, records};

/// Messages in the form of the export.
pub(super) struct Messages {
    pub(super) messages: Vec<Value>,
    pub(super) own: OwnIds,
    pub(super) lost: Vec<String>,
    /// Goose's own record of the session.
    pub(super) session: Object,
    thinking: usize,
}

impl Messages {
    /// The messages on a session's active path.
    pub(super) fn of(session: &Outgoing) -> Self {
        let own = OwnIds::new(&session.meta.session_id);
        let mut messages =
            Self { messages: Vec::new(), own, lost: Vec::new(), session: Object::new(), thinking: 0 };
        if session.native_id(ID).is_some() {
            messages.as_they_were(session);
        } else {
            messages.anew(session);
        }
        if messages.thinking > 0 {
            messages
                .lost
                .push(format!("{} x thinking, which only its own provider takes back", messages.thinking));
        }
        messages.in_order();
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
                        self.result(&call.call, &call.outcome);
                    }
                }
            }
        }
        self.lost.extend(story.lost);
    }

    fn as_they_were(&mut self, session: &Outgoing) {
        let story = Story::of(session);
        let mut rows = HashSet::new();
        for entry in session.path() {
            let entry = match entry {
                SessionEntry::Custom(entry) if entry.custom_type == SESSION_RECORD => {
                    self.session = entry.data.parse().unwrap_or_default();
                    self.own.entries.insert(SESSION.to_owned(), entry.id.clone());
                    continue;
                }
                SessionEntry::Custom(entry) => {
                    let is_row = entry.custom_type.starts_with("goose.");
                    self.messages.extend(is_row.then(|| entry.data.parse().ok()).flatten());
                    continue;
                }
                SessionEntry::Message(entry) => entry,
            };
            let Ok(message) = entry.message.parse() else { continue };
            let row = entry.origin.as_ref().and_then(|origin| origin.get(ID)?.get("with")?.as_u64());
            if row.is_some_and(|row| rows.contains(&row)) {
                continue;
            }
            if let Some(records) = records::kept(ID, entry.origin.as_ref(), &message) {
                rows.extend(records.iter().filter_map(|record| record.get("at")?.as_u64()));
                let id = records.first().and_then(|first| first.get("id")?.as_str());
                self.own.entries.extend(id.map(|id| (id.to_owned(), entry.id.clone())));
                self.messages.extend(records);
                continue;
            }
            self.one(&entry.id, &message, &story);
        }
    }

    /// A message that goose has not seen yet, in a session of goose's.
    fn one(&mut self, entry: &EntryId, message: &AgentMessage, story: &Story) {
        let at = message.timestamp();
        match message {
            AgentMessage::Assistant(message) => {
                self.assistant(entry, message, at);
                let step = story.steps.iter().find_map(|step| match step {
                    Step::Assistant { entry: id, calls, .. } if id == entry => Some(calls),
                    _ => None,
                });
                let unanswered = step.into_iter().flatten().filter(|call| call.outcome.entry.is_none());
                unanswered.for_each(|call| self.result(&call.call, &call.outcome));
            }
            AgentMessage::FunctionResult(result) => {
                let call = FunctionCallBlock {
                    id: result.function_call_id.clone(),
                    function_id: result.function_id.clone(),
                    arguments: banyan_model::Json::null(),
                };
                let (content, is_error) = (result.content.clone(), result.is_error);
                self.result(&call, &Outcome { entry: Some(entry.clone()), content, is_error, at });
            }
            AgentMessage::User(_) | AgentMessage::Custom(_) => {
                let told =
                    story.steps.iter().any(|step| matches!(step, Step::User { entry: id, .. } if id == entry));
                if told {
                    self.user(entry, message.content(), at);
                }
            }
        }
    }

    fn user(&mut self, entry: &EntryId, content: &[ContentBlock], at: i64) {
        let content = content.iter().filter_map(content::plain_out).collect();
        self.push(entry.as_str(), Some(entry), "user", content, at, json!({}));
    }

    fn assistant(&mut self, entry: &EntryId, message: &AssistantMessage, at: i64) {
        let mut content = Vec::new();
        for block in &message.content {
            match block {
                ContentBlock::FunctionCall(call) => content.push(self.request(call)),
                ContentBlock::Thinking(_) => self.thinking += 1,
                other => content.extend(content::plain_out(other)),
            }
        }
        let mut more = json!({});
        if !message.model.is_empty() || !message.provider.is_empty() {
            more["inference"] = json!({ "provider": message.provider, "requestedModel": message.model });
        }
        if let Some(usage) = &message.usage {
            more["usage"] = content::usage_out(usage);
        }
        self.push(entry.as_str(), Some(entry), "assistant", content, at, more);
    }

    fn request(&mut self, call: &FunctionCallBlock) -> Value {
        let mut arguments: Value = call.arguments.parse().unwrap_or_default();
        if !arguments.is_object() {
            self.lost
                .push(format!("the form of the arguments of call {}, which goose wants to be an object", call.id));
            arguments = if arguments.is_null() { json!({}) } else { json!({ "arguments": arguments }) };
        }
        let value = json!({ "name": call.function_id, "arguments": arguments });
        json!({ "type": "toolRequest", "id": call.id, "toolCall": { "status": "success", "value": value } })
    }

    fn result(&mut self, call: &FunctionCallBlock, outcome: &Outcome) {
        let content: Vec<Value> = outcome.content.iter().filter_map(content::plain_out).collect();
        let result = json!({ "status": "success", "value": { "content": content, "isError": outcome.is_error } });
        let content = vec![json!({ "type": "toolResponse", "id": call.id, "toolResult": result })];
        let made_up = format!("x_banyan_{}", call.id);
        let id = outcome.entry.as_ref().map_or(made_up.as_str(), EntryId::as_str);
        self.push(id, outcome.entry.as_ref(), "user", content, outcome.at, json!({}));
    }

    fn push(&mut self, id: &str, entry: Option<&EntryId>, role: &str, content: Vec<Value>, at: i64, more: Value) {
        if content.is_empty() {
            return;
        }
        match entry {
            Some(entry) => drop(self.own.entries.insert(id.to_owned(), entry.clone())),
            None => self.own.made_up.push(id.to_owned()),
        }
        let mut metadata = json!({ "userVisible": true, "agentVisible": true });
        if let (Some(metadata), Value::Object(more)) = (metadata.as_object_mut(), more) {
            metadata.extend(more);
        }
        let created = at.div_euclid(1000);
        self.messages
            .push(json!({ "id": id, "role": role, "created": created, "content": content, "metadata": metadata }));
    }

    /// Puts goose's rows back into their order, and lets time never run backwards: goose sorts by it.
    fn in_order(&mut self) {
        let mut at = 0;
        let mut numbered: Vec<(u64, Value)> = Vec::new();
        for mut message in std::mem::take(&mut self.messages) {
            let number = message.as_object_mut().and_then(|message| message.shift_remove("at"));
            at = number.and_then(|number| number.as_u64()).unwrap_or(at);
            numbered.push((at, message));
        }
        numbered.sort_by_key(|(at, _)| *at);
        let mut latest = 0;
        for (_, mut message) in numbered {
            let created = message.get("created").and_then(Value::as_i64).unwrap_or_default();
            latest = latest.max(created);
            if created < latest {
                message["created"] = latest.into();
            }
            self.messages.push(message);
        }
    }
}
