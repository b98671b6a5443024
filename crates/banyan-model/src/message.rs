//! What agents and people say: messages, by who speaks. What they are made of is in `block`.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::json::{null_as_default, object};
use crate::tagged::{self, Tagged};
use crate::{ContentBlock, Json, whole};

/// One message of a conversation, told apart by `role`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum AgentMessage {
    /// Something a person, or a program in their place, said.
    User(UserMessage),
    /// Something a model said.
    Assistant(AssistantMessage),
    /// What a function that a model called gave back.
    FunctionResult(FunctionResultMessage),
    /// A message of an application's own type.
    Custom(CustomMessage),
}

impl AgentMessage {
    /// Who speaks.
    pub fn role(&self) -> Role {
        match self {
            Self::User(_) => Role::User,
            Self::Assistant(_) => Role::Assistant,
            Self::FunctionResult(_) => Role::FunctionResult,
            Self::Custom(_) => Role::Custom,
        }
    }

    /// The blocks that the message is made of.
    pub fn content(&self) -> &[ContentBlock] {
        match self {
            Self::User(message) => &message.content,
            Self::Assistant(message) => &message.content,
            Self::FunctionResult(message) => &message.content,
            Self::Custom(message) => &message.content,
        }
    }

    /// The blocks that the message is made of, to be changed.
    pub fn content_mut(&mut self) -> &mut Vec<ContentBlock> {
        match self {
            Self::User(message) => &mut message.content,
            Self::Assistant(message) => &mut message.content,
            Self::FunctionResult(message) => &mut message.content,
            Self::Custom(message) => &mut message.content,
        }
    }

    /// When it was said, by the caller's clock, in milliseconds since 1970.
    pub fn timestamp(&self) -> i64 {
        match self {
            Self::User(message) => message.timestamp,
            Self::Assistant(message) => message.timestamp,
            Self::FunctionResult(message) => message.timestamp,
            Self::Custom(message) => message.timestamp,
        }
    }
}

impl Tagged for AgentMessage {
    const TAG: &'static str = "role";
    const NAMES: &'static [&'static str] = &["user", "assistant", "function_result", "custom"];

    fn variant<'de, D: Deserializer<'de>>(name: &str, fields: D) -> Result<Option<Self>, D::Error> {
        Ok(Some(match name {
            "user" => Self::User(UserMessage::deserialize(fields)?),
            "assistant" => Self::Assistant(AssistantMessage::deserialize(fields)?),
            "function_result" => Self::FunctionResult(FunctionResultMessage::deserialize(fields)?),
            "custom" => Self::Custom(CustomMessage::deserialize(fields)?),
            _ => return Ok(None),
        }))
    }
}

impl<'de> Deserialize<'de> for AgentMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        tagged::deserialize(deserializer)
    }
}

/// Who speaks in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A person, or a program in their place.
    User,
    /// A model.
    Assistant,
    /// A function that a model called.
    FunctionResult,
    /// An application, in a type of its own.
    Custom,
}

impl Role {
    /// The role as it stands in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::FunctionResult => "function_result",
            Self::Custom => "custom",
        }
    }
}

/// Something a person, or a program in their place, said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct UserMessage {
    /// What was said, block by block.
    pub content: Vec<ContentBlock>,
    /// When, by the caller's clock, in milliseconds since 1970.
    #[serde(deserialize_with = "whole::number")]
    pub timestamp: i64,
}

/// Something a model said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct AssistantMessage {
    /// What was said, block by block.
    pub content: Vec<ContentBlock>,
    /// The model's name.
    pub model: String,
    /// Who served the model.
    pub provider: String,
    /// Why the model stopped.
    pub stop_reason: StopReason,
    /// The provider's own word for why the model stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_stop_reason: Option<String>,
    /// What kind of failure ended the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_kind: Option<ErrorKind>,
    /// The failure in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// What the turn consumed.
    #[serde(default, deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Remarks that did not end the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warnings: Option<Vec<String>>,
    /// Which agent spoke, in the caller's own form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Json>,
    /// When, by the caller's clock, in milliseconds since 1970.
    #[serde(deserialize_with = "whole::number")]
    pub timestamp: i64,
}

/// What a function that a model called gave back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct FunctionResultMessage {
    /// The call that this answers.
    pub function_call_id: String,
    /// The function that was called.
    pub function_id: String,
    /// What the model gets to see.
    pub content: Vec<ContentBlock>,
    /// The result in the function's own form, for programs.
    #[serde(default)]
    pub details: Json,
    /// Whether the call failed.
    #[serde(default, deserialize_with = "null_as_default")]
    pub is_error: bool,
    /// When, by the caller's clock, in milliseconds since 1970.
    #[serde(deserialize_with = "whole::number")]
    pub timestamp: i64,
}

/// A message of an application's own type, part of the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct CustomMessage {
    /// The application's name for this type of message.
    pub custom_type: String,
    /// What was said, block by block.
    pub content: Vec<ContentBlock>,
    /// What to show to people instead of the content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display: Option<String>,
    /// More about it in the application's own form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Json>,
    /// When, by the caller's clock, in milliseconds since 1970.
    #[serde(deserialize_with = "whole::number")]
    pub timestamp: i64,
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It had said everything.
    End,
    /// It ran into a limit of length.
    Length,
    /// It waits for a function.
    FunctionCall,
    /// Somebody stopped it.
    Aborted,
    /// Something failed.
    Error,
}

/// What kind of failure ended a model's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The credentials are no longer accepted.
    AuthExpired,
    /// Too many requests.
    RateLimited,
    /// The conversation does not fit the model.
    ContextOverflow,
    /// A later attempt can succeed.
    Transient,
    /// A later attempt will fail as well.
    Permanent,
}

/// What a model's turn consumed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Tokens read.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Tokens written.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// Tokens read from the provider's cache.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<u64>,
    /// Tokens written to the provider's cache.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
    /// Tokens spent on thinking.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
    /// The price in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}
