//! What the journal says is new, session by session.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use banyan_core::Born;
use banyan_core::record::{Head, HeadKind, LegacyHead};
use banyan_log::{At, JournalEntry, JournalKind, Replay, SessionLog};
use banyan_model::{CommitNo, EntryId, Error, SessionId};

use super::indexer::{Indexer, Trouble};
use crate::access::Access;
use crate::store::Store;

/// So many commits are looked at together.
const AT_ONCE: usize = 4096;

/// What happened to a session.
pub(super) struct Touched {
    pub(super) born: Born,
    /// The last commit that is looked at.
    pub(super) commit: CommitNo,
    /// Entries that were appended, with the commit that did.
    pub(super) appended: HashMap<EntryId, CommitNo>,
    /// Entries that say something else now.
    pub(super) changed: HashSet<EntryId>,
    /// Where lines begin in which an entry grew.
    pub(super) grown: BTreeSet<u64>,
}

impl Indexer {
    /// Looks at the next commits. False when the journal does not know them any more.
    pub(super) fn batch(&mut self, store: &Arc<Store>) -> Result<bool, Trouble> {
        let mut entries: Vec<JournalEntry> = Vec::new();
        let replayed = store.log.replay(self.position, self.search.heard(), &mut |entry| {
            entries.push(entry);
            entries.len() < AT_ONCE
        });
        if let Replay::Forgotten(_) = replayed.map_err(Error::from)? {
            return Ok(false);
        }
        let Some(last) = entries.last().map(|entry| entry.commit) else {
            self.position = self.search.heard();
            return Ok(true);
        };
        // Sessions in the order in which they are met, so that what is near in time is near in the index.
        let mut order: Vec<SessionId> = Vec::new();
        let mut by_session: HashMap<SessionId, Vec<JournalEntry>> = HashMap::new();
        for entry in entries {
            let of_session = by_session.entry(entry.session.clone()).or_default();
            if of_session.is_empty() {
                order.push(entry.session.clone());
            }
            of_session.push(entry);
        }
        for id in order {
            let entries = by_session.remove(&id).unwrap_or_default();
            let outcome = self.session_entries(store, &id, &entries);
            skip_unreadable(store, &id, outcome)?;
        }
        self.position = last;
        Ok(true)
    }

    fn session_entries(
        &mut self,
        store: &Arc<Store>,
        id: &SessionId,
        entries: &[JournalEntry],
    ) -> Result<(), Trouble> {
        // What came before the last end of the session is gone.
        let end = entries.iter().rposition(|entry| matches!(entry.kind, JournalKind::Removed(_)));
        let entries = match end {
            Some(end) => {
                if self.record(id)?.is_some_and(|record| record.commit <= entries[end].commit) {
                    self.forget(id)?;
                    self.look_at_forks(store, id, 0)?;
                }
                &entries[end + 1..]
            }
            None => entries,
        };
        let Some(last) = entries.last() else { return Ok(()) };
        let known = self.record(id)?;
        let Some(record) = known.filter(|record| record.born == last.born.to_string()) else {
            return self.index_anew(store, id);
        };
        let new: Vec<&JournalEntry> = entries.iter().filter(|entry| entry.commit > record.commit).collect();
        if new.is_empty() {
            return Ok(());
        }
        let is_live = store.look(Access::whole(), id, |state| state.born() == last.born)?;
        if is_live != Some(true) {
            // Its end comes later in the journal.
            return Ok(());
        }
        let mut touched = Touched {
            born: last.born,
            commit: last.commit,
            appended: HashMap::new(),
            changed: HashSet::new(),
            grown: BTreeSet::new(),
        };
        for (from, len, entries) in stretches(&new) {
            let bytes = store.log.read(At::Live(id), from, len).map_err(Error::from)?;
            for entry in entries {
                touched.take(entry, from, &bytes);
            }
        }
        self.index_touched(store, id, record, &touched)
    }
}

