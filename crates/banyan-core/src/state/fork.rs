//! A fork's first entries: the base's path as it was, under ids of the fork's own.

use std::collections::HashMap;
use std::fmt;

use banyan_model::{EntryId, SessionId};

use super::node::{Line, Source, SourceIx, flag};
use super::tree::NewNode;
use super::{NodeIx, SessionState};
use crate::fork_ids::{ForkIds, InheritedIds};
use crate::record::Base;

/// Why a fork cannot have the entries that it inherits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForkFault {
    /// The base is there, but it is not the incarnation that was forked.
    OtherIncarnation(SessionId),
    /// The base has no such entry.
    NoSuchEntry(EntryId),
    /// The entry's parents form a cycle.
    Cycle(EntryId),
}

impl fmt::Display for ForkFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherIncarnation(id) => {
                write!(f, "session `{id}` is not the one that was forked, but a later one")
            }
            Self::NoSuchEntry(id) => write!(f, "the session that was forked has no entry `{id}`"),
            Self::Cycle(id) => write!(f, "the parents of entry `{id}` form a cycle"),
        }
    }
}

impl std::error::Error for ForkFault {}

impl SessionState {
    /// A fork of which no record of its own is known yet, with what it inherits. Every line of its file is then applied,
    /// the first included.
    pub fn begin_fork(session_id: SessionId, base: &Base, state: &SessionState) -> Result<Self, ForkFault> {
        // A damaged beginning may tell a wrong incarnation; the entry's id tells then.
        if state.born() != base.born && state.damaged_lines() == 0 {
            return Err(ForkFault::OtherIncarnation(base.session_id.clone()));
        }
        let entry = state.find(&base.entry_id).ok_or_else(|| ForkFault::NoSuchEntry(base.entry_id.clone()))?;
        let chain = state.chain(entry).ok_or_else(|| ForkFault::Cycle(base.entry_id.clone()))?;
        let ids = ForkIds::new(&session_id);
        let mut fork = Self::begin(session_id);
        fork.nodes.reserve(chain.len());
        fork.by_id.reserve(chain.len(), &[]);
        let mut sources = HashMap::new();
        for ix in chain {
            fork.inherit(state, ix, base, &ids, &mut sources);
        }
        fork.inherited = fork.nodes.len() as u32;
        fork.inherit_newer(state, base.seq.0);
        fork.path = (0..fork.inherited).map(NodeIx).collect();
        fork.leaf = fork.path.last().copied();
        Ok(fork)
    }

    fn inherit(
        &mut self,
        state: &SessionState,
        ix: NodeIx,
        base: &Base,
        ids: &ForkIds,
        sources: &mut HashMap<SourceIx, SourceIx>,
    ) {
        let original = state.node(ix);
        let body = state.body_as_of(ix, base.seq);
        // Texts added and not written whole before the fork cannot be told from the full record alone.
        let whole =
            body.is_some_and(|body| !body.damaged && state.grown_between(ix, body.seq.0, base.seq.0).is_empty());
        let line = body.map_or_else(|| original.line(), |body| body.line);
        let line = self.line_of(state, line, ids, sources);
        let birth = self.line_of(state, state.birth(ix), ids, sources);
        let damaged = if whole { 0 } else { flag::DAMAGED };
        let parent = self.nodes.len().checked_sub(1).map(|last| NodeIx(last as u32));
        let copy = self.insert(NewNode {
            key: ids.derive_key(&original.key),
            parent,
            place: line.place,
            seq: line.seq.0,
            weight: body.map_or(0, |body| body.weight),
            revision: 0,
            timestamp: original.timestamp,
            kind: original.kind,
            custom_type: state.custom_type(ix),
            flags: original.flags & (flag::HAS_ORIGIN | flag::PLACEHOLDER) | damaged,
        });
        if birth != line {
            self.history.births.insert(copy.0, birth);
        }
    }

    /// A line of the base, as the fork counts files.
    fn line_of(
        &mut self,
        state: &SessionState,
        mut line: Line,
        ids: &ForkIds,
        known: &mut HashMap<SourceIx, SourceIx>,
    ) -> Line {
        line.place.source = *known.entry(line.place.source).or_insert_with(|| {
            let source: &Source = &state.sources[usize::from(line.place.source.0)];
            let ids = source.ids.as_ref().map_or_else(|| InheritedIds::of_fork(ids), |known| known.then(ids));
            self.sources.push(Source { ids: Some(ids), ..source.clone() });
            SourceIx((self.sources.len() - 1) as u16)
        });
        line
    }
}
