//! Indexing what a session says: all of it, or what is new.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use banyan_core::NodeKind;
use banyan_core::state::{NodeIx, SessionState, Source};
use banyan_log::At;
use banyan_model::{CommitNo, EntryId, SessionId, SessionMeta};
use banyan_search::{Document, SessionNo, SessionRecord, Standing};

use super::batch::{Touched, skip_unreadable};
use super::indexer::{Indexer, Trouble};
use super::text::Said;
use crate::access::Access;
use crate::bodies::Wanted;
use crate::sessions::Loaded;
use crate::store::Store;

/// An entry to be indexed.
struct Planned {
    wanted: Wanted,
    timestamp: i64,
    standing: Standing,
    /// Whether the index certainly does not have it.
    is_new: bool,
}

/// Entries to be indexed, and what the session is like.
struct Plan {
    entries: Vec<Planned>,
    sources: Vec<Source>,
    meta: Arc<SessionMeta>,
    leaf: Option<EntryId>,
    /// The last commit that the session's state has.
    seen: CommitNo,
}

/// So many entries are read at a time.
const AT_ONCE: usize = 128;

/// So many entries are planned at a time, which takes more memory than the session itself.
const PLANNED: usize = 4096;

impl Indexer {
    /// Takes everything out that a session says, and puts it in again, if the session is there.
    pub(super) fn index_anew(&mut self, store: &Arc<Store>, id: &SessionId) -> Result<(), Trouble> {
        self.forget(id)?;
        let loaded = store.sessions.peek(id);
        let in_memory = loaded.as_ref().is_some_and(|session| !matches!(*session.read(), Loaded::NotYet));
        // Sessions that nobody uses are read without a place in memory, which those have who are used.
        let read = if in_memory { None } else { store.read(At::Live(id), id)?.map(|read| read.state) };
        let plan_of = |nodes: Range<usize>| -> Result<Option<(String, usize, Plan)>, Trouble> {
            let look = |state: &SessionState| {
                let nodes = nodes.start..nodes.end.min(state.nodes().len());
                let all = nodes.map(|at| (NodeIx(at as u32), true));
                (state.born().to_string(), state.nodes().len(), plan(state, all))
            };
            match &read {
                _ if in_memory => Ok(store.look(Access::whole(), id, look)?),
                read => Ok(read.as_ref().filter(|state| state.exists()).map(look)),
            }
        };
        let Some((born, entries, first)) = plan_of(0..PLANNED)? else { return Ok(()) };
        let record = SessionRecord {
            number: self.writer.new_number(),
            born,
            leaf: first.leaf.clone(),
            commit: first.seen,
            seen: first.seen,
        };
        self.put_entries(store, id, record.number, &first)?;
        // What happens meanwhile is told by the journal, and what is new then comes after these.
        for from in (PLANNED..entries).step_by(PLANNED) {
            match plan_of(from..entries.min(from + PLANNED))? {
                Some((born, _, plan)) if born == record.born => {
                    self.put_entries(store, id, record.number, &plan)?;
                }
                // Its end comes later in the journal.
                _ => break,
            }
        }
        self.put_record(id, record, &first.meta)
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
        let plan = store.look(Access::whole(), id, |state| {
            (state.born() == touched.born).then(|| plan_touched(state, &record, touched))
        })?;
        // Without the session, its end comes later in the journal.
        let Some(plan) = plan.flatten() else { return Ok(()) };
        let Some(plan) = plan else { return self.index_anew(store, id) };
        self.put_entries(store, id, record.number, &plan)?;
        let record = SessionRecord { leaf: plan.leaf.clone(), commit: touched.commit, seen: plan.seen, ..record };
        self.put_record(id, record, &plan.meta)
    }

    fn put_record(&mut self, id: &SessionId, record: SessionRecord, meta: &SessionMeta) -> Result<(), Trouble> {
        self.writer.put_session(id, &record, meta.metadata.as_ref())?;
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
            // Much may be left, for example of many forks of a long session.
            if self.search.stopped() {
                return Err(Trouble::Stopped);
            }
            let wanted: Vec<&Wanted> = entries.iter().map(|entry| &entry.wanted).collect();
            let fetched = store.fetch(&plan.sources, &wanted)?;
            for (entry, fetched) in entries.iter().zip(fetched) {
                if !entry.is_new {
                    self.writer.remove(number, &entry.wanted.entry_id);
                }
                // What is lost or says nothing that can be read is not found.
                let Some(said) = fetched.and_then(|fetched| Said::of(&fetched.body).ok()) else { continue };
                if said.text.is_empty() {
                    continue;
                }
                self.writer.add(&Document {
                    session_id: id.clone(),
                    session: number,
                    entry_id: entry.wanted.entry_id.clone(),
                    role: said.role,
                    timestamp: entry.timestamp,
                    standing: entry.standing,
                    text: said.text,
                    tools: said.tools,
                })?;
            }
        }
        self.dirty = true;
        Ok(())
    }
}

/// What is new in a session: entries that say something else, and those that came onto the active path or left it.
/// `None` when it cannot be told which ones these are.
fn plan_touched(state: &SessionState, record: &SessionRecord, touched: &Touched) -> Option<Plan> {
    let moved = moved(state, record.leaf.as_ref())?;
    // What came after the last look may be in the index already, because its standing changed.
    let appended = touched.appended.iter();
    let is_new: HashSet<NodeIx> =
        appended.filter(|(_, commit)| **commit > record.seen).filter_map(|(id, _)| state.find(id)).collect();
    let mut nodes: Vec<NodeIx> =
        touched.appended.keys().chain(&touched.changed).filter_map(|id| state.find(id)).collect();
    nodes.extend(state.growing().filter(|_| touched.grew).map(|growing| growing.node()));
    nodes.extend(moved);
    nodes.sort_unstable();
    nodes.dedup();
    Some(plan(state, nodes.into_iter().map(|ix| (ix, is_new.contains(&ix)))))
}

/// The entries between two leaves: those that left the active path, and those that came onto it.
fn moved(state: &SessionState, leaf_before: Option<&EntryId>) -> Option<Vec<NodeIx>> {
    let mut before = match leaf_before {
        Some(id) => Some(state.find(id)?),
        None => None,
    };
    let mut now = state.leaf();
    let mut moved = Vec::new();
    if state.is_cyclic() || before.is_some_and(|ix| state.is_endless(ix)) {
        return None;
    }
    while before != now {
        let depth = |ix: Option<NodeIx>| ix.map(|ix| state.node(ix).depth());
        let deeper = if depth(before) >= depth(now) { &mut before } else { &mut now };
        let Some(ix) = *deeper else { break };
        moved.push(ix);
        *deeper = state.node(ix).parent();
    }
    Some(moved)
}

fn plan(state: &SessionState, nodes: impl Iterator<Item = (NodeIx, bool)>) -> Plan {
    let readable = |ix: NodeIx| !state.node(ix).is_damaged() && state.node(ix).kind() != NodeKind::Lost;
    let planned = |(ix, is_new): (NodeIx, bool)| Planned {
        wanted: Wanted::for_page(state, ix),
        timestamp: state.node(ix).timestamp(),
        standing: if state.on_path(ix) { Standing::Active } else { Standing::Aside },
        is_new,
    };
    Plan {
        entries: nodes.filter(|(ix, _)| readable(*ix)).map(planned).collect(),
        sources: state.sources().to_vec(),
        meta: Arc::clone(state.meta()),
        leaf: state.leaf_id(),
        seen: state.last_commit(),
    }
}
