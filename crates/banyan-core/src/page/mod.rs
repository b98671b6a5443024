//! Which entries a read answers with. Bodies are read by the caller, afterwards and only for those.

mod activity;
mod messages;
mod range;
mod sessions;
mod tail;
mod tree;
mod walk;

use banyan_model::{DamagedEntry, Error, SessionId};

use crate::cursor::EntryCursor;
use crate::state::{NodeIx, SessionState};

pub use activity::Loaded;
pub use messages::messages;
pub use range::messages_range;
pub use sessions::sessions;
pub use tail::{TailItem, TailPage, messages_tail};
pub use tree::tree;
pub use walk::{Step, WalkOrder, walk};

/// Entries to answer with, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The entries, damaged ones included.
    pub nodes: Vec<NodeIx>,
    /// Where to continue, when there is more.
    pub next_cursor: Option<String>,
}

/// How much of a page is left.
struct Budget {
    entries: usize,
    bytes: Option<u64>,
    used: u64,
}

impl Budget {
    fn new(entries: usize, bytes: Option<u64>) -> Self {
        Self { entries, bytes, used: 0 }
    }

    /// Takes one thing of this many bytes; the first always fits.
    fn take(&mut self, taken: usize, bytes: u64) -> bool {
        let used = self.used.saturating_add(bytes);
        let fits = taken == 0 || self.bytes.is_none_or(|allowed| used <= allowed);
        let room = taken < self.entries && fits;
        if room {
            self.used = used;
        }
        room
    }

    /// Leaves no room for anything more.
    fn exhaust(&mut self) {
        self.entries = 0;
        self.bytes = Some(0);
    }
}

/// Takes entries in order until the budget is used up.
fn fill(state: &SessionState, entries: impl Iterator<Item = NodeIx>, mut budget: Budget) -> Page {
    let mut nodes: Vec<NodeIx> = Vec::new();
    for ix in entries {
        let node = state.node(ix);
        let bytes = if node.is_damaged() { 0 } else { node.weight() };
        if !budget.take(nodes.len(), bytes) {
            let next_cursor = nodes.last().map(|last| EntryCursor { id: state.id(*last) }.encode());
            return Page { nodes, next_cursor };
        }
        nodes.push(ix);
    }
    Page { nodes, next_cursor: None }
}

/// The type of the custom entry that stands in for a damaged one wherever a whole session is shown or exported.
pub const DAMAGED: &str = "banyan.damaged";

/// How an answer names an entry whose content is damaged.
pub fn damaged_entry(state: &SessionState, ix: NodeIx) -> DamagedEntry {
    let role = state.node(ix).kind().role();
    DamagedEntry { entry_id: state.id(ix), parent_id: state.parent_id(ix), role }
}

fn must_exist(state: &SessionState) -> Result<(), Error> {
    if state.exists() { Ok(()) } else { Err(Error::not_found(state.session_id())) }
}

fn endless(session: &SessionId) -> Error {
    Error::storage(format!(
        "the entries of session `{session}` follow each other in a circle; set another active leaf"
    ))
}

#[cfg(test)]
mod tests;
