//! Reading a line whole, for those who need the body: replays of events, and readers of one entry.

use banyan_model::{EntryId, Json, Object, Origin, Raw};

use super::fault::{FaultReason, LineFault};
use super::grew::AddOf;
use super::head::{Head, HeadKind, body_text, without_line_feed};
use super::legacy::{self, LegacyRecord};
use super::newer::NewerRecord;
use super::{
    Add, Adopted, CustomRecord, EntryPut, Envelope, Grew, LeafMoved, LeafPut, MessageRecord, PutBody, Record,
    Settled, UpdatedRecord,
};

/// A line, read whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Number, time and commit. Lines of session-manager have none.
    pub envelope: Option<Envelope>,
    /// What the line says.
    pub record: StoredRecord,
}

/// What a line says.
#[derive(Clone, Debug, PartialEq)]
pub enum StoredRecord {
    /// A record of ours.
    Own(Record),
    /// A record of session-manager's.
    Legacy(LegacyRecord),
    /// A record of which nothing is left but its number and place.
    Erased,
    /// A type that is not known here.
    Unknown(String),
    /// A record that is not known here and may not be skipped.
    Newer(NewerRecord),
}

/// Checks and reads a line, with or without its line feed. Blobs stay where they are.
pub fn parse_full(line: &[u8]) -> Result<Stored, LineFault> {
    let line = without_line_feed(line);
    whole(line, Head::parse(line)?, "")
}

/// Reads a `grew` line that is still open, so that nothing vouches for its bytes.
pub fn parse_full_open(line: &[u8]) -> Result<Stored, LineFault> {
    whole(line, Head::parse_open(line)?, "]")
}

fn whole(line: &[u8], head: Head<'_>, closing: &str) -> Result<Stored, LineFault> {
    let envelope = head.envelope;
    let bad_body = |type_name: &str, field| LineFault {
        reason: FaultReason::BadField { type_name: type_name.to_owned(), field },
        salvage: None,
    };
    let message = |type_name| {
        let text = body_text(line, &head).unwrap_or_default().to_owned();
        Raw::from_text(text).map_err(|_| bad_body(type_name, "message"))
    };
    let origin = head.origin(line);
    let object = || origin.as_ref().map(Origin::object);
    let blobs = head.blobs.clone();
    let own = match &head.kind {
        HeadKind::Message { entry_id, parent_id, role } => Record::Message(MessageRecord {
            entry_id: id(entry_id),
            parent_id: parent_id.as_deref().map(id),
            role: *role,
            origin: object(),
            blobs,
            message: message("message")?,
        }),
        HeadKind::Custom { entry_id, parent_id, custom_type } => Record::Custom(CustomRecord {
            entry_id: id(entry_id),
            parent_id: parent_id.as_deref().map(id),
            origin: object(),
            blobs,
            custom_type: custom_type.to_string(),
            data: Json::from_text(body_text(line, &head).unwrap_or_default())
                .map_err(|_| bad_body("custom", "data"))?,
        }),
        HeadKind::Updated { entry_id, revision } => Record::Updated(UpdatedRecord {
            entry_id: id(entry_id),
            revision: *revision,
            origin: object(),
            blobs,
            message: message("updated")?,
        }),
        HeadKind::Settled { entry_id, revision } => Record::Settled(Settled {
            entry_id: id(entry_id),
            revision: *revision,
            blobs,
            message: message("settled")?,
        }),
        HeadKind::Grew(grew) => Record::Grew(Grew {
            entry_id: id(&grew.entry_id),
            block: grew.block,
            revision: grew.revision,
            adds: adds(body_text(line, &head).unwrap_or_default(), closing)
                .ok_or_else(|| bad_body("grew", "adds"))?,
        }),
        HeadKind::LeafMoved { entry_id } => Record::LeafMoved(LeafMoved { entry_id: id(entry_id) }),
        HeadKind::Adopted { entry_id } => Record::Adopted(Adopted { entry_id: id(entry_id) }),
        HeadKind::Created(created) => Record::Created(created.as_ref().clone()),
        HeadKind::MetaSet(set) => Record::MetaSet(set.as_ref().clone()),
        HeadKind::StatusSet(set) => Record::StatusSet(set.clone()),
        HeadKind::Attached(attached) => Record::Attached(attached.as_ref().clone()),
        HeadKind::Detached(detached) => Record::Detached(detached.clone()),
        HeadKind::Begun(begun) => Record::Begun(begun.clone()),
        HeadKind::MetaPut(put) => Record::MetaPut(put.as_ref().clone()),
        HeadKind::LeafPut { entry_id } => Record::LeafPut(LeafPut { entry_id: entry_id.as_deref().map(id) }),
        HeadKind::EntryPut(entry) => Record::EntryPut(EntryPut {
            entry_id: entry.id.clone(),
            parent_id: entry.parent_id.clone(),
            timestamp: entry.timestamp,
            revision: entry.revision,
            origin,
            blobs,
            body: match entry.kind.role() {
                Some(role) => PutBody::Message { role, message: message("entry-put")? },
                None => PutBody::Custom {
                    custom_type: entry.custom_type.clone().unwrap_or_default(),
                    data: Json::from_text(body_text(line, &head).unwrap_or_default())
                        .map_err(|_| bad_body("entry-put", "data"))?,
                },
            },
        }),
        HeadKind::Legacy(_) => {
            return Ok(Stored { envelope, record: StoredRecord::Legacy(legacy::record(line)?) });
        }
        HeadKind::Unknown(name) => {
            return Ok(Stored { envelope, record: StoredRecord::Unknown(name.to_string()) });
        }
        HeadKind::Erased => return Ok(Stored { envelope, record: StoredRecord::Erased }),
        HeadKind::Newer(newer) => {
            return Ok(Stored { envelope, record: StoredRecord::Newer(newer.as_ref().clone()) });
        }
    };
    Ok(Stored { envelope, record: StoredRecord::Own(own) })
}

fn id(text: &str) -> EntryId {
    EntryId::from(text)
}

fn adds(list: &str, closing: &str) -> Option<Vec<Add>> {
    let list: Vec<AddOf<String, Object>> = serde_json::from_str(&format!("{list}{closing}")).ok()?;
    let add = |add: AddOf<String, Object>| Add {
        text: add.text,
        ms_since: add.ms_since,
        commits_since: add.commits_since,
        origin: add.origin,
    };
    Some(list.into_iter().map(add).collect())
}
