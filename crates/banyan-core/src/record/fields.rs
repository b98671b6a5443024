//! The fields of one line, found by scanning, without looking into the body, which comes last.

use std::borrow::Cow;
use std::ops::Range;

use banyan_model::{EntryId, Role, Seq, SessionId};
use serde::Deserialize;

use super::fault::{MetadataEffect, Salvaged, SalvagedWhat};
use super::{Base, time};
use crate::node_kind::NodeKind;
use crate::scan::Scanner;

/// The raw values of a line's fields.
#[derive(Default)]
pub(super) struct Fields<'a> {
    pub(super) version: Option<&'a [u8]>,
    pub(super) seq: Option<&'a [u8]>,
    pub(super) time: Option<&'a [u8]>,
    pub(super) commit: Option<&'a [u8]>,
    pub(super) type_name: Option<&'a [u8]>,
    pub(super) entry_id: Option<&'a [u8]>,
    pub(super) parent_id: Option<&'a [u8]>,
    pub(super) role: Option<&'a [u8]>,
    pub(super) blobs: Option<&'a [u8]>,
    pub(super) custom_type: Option<&'a [u8]>,
    pub(super) revision: Option<&'a [u8]>,
    pub(super) block: Option<&'a [u8]>,
    pub(super) timestamp: Option<&'a [u8]>,
    pub(super) needs: Option<&'a [u8]>,
    pub(super) origin: Option<Range<usize>>,
    pub(super) body: Option<Range<usize>>,
    /// Where an entry of session-manager's begins, for salvage.
    legacy_entry: Option<usize>,
    session_id: Option<&'a [u8]>,
    born: Option<&'a [u8]>,
    base: Option<&'a [u8]>,
}

impl<'a> Fields<'a> {
    /// Scans `line` up to `end`, where the body ends if there is one. Stops at the first thing that is not as expected,
    /// with what was found until then.
    pub(super) fn scan(line: &'a [u8], end: usize) -> Self {
        let (mut fields, from) = Self::scan_start(&line[..end]).unwrap_or_default();
        if fields.body.is_none() {
            each_field(line, end, from, |key, value| fields.take(line, key, value));
        }
        fields
    }

    /// The fields of a line that is written as we write it and holds a message and nothing else, and where that begins.
    pub(super) fn plain_message(line: &'a [u8]) -> Option<(Self, usize)> {
        let (fields, _) = Self::scan_start(line)?;
        let ours = fields.version == Some(b"1") && fields.type_name == Some(b"\"message\"");
        let from = fields.body.as_ref().filter(|_| ours)?.start;
        Some((fields, from))
    }

    /// The fields that every line begins with, if they are written as we write them, and where the scan is then.
    fn scan_start(line: &'a [u8]) -> Option<(Self, usize)> {
        let mut rest = Rest { line, pos: 0 };
        rest.skip(b"{\"schema_version\":")?;
        let version = Some(rest.digits());
        rest.skip(b",\"seq\":")?;
        let seq = Some(rest.digits());
        rest.skip(b",\"time\":")?;
        let time = Some(rest.take(26)?);
        rest.skip(b",\"commit\":")?;
        let commit = Some(rest.take(14)?);
        let type_name = Some(rest.field(b",\"type\":")?);
        let mut fields = Self { version, seq, time, commit, type_name, ..Self::default() };
        fields.scan_entry(&mut rest);
        Some((fields, rest.pos))
    }

    /// The fields that most lines go on with, as far as they are written as we write them.
    fn scan_entry(&mut self, rest: &mut Rest<'a>) -> Option<()> {
        self.entry_id = Some(rest.field(b",\"entry_id\":")?);
        self.parent_id = Some(rest.field(b",\"parent_id\":")?);
        self.role = Some(rest.field(b",\"role\":")?);
        rest.skip(b",\"message\":")?;
        self.body = Some(rest.pos..rest.line.len());
        Some(())
    }

