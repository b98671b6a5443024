//! What messages are made of: text, pictures, thinking, calls, results, files.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::tagged::{self, Tagged};
use crate::{AttachmentId, Json, json, whole};

/// One piece of a message, told apart by `type`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentBlock {
    /// Text to read.
    Text(TextBlock),
    /// A picture.
    Image(ImageBlock),
    /// A model's thinking before it answers.
    Thinking(ThinkingBlock),
    /// A model asks for a function to be called.
    FunctionCall(FunctionCallBlock),
    /// What a function gave back, inside a message.
    FunctionResult(FunctionResultBlock),
    /// An attachment of the session.
    File(FileBlock),
}

impl ContentBlock {
    /// A block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextBlock { text: text.into() })
    }
}

impl Tagged for ContentBlock {
    const TAG: &'static str = "type";
    const NAMES: &'static [&'static str] =
        &["text", "image", "thinking", "function_call", "function_result", "file"];

    fn variant<'de, D: Deserializer<'de>>(name: &str, fields: D) -> Result<Option<Self>, D::Error> {
        Ok(Some(match name {
            "text" => Self::Text(TextBlock::deserialize(fields)?),
            "image" => Self::Image(ImageBlock::deserialize(fields)?),
            "thinking" => Self::Thinking(ThinkingBlock::deserialize(fields)?),
            "function_call" => Self::FunctionCall(FunctionCallBlock::deserialize(fields)?),
            "function_result" => Self::FunctionResult(FunctionResultBlock::deserialize(fields)?),
            "file" => Self::File(FileBlock::deserialize(fields)?),
            _ => return Ok(None),
        }))
    }
}

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        tagged::deserialize(deserializer)
    }
}

/// Text to read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct TextBlock {
    /// The text.
    #[serde(serialize_with = "json::long_text")]
    pub text: String,
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct ImageBlock {
    /// The media type, for example `image/png`.
    pub mime: String,
    /// The picture, in base64.
    #[serde(serialize_with = "json::long_text")]
    pub data: String,
    /// The attachment that holds the same picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attachment_id: Option<AttachmentId>,
}

/// A model's thinking before it answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct ThinkingBlock {
    /// The thinking in words.
    #[serde(serialize_with = "json::long_text")]
    pub text: String,
    /// The provider's seal on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// A model asks for a function to be called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct FunctionCallBlock {
    /// Names the call, so that its result can be matched to it.
    pub id: String,
    /// The function to call.
    pub function_id: String,
    /// What to call it with, in the function's own form.
    #[serde(default)]
    pub arguments: Json,
}

/// What a function gave back, inside a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct FunctionResultBlock {
    /// The call that this answers.
    pub function_call_id: String,
    /// The result, block by block.
    pub content: Vec<ContentBlock>,
    /// Whether the call failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
}

/// An attachment of the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct FileBlock {
    /// The attachment.
    pub attachment_id: AttachmentId,
    /// The file's name.
    pub name: String,
    /// The media type.
    pub mime: String,
    /// The size in bytes.
    #[serde(deserialize_with = "whole::number")]
    pub size: u64,
}
