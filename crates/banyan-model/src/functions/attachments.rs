//! Files that belong to a session: put-, get-, list- and delete-attachment.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AttachmentId, AttachmentMeta, ContentBlock, SessionId};

/// Stores a file with a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PutAttachmentRequest {
    /// The session.
    pub session_id: SessionId,
    /// The file's name; not blank.
    pub name: String,
    /// The media type; `application/octet-stream` when blank.
    pub mime: String,
    /// The bytes, in standard base64 with padding.
    pub data: String,
}

/// The stored file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PutAttachmentResponse {
    /// What is known of it.
    pub attachment: AttachmentMeta,
    /// The block that shows it in a message.
    pub block: ContentBlock,
}

/// Asks for an attachment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GetAttachmentRequest {
    /// The session.
    pub session_id: SessionId,
    /// The attachment.
    pub attachment_id: AttachmentId,
    /// Whether the bytes are wanted; they are when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_data: Option<bool>,
}

/// An attachment; `null` in its place when there is no such attachment or session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GetAttachmentResponse {
    /// What is known of it.
    pub attachment: AttachmentMeta,
    /// The bytes, in standard base64 with padding; null when they were not asked for.
    pub data: Option<String>,
}

/// Asks for the attachments of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListAttachmentsRequest {
    /// The session.
    pub session_id: SessionId,
}

/// The attachments of a session, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListAttachmentsResponse {
    /// The attachments.
    pub attachments: Vec<AttachmentMeta>,
}

/// Deletes an attachment that no message refers to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeleteAttachmentRequest {
    /// The session.
    pub session_id: SessionId,
    /// The attachment.
    pub attachment_id: AttachmentId,
}

/// Whether there was anything to delete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeleteAttachmentResponse {
    /// False when there was no such attachment.
    pub deleted: bool,
}
