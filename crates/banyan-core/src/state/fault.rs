//! What is found wrong while records are applied. None of it stops the rest of the session from being read.

use std::fmt;

use banyan_model::{EntryId, Revision, Seq};

use crate::record::FaultReason;

/// Something wrong with a session's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateFault {
    /// A line is set aside.
    Damaged(FaultReason),
    /// A record of a newer Banyan; what it is and what is needed. It is no damage.
    Newer(String),
    /// Records are missing.
    Gap {
        /// The number that should have come.
        expected: Seq,
        /// The number that came.
        found: Seq,
    },
    /// What is lost may have set other metadata, so no scope and no filter matches the session until its metadata is set again.
    MetadataInDoubt,
    /// A record comes a second time; it is not applied.
    Repeated(Seq),
    /// A record is about an entry that is not there; it is not applied.
    UnknownEntry(EntryId),
    /// An entry follows one that is not there; a placeholder stands in.
    UnknownParent {
        /// The entry.
        entry_id: EntryId,
        /// What it follows.
        parent_id: EntryId,
    },
    /// An entry is appended a second time; the first stays.
    DuplicateEntry(EntryId),
    /// Texts were added to a revision that is not there, so the entry's text is lost until it is written whole.
    LostText {
        /// The entry.
        entry_id: EntryId,
        /// The revision that the texts were added to.
        missing: Revision,
    },
    /// The session does not begin with its beginning.
    NoBeginning,
    /// The session begins twice; the first stays.
    SecondBeginning,
    /// The session is a fork, and the entries that it inherits could not be had.
    NoBase,
    /// Following the parents of the active leaf never ends.
    Cycle,
}

impl fmt::Display for StateFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged(reason) => reason.fmt(f),
            Self::Newer(what) => f.write_str(what),
            Self::Gap { expected, found } => {
                write!(f, "records are missing: number {expected} should come, and {found} does")
            }
            Self::MetadataInDoubt => f.write_str(
                "what is lost may have changed the metadata: keys with a scope do not reach the session until its metadata is set again",
            ),
            Self::Repeated(seq) => write!(f, "record {seq} comes a second time"),
            Self::UnknownEntry(id) => write!(f, "a record about entry `{id}`, which is not there"),
            Self::UnknownParent { entry_id, parent_id } => {
                write!(f, "entry `{entry_id}` follows `{parent_id}`, which is not there")
            }
            Self::DuplicateEntry(id) => write!(f, "entry `{id}` is appended a second time"),
            Self::LostText { entry_id, missing } => {
                write!(f, "revision {missing} of entry `{entry_id}` is missing, so its text is not known")
            }
            Self::NoBeginning => f.write_str("the record that begins the session is missing"),
            Self::SecondBeginning => f.write_str("the session begins a second time"),
            Self::NoBase => f.write_str("the session that this one was forked from could not be read"),
            Self::Cycle => f.write_str("the parents of the active leaf form a cycle"),
        }
    }
}

impl std::error::Error for StateFault {}
