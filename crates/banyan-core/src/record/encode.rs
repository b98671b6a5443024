//! Writing records as lines.

use std::borrow::Cow;

use banyan_model::{CommitNo, EntryId, Object, Seq};
use serde::Serialize;

use super::{Record, SCHEMA_VERSION, crc, grew, time};
use crate::blobs::BlobRef;

/// The commit field before its number is given. Fixed width, so that it can be filled in place.
const NO_COMMIT: &str = "000000000000";

/// The commit field lies within this many bytes of a line's start.
const COMMIT_WITHIN: usize = 160;

/// Appends the line of a record, all but its commit number and checksum, which [`seal`] adds.
pub fn encode(record: &Record, seq: Seq, time_ms: i64, out: &mut Vec<u8>) {
    head(record.type_name(), seq, time_ms, out);
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
            context(message.origin.as_ref(), &message.blobs, out);
            verbatim("message", message.message.get(), out);
        }
        Record::Custom(custom) => {
            entry(&custom.entry_id, custom.parent_id.as_ref(), out);
            context(custom.origin.as_ref(), &custom.blobs, out);
            field("custom_type", &custom.custom_type, out);
            verbatim("data", custom.data.get(), out);
        }
        Record::Updated(updated) => {
            field("entry_id", &updated.entry_id, out);
            field("revision", &updated.revision, out);
            context(updated.origin.as_ref(), &updated.blobs, out);
            verbatim("message", updated.message.get(), out);
        }
        Record::Grew(grew) => {
            grew::fields(grew, out);
            grew::adds(&grew.adds, out);
            out.push(b']');
        }
        Record::Settled(settled) => {
            field("entry_id", &settled.entry_id, out);
            field("revision", &settled.revision, out);
            context(None, &settled.blobs, out);
            verbatim("message", settled.message.get(), out);
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
    }
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
    out.extend_from_slice(
        format!(
            r#"{{"schema_version":{SCHEMA_VERSION},"seq":{},"time":"{}","commit":"{NO_COMMIT}","type":"{type_name}""#,
            seq.0,
            time::to_text(time_ms),
        )
        .as_bytes(),
    );
}

/// Fills in the commit number of one line.
pub(super) fn set_commit(line: &mut [u8], commit: CommitNo) {
    const KEY: &[u8] = b"\"commit\":\"";
    let near = &line[..line.len().min(COMMIT_WITHIN)];
    if let Some(key) = near.windows(KEY.len()).position(|window| window == KEY) {
        let digits = key + KEY.len()..key + KEY.len() + NO_COMMIT.len();
        line[digits].copy_from_slice(format!("{:012x}", commit.0 & 0xffff_ffff_ffff).as_bytes());
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
pub(crate) fn one_line(json: &str) -> Cow<'_, str> {
    if json.contains(['\n', '\r']) { Cow::Owned(json.replace(['\n', '\r'], "")) } else { Cow::Borrowed(json) }
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

fn context(origin: Option<&Object>, blobs: &[BlobRef], out: &mut Vec<u8>) {
    optional("origin", origin, out);
    if !blobs.is_empty() {
        field("blobs", &blobs, out);
    }
}

fn verbatim(key: &str, body: &str, out: &mut Vec<u8>) {
    push_key(key, out);
    out.extend_from_slice(one_line(body).as_bytes());
}
