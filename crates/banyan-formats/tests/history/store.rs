//! A store in a vector, and the calls of a server on it.

use banyan_formats::history::*;
use banyan_model::*;
use serde_json::Value;

/// The entries of a session's active path, as pages give them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    pub(crate) items: Vec<MessageItem>,
}

impl Store {
    pub(crate) fn append(&mut self, entry_id: impl Into<EntryId>, message: AgentMessage, origin: Option<Object>) {
        let message = Some(Raw::of(&message).unwrap());
        let item = MessageItem { entry_id: entry_id.into(), message, custom: None, origin, elided: false };
        // What is stored has been text.
        self.items.push(serde_json::from_str(&serde_json::to_string(&item).unwrap()).unwrap());
    }

    pub(crate) fn append_custom(&mut self, entry_id: &str, custom_type: &str, data: &Value) {
        let custom = CustomPayload { custom_type: custom_type.into(), data: Json::of(data).unwrap() };
        let item = MessageItem {
            entry_id: entry_id.into(),
            message: None,
            custom: Some(custom),
            origin: None,
            elided: false,
        };
        self.items.push(item);
    }

    /// The message of an entry, when it has one.
    pub(crate) fn find(&self, entry_id: &EntryId) -> Option<AgentMessage> {
        let item = self.items.iter().find(|item| item.entry_id == *entry_id)?;
        item.message.as_ref().map(|message| message.parse().unwrap())
    }

    pub(crate) fn set_message(&mut self, entry_id: &EntryId, message: &AgentMessage) {
        let item = self.items.iter_mut().find(|item| item.entry_id == *entry_id).unwrap();
        item.message = Some(Raw::of(message).unwrap());
    }

    pub(crate) fn extend(&mut self, entry_id: &EntryId, block: usize, text: &str) {
        let mut message = self.find(entry_id).unwrap();
        match &mut message.content_mut()[block] {
            ContentBlock::Text(block) => block.text.push_str(text),
            ContentBlock::Thinking(block) => block.text.push_str(text),
            other => panic!("{other:?} does not grow"),
        }
        self.set_message(entry_id, &message);
    }

    /// What `POST` does with one message; how many entries it added or extended.
    pub(crate) fn post(&mut self, posted: &HistoryMessage) -> Result<usize, String> {
        let known = self.projected(Disclosure::Public, Standing::Over).into_iter().find(|known| {
            known.message.interaction_id == posted.interaction_id && known.message.role == posted.role
        });
        let (growth, entries) = match known.map(|known| compare(&known, posted)) {
            None => (None, entries_of(posted)),
            Some(Comparison::Same) => (None, Vec::new()),
            Some(Comparison::Longer(rest)) => (rest.growth, rest.entries),
            Some(Comparison::Different) => return Err(posted.interaction_id.clone()),
        };
        let added = entries.len() + usize::from(growth.is_some());
        if let Some(growth) = growth {
            self.extend(&growth.entry_id, growth.block, &growth.text);
        }
        for entry in entries {
            assert!(self.items.iter().all(|item| item.entry_id != entry.entry_id), "an id is used twice");
            self.append(entry.entry_id, entry.message, Some(entry.origin));
        }
        Ok(added)
    }

    pub(crate) fn post_all(&mut self, messages: &Value) -> usize {
        read_all(messages).iter().map(|message| self.post(message).unwrap()).sum()
    }

    pub(crate) fn projected(&self, disclosure: Disclosure, standing: Standing) -> Vec<Projected> {
        let mut projector = projector(disclosure);
        projector.set_standing(standing);
        let mut all: Vec<_> = self.items.iter().filter_map(|item| projector.push(Entry::from(item))).collect();
        all.extend(projector.finish());
        all
    }

    /// What `GET` answers.
    pub(crate) fn history(&self) -> Vec<Value> {
        self.history_as(Disclosure::Public, Standing::Over)
    }

    pub(crate) fn history_as(&self, disclosure: Disclosure, standing: Standing) -> Vec<Value> {
        self.projected(disclosure, standing).iter().map(|known| json(&known.message)).collect()
    }
}

pub(crate) fn projector(disclosure: Disclosure) -> Projector {
    Projector::new(Options { disclosure, attachments: "/v1/sessions/s_1/attachments/".into() })
}

pub(crate) fn read_all(messages: &Value) -> Vec<HistoryMessage> {
    serde_json::from_str(&messages.to_string()).unwrap()
}

pub(crate) fn read(message: &Value) -> HistoryMessage {
    serde_json::from_str(&message.to_string()).unwrap()
}

/// The JSON of something, by way of its text.
pub(crate) fn json<T: serde::Serialize>(value: &T) -> Value {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

/// Whether a key is anywhere in a value.
pub(crate) fn has_key(value: &Value, key: &str) -> bool {
    match value {
        Value::Object(object) => object.iter().any(|(name, value)| name == key || has_key(value, key)),
        Value::Array(items) => items.iter().any(|item| has_key(item, key)),
        _ => false,
    }
}
