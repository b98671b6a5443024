//! The lines that session-manager wrote: five types, without number, time or checksum.

use std::ops::Range;

use banyan_model::{EntryId, Revision, Role, SessionEntry, SessionMeta};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::fault::{FaultReason, LineFault};
use super::head::{Head, HeadKind, damaged};
use crate::node_kind::NodeKind;

/// A line of session-manager's, bodies included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LegacyRecord {
    /// What the session is known by, replacing all of it.
    Meta(Box<SessionMeta>),
    /// An entry, new or replacing the one of the same id.
    Entry(SessionEntry),
    /// The active leaf.
    Leaf(Option<EntryId>),
    /// An entry that is the leaf, with the meta that counts it.
    Append(SessionEntry, Box<SessionMeta>),
    /// The entry is on the path for good.
    Commit(EntryId),
}

/// A line of session-manager's, without the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LegacyHead {
    /// What the session is known by, replacing all of it.
    Meta(SessionMeta),
    /// An entry, new or replacing the one of the same id.
    Entry(LegacyEntryHead),
    /// The active leaf.
    Leaf(Option<EntryId>),
    /// An entry that is the leaf, with the meta that counts it.
    Append(LegacyEntryHead, SessionMeta),
    /// The entry is on the path for good.
    Commit(EntryId),
}

/// An entry of session-manager's, without the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegacyEntryHead {
    /// Its id.
    pub id: EntryId,
    /// What it follows.
    pub parent_id: Option<EntryId>,
    /// When it was taken.
    pub timestamp: i64,
    /// How often it has changed.
    pub revision: Revision,
    /// What it is.
    pub kind: NodeKind,
    /// The name of its type, for custom entries.
    pub custom_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum LineType {
    Meta,
    Entry,
    Leaf,
    Append,
    Commit,
}

#[derive(Deserialize)]
struct MetaLine {
    meta: SessionMeta,
}

#[derive(Deserialize)]
struct EntryLine<'a> {
    #[serde(borrow)]
    entry: EntryFields<'a>,
}

#[derive(Deserialize)]
struct WholeEntryLine {
    entry: SessionEntry,
}

#[derive(Deserialize)]
struct LeafLine {
    entry_id: Option<EntryId>,
}

#[derive(Deserialize)]
struct CommitLine {
    entry_id: EntryId,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Message,
    Custom,
}

#[derive(Deserialize)]
struct EntryFields<'a> {
    kind: Kind,
    id: EntryId,
    parent_id: Option<EntryId>,
    timestamp: i64,
    revision: Option<Revision>,
    #[serde(borrow)]
    origin: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    custom_type: Option<String>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct RoleOnly {
    role: Role,
}

/// Reads a line of session-manager's without its body.
pub(super) fn head(line: &[u8]) -> Result<Head<'static>, LineFault> {
    let text = std::str::from_utf8(line).map_err(|_| damaged(line, FaultReason::NotUtf8))?;
    read_head(text).map_err(|error| damaged(line, FaultReason::BadLegacyLine(error.to_string())))
}

/// Reads a line of session-manager's whole.
pub(super) fn record(line: &[u8]) -> Result<LegacyRecord, LineFault> {
    let text = std::str::from_utf8(line).map_err(|_| damaged(line, FaultReason::NotUtf8))?;
    read_record(text).map_err(|error| damaged(line, FaultReason::BadLegacyLine(error.to_string())))
}

fn read_record(text: &str) -> serde_json::Result<LegacyRecord> {
    let meta = || serde_json::from_str::<MetaLine>(text).map(|line| Box::new(line.meta));
    let entry = || serde_json::from_str::<WholeEntryLine>(text).map(|line| line.entry);
    Ok(match serde_json::from_str(text)? {
        LineType::Meta => LegacyRecord::Meta(meta()?),
        LineType::Entry => LegacyRecord::Entry(entry()?),
        LineType::Leaf => LegacyRecord::Leaf(serde_json::from_str::<LeafLine>(text)?.entry_id),
        LineType::Append => LegacyRecord::Append(entry()?, meta()?),
        LineType::Commit => LegacyRecord::Commit(serde_json::from_str::<CommitLine>(text)?.entry_id),
    })
}

fn read_head(text: &str) -> serde_json::Result<Head<'static>> {
    let meta = || serde_json::from_str::<MetaLine>(text).map(|line| line.meta);
    let (legacy, origin, body) = match serde_json::from_str(text)? {
        LineType::Meta => (LegacyHead::Meta(meta()?), None, None),
        LineType::Leaf => (LegacyHead::Leaf(serde_json::from_str::<LeafLine>(text)?.entry_id), None, None),
        LineType::Commit => (LegacyHead::Commit(serde_json::from_str::<CommitLine>(text)?.entry_id), None, None),
        LineType::Entry => {
            let (entry, origin, body) = entry_head(text)?;
            (LegacyHead::Entry(entry), origin, Some(body))
        }
        LineType::Append => {
            let (entry, origin, body) = entry_head(text)?;
            (LegacyHead::Append(entry, meta()?), origin, Some(body))
        }
    };
    Ok(Head {
        envelope: None,
        kind: HeadKind::Legacy(Box::new(legacy)),
        origin,
        body,
        blobs: Vec::new(),
        erased: false,
    })
}

type EntryHead = (LegacyEntryHead, Option<Range<usize>>, Range<usize>);

fn entry_head(text: &str) -> serde_json::Result<EntryHead> {
    let fields = serde_json::from_str::<EntryLine<'_>>(text)?.entry;
    let missing = serde::de::Error::missing_field;
    let (kind, body) = match fields.kind {
        Kind::Message => {
            let message = fields.message.ok_or_else(|| missing("message"))?;
            (NodeKind::of_role(serde_json::from_str::<RoleOnly>(message.get())?.role), within(text, message))
        }
        Kind::Custom => {
            fields.custom_type.as_ref().ok_or_else(|| missing("custom_type"))?;
            // Data that is left out means null, which is what an empty range is read as.
            (NodeKind::CustomEntry, fields.data.map_or(0..0, |data| within(text, data)))
        }
    };
    let entry = LegacyEntryHead {
        id: fields.id,
        parent_id: fields.parent_id,
        timestamp: fields.timestamp,
        revision: fields.revision.unwrap_or_default(),
        kind,
        custom_type: fields.custom_type,
    };
    Ok((entry, fields.origin.map(|origin| within(text, origin)), body))
}

/// Where in `text` a value that borrows from it stands.
fn within(text: &str, value: &RawValue) -> Range<usize> {
    let start = value.get().as_ptr() as usize - text.as_ptr() as usize;
    start..start + value.get().len()
}
