//! Reading a line as far as the session tree needs it: everything but the body.

use std::borrow::Cow;
use std::ops::Range;

use banyan_model::{CommitNo, EntryId, Origin, Revision, Role, Seq};
use serde::Deserialize;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::crc::{self, Check};
use super::fault::{FaultReason, LineFault};
use super::fields::{Fields, number, read, text, unquoted};
use super::grew::AddOf;
use super::legacy::{self, LegacyEntryHead, LegacyHead};
use super::newer::{NewerRecord, UnknownForm, named_content};
use super::{Attached, Begun, Created, Detached, Envelope, MetaPut, MetaSet, SCHEMA_VERSION, StatusSet, time};
use crate::blobs::{BlobRef, Encoding};
use crate::hex;
use crate::node_kind::NodeKind;

/// A line without its body.
#[derive(Clone, Debug, PartialEq)]
pub struct Head<'a> {
    /// Number, time and commit. Lines of session-manager have none.
    pub envelope: Option<Envelope>,
    /// The type and its fields.
    pub kind: HeadKind<'a>,
    /// Where in the line the origin stands.
    pub origin: Option<Range<usize>>,
    /// Where in the line the body stands: a message, custom data, or the adds of a `grew`.
    pub body: Option<Range<usize>>,
    /// What of the body is stored elsewhere. Of a record that is not known here: all content that it may name.
    pub blobs: Vec<BlobRef>,
    /// The record's content was erased: what is left of the body says nothing.
    pub erased: bool,
}

