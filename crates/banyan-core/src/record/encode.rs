//! Writing records as lines.

use std::borrow::Cow;
use std::ops::Range;

use banyan_model::{CommitNo, EntryId, Object, Seq};
use serde::Serialize;

use super::{PutBody, Record, SCHEMA_VERSION, crc, grew, time};
use crate::blobs::BlobRef;
use crate::hex;

/// The commit field before its number is given. Fixed width, so that it can be filled in place.
const NO_COMMIT: &[u8; 12] = b"000000000000";

/// From the end of the number to the digits of the commit, both fields before them having a fixed width.
const SEQ_TO_COMMIT: usize = r#","time":"2026-11-15T20:30:00.123Z","commit":""#.len();

/// Where in a line that was just written its two larger parts stand, counted from the line's first byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spots {
    pub(super) origin: Option<Range<usize>>,
    pub(super) body: Option<Range<usize>>,
}

/// Appends the line of a record, all but its commit number and checksum, which [`seal`] adds.
pub fn encode(record: &Record, seq: Seq, time_ms: i64, out: &mut Vec<u8>) -> Spots {
    let start = out.len();
    head(record.type_name(), seq, time_ms, out);
    let mut spots = Spots::default();
    match record {
        Record::Created(created) => {
            field("session_id", &created.session_id, out);
            field("born", &created.born, out);
            field("title", &created.title, out);
            field("description", &created.description, out);
            optional("metadata", created.metadata.as_ref(), out);
            optional("base", created.base.as_ref(), out);
        }
        Record::Message(message) => {
            entry(&message.entry_id, message.parent_id.as_ref(), out);
            field("role", &message.role, out);
            spots.origin = context(message.origin.as_ref(), &message.blobs, out);
            spots.body = Some(verbatim("message", message.message.get(), out));
        }
        Record::Custom(custom) => {
            entry(&custom.entry_id, custom.parent_id.as_ref(), out);
            spots.origin = context(custom.origin.as_ref(), &custom.blobs, out);
            field("custom_type", &custom.custom_type, out);
            spots.body = Some(verbatim("data", custom.data.get(), out));
        }
        Record::Updated(updated) => {
            field("entry_id", &updated.entry_id, out);
            field("revision", &updated.revision, out);
            spots.origin = context(updated.origin.as_ref(), &updated.blobs, out);
            spots.body = Some(verbatim("message", updated.message.get(), out));
        }
        Record::Grew(grew) => {
            grew::fields(grew, out);
            grew::adds(&grew.adds, out);
            out.push(b']');
        }
        Record::Settled(settled) => {
            field("entry_id", &settled.entry_id, out);
            field("revision", &settled.revision, out);
            context(None::<&Object>, &settled.blobs, out);
            spots.body = Some(verbatim("message", settled.message.get(), out));
        }
        Record::LeafMoved(moved) => field("entry_id", &moved.entry_id, out),
        Record::MetaSet(set) => {
            optional("title", set.title.as_ref(), out);
            optional("description", set.description.as_ref(), out);
            optional("metadata", set.metadata.as_ref(), out);
        }
        Record::StatusSet(set) => {
            field("status", &set.status, out);
            optional("reason", set.reason.as_ref(), out);
        }
        Record::Attached(attached) => {
            field("attachment", &attached.attachment, out);
            field("blob", &attached.blob, out);
        }
        Record::Detached(detached) => field("attachment_id", &detached.attachment_id, out),
        Record::Adopted(adopted) => field("entry_id", &adopted.entry_id, out),
        Record::Begun(begun) => {
            field("session_id", &begun.session_id, out);
            field("born", &begun.born, out);
            optional("import", begun.import.then_some(&true), out);
        }
        Record::MetaPut(put) => field("meta", &put.meta, out),
        Record::EntryPut(put) => {
            entry(&put.entry_id, put.parent_id.as_ref(), out);
            field("timestamp", &put.timestamp, out);
            field("revision", &put.revision, out);
            match &put.body {
                PutBody::Message { role, message } => {
                    field("role", role, out);
                    spots.origin = context(put.origin.as_ref(), &put.blobs, out);
                    spots.body = Some(verbatim("message", message.get(), out));
                }
                PutBody::Custom { custom_type, data } => {
                    spots.origin = context(put.origin.as_ref(), &put.blobs, out);
                    field("custom_type", custom_type, out);
                    spots.body = Some(verbatim("data", data.get(), out));
                }
            }
        }
        Record::LeafPut(put) => field("entry_id", &put.entry_id, out),
    }
    let from_start = |spot: Range<usize>| spot.start - start..spot.end - start;
    Spots { origin: spots.origin.map(from_start), body: spots.body.map(from_start) }
}

