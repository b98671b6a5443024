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

/// What a stream's frames are numbered by: a position, and the leaf that the path had there. Choosing another leaf is no
/// event, so a position alone does not say which path it was that a front end has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) position: Position,
    /// None when only a position was given.
    pub(crate) leaf: Option<LeafTag>,
}

/// Stands for a leaf, or for there being none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeafTag(u64);

impl LeafTag {
    pub(crate) fn of(leaf: Option<&EntryId>) -> Self {
        let hash = |leaf: &EntryId| {
            let mut first = [0; 8];
            first.copy_from_slice(&blake3::hash(leaf.as_str().as_bytes()).as_bytes()[..8]);
            u64::from_le_bytes(first)
        };
        Self(leaf.map_or(0, hash))
    }
}

impl Mark {
    pub(crate) fn of(position: Position, leaf: Option<&EntryId>) -> Self {
        Self { position, leaf: Some(LeafTag::of(leaf)) }
    }
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.position)?;
        self.leaf.map_or(Ok(()), |LeafTag(leaf)| write!(f, "-{leaf:016x}"))
    }
}

impl std::str::FromStr for Mark {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let tagged = text.rsplit_once('-').filter(|(position, _)| position.contains('-'));
        let Some((position, leaf)) = tagged else { return Ok(Self { position: text.parse()?, leaf: None }) };
        let digits = leaf.len() == 16 && leaf.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let leaf = u64::from_str_radix(leaf, 16).ok().filter(|_| digits);
        let leaf = leaf.ok_or_else(|| {
            Error::invalid_cursor(format!("`{text}` is not a position; pass the `id` of a frame, or none"))
        })?;
        Ok(Self { position: position.parse()?, leaf: Some(LeafTag(leaf)) })
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
        for mark in
            [Mark::of(position, None), Mark::of(position, Some(&"e_1".into())), Mark { position, leaf: None }]
        {
            assert_eq!(mark.to_string().parse(), Ok(mark), "{mark}");
        }
        assert_ne!(LeafTag::of(None), LeafTag::of(Some(&"".into())));
        for text in ["", "x", "000000000009-ffffff-1", "000000000009-ffffff-000000000000000G", "1-2-3"] {
            assert!(text.parse::<Mark>().is_err(), "{text}");
        }
    }
}
