//! What subscribers are told about records. Live and replayed, the same function tells it.

use std::ops::Range;
use std::sync::Arc;

use banyan_model::{
    AgentMessage, CommitNo, CreatedEvent, CustomPayload, DeletedEvent, EntryId, Error, Event, EventPayload,
    MessageAddedEvent, MessageUpdatedEvent, MetaUpdatedEvent, Object, Origin, Position, Raw, Role, Seq,
    SessionEntry, SessionId, SessionMeta, SessionStatus, StatusChangedEvent,
};

use crate::record::{Envelope, Grew, LegacyRecord, MetaPut, MetaSet, Record, StoredRecord};
use crate::state::{LiveAdd, SessionState, extend_text};

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
    /// Which additions of a line are told.
    additions: Range<usize>,
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
            additions: 0..usize::MAX,
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

    /// Tells only these additions of a line that grew. Each is told as the whole message, so all of them can be much more than
    /// the line.
    #[must_use]
    pub fn with_additions(mut self, additions: Range<usize>) -> Self {
        self.additions = additions;
        self
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
        let mut message = match self.growing.take() {
            Some((entry_id, message)) if entry_id == grew.entry_id => message,
            _ => {
                let before = Seq(envelope.seq.0.saturating_sub(1));
                match entry_as_of(&grew.entry_id, before)? {
                    SessionEntry::Message(entry) => entry.message.parse()?,
                    SessionEntry::Custom(_) => {
                        return Err(Error::storage(format!("custom entry `{}` cannot grow", grew.entry_id)));
                    }
                }
            }
        };
        let mut events = Vec::with_capacity(grew.adds.len());
        let mut revision = grew.revision;
        for (at, add) in grew.adds.iter().enumerate() {
            extend_text(&mut message, grew.block, &add.text);
            if !self.additions.contains(&at) {
                revision = revision.next();
                continue;
            }
            let payload = MessageUpdatedEvent {
                session_id: self.session_id.clone(),
                entry_id: grew.entry_id.clone(),
                message: Raw::of(&message)?,
                revision,
                origin: add.origin.clone(),
                timestamp: envelope.time_ms.saturating_add(add.ms_since),
            };
            let commit = CommitNo(envelope.commit.0.saturating_add(add.commits_since));
            let event = self.event(commit, EventPayload::MessageUpdated(payload), Some(message.role()));
            events.push(event.with_added(grew.block, &add.text));
            revision = revision.next();
        }
        self.growing = Some((grew.entry_id.clone(), message));
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