/// Fills in the commit number of the line that begins at `line_start` and ends where `out` does, and closes the line.
pub fn seal(out: &mut Vec<u8>, line_start: usize, commit: CommitNo) {
    let line = &mut out[line_start..];
    set_commit(line, commit);
    let tail = crc::tail(line);
    out.extend_from_slice(&tail);
}

/// Writes everything that comes before the fields of a type.
pub(super) fn head(type_name: &str, seq: Seq, time_ms: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"schema_version\":");
    json(&SCHEMA_VERSION, out);
    field("seq", &seq, out);
    out.extend_from_slice(b",\"time\":\"");
    out.extend_from_slice(&time::to_text(time_ms));
    out.extend_from_slice(b"\",\"commit\":\"");
    out.extend_from_slice(NO_COMMIT);
    out.extend_from_slice(b"\",\"type\":\"");
    out.extend_from_slice(type_name.as_bytes());
    out.push(b'"');
}

/// Fills in the commit number of one line.
pub(super) fn set_commit(line: &mut [u8], commit: CommitNo) {
    // The first comma ends the version, the second the number.
    let digits = memchr::memchr_iter(b',', line).nth(1).map(|seq_end| seq_end + SEQ_TO_COMMIT);
    if let Some(digits) = digits.and_then(|start| line.get_mut(start..start + NO_COMMIT.len())) {
        digits.copy_from_slice(&hex::digits::<{ NO_COMMIT.len() }>(commit.0));
    }
}

/// Writes one field.
pub(super) fn field(key: &str, value: &impl Serialize, out: &mut Vec<u8>) {
    push_key(key, out);
    json(value, out);
}

/// Writes any value that cannot fail to serialise: strings, numbers, and maps with strings for keys.
pub(super) fn json(value: &impl Serialize, out: &mut Vec<u8>) {
    if serde_json::to_writer(&mut *out, value).is_err() {
        unreachable!("record fields are strings, numbers, lists and maps with strings for keys");
    }
}

/// Writes `,"key":`.
pub(super) fn push_key(key: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\":");
}

/// JSON text on one line: line breaks can only be white space between its tokens, so they are left out.
fn one_line(json: &str) -> Cow<'_, str> {
    match memchr::memchr2(b'\n', b'\r', json.as_bytes()) {
        Some(_) => Cow::Owned(json.replace(['\n', '\r'], "")),
        None => Cow::Borrowed(json),
    }
}

fn optional<T: Serialize>(key: &str, value: Option<&T>, out: &mut Vec<u8>) {
    if let Some(value) = value {
        field(key, value, out);
    }
}

fn entry(entry_id: &EntryId, parent_id: Option<&EntryId>, out: &mut Vec<u8>) {
    field("entry_id", entry_id, out);
    field("parent_id", &parent_id, out);
}

/// Says where in `out` the origin stands.
fn context(origin: Option<&impl Serialize>, blobs: &[BlobRef], out: &mut Vec<u8>) -> Option<Range<usize>> {
    let origin = origin.map(|origin| {
        push_key("origin", out);
        let start = out.len();
        json(origin, out);
        start..out.len()
    });
    if !blobs.is_empty() {
        field("blobs", &blobs, out);
    }
    origin
}

/// Says where in `out` the body stands.
fn verbatim(key: &str, body: &str, out: &mut Vec<u8>) -> Range<usize> {
    push_key(key, out);
    let start = out.len();
    out.extend_from_slice(one_line(body).as_bytes());
    start..out.len()
}
