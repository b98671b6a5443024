//! Where a page of a history ended, and where a stream of one was left.

use banyan::model::{EntryId, Error, Position};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

/// The first entry of a message at the edge of a page, and in which direction the next page is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Cursor {
    /// The messages before that one.
    Before(EntryId),
    /// The messages after it.
    After(EntryId),
}

impl Cursor {
    /// The cursor as text that needs no escaping in an address.
    pub(crate) fn encode(&self) -> String {
        // A string always has a JSON form.
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    pub(crate) fn decode(text: &str) -> Result<Self, Error> {
        let json = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok();
        json.and_then(|json| serde_json::from_slice(&json).ok()).ok_or_else(|| {
            Error::invalid_cursor(format!("`{text}` is not a cursor; take one from the `Link` header of a page"))
        })
    }

    pub(crate) fn entry(self) -> EntryId {
        match self {
            Self::Before(entry) | Self::After(entry) => entry,
        }
    }
}

/// What a stream's frames are numbered by: a position, and the path that was told up to there. Choosing another leaf is no
/// event, so a position alone does not say which path it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) position: Position,
    /// None when only a position was given.
    pub(crate) path: Option<PathTag>,
}

/// Stands for what a front end has of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathTag {
    leaf: u64,
    /// How many entries come before the first message that it has.
    pub(crate) window: usize,
}

impl PathTag {
    pub(crate) fn of(leaf: Option<&EntryId>, window: usize) -> Self {
        Self { leaf: leaf.map_or(0, hash), window }
    }

    /// Whether it is a path to this leaf.
    pub(crate) fn ends_in(self, leaf: Option<&EntryId>) -> bool {
        self == Self::of(leaf, self.window)
    }
}

fn hash(leaf: &EntryId) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&blake3::hash(leaf.as_str().as_bytes()).as_bytes()[..8]);
    u64::from_le_bytes(first)
}

impl Mark {
    pub(crate) fn of(position: Position, leaf: Option<&EntryId>, window: usize) -> Self {
        Self { position, path: Some(PathTag::of(leaf, window)) }
    }
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.position)?;
        self.path.map_or(Ok(()), |PathTag { leaf, window }| write!(f, "-{leaf:016x}-{window:x}"))
    }
}

impl std::str::FromStr for Mark {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let fields: Vec<&str> = text.split('-').collect();
        let [commit, index, leaf, window] = fields.as_slice() else {
            return Ok(Self { position: text.parse()?, path: None });
        };
        let number = |digits: &str| u64::from_str_radix(digits, 16).ok();
        let (leaf, window) = (number(leaf), number(window).and_then(|window| usize::try_from(window).ok()));
        let path = leaf.zip(window).map(|(leaf, window)| PathTag { leaf, window });
        let mark = Self { position: format!("{commit}-{index}").parse()?, path };
        // Whatever is not written as it would be was never given out.
        let known = Some(mark).filter(|mark| mark.to_string() == text);
        known.ok_or_else(|| {
            Error::invalid_cursor(format!("`{text}` is not a position; pass the `id` of a frame, or none"))
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use banyan::model::{CommitNo, ErrorCode};

    use super::*;

    #[test]
    fn cursors_come_back_as_they_were_and_nothing_else_is_one() {
        for cursor in [Cursor::Before("e_1".into()), Cursor::After("ä / ?".into())] {
            assert_eq!(Cursor::decode(&cursor.encode()), Ok(cursor));
        }
        for text in ["", "?", "e30", "bnVsbA"] {
            assert_eq!(Cursor::decode(text).unwrap_err().code, ErrorCode::InvalidCursor, "{text}");
        }
    }

    #[test]
    fn marks_come_back_as_they_were_and_a_position_alone_is_one() {
        let position = Position::new(CommitNo(9), 0xff_ffff);
        let leaf = EntryId::from("e_1");
        let marks =
            [Mark::of(position, None, 0), Mark::of(position, Some(&leaf), 31), Mark { position, path: None }];
        for mark in marks {
            assert_eq!(mark.to_string().parse(), Ok(mark), "{mark}");
        }
        assert!(PathTag::of(Some(&leaf), 7).ends_in(Some(&leaf)));
        assert!(!PathTag::of(None, 0).ends_in(Some(&"".into())));
        for text in [
            "",
            "x",
            "000000000009-ffffff-1-0",
            "000000000009-ffffff-000000000000000G-0",
            "1-2-3-4",
            "1-2-3",
            "0-0",
        ] {
            assert!(text.parse::<Mark>().is_err(), "{text}");
        }
    }
}
