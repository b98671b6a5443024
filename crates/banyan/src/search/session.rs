//! Indexing what a session says: all of it, or what is new.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use banyan_core::NodeKind;
use banyan_core::state::{NodeIx, SessionState, Source};
use banyan_model::{CommitNo, EntryId, SessionId, SessionMeta};
use banyan_search::{Document, SessionNo, SessionRecord, Standing, labels_of};

use super::batch::{Touched, skip_unreadable};
use super::indexer::{Indexer, Trouble};
use super::outline::{Outline, View, known_meta};
use super::text::Said;
use crate::access::Access;
use crate::bodies::Wanted;
use crate::store::Store;

/// An entry to be indexed.
struct Planned {
    wanted: Wanted,
    timestamp: i64,
    standing: Standing,
    place: u64,
    /// Whether the index certainly does not have it.
    is_new: bool,
}

/// Entries to be indexed, and what the session is like.
struct Plan {
    entries: Vec<Planned>,
    sources: Vec<Source>,
    meta: Arc<SessionMeta>,
    leaf: Option<EntryId>,
    /// How many entries the active path has.
    path: u64,
    /// The last commit that the session's state has.
    seen: CommitNo,
}

/// What is new in a session.
struct Changes {
    plan: Plan,
    /// So many entries of the active path are still on it, with what they said.
    kept: u64,
}

/// So many entries are read at a time.
const AT_ONCE: usize = 128;

/// So many entries are planned at a time, which takes more memory than the session itself.
const PLANNED: usize = 4096;

impl Indexer {
    /// Takes everything out that a session says, and puts it in again, if the session is there. What a fork inherits is
    /// looked for in its base, so that comes first; and forks of the session may not find theirs in it any more.
    pub(super) fn index_anew(&mut self, store: &Arc<Store>, id: &SessionId) -> Result<(), Trouble> {
        for base in self.bases_to_come(store, id)?.iter().rev() {
            let outcome = self.index_alone(store, base);
            skip_unreadable(store, base, outcome)?;
            self.look_at_forks(store, base, 0)?;
        }
        self.index_alone(store, id)?;
        self.look_at_forks(store, id, 0)
    }

    /// The same without a look at other sessions.
    pub(super) fn index_alone(&mut self, store: &Arc<Store>, id: &SessionId) -> Result<(), Trouble> {
        self.forget(id)?;
        let view = View::of(store, id)?;
        let Some(outline) = view.look(store, Outline::of)? else { return Ok(()) };
        let base = self.base_of(store, &outline)?;
        let own_from = if base.is_some() { outline.inherited() } else { 0 };
        let plan_of = |nodes: Range<usize>| {
            view.look(store, |state| {
                let nodes = nodes.start..nodes.end.min(state.nodes().len());
                let all = nodes.map(|at| (NodeIx(at as u32), true));
                (state.born().to_string(), state.nodes().len(), plan(state, all))
            })
        };
        let Some((born, entries, first)) = plan_of(own_from..own_from + PLANNED)? else { return Ok(()) };
        if born != outline.born {
            // Its end comes later in the journal.
            return Ok(());
        }
        let record = SessionRecord {
            number: self.writer.new_number(),
            born,
            leaf: first.leaf.clone(),
            path: first.path,
            labels: outline.labels,
            // What happens after the first look is told by the journal: it may be why the base has not all any more.
            commit: outline.seen,
            seen: first.seen,
            base,
        };
        self.put_entries(store, id, record.number, &first)?;
        // What happens meanwhile is told by the journal, and what is new then comes after these.
        for from in (own_from + PLANNED..entries).step_by(PLANNED) {
            match plan_of(from..entries.min(from + PLANNED))? {
                Some((born, _, plan)) if born == record.born => {
                    self.put_entries(store, id, record.number, &plan)?;
                }
                // Its end comes later in the journal.
                _ => break,
            }
        }
        self.put_record(id, record, &outline.meta)
    }

    /// The same; a session that cannot be read is passed over.
    pub(super) fn index_anew_or_skip(&mut self, store: &Arc<Store>, id: &SessionId) -> Result<(), Trouble> {
        let outcome = self.index_anew(store, id);
        skip_unreadable(store, id, outcome)
    }

    /// Takes a session out.
    pub(super) fn forget(&mut self, id: &SessionId) -> Result<(), Trouble> {
        if let Some(record) = self.record(id)? {
            self.writer.clear(record.number);
            self.writer.forget_session(id);
            self.known.insert(id.clone(), None);
            self.dirty = true;
        }
        Ok(())
    }

    /// Puts what is new in a session into the index.
    pub(super) fn index_touched(
        &mut self,
        store: &Arc<Store>,
        id: &SessionId,
        record: SessionRecord,
        touched: &Touched,
    ) -> Result<(), Trouble> {
        let changes = store.look(Access::whole(), id, |state| {
            (state.born() == touched.born).then(|| plan_touched(state, &record, touched))
        })?;
        // Without the session, its end comes later in the journal.
        let Some(changes) = changes.flatten() else { return Ok(()) };
        let Some(Changes { plan, kept }) = changes else { return self.index_anew(store, id) };
        let labels = labels_of(plan.meta.metadata.as_ref());
        let relabelled = labels != record.labels;
        if relabelled && record.base.is_some() {
            return self.index_anew(store, id);
        }
        self.put_entries(store, id, record.number, &plan)?;
        let path_before = record.path;
        let leaf = plan.leaf.clone();
        let record =
            SessionRecord { leaf, path: plan.path, labels, commit: touched.commit, seen: plan.seen, ..record };
        self.put_record(id, record, &plan.meta)?;
        match kept {
            _ if relabelled => self.look_at_forks(store, id, 0),
            kept if kept < path_before => self.look_at_forks(store, id, kept),
            // Nothing that a fork could have is other than before.
            _ => Ok(()),
        }
    }

