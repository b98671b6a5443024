//! The line of a growing message, which stays open while it grows: each add is written behind the last.

use std::fmt;
use std::marker::PhantomData;

use banyan_model::{CommitNo, Object, Seq};
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::encode::{field, head, json, push_key, set_commit};
use super::{Add, Grew, crc};

/// Where in the list of adds an add goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddPlace {
    /// It begins the list.
    First,
    /// It follows another.
    Next,
}

/// Appends the beginning of a line, with the record's adds, and leaves it open for more.
pub fn open_grew(grew: &Grew, seq: Seq, time_ms: i64, commit: CommitNo, out: &mut Vec<u8>) {
    let start = out.len();
    head("grew", seq, time_ms, out);
    set_commit(&mut out[start..], commit);
    fields(grew, out);
    adds(&grew.adds, out);
}

/// One add, as it is written behind an open line.
pub fn encode_add(
    place: AddPlace,
    text: &str,
    ms_since: i64,
    commits_since: u64,
    origin: Option<&Object>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 24);
    if place == AddPlace::Next {
        out.push(b',');
    }
    match origin {
        Some(origin) => json(&(text, ms_since, commits_since, origin), &mut out),
        None => json(&(text, ms_since, commits_since), &mut out),
    }
    out
}

/// What closes an open line with these bytes.
pub fn close_grew(line_so_far: &[u8]) -> Vec<u8> {
    let mut closing = vec![b']'];
    closing.extend_from_slice(&crc::tail_after_bracket(line_so_far));
    closing
}

/// Writes the fields before the adds, and opens their list.
pub(super) fn fields(grew: &Grew, out: &mut Vec<u8>) {
    field("entry_id", &grew.entry_id, out);
    field("block", &grew.block, out);
    field("revision", &grew.revision, out);
    push_key("adds", out);
    out.push(b'[');
}

/// Writes the adds of a list from its beginning.
pub(super) fn adds(adds: &[Add], out: &mut Vec<u8>) {
    let mut place = AddPlace::First;
    for add in adds {
        out.extend_from_slice(&encode_add(place, &add.text, add.ms_since, add.commits_since, add.origin.as_ref()));
        place = AddPlace::Next;
    }
}

/// One add, reading the text as `T` and the origin as `O`.
pub(super) struct AddOf<T, O> {
    pub(super) text: T,
    pub(super) ms_since: i64,
    pub(super) commits_since: u64,
    pub(super) origin: Option<O>,
}

impl<'de, T: Deserialize<'de>, O: Deserialize<'de>> Deserialize<'de> for AddOf<T, O> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneAdd<T, O>(PhantomData<(T, O)>);

        impl<'de, T: Deserialize<'de>, O: Deserialize<'de>> Visitor<'de> for OneAdd<T, O> {
            type Value = AddOf<T, O>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of text, milliseconds, commits and perhaps an origin")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let missing = |count| A::Error::invalid_length(count, &self);
                Ok(AddOf {
                    text: seq.next_element()?.ok_or_else(|| missing(0))?,
                    ms_since: seq.next_element()?.ok_or_else(|| missing(1))?,
                    commits_since: seq.next_element()?.ok_or_else(|| missing(2))?,
                    origin: seq.next_element()?,
                })
            }
        }

        deserializer.deserialize_seq(OneAdd(PhantomData))
    }
}
