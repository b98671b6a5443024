//! The tree of a session: fork, set-active-leaf, tree.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{EntryId, EntryKind, Revision, Role, SessionId, SessionMeta, whole};

/// Asks for a new session that continues from an entry of this one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForkRequest {
    /// The session to fork.
    pub session_id: SessionId,
    /// The last entry that the fork shares with it.
    pub entry_id: EntryId,
    /// The fork's title; the source's when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// The fork.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForkResponse {
    /// The fork's id.
    pub session_id: SessionId,
    /// The fork.
    pub meta: SessionMeta,
}

/// Chooses the entry that the next append follows and that reading ends in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetActiveLeafRequest {
    /// The session.
    pub session_id: SessionId,
    /// Any entry of it.
    pub entry_id: EntryId,
}

/// The active leaf.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetActiveLeafResponse {
    /// The entry that is the active leaf now.
    pub active_leaf: EntryId,
}

/// Asks for the shape of a session: every entry of every branch, without content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TreeRequest {
    /// The session.
    pub session_id: SessionId,
    /// The most entries to answer with, up to 10000. Without `limit` and `cursor` the answer has every entry, and a session of
    /// more than 50000 is refused.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Where the page before this one ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl TreeRequest {
    /// The first page, of as many entries as a page may have.
    pub fn first_page(session_id: SessionId) -> Self {
        Self { session_id, limit: Some(TREE_PAGE), cursor: None }
    }
}

/// The most entries of one page of `session::tree`.
pub const TREE_PAGE: usize = 10_000;
/// The most entries that `session::tree` answers with when no page is asked for.
pub const WHOLE_TREE: usize = 50_000;

/// The shape of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TreeResponse {
    /// The session.
    pub session_id: SessionId,
    /// The entry that the next append follows; absent while the session is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_leaf: Option<EntryId>,
    /// Every entry, or a page of them, each after the one that it follows.
    pub entries: Vec<TreeNode>,
    /// Where to continue, when there is more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// One entry in the shape of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TreeNode {
    /// The entry's id.
    pub entry_id: EntryId,
    /// The entry that it follows; null at a root.
    pub parent_id: Option<EntryId>,
    /// Whether it is a message or an application's own data.
    pub kind: EntryKind,
    /// Who speaks, when it is a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// The application's name for the type of its data, when it is not a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_type: Option<String>,
    /// How often its content has changed.
    pub revision: Revision,
    /// When the store took it, in milliseconds since 1970.
    pub timestamp: i64,
    /// How large its content is.
    pub bytes: u64,
    /// Whether it lies on the path that ends in the active leaf.
    pub on_active_path: bool,
    /// Whether its content is known to be damaged. Damage that was not met yet is not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
}
