//! A path in stretches, whole, from any place on it: what projections of a session are made of.

use banyan_core::state::{NodeIx, SessionState};
use banyan_model::{CommitNo, EntryId, Error, Position, SessionEntry, SessionId, SessionStatus};

use crate::Banyan;
use crate::bodies::{Fetched, Wanted};
use crate::damage::stand_in;
use crate::subscription::WHOLE;

/// Asks for a stretch of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRequest {
    /// The session.
    pub session_id: SessionId,
    /// The entry that the path ends in; the active leaf when there is none.
    pub leaf: Option<EntryId>,
    /// Which stretch.
    pub stretch: Stretch,
    /// How many entries at most.
    pub entries: usize,
    /// How many bytes of content at most; one entry comes whatever its size.
    pub bytes: u64,
}

/// Which entries of a path are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stretch {
    /// The last ones.
    Newest,
    /// The last ones before this entry.
    Before(EntryId),
    /// The first ones.
    Oldest,
    /// This entry and those that follow.
    From(EntryId),
    /// Those that follow this entry.
    After(EntryId),
}

/// A stretch of a path, and the session at that moment.
#[derive(Clone, Debug, PartialEq)]
pub struct PathPage {
    /// The entries, oldest first. A custom entry of type [`crate::DAMAGED`] stands in for one whose content is damaged.
    pub entries: Vec<SessionEntry>,
    /// Where to go on, when there is more: before this entry if the last ones were asked for, otherwise after it.
    pub next: Option<EntryId>,
    /// The session.
    pub session: PathState,
}

/// What a session is like at some moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathState {
    /// The active leaf.
    pub leaf: Option<EntryId>,
    /// What the session is doing.
    pub status: SessionStatus,
    /// When it last changed, in milliseconds since 1970.
    pub updated_at: i64,
    /// Names this state of the session: any change gives another name.
    pub version: String,
    /// Everything up to here has happened. A subscriber that begins after it misses nothing.
    pub position: Position,
}

/// Whether an entry is on the active path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// It is, after so many others.
    OnPath(usize),
    /// It is on another branch.
    Elsewhere,
    /// There is no such entry.
    Nowhere,
}

impl Banyan {
    /// A stretch of a path. Refused with `session/invalid_cursor` when the path does not have the entry that is named.
    pub fn path(&self, request: &PathRequest) -> Result<PathPage, Error> {
        let floor = self.store.log.history_floor();
        let planned = self.store.look(&self.access, &request.session_id, |state| {
            let (nodes, more) = plan(state, request)?;
            let wanted: Vec<Wanted> = nodes.iter().map(|ix| Wanted::of(state, *ix)).collect();
            let edge = if request.stretch.goes_back() { wanted.first() } else { wanted.last() };
            let next = edge.map(|wanted| wanted.entry_id.clone()).filter(|_| more);
            Ok((state.sources().to_vec(), wanted, next, PathState::of(state, floor)))
        })?;
        let (sources, wanted, next, session) =
            planned.unwrap_or_else(|| Err(Error::not_found(&request.session_id)))?;
        let fetched = self.store.fetch_seen(&self.access, &sources, &wanted)?;
        let entry = |(wanted, fetched): (&Wanted, Option<Fetched>)| match fetched {
            Some(fetched) => Ok(wanted.entry(fetched)),
            None => stand_in(wanted),
        };
        let entries = wanted.iter().zip(fetched).map(entry).collect::<Result<_, _>>()?;
        Ok(PathPage { entries, next, session })
    }

    /// What a session is like now, without reading any entry.
    pub fn path_state(&self, id: &SessionId) -> Result<PathState, Error> {
        let floor = self.store.log.history_floor();
        self.store.look(&self.access, id, |state| PathState::of(state, floor))?.ok_or_else(|| Error::not_found(id))
    }

