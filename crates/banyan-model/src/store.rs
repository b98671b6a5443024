//! What `session::store::*` takes and gives back: how one instance stores through another.
//!
//! Those up to [`PublishEventsResponse`] are session-manager's own. What follows is between two Banyans: look at a session,
//! decide, and commit if it is still as it was seen.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    AgentMessage, AttachmentId, AttachmentMeta, EntryId, Event, EventPayload, EventType, Json, Object, Raw,
    Revision, Role, Seq, SessionEntry, SessionId, SessionMeta,
};

/// Names a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionIdRequest {
    /// The session.
    pub session_id: SessionId,
}

/// Names an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EntryIdRequest {
    /// The session.
    pub session_id: SessionId,
    /// The entry.
    pub entry_id: EntryId,
}

/// Asks for what is known of every session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListMetasRequest {}

/// Replaces what is known of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PutMetaRequest {
    /// All of it. It names its session.
    pub meta: SessionMeta,
}

/// Puts an entry, new or in place of the one of the same id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PutEntryRequest {
    /// The session.
    pub session_id: SessionId,
    /// The entry.
    pub entry: SessionEntry,
}

/// It is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OkResponse {
    /// Always true.
    pub ok: bool,
}

/// What is known of every session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListMetasResponse {
    /// In no order.
    pub metas: Vec<SessionMeta>,
}

/// Every entry of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListEntriesResponse {
    /// All branches, in no order.
    pub entries: Vec<SessionEntry>,
}

/// A session's active leaf.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActiveLeafResponse {
    /// The leaf; null when there is none.
    #[serde(default)]
    pub entry_id: Option<EntryId>,
}

/// An event on its way from one instance to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventEnvelope {
    /// One of the six types of event.
    pub trigger_type: String,
    /// What subscribers of that type are told.
    pub payload: Json,
    /// The session's metadata, for filters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_metadata: Option<Object>,
}

/// Tells an instance's subscribers, and every instance that stores through it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PublishEventsRequest {
    /// The events of one call.
    pub events: Vec<EventEnvelope>,
}

/// How many events were told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PublishEventsResponse {
    /// Those that were well-formed.
    pub published: usize,
}

/// Names a state of a session: any change gives it another version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Version {
    /// Which incarnation of the id, 32 hex digits.
    pub born: String,
    /// The number that its next record gets.
    pub seq: Seq,
    /// The last commit that wrote to it.
    pub commit: u64,
}

/// Asks for what a decision about a session needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LookRequest {
    /// The session.
    pub session_id: SessionId,
    /// Entries whose place in the tree is wanted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<EntryId>,
    /// The entry whose message is wanted, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<EntryId>,
    /// The entry to fork at: the attachments that its path uses are wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork_at: Option<EntryId>,
    /// An attachment that is to be deleted, and who uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachment_id: Option<AttachmentId>,
}

/// A session as far as a decision needs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LookResponse {
    /// Names this state of the session.
    pub version: Version,
    /// The time here, in milliseconds since 1970: all who store here go by one clock.
    pub now: i64,
    /// What is known of the session; null when there is none.
    pub meta: Option<SessionMeta>,
    /// The active leaf.
    pub leaf: Option<EntryId>,
    /// Those of the entries asked for that there are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<LookedEntry>,
    /// The message that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Raw<AgentMessage>>,
    /// The attachments that were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<StoredAttachment>,
    /// An entry that uses the attachment which is to be deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_by: Option<EntryId>,
}

/// An entry's place in the tree, and what it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LookedEntry {
    /// The entry.
    pub entry_id: EntryId,
    /// What it follows.
    pub parent_id: Option<EntryId>,
    /// When it was taken.
    pub timestamp: i64,
    /// How often it has changed.
    pub revision: Revision,
    /// The role of a message. An entry without one is custom, or lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Nothing of it but its id can be read.
    #[serde(default, skip_serializing_if = "is_false")]
    pub lost: bool,
    /// How many entries come before it on its path.
    pub depth: u32,
    /// How many messages its path has, itself included.
    pub messages: u32,
    /// It was put, and is not on a path yet.
    #[serde(default, skip_serializing_if = "is_false")]
    pub uncommitted: bool,
    /// Following its parents never ends.
    #[serde(default, skip_serializing_if = "is_false")]
    pub endless: bool,
}

