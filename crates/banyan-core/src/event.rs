//! What subscribers are told about records. Live and replayed, the same function tells it.

mod growth;

use std::sync::Arc;

use banyan_model::{
    AgentMessage, CommitNo, CreatedEvent, CustomPayload, DeletedEvent, EntryId, Error, Event, EventPayload,
    MessageAddedEvent, MessageUpdatedEvent, MetaUpdatedEvent, Object, Origin, Position, Raw, Role, Seq,
    SessionEntry, SessionId, SessionMeta, SessionStatus, StatusChangedEvent,
};

use crate::record::{Envelope, Grew, LegacyRecord, MetaPut, MetaSet, Record, StoredRecord};
use crate::state::{LiveAdd, SessionState};

pub use growth::GrowthNarrator;

/// Reads an entry, whole, as it was after a record. Only asked for texts that were added, and for adopted entries.
pub type EntryAsOf<'a> = dyn FnMut(&EntryId, Seq) -> Result<SessionEntry, Error> + 'a;

/// Tells a session's records as events, in order. It knows what the session is known by at each of them.
#[derive(Clone, Debug)]
pub struct Narrator {
    session_id: SessionId,
    title: String,
    description: String,
    metadata: Option<Arc<Object>>,
    status: SessionStatus,
    growing: Option<(EntryId, AgentMessage)>,
    last: Position,
    told_any: bool,
}

impl Narrator {
    /// A narrator for a session's first record.
    pub fn new(session_id: SessionId) -> Self {
        Self {
            session_id,
            title: String::new(),
            description: String::new(),
            metadata: None,
            status: SessionStatus::Idle,
            growing: None,
            last: Position::BEGINNING,
            told_any: false,
        }
    }

    /// A narrator for what is committed next to a session that is like this now.
    pub fn of(state: &SessionState) -> Self {
        let meta = state.meta();
        Self {
            title: meta.title.clone(),
            description: meta.description.clone(),
            metadata: state.metadata().cloned(),
            status: meta.status,
            ..Self::new(state.session_id().clone())
        }
    }

    /// Sets the status that the session had before the first record to tell, see [`SessionState::status_before`].
    #[must_use]
    pub fn with_status(mut self, status: SessionStatus) -> Self {
        self.status = status;
        self
    }

    /// A narrator of one line's additions. `before` is the message without them.
    pub fn growth(&self, envelope: Envelope, grew: Grew, before: AgentMessage) -> GrowthNarrator {
        let (session_id, metadata) = (self.session_id.clone(), self.metadata.clone());
        GrowthNarrator { session_id, metadata, envelope, grew, message: before, next: 0 }
    }

    /// Takes the message of an entry that grew in the records told last, if it is known.
    pub fn take_growing(&mut self, entry_id: &EntryId) -> Option<AgentMessage> {
        self.growing.take().filter(|(growing, _)| growing == entry_id).map(|(_, message)| message)
    }

    /// Keeps the message of an entry that grew in the record told last.
    pub fn keep_growing(&mut self, growth: GrowthNarrator) {
        self.growing = Some((growth.entry_id().clone(), growth.into_message()));
    }

    /// The metadata as it is after the records told so far.
    pub fn metadata(&self) -> Option<&Arc<Object>> {
        self.metadata.as_ref()
    }

    /// Learns title, description and metadata from a record that is not to be told, see [`SessionState::metas_before`].
    pub fn learn(&mut self, record: &StoredRecord) {
        match record {
            StoredRecord::Own(Record::Created(created)) => {
                self.title.clone_from(&created.title);
                self.description.clone_from(&created.description);
                self.metadata = created.metadata.clone().map(Arc::new);
            }
            StoredRecord::Own(Record::MetaSet(set)) => self.set_meta(set),
            StoredRecord::Own(Record::MetaPut(MetaPut { meta })) => self.put_meta(meta),
            StoredRecord::Legacy(LegacyRecord::Meta(meta) | LegacyRecord::Append(_, meta)) => self.put_meta(meta),
            StoredRecord::Own(_)
            | StoredRecord::Legacy(_)
            | StoredRecord::Erased
            | StoredRecord::Unknown(_)
            | StoredRecord::Newer(_) => {}
        }
    }

