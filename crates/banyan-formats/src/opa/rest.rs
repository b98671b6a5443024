//! What a message has that a history has no place for: it goes into the message's metadata.

use banyan_model::{AgentMessage, AssistantMessage, ContentBlock, FunctionResultMessage, Json};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::Value;

use super::mark::Mark;
use super::read::usual_stop;
use super::render::Outgoing;

/// A message's metadata: what it had, and what a history has no other place for, under `banyan`.
pub(crate) struct Metadata {
    given: Vec<(String, Value)>,
    other: Option<Value>,
    rest: Rest,
}

#[derive(Default, Serialize)]
struct Rest {
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<String>,
    #[serde(skip_serializing_if = "Fields::is_empty")]
    message: Fields,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    thinking: Vec<Thought>,
}

#[derive(Serialize)]
struct Thought {
    at: usize,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
}

impl Serialize for Metadata {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(other) = &self.other {
            return other.serialize(serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in &self.given {
            map.serialize_entry(key, value)?;
        }
        if !self.rest.is_empty() {
            map.serialize_entry("banyan", &self.rest)?;
        }
        map.end()
    }
}

impl Rest {
    fn is_empty(&self) -> bool {
        self.entry.is_none() && self.message.is_empty() && self.thinking.is_empty()
    }
}

pub(crate) fn metadata(entry: &Outgoing<'_>) -> Option<Metadata> {
    let mark = entry.mark;
    let given = mark.and_then(|mark| mark.metadata.clone());
    let rest = Rest {
        entry: mark.is_none_or(|mark| mark.entry).then(|| entry.entry_id.to_string()),
        message: rest_of(entry.message, mark),
        thinking: thoughts(entry.message.content()),
    };
    match given {
        Some(Value::Object(fields)) => Some(Metadata { given: fields.into_iter().collect(), other: None, rest }),
        Some(other) => Some(Metadata { given: Vec::new(), other: Some(other), rest }),
        None if rest.is_empty() => None,
        None => Some(Metadata { given: Vec::new(), other: None, rest }),
    }
}

fn thoughts(content: &[ContentBlock]) -> Vec<Thought> {
    let thoughts = content.iter().enumerate().filter_map(|(at, block)| match block {
        ContentBlock::Thinking(thinking) => {
            Some(Thought { at, text: thinking.text.clone(), signature: thinking.signature.clone() })
        }
        _ => None,
    });
    thoughts.collect()
}

/// Fields of a message that a history has no place for.
#[derive(Default)]
pub(crate) struct Fields(Vec<(&'static str, Json)>);

impl Fields {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn push<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) {
        self.0.extend(Json::of(value).ok().map(|json| (name, json)));
    }

    fn push_some<T: Serialize>(&mut self, name: &'static str, value: Option<&T>) {
        if let Some(value) = value {
            self.push(name, value);
        }
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

pub(crate) fn rest_of(message: &AgentMessage, mark: Option<&Mark>) -> Fields {
    let mut fields = Fields::default();
    let is_made_up = |field: &str| mark.is_some_and(|mark| mark.is_made_up(field));
    match message {
        AgentMessage::User(_) => {}
        AgentMessage::Assistant(message) => assistant(message, mark, &mut fields),
        AgentMessage::FunctionResult(FunctionResultMessage { function_id, details, .. }) => {
            if !is_made_up("function_id") {
                fields.push("function_id", function_id);
            }
            if !details.is_null() {
                fields.push("details", details);
            }
        }
        AgentMessage::Custom(message) => {
            fields.push_some("display", message.display.as_ref());
            fields.push_some("details", message.details.as_ref());
        }
    }
    fields
}

fn assistant(message: &AssistantMessage, mark: Option<&Mark>, fields: &mut Fields) {
    let metadata = mark.and_then(|mark| mark.metadata.as_ref());
    for (field, value) in [("model", &message.model), ("provider", &message.provider)] {
        let is_told = metadata.and_then(|given| given.get(field)).and_then(Value::as_str) == Some(value);
        if !is_told && !mark.is_some_and(|mark| mark.is_made_up(field)) {
            fields.push(field, value);
        }
    }
    let is_usual = mark.is_some_and(|mark| mark.is_made_up("stop_reason"))
        && message.stop_reason == usual_stop(&message.content);
    if !is_usual {
        fields.push("stop_reason", &message.stop_reason);
    }
    fields.push_some("native_stop_reason", message.native_stop_reason.as_ref());
    fields.push_some("error_kind", message.error_kind.as_ref());
    fields.push_some("error_message", message.error_message.as_ref());
    fields.push_some("usage", message.usage.as_ref());
    fields.push_some("warnings", message.warnings.as_ref());
    fields.push_some("agent", message.agent.as_ref());
}
