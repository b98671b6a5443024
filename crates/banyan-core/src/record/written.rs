//! The head of a line that was just written, without reading the line again.

use std::borrow::Cow;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Envelope, Head, HeadKind, LegacyEntryHead, PutBody, Record, Spots};
use crate::node_kind::NodeKind;

impl<'a> Head<'a> {
    /// What [`Head::parse`] would read from the line that `spots` came from. `None` for a `grew`, whose line may still be open.
    pub fn written(record: &'a Record, envelope: Envelope, spots: &Spots) -> Option<Self> {
        let kind = match record {
            Record::Created(created) => HeadKind::Created(Box::new(as_read(created))),
            Record::Message(message) => HeadKind::Message {
                entry_id: Cow::Borrowed(message.entry_id.as_str()),
                parent_id: message.parent_id.as_ref().map(|id| Cow::Borrowed(id.as_str())),
                role: message.role,
            },
            Record::Custom(custom) => HeadKind::Custom {
                entry_id: Cow::Borrowed(custom.entry_id.as_str()),
                parent_id: custom.parent_id.as_ref().map(|id| Cow::Borrowed(id.as_str())),
                custom_type: Cow::Borrowed(&custom.custom_type),
            },
            Record::Updated(updated) => HeadKind::Updated {
                entry_id: Cow::Borrowed(updated.entry_id.as_str()),
                revision: updated.revision,
            },
            Record::Grew(_) => return None,
            Record::Settled(settled) => HeadKind::Settled {
                entry_id: Cow::Borrowed(settled.entry_id.as_str()),
                revision: settled.revision,
            },
            Record::LeafMoved(moved) => HeadKind::LeafMoved { entry_id: Cow::Borrowed(moved.entry_id.as_str()) },
            Record::MetaSet(set) => HeadKind::MetaSet(Box::new(as_read(set))),
            Record::StatusSet(set) => HeadKind::StatusSet(set.clone()),
            Record::Attached(attached) => HeadKind::Attached(Box::new(as_read(attached))),
            Record::Detached(detached) => HeadKind::Detached(detached.clone()),
            Record::Adopted(adopted) => HeadKind::Adopted { entry_id: Cow::Borrowed(adopted.entry_id.as_str()) },
            Record::Begun(begun) => HeadKind::Begun(begun.clone()),
            Record::MetaPut(put) => HeadKind::MetaPut(Box::new(as_read(put))),
            Record::EntryPut(put) => {
                let (kind, custom_type) = match &put.body {
                    PutBody::Message { role, .. } => (NodeKind::of_role(*role), None),
                    PutBody::Custom { custom_type, .. } => (NodeKind::CustomEntry, Some(custom_type.clone())),
                };
                HeadKind::EntryPut(Box::new(LegacyEntryHead {
                    id: put.entry_id.clone(),
                    parent_id: put.parent_id.clone(),
                    timestamp: put.timestamp,
                    revision: put.revision,
                    kind,
                    custom_type,
                }))
            }
            Record::LeafPut(put) => {
                HeadKind::LeafPut { entry_id: put.entry_id.as_ref().map(|id| Cow::Borrowed(id.as_str())) }
            }
        };
        Some(Head {
            envelope: Some(envelope),
            kind,
            origin: spots.origin.clone(),
            body: spots.body.clone(),
            blobs: record.blobs().unwrap_or_default().to_vec(),
            erased: false,
        })
    }
}

/// A value as a reader of the line gets it. A caller's own numbers need not come back bit by bit.
fn as_read<T: Clone + Serialize + DeserializeOwned>(value: &T) -> T {
    let read = serde_json::to_vec(value).and_then(|text| serde_json::from_slice(&text));
    read.unwrap_or_else(|_| value.clone())
}
