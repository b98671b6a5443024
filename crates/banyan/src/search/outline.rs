//! A session as the index looks at it: what it is like, and where it has its beginning from.

use std::sync::Arc;

use banyan_core::record::Base;
use banyan_core::state::{NodeIx, Place, SessionState, Source, SourceIx};
use banyan_log::At;
use banyan_model::{CommitNo, SessionId, SessionMeta};
use banyan_search::{Labels, SessionRecord, labels_of};

use super::indexer::Trouble;
use super::session::path_to;
use crate::access::Access;
use crate::sessions::Loaded;
use crate::store::Store;

/// A way to look at a session. One that nobody uses is read without a place in memory, which those have who are used.
pub(super) struct View<'v> {
    id: &'v SessionId,
    read: Option<SessionState>,
    in_memory: bool,
}

impl<'v> View<'v> {
    pub(super) fn of(store: &Store, id: &'v SessionId) -> Result<Self, Trouble> {
        let loaded = store.sessions.peek(id);
        let in_memory = loaded.as_ref().is_some_and(|session| !matches!(*session.read(), Loaded::NotYet));
        let read = if in_memory { None } else { store.read(At::Live(id), id)?.map(|read| read.state) };
        Ok(Self { id, read, in_memory })
    }

    /// Looks at the session. `None` when there is none.
    pub(super) fn look<T>(
        &self,
        store: &Store,
        look: impl FnOnce(&SessionState) -> T,
    ) -> Result<Option<T>, Trouble> {
        if self.in_memory {
            return Ok(store.look(Access::whole(), self.id, look)?);
        }
        Ok(self.read.as_ref().filter(|state| state.exists()).map(look))
    }
}

/// What a session is like at one moment.
pub(super) struct Outline {
    pub(super) born: String,
    pub(super) meta: Arc<SessionMeta>,
    pub(super) labels: Labels,
    /// The last commit that the session's state has.
    pub(super) seen: CommitNo,
    /// What it has from another session, if it is on its active path, and as it was.
    pub(super) heritage: Option<Heritage>,
    inherited: usize,
}

/// What a fork has from its base.
pub(super) struct Heritage {
    pub(super) base: Base,
    /// Where the inherited entries are, from the root on; `None` for those that are lost.
    places: Vec<Option<Place>>,
    sources: Vec<Source>,
}

impl Outline {
    pub(super) fn of(state: &SessionState) -> Self {
        let meta = known_meta(state);
        Self {
            born: state.born().to_string(),
            labels: labels_of(meta.metadata.as_ref()),
            meta,
            seen: state.last_commit(),
            heritage: Heritage::of(state),
            inherited: state.inherited(),
        }
    }

    /// How many entries came with the fork. They are the first of the session.
    pub(super) fn inherited(&self) -> usize {
        self.inherited
    }
}

/// What a session is known by, without metadata that is in doubt.
pub(super) fn known_meta(state: &SessionState) -> Arc<SessionMeta> {
    let mut meta = Arc::clone(state.meta());
    if state.metadata_in_doubt() {
        Arc::make_mut(&mut meta).metadata = None;
    }
    meta
}

impl Heritage {
    fn of(state: &SessionState) -> Option<Self> {
        let base = state.base()?.clone();
        let last = NodeIx(u32::try_from(state.inherited().checked_sub(1)?).ok()?);
        if !state.on_path(last) {
            return None;
        }
        let mut places = Vec::with_capacity(state.inherited());
        for ix in (0..=last.0).map(NodeIx) {
            if has_grown(state, ix) || state.node(ix).place().source == SourceIx::OWN {
                return None;
            }
            places.push(place_of(state, ix));
        }
        Some(Self { base, places, sources: state.sources().to_vec() })
    }

    /// The place of the fork point on the base's path, if the base says all that was inherited: in its state, and in what
    /// the index has of it.
    pub(super) fn found_in(&self, base: &SessionState, record: &SessionRecord) -> Option<u64> {
        let point = base.find(&self.base.entry_id)?;
        let upto = base.node(point).depth();
        let path = base.path().get(..=upto as usize)?;
        if !base.on_path(point) || path.len() != self.places.len() || !was_on_path(base, record, point) {
            return None;
        }
        let is_same = |(ix, place): (&NodeIx, &Option<Place>)| {
            if has_grown(base, *ix) {
                return false;
            }
            match (place, place_of(base, *ix)) {
                (Some(here), Some(there)) => {
                    let here_in = self.sources.get(usize::from(here.source.0));
                    let there_in = base.sources().get(usize::from(there.source.0));
                    let same_file = here_in.zip(there_in).is_some_and(|(here, there)| here.is_same_file(there));
                    same_file && here.offset == there.offset
                }
                (here, there) => here.is_none() && there.is_none(),
            }
        };
        path.iter().zip(&self.places).all(is_same).then_some(u64::from(upto))
    }
}

/// Where an entry's body is; `None` when it is lost.
fn place_of(state: &SessionState, ix: NodeIx) -> Option<Place> {
    let node = state.node(ix);
    (!node.is_damaged()).then(|| node.place())
}

/// Whether an entry says more than its last full record.
fn has_grown(state: &SessionState, ix: NodeIx) -> bool {
    state.node(ix).is_grown() || state.growing().is_some_and(|growing| growing.node() == ix)
}

/// Whether an entry was on the active path when the index last looked.
fn was_on_path(state: &SessionState, record: &SessionRecord, ix: NodeIx) -> bool {
    let mut at = record.leaf.as_ref().and_then(|leaf| state.find(leaf));
    if path_to(state, at) != record.path || at.is_some_and(|leaf| state.is_endless(leaf)) {
        return false;
    }
    while let Some(deeper) = at.filter(|at| state.node(*at).depth() > state.node(ix).depth()) {
        at = state.node(deeper).parent();
    }
    at == Some(ix)
}
