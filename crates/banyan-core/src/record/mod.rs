//! Records: what a session's log is made of, one JSON line each.
//!
//! A [`Record`] is written with [`encode`] and [`seal`]. Reading comes in two depths: [`Head::parse`] checks a line and
//! reads what the session tree needs, and leaves the body alone; [`parse_full`] reads everything. Whoever has just written
//! a line gets the same head from [`Head::written`], without reading it.

#![allow(clippy::result_large_err, reason = "a head is as large as a fault, so boxing faults would save nothing")]

mod blank;
mod bodies;
mod crc;
mod encode;
mod fault;
mod fields;
mod full;
mod grew;
mod head;
mod legacy;
mod newer;
mod put;
mod time;
mod written;

use banyan_model::{
    AgentMessage, AttachmentId, AttachmentMeta, CommitNo, EntryId, Json, Object, Raw, Revision, Role, Seq,
    SessionId, SessionStatus,
};
use serde::{Deserialize, Serialize};

use crate::blobs::BlobRef;
use crate::born::Born;

pub use blank::{NotBlanked, blank};
pub use bodies::whole_body;
pub use encode::{Spots, encode, seal};
pub use fault::{FaultReason, LineFault, MetadataEffect, Salvaged, SalvagedWhat};
pub use full::{Stored, StoredRecord, parse_full, parse_full_open};
pub use grew::{AddPlace, close_grew, encode_add, open_grew};
pub use head::PlainMessage;
pub use head::{GrewHead, Head, HeadKind, body_text, holds_kept_record, is_kept_record, plain_message};
pub use legacy::{LegacyEntryHead, LegacyHead, LegacyRecord};
pub(crate) use newer::needed;
pub use newer::{NewerRecord, UnknownForm, named_content};
pub use put::{Begun, EntryPut, LeafPut, MetaPut, PutBody};

/// The version that every line says first.
pub const SCHEMA_VERSION: u32 = 1;

/// What every record has besides its type and fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Which line of its session's log it is.
    pub seq: Seq,
    /// When it happened.
    pub time_ms: i64,
    /// The commit that it belongs to.
    pub commit: CommitNo,
}

/// One thing that happened to a session.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// The session began.
    Created(Created),
    /// A message was appended.
    Message(MessageRecord),
    /// A custom entry was appended.
    Custom(CustomRecord),
    /// A message was replaced.
    Updated(UpdatedRecord),
    /// A text of a message got longer.
    Grew(Grew),
    /// A message that had grown, written once more as a whole. Not news: its revision stays.
    Settled(Settled),
    /// The active leaf was set.
    LeafMoved(LeafMoved),
    /// Title, description or metadata were set.
    MetaSet(MetaSet),
    /// The status was set.
    StatusSet(StatusSet),
    /// An attachment was put.
    Attached(Attached),
    /// An attachment was deleted.
    Detached(Detached),
    /// An entry that a crash of session-manager left off the path was put on it.
    Adopted(Adopted),
    /// The file begins with things that another instance puts; there is a session once it has put a meta.
    Begun(Begun),
    /// Another instance put what the session is known by.
    MetaPut(MetaPut),
    /// Another instance put an entry.
    EntryPut(EntryPut),
    /// Another instance put the active leaf.
    LeafPut(LeafPut),
}

/// The session began, empty or as a fork.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Created {
    /// The true id, for files whose name does not tell it.
    pub session_id: SessionId,
    /// Which incarnation of the id this is.
    pub born: Born,
    /// The title.
    pub title: String,
    /// The description.
    pub description: String,
    /// What the application keeps with the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    /// Where a fork's first entries come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Base>,
}

/// Where a fork's first entries come from: the path from the root to one entry, as it was after one record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// The session forked from.
    pub session_id: SessionId,
    /// Which incarnation of it.
    pub born: Born,
    /// Its last record that counts.
    pub seq: Seq,
    /// The entry forked at, by its id there.
    pub entry_id: EntryId,
    /// How many entries the path has.
    pub entries: u64,
    /// How many of them are messages.
    pub messages: u64,
}

