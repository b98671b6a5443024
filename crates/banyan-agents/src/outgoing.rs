//! A session on its way to an agent.

use std::collections::{HashMap, HashSet};

use banyan_model::{EntryId, SessionEntry, SessionMeta};

/// A session on its way to an agent.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// What is known of it.
    pub meta: SessionMeta,
    /// All entries, each after the one that it follows.
    pub entries: Vec<SessionEntry>,
    /// The entry that the active path ends in.
    pub leaf: Option<EntryId>,
}

impl Outgoing {
    /// The entries of the active path, from the root to the leaf.
    pub fn path(&self) -> Vec<&SessionEntry> {
        let by_id: HashMap<&EntryId, &SessionEntry> =
            self.entries.iter().map(|entry| (entry.id(), entry)).collect();
        let mut path = Vec::new();
        let mut seen = HashSet::new();
        let mut next = self.leaf.as_ref();
        while let Some(entry) = next.and_then(|id| by_id.get(id)) {
            if !seen.insert(entry.id()) {
                break;
            }
            path.push(*entry);
            next = entry.parent_id();
        }
        path.reverse();
        path
    }

    /// A value of the session's metadata that is text.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        self.meta.metadata.as_ref()?.get(key)?.as_str()
    }

    /// The agent's own id for the session, if it comes from that agent.
    pub fn native_id(&self, agent: &str) -> Option<&str> {
        if self.metadata("agent") == Some(agent) { self.metadata("native_id") } else { None }
    }
}
