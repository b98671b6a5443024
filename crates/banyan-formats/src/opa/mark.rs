//! What an entry's origin says about the message of a history that the entry was made of: everything that the message itself
//! does not say, so that it can be written as it was.

use banyan_model::{AgentMessage, Json, Object};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::identity;

const KEY: &str = "opa";

/// The `opa` of an entry's origin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Mark {
    /// The message's id, as it was; none when it had none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Value>,
    /// The role, when it is not one that the message has a type for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The time as it was spelled, when that is not how it would be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// The message's metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// Whether a single text is a list of one block, and not a string.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub list: bool,
    /// The same within results.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub result_lists: bool,
    /// Which of the entries that were made of one message this is, and of how many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<(u64, u64)>,
    /// Where its pictures and files were, in their order; empty for one that was in the message itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Fields of the message that the history did not give.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub made_up: Vec<String>,
    /// Whether the history gave the entry's id.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub entry: bool,
    /// Whether it was the prompt.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub prompt: bool,
    /// The whole message as JSON text, when something of it has no other place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// What the message looked like when `raw` was true of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
}

impl Mark {
    /// The mark of an origin, when it has one. Somebody else's `opa` is not a mark.
    pub(crate) fn of(origin: Option<&Object>) -> Option<Self> {
        Self::deserialize(origin?.get(KEY)?).ok()
    }

    pub(crate) fn into_origin(self) -> Object {
        let mut origin = Object::new();
        origin.insert(KEY.to_owned(), serde_json::to_value(self).unwrap_or_default());
        origin
    }

    pub(crate) fn is_made_up(&self, field: &str) -> bool {
        self.made_up.iter().any(|made_up| made_up == field)
    }

    pub(crate) fn make_up(&mut self, field: &str) {
        self.made_up.push(field.to_owned());
    }

    /// Whether the message still is what it was when `raw` was kept.
    pub(crate) fn is_as_it_was(&self, message: &AgentMessage) -> bool {
        self.was.is_some() && self.was == fingerprint(message)
    }
}

pub(crate) fn fingerprint(message: &AgentMessage) -> Option<String> {
    Json::of(message).ok().map(|text| identity::mark(text.get()))
}