    fn put_record(&mut self, id: &SessionId, record: SessionRecord, meta: &SessionMeta) -> Result<(), Trouble> {
        self.writer.put_session(id, &record, meta.metadata.as_ref())?;
        if let Some(base) = &record.base {
            self.new_forks.entry(base.session_id.clone()).or_default().insert(id.clone());
        }
        self.known.insert(id.clone(), Some(record));
        self.dirty = true;
        Ok(())
    }

    fn put_entries(
        &mut self,
        store: &Arc<Store>,
        id: &SessionId,
        number: SessionNo,
        plan: &Plan,
    ) -> Result<(), Trouble> {
        for entries in plan.entries.chunks(AT_ONCE) {
            self.let_others_go_first();
            // Much may be left, for example of forks whose base was deleted.
            if self.search.stopped() {
                return Err(Trouble::Stopped);
            }
            let wanted: Vec<&Wanted> = entries.iter().map(|entry| &entry.wanted).collect();
            store.each_spelled(&plan.sources, &wanted, |at, spelled| -> Result<(), Trouble> {
                let entry = &entries[at];
                if !entry.is_new {
                    self.writer.remove(number, &entry.wanted.entry_id);
                }
                // What is lost or says nothing that can be read is not found.
                let said = spelled.and_then(|spelled| Said::of(&spelled).ok());
                let Some(said) = said.filter(|said| !said.text.is_empty()) else { return Ok(()) };
                self.indexed += 1;
                Ok(self.writer.add(&Document {
                    session_id: id.clone(),
                    session: number,
                    entry_id: entry.wanted.entry_id.clone(),
                    role: said.role,
                    timestamp: entry.timestamp,
                    standing: entry.standing,
                    place: entry.place,
                    text: said.text,
                    tools: said.tools,
                })?)
            })?;
        }
        self.dirty = true;
        Ok(())
    }
}

/// What is new in a session: entries that say something else, and those that came onto the active path or left it.
/// `None` when it cannot be told which ones these are, or when a fork that has its beginning elsewhere changed that.
fn plan_touched(state: &SessionState, record: &SessionRecord, touched: &Touched) -> Option<Changes> {
    let (moved, mut kept) = moved(state, record)?;
    // What came after the last look may be in the index already, because its standing changed.
    let appended = touched.appended.iter();
    let is_new: HashSet<NodeIx> =
        appended.filter(|(_, commit)| **commit > record.seen).filter_map(|(id, _)| state.find(id)).collect();
    let mut changed: Vec<NodeIx> = touched.changed.iter().filter_map(|id| state.find(id)).collect();
    changed.extend(state.grown_in(&touched.grown));
    for ix in changed.iter().filter(|ix| state.on_path(**ix)) {
        kept = kept.min(u64::from(state.node(*ix).depth()));
    }
    let mut nodes: Vec<NodeIx> = touched.appended.keys().filter_map(|id| state.find(id)).collect();
    nodes.extend(changed);
    nodes.extend(moved);
    nodes.sort_unstable();
    nodes.dedup();
    if record.base.is_some() && nodes.first().is_some_and(|first| (first.0 as usize) < state.inherited()) {
        return None;
    }
    Some(Changes { plan: plan(state, nodes.into_iter().map(|ix| (ix, is_new.contains(&ix)))), kept })
}

/// The entries between two leaves: those that left the active path, and those that came onto it. And how many of those that
/// were on it stayed.
fn moved(state: &SessionState, record: &SessionRecord) -> Option<(Vec<NodeIx>, u64)> {
    let mut before = match &record.leaf {
        Some(id) => Some(state.find(id)?),
        None => None,
    };
    let mut now = state.leaf();
    let mut moved = Vec::new();
    if state.is_cyclic() || before.is_some_and(|ix| state.is_endless(ix)) {
        return None;
    }
    // With another number of entries above it, some were put in between: standings and places are all new.
    if path_to(state, before) != record.path {
        return None;
    }
    while before != now {
        let depth = |ix: Option<NodeIx>| ix.map(|ix| state.node(ix).depth());
        let deeper = if depth(before) >= depth(now) { &mut before } else { &mut now };
        let Some(ix) = *deeper else { break };
        moved.push(ix);
        *deeper = state.node(ix).parent();
    }
    Some((moved, path_to(state, before)))
}

/// How many entries the path to an entry has.
pub(super) fn path_to(state: &SessionState, leaf: Option<NodeIx>) -> u64 {
    leaf.map_or(0, |ix| u64::from(state.node(ix).depth()) + 1)
}

fn plan(state: &SessionState, nodes: impl Iterator<Item = (NodeIx, bool)>) -> Plan {
    let readable = |ix: NodeIx| !state.node(ix).is_damaged() && state.node(ix).kind() != NodeKind::Lost;
    let planned = |(ix, is_new): (NodeIx, bool)| Planned {
        wanted: Wanted::for_page(state, ix),
        timestamp: state.node(ix).timestamp(),
        standing: if state.on_path(ix) { Standing::Active } else { Standing::Aside },
        place: u64::from(state.node(ix).depth()),
        is_new,
    };
    Plan {
        entries: nodes.filter(|(ix, _)| readable(*ix)).map(planned).collect(),
        sources: state.sources().to_vec(),
        meta: known_meta(state),
        leaf: state.leaf_id(),
        path: path_to(state, state.leaf()),
        seen: state.last_commit(),
    }
}
