//! One session as it is, told as events, some at a time.

use std::collections::VecDeque;
use std::sync::Arc;

use banyan_core::event;
use banyan_core::state::{NodeIx, Source};
use banyan_model::{
    CommitNo, Error, ErrorCode, Event, EventPayload, MessageUpdatedEvent, Object, Origin, Position, Revision,
    SessionEntry, SessionId,
};

use crate::access::Access;
use crate::bodies::Wanted;
use crate::store::Store;
use crate::tell::created_event;

/// A session as it was after a commit. What its entries say is read when it is told: a subscriber that reads slowly does not
/// hold a whole session.
pub(crate) struct Snapshot {
    pub(crate) commit: CommitNo,
    session: SessionId,
    access: Arc<Access>,
    sources: Vec<Source>,
    created: Option<Event>,
    metadata: Option<Arc<Object>>,
    wanted: VecDeque<Wanted>,
}

/// How many entries are told at a time, and about how many bytes.
const AT_ONCE: usize = 256;
const BYTES_AT_ONCE: usize = 1 << 20;

impl Store {
    /// A snapshot of a session, `None` when there is no such session in the scope.
    pub(crate) fn snapshot(&self, access: &Arc<Access>, id: &SessionId) -> Result<Option<Snapshot>, Error> {
        self.look(access, id, |state| {
            let payload = EventPayload::Created(created_event(state.meta()));
            Snapshot {
                commit: state.last_commit().max(self.log.history_floor()),
                session: id.clone(),
                access: Arc::clone(access),
                sources: state.sources().to_vec(),
                created: Some(Event::new(Position::BEGINNING, payload, None, state.metadata().cloned())),
                metadata: state.metadata().cloned(),
                wanted: (0..state.nodes().len() as u32).map(|ix| Wanted::of(state, NodeIx(ix))).collect(),
            }
        })
    }

    /// The next parts of a snapshot, `None` when there are no more. A session that ended meanwhile has none.
    pub(crate) fn more_of_snapshot(&self, snapshot: &mut Snapshot) -> Result<Option<Vec<Event>>, Error> {
        if let Some(created) = snapshot.created.take() {
            return Ok(Some(vec![created]));
        }
        let is_there = |own: &Source| {
            self.look(Access::whole(), &own.session_id, |state| state.born() == own.born)
                .map(|is| is == Some(true))
        };
        if snapshot.wanted.is_empty() || !snapshot.sources.first().map_or(Ok(false), is_there)? {
            return Ok(None);
        }
        let mut bytes = 0;
        let mut wanted = Vec::new();
        while wanted.len() < AT_ONCE
            && bytes < BYTES_AT_ONCE
            && let Some(next) = snapshot.wanted.pop_front()
        {
            bytes += next.bytes();
            wanted.push(next);
        }
        let mut events = Vec::new();
        let fetched = match self.fetch_seen(&snapshot.access, &snapshot.sources, &wanted) {
            // The session ended while it was read.
            Err(error) if error.code == ErrorCode::NotFound => return Ok(None),
            fetched => fetched?,
        };
        for (wanted, fetched) in wanted.iter().zip(fetched) {
            let Some(fetched) = fetched else { continue };
            let entry = wanted.entry(fetched);
            let updated = updated_event(&snapshot.session, &entry);
            let (added, role) = event::added(snapshot.session.clone(), entry)?;
            let payloads = [Some(added), updated].into_iter().flatten();
            let metadata = &snapshot.metadata;
            events
                .extend(payloads.map(|payload| Event::new(Position::BEGINNING, payload, role, metadata.clone())));
        }
        Ok(Some(events))
    }
}

/// For a message that has changed: its revision, so that a later update is not taken for an older one.
fn updated_event(session: &SessionId, entry: &SessionEntry) -> Option<EventPayload> {
    let SessionEntry::Message(entry) = entry else { return None };
    (entry.revision > Revision(0)).then(|| {
        EventPayload::MessageUpdated(MessageUpdatedEvent {
            session_id: session.clone(),
            entry_id: entry.id.clone(),
            message: entry.message.clone(),
            revision: entry.revision,
            origin: entry.origin.as_ref().map(Origin::object),
            timestamp: entry.timestamp,
        })
    })
}
