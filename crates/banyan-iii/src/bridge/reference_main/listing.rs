//! A whole session, as a main lists it.

use banyan::model::{EntryId, Error, SessionEntry, SessionId, SessionMeta};
use banyan::rules::record::Head;
use banyan::rules::state::{NodeIx, SessionState};
use serde::Serialize;

use super::LIST_ENTRIES;
use crate::bridge::parents_first;

/// See the module.
pub(in crate::bridge) struct Listing {
    /// The tree. The place of an entry's body is its number in the list.
    pub(in crate::bridge) state: SessionState,
    entries: Vec<SessionEntry>,
}

/// A session is known by the lines that session-manager would have written for it.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line<'a> {
    Entry { entry: &'a SessionEntry },
    Leaf { entry_id: Option<&'a EntryId> },
    Meta { meta: &'a SessionMeta },
}

impl Listing {
    pub(super) fn of(
        id: &SessionId,
        meta: SessionMeta,
        entries: Vec<SessionEntry>,
        leaf: Option<EntryId>,
    ) -> Result<Self, Error> {
        let mut state = SessionState::begin(id.clone());
        let entries = parents_first(entries);
        // A leaf that is not listed is none to read.
        let leaf = leaf.as_ref().filter(|leaf| entries.iter().any(|entry| entry.id() == *leaf));
        let lines = entries.iter().map(|entry| Line::Entry { entry });
        let lines = lines.chain([Line::Leaf { entry_id: leaf }, Line::Meta { meta: &meta }]);
        for (at, line) in lines.enumerate() {
            let line = serde_json::to_vec(&line).map_err(nonsense)?;
            let head = Head::parse(&line).map_err(nonsense)?;
            state.apply(&head, at as u64, u32::try_from(line.len()).unwrap_or(u32::MAX));
        }
        state.finish();
        Ok(Self { state, entries })
    }

    /// An entry, unless it is only known by what follows it.
    pub(in crate::bridge) fn entry(&self, ix: NodeIx) -> Option<&SessionEntry> {
        let entry = self.entries.get(usize::try_from(self.state.node(ix).place().offset).ok()?)?;
        (*entry.id() == self.state.id(ix)).then_some(entry)
    }
}

fn nonsense(why: impl std::fmt::Display) -> Error {
    Error::storage(format!("{LIST_ENTRIES}: the main instance answered nonsense: {why}"))
}
