//! What is known of a session without reading its entries.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Object, SessionId};

/// What is known of a session without reading its entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionMeta {
    /// The session's id.
    pub session_id: SessionId,
    /// What people call it; may be empty.
    pub title: String,
    /// What it is about; may be empty.
    pub description: String,
    /// What the session is doing.
    pub status: SessionStatus,
    /// Why it is in this status; kept for `error` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_reason: Option<String>,
    /// The caller's own labels, which lists and subscriptions can filter by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    /// The session that this one was forked from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<SessionId>,
    /// How many message entries it holds, over all branches.
    pub message_count: u64,
    /// When it was created, in milliseconds since 1970.
    pub created_at: i64,
    /// When it last changed, in milliseconds since 1970.
    pub updated_at: i64,
}

/// What a session is doing. Any status can follow any other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// Nothing.
    #[default]
    Idle,
    /// Somebody works on it.
    Working,
    /// The work is finished.
    Done,
    /// The work failed.
    Error,
}

impl SessionStatus {
    /// The status as it stands in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Working => "working",
            Self::Done => "done",
            Self::Error => "error",
        }
    }
}

/// In which order sessions are listed. Equal times are ordered by id, in the same direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ListOrder {
    /// Oldest first.
    CreatedAsc,
    /// Newest first.
    CreatedDesc,
    /// Most recently changed first.
    #[default]
    UpdatedDesc,
}

impl ListOrder {
    /// The order as it stands in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CreatedAsc => "created_asc",
            Self::CreatedDesc => "created_desc",
            Self::UpdatedDesc => "updated_desc",
        }
    }
}
