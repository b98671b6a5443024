//! One message of a history, in the form that goes out.

use banyan_model::LongText;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Number;

use super::fields::Fields;
use super::part::{Part, serialize_more};

/// What a person said, or everything that an agent did about it.
///
/// Reading one from JSON accepts every dialect; in memory there is one form only, the one that goes out. `activity_parts`
/// is not held: it is written from `parts`.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryMessage {
    /// Who speaks.
    pub role: Speaker,
    /// The text of a question.
    pub text_content: Option<String>,
    /// What there is to see, in the order in which it happened.
    pub parts: Vec<Part>,
    /// The text of an answer.
    pub response_text_main: Option<String>,
    /// When, in ISO 8601.
    pub timestamp: String,
    /// Pairs a question with its answer.
    pub interaction_id: String,
    /// How long the answer took.
    pub processing_time_ms: Option<Number>,
    /// When the answer was complete.
    pub processed_at: Option<String>,
    /// The model that answered.
    pub model_used: Option<String>,
    /// How the model was chosen: `auto` or `manual`.
    pub selection_mode: Option<String>,
    /// Whether it greets rather than answers.
    pub is_welcome_message: bool,
    /// `user_input` or `agent_response`.
    pub message_type: Option<String>,
    /// How the message ended. Always there in what goes out; absent in what comes in when the writer did not say.
    pub status: Option<Status>,
    /// Keys that the document does not name.
    pub more: Fields,
    /// Keys of the writer's own store, which only operators see.
    pub kept: Fields,
}

/// Who speaks in a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// A person.
    User,
    /// An agent, with everything that it did.
    Assistant,
}

impl Speaker {
    /// The role as it stands in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }

    /// The `message_type` of messages of this role.
    pub(crate) const fn message_type(self) -> &'static str {
        match self {
            Self::User => "user_input",
            Self::Assistant => "agent_response",
        }
    }
}

/// How a message ended, if it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It is whole.
    Complete,
    /// It is being written.
    Streaming,
    /// Somebody stopped it.
    Cancelled,
    /// It failed.
    Error,
    /// Its writer went away.
    Interrupted,
}

/// Who the history is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Disclosure {
    /// Everybody: no `technical_details`, at any depth.
    #[default]
    Public,
    /// Whoever runs the server: everything.
    Operator,
}

impl HistoryMessage {
    /// The same message as everybody may see it.
    #[must_use]
    pub fn public(mut self) -> Self {
        self.parts.iter_mut().for_each(Part::remove_technical_details);
        self.more = self.more.without_technical_details();
        self.kept = Fields::default();
        self
    }

    /// All texts to read, with an empty line between them; none when there is no text part.
    pub(crate) fn joined_text(&self) -> Option<String> {
        joined_text(&self.parts)
    }
}

pub(crate) fn joined_text(parts: &[Part]) -> Option<String> {
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(part) => Some(part.text.as_str()),
            _ => None,
        })
        .collect();
    if texts.is_empty() { None } else { Some(texts.join("\n\n")) }
}

impl Serialize for HistoryMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", &self.role)?;
        map.serialize_entry("text_content", &self.text_content.as_deref().map(LongText))?;
        map.serialize_entry("parts", &self.parts)?;
        let old: Vec<_> = self.parts.iter().filter_map(Part::as_old_activity).collect();
        map.serialize_entry("activity_parts", &old)?;
        map.serialize_entry("response_text_main", &self.response_text_main.as_deref().map(LongText))?;
        map.serialize_entry("timestamp", &self.timestamp)?;
        map.serialize_entry("interaction_id", &self.interaction_id)?;
        map.serialize_entry("processing_time_ms", &self.processing_time_ms)?;
        map.serialize_entry("processed_at", &self.processed_at)?;
        map.serialize_entry("model_used", &self.model_used)?;
        map.serialize_entry("selection_mode", &self.selection_mode)?;
        map.serialize_entry("is_welcome_message", &self.is_welcome_message)?;
        map.serialize_entry("message_type", &self.message_type)?;
        map.serialize_entry("status", &self.status)?;
        serialize_more(&mut map, &self.more)?;
        serialize_more(&mut map, &self.kept)?;
        map.end()
    }
}