    /// Tells one record, with its blobs put back. A commit must be told from its first record on.
    pub fn tell(
        &mut self,
        envelope: Envelope,
        record: &Record,
        entry_as_of: &mut EntryAsOf<'_>,
    ) -> Result<Vec<Event>, Error> {
        let timestamp = envelope.time_ms;
        let session_id = self.session_id.clone();
        let (payload, role) = match record {
            Record::Created(created) => {
                self.learn(&StoredRecord::Own(record.clone()));
                let payload = CreatedEvent {
                    session_id,
                    title: created.title.clone(),
                    description: created.description.clone(),
                    status: SessionStatus::Idle,
                    forked_from: created.base.as_ref().map(|base| base.session_id.clone()),
                    created_at: timestamp,
                };
                (EventPayload::Created(payload), None)
            }
            Record::Message(added) => {
                let payload = MessageAddedEvent {
                    session_id,
                    entry_id: added.entry_id.clone(),
                    parent_id: added.parent_id.clone(),
                    message: Some(added.message.clone()),
                    custom: None,
                    origin: added.origin.clone(),
                    timestamp,
                };
                (EventPayload::MessageAdded(payload), Some(added.role))
            }
            Record::Custom(added) => {
                let custom = CustomPayload { custom_type: added.custom_type.clone(), data: added.data.clone() };
                let payload = MessageAddedEvent {
                    session_id,
                    entry_id: added.entry_id.clone(),
                    parent_id: added.parent_id.clone(),
                    message: None,
                    custom: Some(custom),
                    origin: added.origin.clone(),
                    timestamp,
                };
                (EventPayload::MessageAdded(payload), None)
            }
            Record::Updated(updated) => {
                self.growing = None;
                let role = Some(role_of(&updated.message)?);
                let payload = MessageUpdatedEvent {
                    session_id,
                    entry_id: updated.entry_id.clone(),
                    message: updated.message.clone(),
                    revision: updated.revision,
                    origin: updated.origin.clone(),
                    timestamp,
                };
                (EventPayload::MessageUpdated(payload), role)
            }
            Record::Grew(grew) => return self.tell_growth(envelope, grew, entry_as_of),
            Record::Adopted(adopted) => added(session_id, entry_as_of(&adopted.entry_id, envelope.seq)?)?,
            Record::MetaSet(set) => {
                self.set_meta(set);
                let payload = MetaUpdatedEvent {
                    session_id,
                    title: self.title.clone(),
                    description: self.description.clone(),
                    metadata: self.metadata.as_deref().cloned(),
                    timestamp,
                };
                (EventPayload::MetaUpdated(payload), None)
            }
            Record::StatusSet(set) => {
                let previous_status = std::mem::replace(&mut self.status, set.status);
                let payload = StatusChangedEvent {
                    session_id,
                    status: set.status,
                    previous_status,
                    status_reason: set.reason.clone(),
                    timestamp,
                };
                (EventPayload::StatusChanged(payload), None)
            }
            Record::Settled(_) => {
                self.growing = None;
                return Ok(Vec::new());
            }
            Record::LeafMoved(_) | Record::Attached(_) | Record::Detached(_) => return Ok(Vec::new()),
            // Whoever puts things as they are tells of them by itself.
            Record::MetaPut(MetaPut { meta }) => {
                self.put_meta(meta);
                self.status = meta.status;
                return Ok(Vec::new());
            }
            Record::EntryPut(_) => {
                self.growing = None;
                return Ok(Vec::new());
            }
            Record::Begun(_) | Record::LeafPut(_) => return Ok(Vec::new()),
        };
        Ok(vec![self.event(envelope.commit, payload, role)])
    }