/// A message was appended.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageRecord {
    /// The new entry.
    pub entry_id: EntryId,
    /// What it follows.
    pub parent_id: Option<EntryId>,
    /// The message's role, so that a reader need not look inside.
    pub role: Role,
    /// Who caused it.
    pub origin: Option<Object>,
    /// Long strings that are stored elsewhere.
    pub blobs: Vec<BlobRef>,
    /// The message.
    pub message: Raw<AgentMessage>,
}

/// A custom entry was appended.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomRecord {
    /// The new entry.
    pub entry_id: EntryId,
    /// What it follows.
    pub parent_id: Option<EntryId>,
    /// Who caused it.
    pub origin: Option<Object>,
    /// Long strings that are stored elsewhere.
    pub blobs: Vec<BlobRef>,
    /// What kind of data it is.
    pub custom_type: String,
    /// The data.
    pub data: Json,
}

/// A message was replaced.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdatedRecord {
    /// The message's entry.
    pub entry_id: EntryId,
    /// Its revision from here on.
    pub revision: Revision,
    /// Who caused the update. The entry keeps the origin it was appended with.
    pub origin: Option<Object>,
    /// Long strings that are stored elsewhere.
    pub blobs: Vec<BlobRef>,
    /// The whole message.
    pub message: Raw<AgentMessage>,
}

/// A text of a message got longer, once or many times in a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Grew {
    /// The message's entry.
    pub entry_id: EntryId,
    /// Which of its blocks grew.
    pub block: u32,
    /// Its revision after the first add; each further add is one more.
    pub revision: Revision,
    /// What was added, in order. Never empty.
    pub adds: Vec<Add>,
}

/// One addition to a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Add {
    /// What was added at the end.
    pub text: String,
    /// Milliseconds since the record's time.
    pub ms_since: i64,
    /// Commits since the record's commit.
    pub commits_since: u64,
    /// Who caused it.
    pub origin: Option<Object>,
}

/// A message that had grown, written once more as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Settled {
    /// The message's entry.
    pub entry_id: EntryId,
    /// Its revision, unchanged.
    pub revision: Revision,
    /// Long strings that are stored elsewhere.
    pub blobs: Vec<BlobRef>,
    /// The whole message.
    pub message: Raw<AgentMessage>,
}

/// The active leaf was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafMoved {
    /// The leaf from here on.
    pub entry_id: EntryId,
}

/// Title, description or metadata were set; what is absent stays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetaSet {
    /// The new title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The new description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The new metadata, replacing all of the old.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
}

/// The status was set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusSet {
    /// The status from here on.
    pub status: SessionStatus,
    /// Why, kept for errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// An attachment was put.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attached {
    /// What is known about it.
    pub attachment: AttachmentMeta,
    /// The BLAKE3 hash of its content, 64 lower-case hex digits.
    pub blob: String,
}

/// An attachment was deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detached {
    /// Which one.
    pub attachment_id: AttachmentId,
}

/// An entry that a crash of session-manager left off the path was put on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adopted {
    /// Which one.
    pub entry_id: EntryId,
}

impl Record {
    /// The word in the line's `type` field.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Created(_) => "created",
            Self::Message(_) => "message",
            Self::Custom(_) => "custom",
            Self::Updated(_) => "updated",
            Self::Grew(_) => "grew",
            Self::Settled(_) => "settled",
            Self::LeafMoved(_) => "leaf-moved",
            Self::MetaSet(_) => "meta-set",
            Self::StatusSet(_) => "status-set",
            Self::Attached(_) => "attached",
            Self::Detached(_) => "detached",
            Self::Adopted(_) => "adopted",
            Self::Begun(_) => "begun",
            Self::MetaPut(_) => "meta-put",
            Self::EntryPut(_) => "entry-put",
            Self::LeafPut(_) => "leaf-put",
        }
    }
}

#[cfg(test)]
mod blank_tests;
#[cfg(test)]
mod tests;
