//! Finding entries by what they say.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::null_as_default;
use crate::{EntryId, Object, Role, SessionId, whole};

/// Asks for the entries that match a query best.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchRequest {
    /// What to look for. All words must be there; `"several words"` one after another; `begin*` finds what begins so;
    /// `-word` leaves out. Identifiers and paths are found as they are typed, and by their parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// The same as `query`, for short addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub q: Option<String>,
    /// Only in sessions whose metadata has this as `agent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only in sessions whose metadata has this directory, or one below it, as `cwd`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Only what these say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roles: Option<Vec<Role>>,
    /// Only calls of this function, and their results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Only what was said at this time or later, in milliseconds since 1970.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    pub since: Option<i64>,
    /// Only what was said before this time, in milliseconds since 1970.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
    /// Only in sessions whose metadata has every one of these pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    /// Only in this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Whether entries off the active path are found too; they are not when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all_branches: Option<bool>,
    /// How many at most: 20 when left out, 100 at most.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Where the page before this one ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// How long to wait, in milliseconds, until everything is found that was written before the call.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

/// The entries that match best, best first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchResponse {
    /// The entries.
    pub hits: Vec<SearchHit>,
    /// Where to continue, when there is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Whether everything was looked at that was written before the call. Otherwise the index is still catching up, and
    /// asking again later can find more.
    pub complete: bool,
}

/// An entry that matches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchHit {
    /// Its session.
    pub session_id: SessionId,
    /// The session's title.
    pub title: String,
    /// The agent that the session's metadata names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The directory that the session's metadata names as `cwd`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The entry.
    pub entry_id: EntryId,
    /// Who speaks; absent in an entry that holds an application's own data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// When, in milliseconds since 1970.
    pub timestamp: i64,
    /// How well it matches, with newer entries ahead. Only to be compared with others of the same answer; a key with a
    /// scope is told one divided by the rank.
    pub score: f64,
    /// Whether it is on the active path.
    pub active: bool,
    /// Some of what it says around the match. The pieces in a row are plain text, with nothing escaped.
    pub snippet: Vec<SnippetPiece>,
}

/// A piece of a snippet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnippetPiece {
    /// The text.
    pub text: String,
    /// Whether it is what was looked for.
    #[serde(
        rename = "match",
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub is_match: bool,
}
