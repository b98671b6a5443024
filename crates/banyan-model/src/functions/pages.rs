//! Reading many entries: messages, messages-tail, messages-range.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::null_as_default;
use crate::{AgentMessage, CustomPayload, EntryId, Object, Raw, Role, SessionId, whole};

/// Asks for a page of the conversation, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessagesRequest {
    /// The session.
    pub session_id: SessionId,
    /// How many entries at most.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// How many bytes of content at most; the first entry comes whatever its size.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Where the page before this one ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Only messages of these roles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roles: Option<Vec<Role>>,
    /// Read the path that ends in this entry; the active leaf when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_entry_id: Option<EntryId>,
    /// Read what comes after this entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_entry_id: Option<EntryId>,
    /// Whether entries that hold an application's own data are listed too; they are not when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_custom: Option<bool>,
    /// False leaves out the bytes of images that are also attachments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_image_data: Option<bool>,
}

impl MessagesRequest {
    /// The first page of a session, with nothing left out.
    pub fn of(session_id: SessionId) -> Self {
        Self {
            session_id,
            limit: None,
            bytes: None,
            cursor: None,
            roles: None,
            from_entry_id: None,
            after_entry_id: None,
            include_custom: None,
            include_image_data: None,
        }
    }
}

/// A page of the conversation, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessagesResponse {
    /// The entries.
    pub messages: Vec<MessageItem>,
    /// Entries that belong here and are left out, because their content is damaged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedEntry>,
    /// Where to continue, when there is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// One entry of a page: it holds either a message or custom data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessageItem {
    /// The entry's id.
    pub entry_id: EntryId,
    /// The message, when the entry holds one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Raw<AgentMessage>>,
    /// The application's own data, when the entry holds that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom: Option<CustomPayload>,
    /// Where the message came from, in the caller's own form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Object>,
    /// Whether parts of the message were left out.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "std::ops::Not::not")]
    pub elided: bool,
}

/// An entry of a page whose content is damaged. Nothing of it is in the page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DamagedEntry {
    /// The entry's id.
    pub entry_id: EntryId,
    /// The entry that it follows; null at a root.
    pub parent_id: Option<EntryId>,
    /// Who speaks, when it is known to be a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
}

/// Asks for the newest page of the active path, with the inner steps of agents shortened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessagesTailRequest {
    /// The session.
    pub session_id: SessionId,
    /// How many blocks at most: a run of an agent's activity counts as one.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// How many bytes of content at most; the newest block comes whatever its size.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// End the page before the block that contains this entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_entry_id: Option<EntryId>,
    /// Reach back at least to this entry, past `limit` if need be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_entry_id: Option<EntryId>,
    /// Whether entries that hold an application's own data are listed too; they are when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_custom: Option<bool>,
    /// False leaves out the bytes of images that are also attachments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_image_data: Option<bool>,
}

/// The newest page of the active path, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessagesTailResponse {
    /// The entries.
    pub messages: Vec<MessageItem>,
    /// Entries that belong here and are left out, because their content is damaged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedEntry>,
    /// Whether there are older ones.
    pub has_more: bool,
    /// The oldest entry of the page, to pass as `before_entry_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_entry_id: Option<EntryId>,
}

/// Asks for chosen entries of the active path: either from one to another, or by their ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessagesRangeRequest {
    /// The session.
    pub session_id: SessionId,
    /// The first entry; goes with `to_entry_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_entry_id: Option<EntryId>,
    /// The last entry; goes with `from_entry_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_entry_id: Option<EntryId>,
    /// The entries, instead of a first and a last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_ids: Option<Vec<EntryId>>,
    /// How many entries at most.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// How many bytes of content at most; the first entry comes whatever its size.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Where the page before this one ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// False leaves out the bytes of images that are also attachments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_image_data: Option<bool>,
}

/// A page of the chosen entries, in the order of the path, nothing shortened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessagesRangeResponse {
    /// The entries.
    pub messages: Vec<MessageItem>,
    /// Entries that belong here and are left out, because their content is damaged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedEntry>,
    /// Where to continue, when there is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