/// The type of a line and its fields.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are those of the records of the same name")]
pub enum HeadKind<'a> {
    /// The session began.
    Created(Box<Created>),
    /// A message was appended.
    Message { entry_id: Cow<'a, str>, parent_id: Option<Cow<'a, str>>, role: Role },
    /// A custom entry was appended.
    Custom { entry_id: Cow<'a, str>, parent_id: Option<Cow<'a, str>>, custom_type: Cow<'a, str> },
    /// A message was replaced.
    Updated { entry_id: Cow<'a, str>, revision: Revision },
    /// A text of a message got longer.
    Grew(GrewHead<'a>),
    /// A message that had grown, as a whole.
    Settled { entry_id: Cow<'a, str>, revision: Revision },
    /// The active leaf was set.
    LeafMoved { entry_id: Cow<'a, str> },
    /// Title, description or metadata were set.
    MetaSet(Box<MetaSet>),
    /// The status was set.
    StatusSet(StatusSet),
    /// An attachment was put.
    Attached(Box<Attached>),
    /// An attachment was deleted.
    Detached(Detached),
    /// An entry that a crash left off the path was put on it.
    Adopted { entry_id: Cow<'a, str> },
    /// The file begins with what another instance puts.
    Begun(Begun),
    /// Another instance put what the session is known by.
    MetaPut(Box<MetaPut>),
    /// Another instance put an entry.
    EntryPut(Box<LegacyEntryHead>),
    /// Another instance put the active leaf.
    LeafPut { entry_id: Option<Cow<'a, str>> },
    /// A line of session-manager's.
    Legacy(Box<LegacyHead>),
    /// An attachment was put, and erased.
    Erased,
    /// A type that is not known here, which is kept and skipped.
    Unknown(Cow<'a, str>),
    /// A record that is not known here and may not be skipped.
    Newer(Box<NewerRecord>),
}

/// A `grew` line in sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrewHead<'a> {
    /// The message's entry.
    pub entry_id: Cow<'a, str>,
    /// Which of its blocks grew.
    pub block: u32,
    /// The revision after the first add.
    pub revision: Revision,
    /// How many adds there are.
    pub adds: u64,
    /// How many bytes of JSON text they add to the message.
    pub bytes: u64,
    /// When the last add happened.
    pub last_time_ms: i64,
    /// The last add's commit.
    pub last_commit: CommitNo,
}

impl GrewHead<'_> {
    /// The revision after the last add.
    pub fn last_revision(&self) -> Revision {
        Revision(self.revision.0.saturating_add(self.adds.saturating_sub(1)))
    }
}

impl<'a> Head<'a> {
    /// Checks and reads a line, with or without its line feed.
    pub fn parse(line: &'a [u8]) -> Result<Self, LineFault> {
        let line = without_line_feed(line);
        if !is_ours(line) {
            return legacy::head(line);
        }
        match crc::check(line) {
            Check::Holds(covered) => Self::from_fields(line, covered, ""),
            Check::Erased(covered) => Self::from_erased(line, covered),
            Check::Differs => Err(damaged(line, FaultReason::ChecksumDiffers)),
            Check::Missing => Err(damaged(line, FaultReason::NoChecksum)),
        }
    }

    /// Reads a `grew` line that is still open, so that nothing vouches for its bytes. Any other line is refused.
    pub fn parse_open(line: &'a [u8]) -> Result<Self, LineFault> {
        let head = Self::from_fields(line, line.len(), "]")?;
        match head.kind {
            HeadKind::Grew(_) => Ok(head),
            _ => Err(damaged(line, FaultReason::NoChecksum)),
        }
    }

    /// The origin, for the few who ask.
    pub fn origin(&self, line: &[u8]) -> Option<Origin> {
        let text = std::str::from_utf8(line.get(self.origin.clone()?)?).ok()?;
        match self.envelope {
            Some(_) => Origin::stored(text),
            // Nothing vouches for the bytes of a line of session-manager's, but it was read as JSON.
            None => Origin::vouched(text),
        }
    }

    /// The entry that the line is about, if it is about one.
    pub fn entry_id(&self) -> Option<&str> {
        use HeadKind::{Adopted, Custom, EntryPut, Grew, LeafMoved, LeafPut, Legacy, Message, Settled, Updated};
        match &self.kind {
            Message { entry_id, .. }
            | Custom { entry_id, .. }
            | Updated { entry_id, .. }
            | Settled { entry_id, .. }
            | LeafMoved { entry_id }
            | Adopted { entry_id } => Some(entry_id),
            Grew(grew) => Some(&grew.entry_id),
            EntryPut(entry) => Some(entry.id.as_str()),
            LeafPut { entry_id } => entry_id.as_deref(),
            Legacy(legacy) => match legacy.as_ref() {
                LegacyHead::Entry(entry) | LegacyHead::Append(entry, _) => Some(entry.id.as_str()),
                LegacyHead::Leaf(id) => id.as_ref().map(EntryId::as_str),
                LegacyHead::Commit(id) => Some(id.as_str()),
                LegacyHead::Meta(_) => None,
            },
            _ => None,
        }
    }

    /// How many bytes the body has, with what is stored elsewhere.
    pub fn weight(&self) -> u64 {
        let here = self.body.as_ref().map_or(0, ExactSizeIterator::len) as u64;
        self.blobs.iter().fold(here, |sum, blob| sum.saturating_add(blob.len))
    }

    fn from_fields(line: &'a [u8], covered: usize, closing: &str) -> Result<Self, LineFault> {
        let fields = Fields::scan(line, covered);
        Self::read_fields(line, &fields, closing)
            .map_err(|reason| LineFault { reason, salvage: fields.salvage(line) })
    }

    /// Reads a line whose content was erased. It is as long as it was: white space stands for the rest of it.
    fn from_erased(line: &'a [u8], covered: usize) -> Result<Self, LineFault> {
        let covered = line[..covered].trim_ascii_end().len();
        let fields = Fields::scan(line, covered);
        if fields.type_name == Some(b"\"attached\"") {
            let envelope = Some(envelope_of(&fields).map_err(|field| damaged_field(line, &fields, field))?);
            let kind = HeadKind::Erased;
            return Ok(Self { envelope, kind, origin: None, body: None, blobs: Vec::new(), erased: true });
        }
        Ok(Self { erased: true, ..Self::from_fields(line, covered, "")? })
    }

    fn newer(line: &'a [u8], fields: &Fields<'a>, unknown: UnknownForm) -> Self {
        let newer = NewerRecord {
            unknown,
            needs: fields.needs.and_then(text).map(Cow::into_owned),
            salvage: fields.salvage(line),
        };
        Self {
            envelope: envelope_of(fields).ok(),
            kind: HeadKind::Newer(Box::new(newer)),
            origin: None,
            body: None,
            blobs: content_named_in(line),
            erased: false,
        }
    }

    fn read_fields(line: &'a [u8], fields: &Fields<'a>, closing: &str) -> Result<Self, FaultReason> {
        let version = fields.version.unwrap_or_default();
        if number(version) != Some(u64::from(SCHEMA_VERSION)) {
            if !closing.is_empty() {
                return Err(FaultReason::NoChecksum);
            }
            let version = String::from_utf8_lossy(version).into_owned();
            return Ok(Self::newer(line, fields, UnknownForm::SchemaVersion(version)));
        }
        let type_name = fields.type_name.and_then(text).ok_or_else(|| bad("?", "type"))?;
        let bad = |field| bad(&type_name, field);
        let envelope = envelope_of(fields).map_err(bad)?;
        let kind = kind(line, fields, &type_name, envelope, closing).map_err(bad)?;
        let blobs = match (&kind, fields.blobs) {
            (HeadKind::Unknown(name), _) if fields.needs.is_some() => {
                return Ok(Self::newer(line, fields, UnknownForm::Type(name.to_string())));
            }
            (HeadKind::Unknown(_), _) => content_named_in(line),
            (_, Some(raw)) => read(raw).ok_or_else(|| bad("blobs"))?,
            (_, None) => Vec::new(),
        };
        Ok(Self {
            envelope: Some(envelope),
            kind,
            origin: fields.origin.clone(),
            body: fields.body.clone(),
            blobs,
            erased: false,
        })
    }
}

fn envelope_of(fields: &Fields<'_>) -> Result<Envelope, &'static str> {
    Ok(Envelope {
        seq: Seq(fields.seq.and_then(number).ok_or("seq")?),
        time_ms: fields.time.and_then(unquoted).and_then(time::from_text).ok_or("time")?,
        commit: fields.commit.and_then(unquoted).and_then(commit).ok_or("commit")?,
    })
}

fn damaged_field(line: &[u8], fields: &Fields<'_>, field: &'static str) -> LineFault {
    LineFault { reason: bad("attached", field), salvage: fields.salvage(line) }
}

/// Content that a line may name, as what its record uses.
fn content_named_in(line: &[u8]) -> Vec<BlobRef> {
    let used =
        |hash: &str| BlobRef { pointer: String::new(), hash: hash.to_owned(), len: 0, encoding: Encoding::Text };
    named_content(line).map(used).collect()
}

/// The body of a line as it stands there: the JSON of the message or of the custom data, without its blobs.
pub fn body_text<'a>(line: &'a [u8], head: &Head<'_>) -> Option<&'a str> {
    match head.body.clone()? {
        // Custom data that session-manager left out.
        nothing if nothing.is_empty() => Some("null"),
        body => std::str::from_utf8(line.get(body)?).ok(),
    }
}

/// A line that holds a message and nothing beside it, as most lines do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainMessage<'a> {
    /// The line's number.
    pub seq: Seq,
    /// The message's entry.
    pub entry_id: &'a str,
    /// The message's JSON.
    pub message: &'a str,
}

/// Reads a line that has a message and nothing beside it. For any other line [`Head::parse`] tells more.
pub fn plain_message(line: &[u8]) -> Option<PlainMessage<'_>> {
    let line = without_line_feed(line);
    // Most often told by its beginning, so it comes before the checksum of all of it.
    let (fields, from) = Fields::plain_message(line)?;
    match crc::check(line) {
        Check::Holds(covered) => Some(PlainMessage {
            seq: Seq(fields.seq.and_then(number)?),
            entry_id: std::str::from_utf8(fields.entry_id.and_then(unquoted)?).ok()?,
            message: std::str::from_utf8(line.get(from..covered)?).ok()?,
        }),
        Check::Erased(_) | Check::Differs | Check::Missing => None,
    }
}

/// Whether custom data is a record that an agent kept for itself, stored so that it can be written again: its type begins with the
/// agent's name, and so does its origin.
pub fn is_kept_record(custom_type: &str, origin: Option<&str>) -> bool {
    let Some((agent, _)) = custom_type.split_once('.') else { return false };
    let named = origin.and_then(|origin| origin.strip_prefix("{\"")?.strip_prefix(agent));
    named.is_some_and(|rest| rest.starts_with("\":"))
}

/// The same of a whole line, for those who pass over such records. Nothing vouches for the line.
pub fn holds_kept_record(line: &[u8]) -> bool {
    /// What comes before the data of such a record is shorter, and the origin of a message may be very long.
    const BEGINNING: usize = 512;
    let beginning = &line[..line.len().min(BEGINNING)];
    if memchr::memmem::find(beginning, b",\"custom_type\":\"").is_none() {
        return false;
    }
    let fields = Fields::scan(line, line.len());
    let origin = fields.origin.and_then(|place| std::str::from_utf8(line.get(place)?).ok());
    fields.custom_type.and_then(text).is_some_and(|custom_type| is_kept_record(&custom_type, origin))
}

/// Says what is wrong with a line whose bytes cannot be trusted.
pub(super) fn damaged(line: &[u8], otherwise: FaultReason) -> LineFault {
    let reason = match std::str::from_utf8(line) {
        Err(_) => FaultReason::NotUtf8,
        Ok(text) => match serde_json::from_str::<IgnoredAny>(text) {
            Err(error) => FaultReason::NotJson(error.to_string()),
            Ok(_) => otherwise,
        },
    };
    LineFault { reason, salvage: Fields::scan(line, line.len()).salvage(line) }
}

pub(super) fn without_line_feed(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}

pub(super) fn is_ours(line: &[u8]) -> bool {
    line.starts_with(b"{\"schema_version\":")
}

fn bad(type_name: &str, field: &'static str) -> FaultReason {
    FaultReason::BadField { type_name: type_name.to_owned(), field }
}

fn commit(digits: &[u8]) -> Option<CommitNo> {
    hex::number::<12>(digits).map(CommitNo)
}

/// Reads the fields of one type, or names the field that is not as it should be.
fn kind<'a>(
    line: &'a [u8],
    fields: &Fields<'a>,
    type_name: &str,
    envelope: Envelope,
    closing: &str,
) -> Result<HeadKind<'a>, &'static str> {
    let entry_id = || fields.entry_id.and_then(text).ok_or("entry_id");
    let parent_id = || match fields.parent_id {
        None | Some(b"null") => Ok(None),
        Some(raw) => text(raw).map(Some).ok_or("parent_id"),
    };
    let revision = || fields.revision.and_then(number).map(Revision).ok_or("revision");
    let body = |name| fields.body.clone().ok_or(name);
    Ok(match type_name {
        "created" => HeadKind::Created(Box::new(read(line).ok_or("session_id")?)),
        "message" => {
            body("message")?;
            let role = fields.role.and_then(role).ok_or("role")?;
            HeadKind::Message { entry_id: entry_id()?, parent_id: parent_id()?, role }
        }
        "custom" => {
            body("data")?;
            let custom_type = fields.custom_type.and_then(text).ok_or("custom_type")?;
            HeadKind::Custom { entry_id: entry_id()?, parent_id: parent_id()?, custom_type }
        }
        "updated" => {
            body("message")?;
            HeadKind::Updated { entry_id: entry_id()?, revision: revision()? }
        }
        "grew" => {
            let adds = adds(&line[body("adds")?], closing).ok_or("adds")?;
            let block = fields.block.and_then(number).and_then(|block| u32::try_from(block).ok());
            HeadKind::Grew(GrewHead {
                entry_id: entry_id()?,
                block: block.ok_or("block")?,
                revision: revision()?,
                adds: adds.count,
                bytes: adds.bytes,
                last_time_ms: envelope.time_ms.saturating_add(adds.last_ms),
                last_commit: CommitNo(envelope.commit.0.saturating_add(adds.last_commits)),
            })
        }
        "settled" => {
            body("message")?;
            HeadKind::Settled { entry_id: entry_id()?, revision: revision()? }
        }
        "leaf-moved" => HeadKind::LeafMoved { entry_id: entry_id()? },
        "meta-set" => HeadKind::MetaSet(Box::new(read(line).ok_or("metadata")?)),
        "status-set" => HeadKind::StatusSet(read(line).ok_or("status")?),
        "attached" => HeadKind::Attached(Box::new(read(line).ok_or("attachment")?)),
        "detached" => HeadKind::Detached(read(line).ok_or("attachment_id")?),
        "adopted" => HeadKind::Adopted { entry_id: entry_id()? },
        "begun" => HeadKind::Begun(read(line).ok_or("session_id")?),
        "meta-put" => HeadKind::MetaPut(Box::new(read(line).ok_or("meta")?)),
        "entry-put" => {
            body("message")?;
            let custom_type = fields.custom_type.and_then(text).map(Cow::into_owned);
            let kind = match fields.role {
                Some(raw) => NodeKind::of_role(role(raw).ok_or("role")?),
                None => NodeKind::CustomEntry,
            };
            if kind == NodeKind::CustomEntry && custom_type.is_none() {
                return Err("custom_type");
            }
            let custom_type = custom_type.filter(|_| kind == NodeKind::CustomEntry);
            HeadKind::EntryPut(Box::new(LegacyEntryHead {
                id: entry_id()?.as_ref().into(),
                parent_id: parent_id()?.map(|id| id.as_ref().into()),
                timestamp: fields.timestamp.and_then(read).ok_or("timestamp")?,
                revision: revision()?,
                kind,
                custom_type,
            }))
        }
        "leaf-put" => match fields.entry_id {
            Some(b"null") => HeadKind::LeafPut { entry_id: None },
            _ => HeadKind::LeafPut { entry_id: Some(entry_id()?) },
        },
        other => HeadKind::Unknown(Cow::Owned(other.to_owned())),
    })
}

fn role(raw: &[u8]) -> Option<Role> {
    match raw {
        b"\"user\"" => Some(Role::User),
        b"\"assistant\"" => Some(Role::Assistant),
        b"\"function_result\"" => Some(Role::FunctionResult),
        b"\"custom\"" => Some(Role::Custom),
        _ => None,
    }
}

#[derive(Default)]
struct AddsInSum {
    count: u64,
    bytes: u64,
    last_ms: i64,
    last_commits: u64,
}

fn adds(raw: &[u8], closing: &str) -> Option<AddsInSum> {
    let list =
        if closing.is_empty() { Cow::Borrowed(raw) } else { Cow::Owned([raw, closing.as_bytes()].concat()) };
    let sum: AddsInSum = serde_json::from_slice(&list).ok()?;
    (sum.count > 0).then_some(sum)
}

impl<'de> Deserialize<'de> for AddsInSum {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Summing;

        impl<'de> Visitor<'de> for Summing {
            type Value = AddsInSum;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of adds")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<AddsInSum, A::Error> {
                let mut sum = AddsInSum::default();
                while let Some(add) = seq.next_element::<AddOf<&RawValue, IgnoredAny>>()? {
                    sum.count += 1;
                    sum.bytes += add.text.get().len().saturating_sub(2) as u64;
                    sum.last_ms = add.ms_since;
                    sum.last_commits = add.commits_since;
                }
                Ok(sum)
            }
        }

        deserializer.deserialize_seq(Summing)
    }
}
