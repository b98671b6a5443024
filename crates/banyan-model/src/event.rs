//! What subscribers are told: six types of event, each with its payload.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event_filter::{CreatedConfig, MessageConfig, SessionConfig};
use crate::event_text::EventText;
use crate::schema::schema_of;
use crate::{
    AgentMessage, CustomPayload, EntryId, Error, Object, Position, Raw, Revision, Role, SessionId, SessionStatus,
};

/// What kind of thing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum EventType {
    /// A session came into being.
    #[serde(rename = "session::created")]
    Created,
    /// An entry was appended.
    #[serde(rename = "session::message-added")]
    MessageAdded,
    /// A message's content changed.
    #[serde(rename = "session::message-updated")]
    MessageUpdated,
    /// A session's status changed.
    #[serde(rename = "session::status-changed")]
    StatusChanged,
    /// A session's title, description or metadata was set.
    #[serde(rename = "session::meta-updated")]
    MetaUpdated,
    /// A session was deleted.
    #[serde(rename = "session::deleted")]
    Deleted,
}

impl EventType {
    /// Every type.
    pub const ALL: [Self; 6] = [
        Self::Created,
        Self::MessageAdded,
        Self::MessageUpdated,
        Self::StatusChanged,
        Self::MetaUpdated,
        Self::Deleted,
    ];

    /// The type's name, for example `session::created`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "session::created",
            Self::MessageAdded => "session::message-added",
            Self::MessageUpdated => "session::message-updated",
            Self::StatusChanged => "session::status-changed",
            Self::MetaUpdated => "session::meta-updated",
            Self::Deleted => "session::deleted",
        }
    }

    /// JSON Schema of what subscribers are told.
    pub fn payload_schema(self) -> Value {
        match self {
            Self::Created => schema_of::<CreatedEvent>(),
            Self::MessageAdded => schema_of::<MessageAddedEvent>(),
            Self::MessageUpdated => schema_of::<MessageUpdatedEvent>(),
            Self::StatusChanged => schema_of::<StatusChangedEvent>(),
            Self::MetaUpdated => schema_of::<MetaUpdatedEvent>(),
            Self::Deleted => schema_of::<DeletedEvent>(),
        }
    }

    /// JSON Schema of how a subscription can be narrowed.
    pub fn config_schema(self) -> Value {
        match self {
            Self::Created => schema_of::<CreatedConfig>(),
            Self::MessageAdded | Self::MessageUpdated => schema_of::<MessageConfig>(),
            Self::StatusChanged | Self::MetaUpdated | Self::Deleted => schema_of::<SessionConfig>(),
        }
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for EventType {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|known| known.as_str() == text).ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            Error::invalid_request(format!("there is no event type `{text}`; the types are {known}"))
        })
    }
}

/// One thing that happened, at its place in the order over all sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its place; a subscriber that comes back with it continues right after.
    pub position: Position,
    /// What subscribers are told.
    pub payload: EventPayload,
    /// Who speaks in the message that the payload carries; none for everything else. For filters.
    pub role: Option<Role>,
    /// The session's metadata as filters see it for this event; not part of the payload.
    pub metadata: Option<Arc<Object>>,
    /// What was added, when a message only grew by a text at the end of a block.
    pub added: Option<AddedText>,
    text: EventText,
}

/// A text that was added to the end of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedText {
    /// The block, counted from 0.
    pub block: u32,
    /// What was added.
    pub text: String,
    /// The revision that it was added to. An event may join several additions.
    pub after: Revision,
}

impl Event {
    /// An event with its place, and what filters look at.
    pub fn new(
        position: Position,
        payload: EventPayload,
        role: Option<Role>,
        metadata: Option<Arc<Object>>,
    ) -> Self {
        Self { position, payload, role, metadata, added: None, text: EventText::default() }
    }

    /// The same event of a message that only grew, by one addition.
    #[must_use]
    pub fn with_added(self, block: u32, text: &str) -> Self {
        self.with_joined(block, text.to_owned(), 0)
    }

    /// The same event of a message that only grew, by one addition and `others` before it, which have no events of their own.
    #[must_use]
    pub fn with_joined(mut self, block: u32, text: String, others: usize) -> Self {
        if let EventPayload::MessageUpdated(updated) = &self.payload {
            let after = Revision(updated.revision.0.saturating_sub(1 + others as u64));
            self.added = Some(AddedText { block, text, after });
        }
        self
    }

