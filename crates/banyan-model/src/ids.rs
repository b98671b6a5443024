//! Names and numbers of things: opaque ids, revisions, record numbers, commit numbers, positions.
//!
//! Ids are minted elsewhere; here is only their form.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use crate::Error;

macro_rules! opaque_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
        #[serde(transparent)]
        #[schemars(inline)]
        pub struct $name(Arc<str>);

        impl $name {
            #[doc = concat!("The id that a minted UUID stands for: `", $prefix, "` and 32 lower-case hex digits.")]
            pub fn from_uuid(uuid: Uuid) -> Self {
                let mut text = [0; $prefix.len() + uuid::fmt::Simple::LENGTH];
                let (prefix, digits) = text.split_at_mut($prefix.len());
                prefix.copy_from_slice($prefix.as_bytes());
                uuid.as_simple().encode_lower(digits);
                Self(std::str::from_utf8(&text).unwrap_or_default().into())
            }

            /// The UUID inside an id of the minted form; `None` for a caller's own id.
            pub fn as_uuid(&self) -> Option<Uuid> {
                let hex = self.0.strip_prefix($prefix)?;
                let minted = hex.len() == uuid::fmt::Simple::LENGTH
                    && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
                if minted { Uuid::try_parse(hex).ok() } else { None }
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Whether the id is the empty string.
            pub fn is_empty(&self) -> bool {
                self.0.is_empty()
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                &*self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                &*self.0 == *other
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Shared).map(Self)
            }
        }
    };
}

/// Reads text into memory that is shared from the start.
struct Shared;

impl Visitor<'_> for Shared {
    type Value = Arc<str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E>(self, text: &str) -> Result<Arc<str>, E> {
        Ok(text.into())
    }
}

opaque_id! {
    /// Names a session. Cheap to clone; a caller's own id is kept as it is.
    SessionId, "s_"
}
opaque_id! {
    /// Names an entry within its session. Cheap to clone; a caller's own id is kept as it is.
    EntryId, "e_"
}
opaque_id! {
    /// Names an attachment within its session. Cheap to clone.
    AttachmentId, "a_"
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        #[schemars(inline)]
        pub struct $name(pub u64);

        impl $name {
            /// The number that follows.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0 + 1)
            }

            /// The plain number.
            pub const fn get(self) -> u64 {
                self.0
            }
        }

        impl From<u64> for $name {
            fn from(number: u64) -> Self {
                Self(number)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

number! {
    /// How often an entry's content has been replaced or extended since it was appended.
    Revision
}
number! {
    /// The number of a record in its session's log, from 0, without gaps.
    Seq
}
number! {
    /// The number of a committed call over all sessions, consecutive from 1.
    CommitNo
}

/// The place of one event in the order over all sessions.
///
/// Its text form, `{commit:012x}-{index:06x}`, sorts as the position does. `"0"` is read as the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The commit that caused the event.
    pub commit: CommitNo,
    /// Which of the commit's events this is.
    pub index: u32,
}

const COMMIT_DIGITS: usize = 12;
const INDEX_DIGITS: usize = 6;

impl Position {
    /// Before every event: reading after it reads everything that is kept.
    pub const BEGINNING: Self = Self { commit: CommitNo(0), index: 0 };

    /// The position of the `index`th event of a commit.
    pub const fn new(commit: CommitNo, index: u32) -> Self {
        Self { commit, index }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:012x}-{:06x}", self.commit.0, self.index)
    }
}

impl FromStr for Position {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text == "0" {
            return Ok(Self::BEGINNING);
        }
        parse_position(text).ok_or_else(|| {
            Error::invalid_cursor(format!(
                "`{text}` is not a position; pass one that an event carried, or `0` for the beginning"
            ))
        })
    }
}

fn parse_position(text: &str) -> Option<Position> {
    let (commit, index) = text.split_once('-')?;
    Some(Position {
        commit: CommitNo(parse_hex(commit, COMMIT_DIGITS)?),
        index: u32::try_from(parse_hex(index, INDEX_DIGITS)?).ok()?,
    })
}

fn parse_hex(text: &str, digits: usize) -> Option<u64> {
    let canonical = text.len() == digits && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if canonical { u64::from_str_radix(text, 16).ok() } else { None }
}

impl Serialize for Position {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Position {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|error: Error| serde::de::Error::custom(error.message))
    }
}
