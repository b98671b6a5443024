//! Telling subscribers what was just committed.

use banyan_core::event::{self, Narrator};
use banyan_core::record::{Envelope, Record};
use banyan_core::state::{LiveAdd, SessionState};
use banyan_model::{
    CommitNo, CreatedEvent, EntryId, Error, Event, EventPayload, EventType, Position, Seq, SessionEntry,
    SessionMeta, SessionStatus,
};

use crate::bodies::Wanted;
use crate::store::Store;

/// The kind of event that a record makes, if any.
fn kind_of(record: &Record) -> Option<EventType> {
    match record {
        Record::Created(_) => Some(EventType::Created),
        Record::Message(_) | Record::Custom(_) | Record::Adopted(_) => Some(EventType::MessageAdded),
        Record::Updated(_) | Record::Grew(_) => Some(EventType::MessageUpdated),
        Record::MetaSet(_) => Some(EventType::MetaUpdated),
        Record::StatusSet(_) => Some(EventType::StatusChanged),
        Record::Settled(_) | Record::LeafMoved(_) | Record::Attached(_) | Record::Detached(_) => None,
        // Whoever puts things as they are tells of them by itself.
        Record::Begun(_) | Record::MetaPut(_) | Record::EntryPut(_) | Record::LeafPut(_) => None,
    }
}

impl Store {
    /// Tells the records of a commit; the state has them by now.
    pub(crate) fn tell(
        &self,
        state: &SessionState,
        records: &[Record],
        time_ms: i64,
        status_before: SessionStatus,
        commit: CommitNo,
    ) {
        let kinds: Vec<EventType> = records.iter().filter_map(kind_of).collect();
        let meta = state.meta();
        let metadata = state.metadata().map(AsRef::as_ref);
        self.hub.publish(commit, &meta.session_id, metadata, &kinds, || {
            let mut narrator = Narrator::of(state).with_status(status_before);
            let mut events = Vec::with_capacity(kinds.len());
            for record in records {
                let told = self.events_of(state, &mut narrator, record, time_ms, commit);
                match told {
                    Ok(told) => events.extend(told),
                    Err(error) => self.warn(&format!("session {}: {error}", meta.session_id)),
                }
            }
            events
        });
        if records.iter().any(|record| matches!(record, Record::LeafMoved(_) | Record::LeafPut(_))) {
            self.leaf_watches.moved(&meta.session_id);
        }
    }

    fn events_of(
        &self,
        state: &SessionState,
        narrator: &mut Narrator,
        record: &Record,
        time_ms: i64,
        commit: CommitNo,
    ) -> Result<Vec<Event>, Error> {
        if let Record::Grew(grew) = record
            && let Some(add) = grew.adds.first()
        {
            let live = LiveAdd {
                entry_id: &grew.entry_id,
                block: grew.block,
                revision: grew.revision,
                text: &add.text,
                time_ms,
                commit,
            };
            return Ok(vec![event::grown(state, &live, add.origin.clone())?]);
        }
        let envelope = Envelope { seq: Seq(state.next_seq().0.saturating_sub(1)), time_ms, commit };
        narrator.tell(envelope, record, &mut |id, _| self.entry(state, id))
    }

    /// An entry as it is now.
    fn entry(&self, state: &SessionState, id: &EntryId) -> Result<SessionEntry, Error> {
        let missing = || Error::entry_not_found(state.session_id(), id);
        let ix = state.find(id).ok_or_else(missing)?;
        let wanted = Wanted::of(state, ix);
        let fetched = self.fetch_one(state.sources(), &wanted)?.ok_or_else(missing)?;
        Ok(wanted.entry(fetched))
    }

    /// Tells that a fork began.
    pub(crate) fn tell_created(&self, meta: &SessionMeta, commit: CommitNo) {
        let metadata = meta.metadata.as_ref();
        self.hub.publish(commit, &meta.session_id, metadata, &[EventType::Created], || {
            let payload = EventPayload::Created(created_event(meta));
            vec![Event::new(Position::new(commit, 0), payload, None, metadata.cloned().map(std::sync::Arc::new))]
        });
    }

    /// Tells that a session ended; the state is the one before.
    pub(crate) fn tell_deleted(&self, state: &SessionState, commit: CommitNo, time_ms: i64) {
        let meta = state.meta();
        let metadata = state.metadata().map(AsRef::as_ref);
        self.hub.publish(commit, &meta.session_id, metadata, &[EventType::Deleted], || {
            vec![event::deleted(state, commit, time_ms)]
        });
    }
}

/// What subscribers are told of a session as it is.
pub(crate) fn created_event(meta: &SessionMeta) -> CreatedEvent {
    CreatedEvent {
        session_id: meta.session_id.clone(),
        title: meta.title.clone(),
        description: meta.description.clone(),
        status: meta.status,
        forked_from: meta.forked_from.clone(),
        created_at: meta.created_at,
    }
}
