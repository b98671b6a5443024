//! Sessions as a whole: create, ensure, get, list, set-meta, set-status, delete.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ListOrder, Object, SessionId, SessionMeta, SessionStatus, whole};

/// Asks for a new session with an id of the store's making.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CreateRequest {
    /// What people call it; empty when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is about; empty when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The caller's own labels: at most 1 MiB as JSON, with title and description, unless the server sets another limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
}

/// The session that was created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CreateResponse {
    /// The new session's id.
    pub session_id: SessionId,
    /// The new session.
    pub meta: SessionMeta,
}

/// Asks that a session of this id exists. An existing one is left as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EnsureRequest {
    /// The id; any text but the empty one.
    pub session_id: SessionId,
    /// Title, if the session has to be created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description, if the session has to be created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Labels, if the session has to be created: at most 1 MiB as JSON, with title and description, unless the server sets another
    /// limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
}

/// The session that now exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EnsureResponse {
    /// The session's id.
    pub session_id: SessionId,
    /// The session.
    pub meta: SessionMeta,
    /// Whether this call created it.
    pub created: bool,
}

/// Asks what is known of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GetRequest {
    /// The session.
    pub session_id: SessionId,
}

/// What is known of a session; `null` in its place when there is no such session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GetResponse {
    /// The session.
    pub meta: SessionMeta,
}

/// Asks for a page of sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListRequest {
    /// How many at most.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Where the page before this one ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Only sessions in this status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<SessionStatus>,
    /// Only sessions whose metadata holds each of these keys with exactly this value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    /// The order; most recently changed first when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<ListOrder>,
}

/// A page of sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListResponse {
    /// The sessions, in the order asked for.
    pub sessions: Vec<SessionMeta>,
    /// Where to continue, when there is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Replaces what people know a session by. Fields that are left out stay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetMetaRequest {
    /// The session.
    pub session_id: SessionId,
    /// The new title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The new description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The new labels, in place of all the old ones: at most 1 MiB as JSON, with title and description, unless the server sets
    /// another limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
}

/// The session as it is after the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetMetaResponse {
    /// The session.
    pub meta: SessionMeta,
}

/// Sets what a session is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetStatusRequest {
    /// The session.
    pub session_id: SessionId,
    /// The new status.
    pub status: SessionStatus,
    /// Why; kept for `error` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The status after and before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetStatusResponse {
    /// The status that the session has now.
    pub status: SessionStatus,
    /// The status that it had before; the same when nothing changed.
    pub previous_status: SessionStatus,
}

/// Deletes a session with everything in it. Its forks stay whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeleteRequest {
    /// The session.
    pub session_id: SessionId,
}

/// Whether there was anything to delete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeleteResponse {
    /// False when there was no such session.
    pub deleted: bool,
}