/// A session that cannot be read is not found; the others are.
pub(super) fn skip_unreadable(store: &Store, id: &SessionId, outcome: Result<(), Trouble>) -> Result<(), Trouble> {
    match outcome {
        Err(Trouble::Session(error)) => {
            store.warn(&format!("session {id} cannot be searched: {error}"));
            Ok(())
        }
        outcome => outcome,
    }
}

/// Lines that are near each other are read together: where they start, how long they are, and whose they are.
fn stretches<'e>(entries: &[&'e JournalEntry]) -> Vec<(u64, usize, Vec<&'e JournalEntry>)> {
    const NEAR: u64 = 4 << 10;
    const AT_ONCE: u64 = 4 << 20;
    let mut stretches: Vec<(u64, usize, Vec<&JournalEntry>)> = Vec::new();
    for entry in entries {
        let (offset, len) = match entry.kind {
            JournalKind::Lines { offset, len } => (offset, u64::from(len)),
            // The state knows what grew there.
            JournalKind::Addition { .. } | JournalKind::Removed(_) => (0, 0),
        };
        match stretches.last_mut() {
            Some((_, _, entries)) if len == 0 => entries.push(entry),
            Some((from, have, entries))
                if *have > 0
                    && offset >= *from
                    && offset <= *from + *have as u64 + NEAR
                    && offset + len <= *from + AT_ONCE =>
            {
                *have = (*have).max((offset + len - *from) as usize);
                entries.push(entry);
            }
            _ => stretches.push((offset, len as usize, vec![entry])),
        }
    }
    stretches
}

impl Touched {
    fn take(&mut self, entry: &JournalEntry, from: u64, bytes: &[u8]) {
        match entry.kind {
            JournalKind::Addition { offset, .. } => {
                self.grown.insert(offset);
            }
            JournalKind::Removed(_) => {}
            JournalKind::Lines { offset, len } => {
                let start = offset.saturating_sub(from) as usize;
                let lines = bytes.get(start..start + len as usize).unwrap_or_default();
                let mut lines = lines;
                while !lines.is_empty() {
                    let end = memchr::memchr(b'\n', lines).map_or(lines.len(), |at| at + 1);
                    let (line, rest) = lines.split_at(end);
                    lines = rest;
                    // A line that cannot be read is told of elsewhere.
                    if let Ok(head) = Head::parse(line) {
                        self.line(head.kind, entry.commit);
                    }
                }
            }
        }
    }

    fn line(&mut self, kind: HeadKind<'_>, commit: CommitNo) {
        match kind {
            HeadKind::Message { entry_id, .. } | HeadKind::Custom { entry_id, .. } => {
                self.appended.insert(EntryId::from(entry_id.as_ref()), commit);
            }
            HeadKind::Updated { entry_id, .. }
            | HeadKind::Settled { entry_id, .. }
            | HeadKind::Adopted { entry_id } => {
                self.changed.insert(EntryId::from(entry_id.as_ref()));
            }
            HeadKind::Grew(grew) => {
                self.changed.insert(EntryId::from(grew.entry_id.as_ref()));
            }
            HeadKind::EntryPut(entry) => {
                self.changed.insert(entry.id.clone());
            }
            HeadKind::Legacy(legacy) => match *legacy {
                LegacyHead::Entry(entry) | LegacyHead::Append(entry, _) => {
                    self.changed.insert(entry.id);
                }
                LegacyHead::Meta(_) | LegacyHead::Leaf(_) | LegacyHead::Commit(_) => {}
            },
            // Standings follow from the leaf, labels from the metadata; both are looked at whatever happened.
            HeadKind::LeafMoved { .. }
            | HeadKind::LeafPut { .. }
            | HeadKind::Created(_)
            | HeadKind::MetaSet(_)
            | HeadKind::MetaPut(_)
            | HeadKind::StatusSet(_)
            | HeadKind::Attached(_)
            | HeadKind::Detached(_)
            | HeadKind::Begun(_)
            | HeadKind::Erased
            | HeadKind::Unknown(_)
            | HeadKind::Newer(_) => {}
        }
    }
}