/// An attachment, and where its content is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoredAttachment {
    /// What is known of it.
    pub attachment: AttachmentMeta,
    /// The BLAKE3 of its content, 64 lower-case hex digits.
    pub blob: String,
}

/// Commits what was decided, if the session is still as it was seen. All of it becomes durable, or nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommitRequest {
    /// The session.
    pub session_id: SessionId,
    /// As it was seen.
    pub expected: Version,
    /// Names this commit: sent twice, it is made once.
    pub token: String,
    /// The time of all records, in milliseconds since 1970.
    pub time: i64,
    /// The records, each as the line that a session file would have, in a string so that nobody on the way rewrites it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<String>,
    /// What attachments among them contain, in standard base64 with padding.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contents: Vec<String>,
    /// A session that begins as a fork of this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<ForkCommit>,
    /// The session ends.
    #[serde(default, skip_serializing_if = "is_false")]
    pub delete: bool,
}

/// A session that begins as a fork.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForkCommit {
    /// Its id.
    pub session_id: SessionId,
    /// Its first records.
    pub records: Vec<String>,
}

/// Whether it was committed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommitResponse {
    /// False when the session has changed meanwhile; then nothing was written.
    pub committed: bool,
    /// What the session is right after the commit, or what it is instead of what was expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl EventEnvelope {
    /// What the envelope carries, and the role that filters see; `None` when it is not well-formed.
    pub fn open(&self) -> Option<(EventPayload, Option<Role>)> {
        let payload = EventPayload::read(self.trigger_type.parse().ok()?, self.payload.get())?;
        let role = payload.role()?;
        Some((payload, role))
    }
}

impl Event {
    /// The event as it goes to instances that store through this one: an [`EventEnvelope`] as one line of JSON.
    pub fn envelope(&self) -> String {
        let kind = self.event_type().as_str();
        let metadata = match &self.metadata {
            Some(metadata) => {
                format!(",\"session_metadata\":{}", serde_json::to_string(metadata.as_ref()).unwrap_or_default())
            }
            None => String::new(),
        };
        format!("{{\"trigger_type\":\"{kind}\",\"payload\":{}{metadata}}}", self.json())
    }
}

impl EventPayload {
    /// Reads a payload of this type; `None` when it is not one.
    pub fn read(event_type: EventType, text: &str) -> Option<Self> {
        Some(match event_type {
            EventType::Created => Self::Created(serde_json::from_str(text).ok()?),
            EventType::MessageAdded => Self::MessageAdded(serde_json::from_str(text).ok()?),
            EventType::MessageUpdated => Self::MessageUpdated(serde_json::from_str(text).ok()?),
            EventType::StatusChanged => Self::StatusChanged(serde_json::from_str(text).ok()?),
            EventType::MetaUpdated => Self::MetaUpdated(serde_json::from_str(text).ok()?),
            EventType::Deleted => Self::Deleted(serde_json::from_str(text).ok()?),
        })
    }

    /// The role of the message that it carries, if it carries one. Nothing at all when that is no message.
    fn role(&self) -> Option<Option<Role>> {
        let message = match self {
            Self::MessageAdded(added) if added.message.is_some() == added.custom.is_some() => return None,
            Self::MessageAdded(added) => added.message.as_ref(),
            Self::MessageUpdated(updated) => Some(&updated.message),
            _ => None,
        };
        match message {
            Some(message) => message.parse().ok().map(|message| Some(message.role())),
            None => Some(None),
        }
    }
}
