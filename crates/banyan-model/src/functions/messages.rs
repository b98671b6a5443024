//! Writing entries and reading single ones: append, append-many, update-message, extend-message, get-message.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::object;
use crate::{
    AgentMessage, ContentBlock, CustomPayload, EntryId, Json, Object, Revision, SessionEntry, SessionId, Usage,
    whole,
};

/// Appends one entry: either `message` or `custom`, not both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AppendRequest {
    /// The session.
    pub session_id: SessionId,
    /// The message to append.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<AgentMessage>,
    /// An application's own data to append instead.
    #[serde(default, deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    pub custom: Option<CustomPayload>,
    /// The entry to append to; the active leaf when left out. Naming another entry starts a branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<EntryId>,
    /// The new entry's id. Appending the same id again changes nothing, so a call can be repeated safely.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_id: Option<EntryId>,
    /// Where the entry comes from, in the caller's own form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Object>,
    /// Append only if this entry is the active leaf.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_leaf: Option<EntryId>,
}

/// The entry as it was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppendResponse {
    /// The entry's id.
    pub entry_id: EntryId,
    /// The entry that it follows; null at a root.
    pub parent_id: Option<EntryId>,
    /// When the store took it, in milliseconds since 1970.
    pub timestamp: i64,
}

/// Appends several messages, each following the one before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AppendManyRequest {
    /// The session.
    pub session_id: SessionId,
    /// The messages; at least one.
    pub messages: Vec<AgentMessage>,
    /// The entry to append to; the active leaf when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<EntryId>,
    /// Where the entries come from, in the caller's own form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Object>,
}

/// The entries that were appended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppendManyResponse {
    /// Their ids, in the order of the messages.
    pub entry_ids: Vec<EntryId>,
    /// The id of the last one, which is now the active leaf.
    pub last_entry_id: EntryId,
}

/// Replaces the content of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UpdateMessageRequest {
    /// The session.
    pub session_id: SessionId,
    /// The entry that holds the message.
    pub entry_id: EntryId,
    /// The whole new content.
    pub content: Vec<ContentBlock>,
    /// The new details, for function results and custom messages; the old ones stay when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Json>,
    /// What the turn consumed, for assistant messages; the old value stays when left out.
    #[serde(default, deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Change the message only if it is at this revision.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    pub expected_revision: Option<Revision>,
    /// Where the change comes from; passed to subscribers, not stored with the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Object>,
}

/// Whether the message was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UpdateMessageResponse {
    /// False when the message was not at the expected revision.
    pub updated: bool,
    /// The message's revision now.
    pub revision: Revision,
}

/// Adds text to the end of one block of a message: streaming a token costs a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExtendMessageRequest {
    /// The session.
    pub session_id: SessionId,
    /// The entry that holds the message.
    pub entry_id: EntryId,
    /// The text to add.
    pub text: String,
    /// Which block to extend, counted from 0; it must be text or thinking. The last text block when left out.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    pub block: Option<usize>,
    /// Change the message only if it is at this revision.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    pub expected_revision: Option<Revision>,
    /// Where the change comes from; passed to subscribers, not stored with the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Object>,
}

/// Whether the message was extended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExtendMessageResponse {
    /// False when the message was not at the expected revision.
    pub updated: bool,
    /// The message's revision now.
    pub revision: Revision,
}

/// Asks for one entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GetMessageRequest {
    /// The session.
    pub session_id: SessionId,
    /// The entry.
    pub entry_id: EntryId,
    /// False leaves out the bytes of images that are also attachments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_image_data: Option<bool>,
}

/// One entry; `null` in its place when there is no such entry or session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GetMessageResponse {
    /// The entry.
    pub entry: SessionEntry,
}
