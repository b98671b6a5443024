//! What a session is made of: entries in a tree, and attachments beside it.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::json::null_as_default;
use crate::tagged::{self, Tagged};
use crate::{AgentMessage, AttachmentId, EntryId, FileBlock, Json, Origin, Raw, Revision, SessionId};

/// One node of a session's tree, told apart by `kind`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SessionEntry {
    /// A message of the conversation.
    Message(MessageEntry),
    /// An application's own data, beside the conversation.
    Custom(CustomEntry),
}

impl SessionEntry {
    /// The entry's id.
    pub fn id(&self) -> &EntryId {
        match self {
            Self::Message(entry) => &entry.id,
            Self::Custom(entry) => &entry.id,
        }
    }

    /// The entry that this one follows; none at a root.
    pub fn parent_id(&self) -> Option<&EntryId> {
        match self {
            Self::Message(entry) => entry.parent_id.as_ref(),
            Self::Custom(entry) => entry.parent_id.as_ref(),
        }
    }

    /// When the store took the entry, in milliseconds since 1970.
    pub fn timestamp(&self) -> i64 {
        match self {
            Self::Message(entry) => entry.timestamp,
            Self::Custom(entry) => entry.timestamp,
        }
    }

    /// How often its content has changed.
    pub fn revision(&self) -> Revision {
        match self {
            Self::Message(entry) => entry.revision,
            Self::Custom(entry) => entry.revision,
        }
    }

    /// Where it came from, in the caller's own form.
    pub fn origin(&self) -> Option<&Origin> {
        match self {
            Self::Message(entry) => entry.origin.as_ref(),
            Self::Custom(entry) => entry.origin.as_ref(),
        }
    }

    /// Whether it is a message or an application's own data.
    pub fn kind(&self) -> EntryKind {
        match self {
            Self::Message(_) => EntryKind::Message,
            Self::Custom(_) => EntryKind::Custom,
        }
    }
}

impl Tagged for SessionEntry {
    const TAG: &'static str = "kind";
    const NAMES: &'static [&'static str] = &["message", "custom"];

    fn variant<'de, D: Deserializer<'de>>(name: &str, fields: D) -> Result<Option<Self>, D::Error> {
        Ok(Some(match name {
            "message" => Self::Message(MessageEntry::deserialize(fields)?),
            "custom" => Self::Custom(CustomEntry::deserialize(fields)?),
            _ => return Ok(None),
        }))
    }
}

impl<'de> Deserialize<'de> for SessionEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        tagged::deserialize(deserializer)
    }
}

/// Whether an entry is a message or an application's own data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A message of the conversation.
    Message,
    /// An application's own data.
    Custom,
}

/// An entry that holds a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct MessageEntry {
    /// The entry's id.
    pub id: EntryId,
    /// The entry that this one follows; null at a root.
    pub parent_id: Option<EntryId>,
    /// When the store took the entry, in milliseconds since 1970.
    pub timestamp: i64,
    /// How often its content has changed.
    #[serde(default, deserialize_with = "null_as_default")]
    pub revision: Revision,
    /// Where it came from, in the caller's own form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The message, as it is now.
    pub message: Raw<AgentMessage>,
}

/// An entry that holds an application's own data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct CustomEntry {
    /// The entry's id.
    pub id: EntryId,
    /// The entry that this one follows; null at a root.
    pub parent_id: Option<EntryId>,
    /// When the store took the entry, in milliseconds since 1970.
    pub timestamp: i64,
    /// Always 0: such entries do not change.
    #[serde(default, deserialize_with = "null_as_default")]
    pub revision: Revision,
    /// Where it came from, in the caller's own form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The application's name for this type of data.
    pub custom_type: String,
    /// The data, in the application's own form.
    #[serde(default)]
    pub data: Json,
}

/// An application's own data, without the entry around it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CustomPayload {
    /// The application's name for this type of data.
    pub custom_type: String,
    /// The data, in the application's own form.
    #[serde(default)]
    pub data: Json,
}

/// What is known of an attachment besides its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttachmentMeta {
    /// The attachment's id.
    pub attachment_id: AttachmentId,
    /// The session that it belongs to.
    pub session_id: SessionId,
    /// The file's name.
    pub name: String,
    /// The media type.
    pub mime: String,
    /// The size in bytes.
    pub size: u64,
    /// The SHA-256 of the bytes, in lower-case hex.
    pub sha256: String,
    /// When the store took it, in milliseconds since 1970.
    pub created_at: i64,
}

impl AttachmentMeta {
    /// The block that shows this attachment in a message.
    pub fn file_block(&self) -> FileBlock {
        FileBlock {
            attachment_id: self.attachment_id.clone(),
            name: self.name.clone(),
            mime: self.mime.clone(),
            size: self.size,
        }
    }
}