    /// Where entries are, in the order of their ids, and what the session was like at that moment.
    pub fn whereabouts(
        &self,
        id: &SessionId,
        entries: &[EntryId],
    ) -> Result<(PathState, Vec<Whereabouts>), Error> {
        let floor = self.store.log.history_floor();
        let found = self.store.look(&self.access, id, |state| {
            let of = |entry: &EntryId| match state.find(entry) {
                Some(ix) if state.on_path(ix) => Whereabouts::OnPath(state.node(ix).depth() as usize),
                Some(_) => Whereabouts::Elsewhere,
                None => Whereabouts::Nowhere,
            };
            (PathState::of(state, floor), entries.iter().map(of).collect())
        })?;
        found.ok_or_else(|| Error::not_found(id))
    }
}

impl Stretch {
    fn goes_back(&self) -> bool {
        matches!(self, Self::Newest | Self::Before(_))
    }
}

impl PathState {
    /// `floor`: where the history of the directory begins.
    fn of(state: &SessionState, floor: CommitNo) -> Self {
        Self {
            leaf: state.leaf_id(),
            status: state.meta().status,
            updated_at: state.meta().updated_at,
            version: format!("{}-{:x}", state.born(), state.last_commit().0),
            position: Position::new(state.last_commit().max(floor), WHOLE),
        }
    }
}

/// The entries to read, oldest first, and whether there are more.
fn plan(state: &SessionState, request: &PathRequest) -> Result<(Vec<NodeIx>, bool), Error> {
    let chain;
    let path = match &request.leaf {
        None if state.is_cyclic() => return Err(endless(state)),
        None => state.path(),
        Some(leaf) => {
            let ix = state.find(leaf).ok_or_else(|| missing(leaf))?;
            if state.on_path(ix) {
                state.path().get(..=state.node(ix).depth() as usize).unwrap_or_default()
            } else {
                chain = state.chain(ix).ok_or_else(|| endless(state))?;
                &chain
            }
        }
    };
    let place = |id: &EntryId| {
        let at = state.find(id).map(|ix| (ix, state.node(ix).depth() as usize));
        at.filter(|(ix, at)| path.get(*at) == Some(ix)).map(|(_, at)| at).ok_or_else(|| missing(id))
    };
    let mut budget = Budget { state, entries: request.entries, bytes: request.bytes, taken: Vec::new() };
    match &request.stretch {
        Stretch::Newest | Stretch::Before(_) => {
            let end = match &request.stretch {
                Stretch::Before(id) => place(id)?,
                _ => path.len(),
            };
            let more = budget.fill(path[..end].iter().rev());
            budget.taken.reverse();
            Ok((budget.taken, more))
        }
        Stretch::Oldest => {
            let more = budget.fill(path.iter());
            Ok((budget.taken, more))
        }
        Stretch::From(id) => {
            let more = budget.fill(path[place(id)?..].iter());
            Ok((budget.taken, more))
        }
        Stretch::After(id) => {
            let more = budget.fill(path[place(id)? + 1..].iter());
            Ok((budget.taken, more))
        }
    }
}

struct Budget<'a> {
    state: &'a SessionState,
    entries: usize,
    bytes: u64,
    taken: Vec<NodeIx>,
}

impl Budget<'_> {
    /// Takes as much as it may. Whether something is left.
    fn fill<'n>(&mut self, nodes: impl Iterator<Item = &'n NodeIx>) -> bool {
        for ix in nodes.copied() {
            let node = self.state.node(ix);
            let bytes = if node.is_damaged() { 0 } else { node.weight() };
            if !self.taken.is_empty() && (self.taken.len() >= self.entries || bytes > self.bytes) {
                return true;
            }
            self.bytes = self.bytes.saturating_sub(bytes);
            self.taken.push(ix);
        }
        false
    }
}

fn missing(id: &EntryId) -> Error {
    Error::invalid_cursor(format!("entry `{id}` is not on the path being read; read the newest page again"))
}

fn endless(state: &SessionState) -> Error {
    let id = state.session_id();
    Error::storage(format!("the entries of session `{id}` follow each other in a circle; set another active leaf"))
}