    fn take(&mut self, line: &'a [u8], key: &[u8], value: FieldValue) -> Option<()> {
        let range = match (key, value) {
            (b"message" | b"data" | b"adds", FieldValue::From(body)) => {
                self.body = Some(body);
                return None;
            }
            (b"entry", FieldValue::From(entry)) => {
                self.legacy_entry = Some(entry.start);
                return Some(());
            }
            (_, FieldValue::From(_)) => return Some(()),
            (_, FieldValue::Is(range)) => range,
        };
        let raw = Some(&line[range.clone()]);
        match key {
            b"schema_version" => self.version = raw,
            b"seq" => self.seq = raw,
            b"time" => self.time = raw,
            b"commit" => self.commit = raw,
            b"type" => self.type_name = raw,
            b"entry_id" => self.entry_id = raw,
            b"parent_id" => self.parent_id = raw,
            b"role" => self.role = raw,
            b"blobs" => self.blobs = raw,
            b"custom_type" => self.custom_type = raw,
            b"revision" => self.revision = raw,
            b"block" => self.block = raw,
            b"timestamp" => self.timestamp = raw,
            b"needs" => self.needs = raw,
            b"origin" => self.origin = Some(range),
            b"session_id" => self.session_id = raw,
            b"born" => self.born = raw,
            b"base" => self.base = raw,
            _ => {}
        }
        Some(())
    }

    /// What a damaged line still tells.
    pub(super) fn salvage(&self, line: &[u8]) -> Option<Salvaged> {
        let type_name = text(self.type_name?)?;
        let entry_id = || self.entry_id.and_then(text).map(|id| EntryId::from(id.as_ref()));
        let what = match type_name.as_ref() {
            "created" => SalvagedWhat::Created {
                session_id: self.session_id.and_then(text).map(|id| SessionId::from(id.as_ref())),
                born: self.born.and_then(read),
                base: self.base.and_then(read::<Base>),
            },
            "message" | "custom" => SalvagedWhat::Entry {
                entry_id: entry_id()?,
                parent_id: read(self.parent_id?)?,
                kind: match type_name.as_ref() {
                    "custom" => NodeKind::CustomEntry,
                    _ => self.role.and_then(read::<Role>).map_or(NodeKind::Lost, NodeKind::of_role),
                },
            },
            "entry-put" => SalvagedWhat::Put {
                entry_id: entry_id()?,
                parent_id: read(self.parent_id?)?,
                kind: match (self.role.and_then(read::<Role>), self.custom_type) {
                    (Some(role), _) => NodeKind::of_role(role),
                    (None, Some(_)) => NodeKind::CustomEntry,
                    (None, None) => NodeKind::Lost,
                },
            },
            "updated" | "grew" | "settled" => SalvagedWhat::Text(entry_id()?),
            "entry" | "append" => salvage_legacy_entry(line.get(self.legacy_entry?..)?)?,
            _ => SalvagedWhat::Other,
        };
        Some(Salvaged {
            seq: self.seq.and_then(number).map(Seq),
            time_ms: self.time.and_then(unquoted).and_then(time::from_text),
            what,
            metadata: metadata_effect(&type_name, line),
        })
    }
}

/// What a damaged line of this type may have done to metadata. A line feed that is lost makes one line of two, and session-manager's
/// lines begin in many ways.
fn metadata_effect(type_name: &str, line: &[u8]) -> MetadataEffect {
    const BEGINNING: &[u8] = b"{\"schema_version\":";
    let harmless = matches!(
        type_name,
        "message"
            | "custom"
            | "updated"
            | "grew"
            | "settled"
            | "leaf-moved"
            | "status-set"
            | "attached"
            | "detached"
            | "adopted"
            | "entry-put"
            | "leaf-put"
    );
    let whole = line.starts_with(BEGINNING) && memchr::memmem::find(&line[1..], BEGINNING).is_none();
    if harmless && whole { MetadataEffect::None } else { MetadataEffect::Possible }
}