    fn tell_growth(
        &mut self,
        envelope: Envelope,
        grew: &Grew,
        entry_as_of: &mut EntryAsOf<'_>,
    ) -> Result<Vec<Event>, Error> {
        let before = match self.take_growing(&grew.entry_id) {
            Some(message) => message,
            None => match entry_as_of(&grew.entry_id, Seq(envelope.seq.0.saturating_sub(1)))? {
                SessionEntry::Message(entry) => entry.message.parse()?,
                SessionEntry::Custom(_) => {
                    return Err(Error::storage(format!("custom entry `{}` cannot grow", grew.entry_id)));
                }
            },
        };
        let mut growth = self.growth(envelope, grew.clone(), before);
        let mut events = Vec::with_capacity(grew.adds.len());
        for index in 0..grew.adds.len() {
            events.extend(growth.tell_through(index)?);
        }
        if let Some(event) = events.last() {
            (self.last, self.told_any) = (event.position, true);
        }
        self.keep_growing(growth);
        Ok(events)
    }

    fn put_meta(&mut self, meta: &SessionMeta) {
        self.title.clone_from(&meta.title);
        self.description.clone_from(&meta.description);
        self.metadata = meta.metadata.clone().map(Arc::new);
    }

    fn set_meta(&mut self, set: &MetaSet) {
        if let Some(title) = &set.title {
            self.title.clone_from(title);
        }
        if let Some(description) = &set.description {
            self.description.clone_from(description);
        }
        if let Some(metadata) = &set.metadata {
            self.metadata = Some(Arc::new(metadata.clone()));
        }
    }

    fn event(&mut self, commit: CommitNo, payload: EventPayload, role: Option<Role>) -> Event {
        let index = if self.told_any && self.last.commit == commit { self.last.index + 1 } else { 0 };
        self.last = Position::new(commit, index);
        self.told_any = true;
        Event::new(self.last, payload, role, self.metadata.clone())
    }
}

/// The event of a text that was added just now, once the state has taken it in.
pub fn grown(state: &SessionState, add: &LiveAdd<'_>, origin: Option<Object>) -> Result<Event, Error> {
    let message = state.growing().and_then(|growing| growing.message()).ok_or_else(|| {
        Error::storage(format!("the message of entry `{}` has grown, and was not read", add.entry_id))
    })?;
    let payload = MessageUpdatedEvent {
        session_id: state.session_id().clone(),
        entry_id: add.entry_id.clone(),
        message: Raw::of(message)?,
        revision: add.revision,
        origin,
        timestamp: add.time_ms,
    };
    let (position, payload) = (Position::new(add.commit, 0), EventPayload::MessageUpdated(payload));
    let event = Event::new(position, payload, Some(message.role()), state.metadata().cloned());
    Ok(event.with_added(add.block, add.text))
}

/// The event of a session that was deleted just now; the state is the one before.
pub fn deleted(state: &SessionState, commit: CommitNo, now_ms: i64) -> Event {
    let payload = DeletedEvent { session_id: state.session_id().clone(), timestamp: now_ms };
    Event::new(Position::new(commit, 0), EventPayload::Deleted(payload), None, state.metadata().cloned())
}

/// What subscribers are told of an entry that is new to them, and the role that filters see.
pub fn added(session_id: SessionId, entry: SessionEntry) -> Result<(EventPayload, Option<Role>), Error> {
    let (entry_id, parent_id, timestamp) = (entry.id().clone(), entry.parent_id().cloned(), entry.timestamp());
    let origin = entry.origin().map(Origin::object);
    let (message, custom) = match entry {
        SessionEntry::Message(entry) => (Some(entry.message), None),
        SessionEntry::Custom(entry) => {
            (None, Some(CustomPayload { custom_type: entry.custom_type, data: entry.data }))
        }
    };
    let role = message.as_ref().map(role_of).transpose()?;
    let payload = MessageAddedEvent { session_id, entry_id, parent_id, message, custom, origin, timestamp };
    Ok((EventPayload::MessageAdded(payload), role))
}

fn role_of(message: &Raw<AgentMessage>) -> Result<Role, Error> {
    #[derive(serde::Deserialize)]
    struct RoleOnly {
        role: Role,
    }
    serde_json::from_str::<RoleOnly>(message.get())
        .map(|message| message.role)
        .map_err(|error| Error::storage(format!("a stored message has no role: {error}")))
}

#[cfg(test)]
mod tests;