    /// The payload as one line of JSON.
    pub fn json(&self) -> &str {
        self.text.of(self).json()
    }

    /// The event as a frame of an event stream: its `id:`, `event:` and `data:`, each on a line, and an empty line.
    pub fn frame(&self) -> &Arc<str> {
        self.text.of(self).frame()
    }

    /// The same frame without its id, for a part of a snapshot.
    pub fn frame_without_id(&self) -> &str {
        self.text.of(self).frame_without_id()
    }

    /// What kind of thing happened.
    pub fn event_type(&self) -> EventType {
        self.payload.event_type()
    }

    /// The session that it happened to.
    pub fn session_id(&self) -> &SessionId {
        self.payload.session_id()
    }
}

/// What subscribers are told, by type. Serialises as the payload alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum EventPayload {
    /// A session came into being.
    Created(CreatedEvent),
    /// An entry was appended.
    MessageAdded(MessageAddedEvent),
    /// A message's content changed.
    MessageUpdated(MessageUpdatedEvent),
    /// A session's status changed.
    StatusChanged(StatusChangedEvent),
    /// A session's title, description or metadata was set.
    MetaUpdated(MetaUpdatedEvent),
    /// A session was deleted.
    Deleted(DeletedEvent),
}

impl EventPayload {
    /// What kind of thing happened.
    pub fn event_type(&self) -> EventType {
        match self {
            Self::Created(_) => EventType::Created,
            Self::MessageAdded(_) => EventType::MessageAdded,
            Self::MessageUpdated(_) => EventType::MessageUpdated,
            Self::StatusChanged(_) => EventType::StatusChanged,
            Self::MetaUpdated(_) => EventType::MetaUpdated,
            Self::Deleted(_) => EventType::Deleted,
        }
    }

    /// The session that it happened to.
    pub fn session_id(&self) -> &SessionId {
        match self {
            Self::Created(event) => &event.session_id,
            Self::MessageAdded(event) => &event.session_id,
            Self::MessageUpdated(event) => &event.session_id,
            Self::StatusChanged(event) => &event.session_id,
            Self::MetaUpdated(event) => &event.session_id,
            Self::Deleted(event) => &event.session_id,
        }
    }
}

/// A session came into being: created, ensured or forked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CreatedEvent {
    /// The new session.
    pub session_id: SessionId,
    /// Its title.
    pub title: String,
    /// Its description.
    pub description: String,
    /// Its status.
    pub status: SessionStatus,
    /// The session that it was forked from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<SessionId>,
    /// When it was created, in milliseconds since 1970.
    pub created_at: i64,
}

/// An entry was appended. It carries either a message or custom data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessageAddedEvent {
    /// The session.
    pub session_id: SessionId,
    /// The new entry.
    pub entry_id: EntryId,
    /// The entry that it follows; null at a root.
    pub parent_id: Option<EntryId>,
    /// The message, when the entry holds one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Raw<AgentMessage>>,
    /// The application's own data, when the entry holds that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom: Option<CustomPayload>,
    /// Where it came from, in the caller's own form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Object>,
    /// When the store took the entry, in milliseconds since 1970.
    pub timestamp: i64,
}

/// A message's content changed. Of several, the one with the highest revision is the newest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessageUpdatedEvent {
    /// The session.
    pub session_id: SessionId,
    /// The entry that holds the message.
    pub entry_id: EntryId,
    /// The whole message, as it is now.
    pub message: Raw<AgentMessage>,
    /// How often the content has changed.
    pub revision: Revision,
    /// Where the change came from, in the caller's own form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Object>,
    /// When it changed, in milliseconds since 1970.
    pub timestamp: i64,
}

/// A session's status changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatusChangedEvent {
    /// The session.
    pub session_id: SessionId,
    /// The status that it has now.
    pub status: SessionStatus,
    /// The status that it had before.
    pub previous_status: SessionStatus,
    /// Why it is in this status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_reason: Option<String>,
    /// When it changed, in milliseconds since 1970.
    pub timestamp: i64,
}

/// A session's title, description or metadata was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MetaUpdatedEvent {
    /// The session.
    pub session_id: SessionId,
    /// Its title now.
    pub title: String,
    /// Its description now.
    pub description: String,
    /// Its metadata now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    /// When it was set, in milliseconds since 1970.
    pub timestamp: i64,
}

/// A session was deleted, with everything in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeletedEvent {
    /// The session.
    pub session_id: SessionId,
    /// When it was deleted, in milliseconds since 1970.
    pub timestamp: i64,
}
