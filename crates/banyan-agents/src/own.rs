//! What we write into an agent's files beside its own words, so that a later reading knows its own session again.

use std::collections::HashMap;

use banyan_model::{EntryId, SessionId};
use serde::{Deserialize, Serialize};

/// The key that it stands under, in whatever object the agent leaves alone.
pub const OWN: &str = "x_banyan";

/// Where a line, a message or a whole file comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Own {
    /// The session.
    pub session: SessionId,
    /// The entry. None on what is about the whole session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntryId>,
    /// True of what no entry stands for, such as the result of a call that never had one. A reading leaves it out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub made_up: bool,
}

/// Where the parts of a session come from, in one place, for agents that leave alone only what is about the whole session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct OwnIds {
    /// The session.
    pub(crate) session: SessionId,
    /// Entries by the agent's own ids.
    #[serde(default)]
    pub(crate) entries: HashMap<String, EntryId>,
    /// The agent's ids of what no entry stands for. A reading leaves it out.
    #[serde(default)]
    pub(crate) made_up: Vec<String>,
}

impl OwnIds {
    /// Nothing yet.
    pub(crate) fn new(session: &SessionId) -> Self {
        Self { session: session.clone(), entries: HashMap::new(), made_up: Vec::new() }
    }
}