fn salvage_legacy_entry(entry: &[u8]) -> Option<SalvagedWhat> {
    let (mut id, mut parent, mut kind) = (None, None, NodeKind::Lost);
    each_field(entry, entry.len(), 0, |key, value| {
        let FieldValue::Is(range) = value else { return None };
        match key {
            b"id" => id = read::<EntryId>(&entry[range]),
            b"parent_id" => parent = read::<Option<EntryId>>(&entry[range]),
            b"kind" if &entry[range.clone()] == b"\"custom\"" => kind = NodeKind::CustomEntry,
            _ => {}
        }
        Some(())
    });
    Some(SalvagedWhat::Entry { entry_id: id?, parent_id: parent?, kind })
}

/// A field's value, or only where it begins for values that may be long.
pub(super) enum FieldValue {
    Is(Range<usize>),
    /// From here to the end of what was given to scan.
    From(Range<usize>),
}

/// What is left of a line whose beginning is known to the byte.
struct Rest<'a> {
    line: &'a [u8],
    pos: usize,
}

impl<'a> Rest<'a> {
    fn skip(&mut self, known: &[u8]) -> Option<()> {
        self.line[self.pos..].starts_with(known).then(|| self.pos += known.len())
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let taken = self.line.get(self.pos..self.pos + len)?;
        self.pos += len;
        Some(taken)
    }

    fn digits(&mut self) -> &'a [u8] {
        let rest = &self.line[self.pos..];
        let len = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
        self.pos += len;
        &rest[..len]
    }

    /// The value of the field with this key, if it is null or a string without escapes. Otherwise nothing is consumed.
    fn field(&mut self, key: &[u8]) -> Option<&'a [u8]> {
        let value = self.line[self.pos..].strip_prefix(key)?;
        let len = match value.strip_prefix(b"\"") {
            Some(inner) => memchr::memchr2(b'"', b'\\', inner).filter(|end| inner[*end] == b'"')? + 2,
            None => value.starts_with(b"null").then_some(4)?,
        };
        self.pos += key.len() + len;
        Some(&value[..len])
    }
}

/// Calls `visit` for each field of the object in `line[..end]`, beginning at its start or behind the field that ends at
/// `from`, until it answers `None` or the text is not as expected.
pub(super) fn each_field(
    line: &[u8],
    end: usize,
    from: usize,
    mut visit: impl FnMut(&[u8], FieldValue) -> Option<()>,
) -> Option<()> {
    let line = &line[..end];
    let mut scanner = Scanner::at(line, from);
    scanner.take(if from == 0 { b'{' } else { b',' })?;
    loop {
        let key = scanner.string()?;
        let key = &line[key];
        scanner.take(b':')?;
        if matches!(key, b"message" | b"data" | b"adds" | b"entry") {
            visit(key, FieldValue::From(scanner.pos()..end))?;
            scanner.value()?;
        } else {
            let value = scanner.value()?;
            visit(key, FieldValue::Is(value))?;
        }
        scanner.take(b',')?;
    }
}

/// What a raw JSON string says.
pub(super) fn text(raw: &[u8]) -> Option<Cow<'_, str>> {
    let inner = unquoted(raw)?;
    if memchr::memchr(b'\\', inner).is_some() {
        return serde_json::from_slice(raw).ok().map(Cow::Owned);
    }
    std::str::from_utf8(inner).ok().map(Cow::Borrowed)
}

/// What stands between the quotes of a raw JSON string.
pub(super) fn unquoted(raw: &[u8]) -> Option<&[u8]> {
    raw.strip_prefix(b"\"")?.strip_suffix(b"\"")
}

/// What a raw JSON number says, if it is a whole one.
pub(super) fn number(raw: &[u8]) -> Option<u64> {
    let mut value: u64 = 0;
    for digit in raw {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    (!raw.is_empty()).then_some(value)
}

/// Any raw JSON value, parsed.
pub(super) fn read<'a, T: Deserialize<'a>>(raw: &'a [u8]) -> Option<T> {
    serde_json::from_slice(raw).ok()
}
