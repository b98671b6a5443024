//! What can be wrong with a line, and what of the session's structure can still be told from it.

use std::fmt;

use banyan_model::{EntryId, Seq, SessionId};

use super::Base;
use crate::born::Born;
use crate::node_kind::NodeKind;

/// A line that is set aside.
#[derive(Clone, Debug, PartialEq)]
pub struct LineFault {
    /// What is wrong.
    pub reason: FaultReason,
    /// What can still be told: structure, never text.
    pub salvage: Option<Salvaged>,
}

impl fmt::Display for LineFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl std::error::Error for LineFault {}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultReason {
    /// Some bytes are no text.
    NotUtf8,
    /// The text is no JSON object; what the parser says.
    NotJson(String),
    /// The checksum at its end is missing.
    NoChecksum,
    /// Its bytes are not the ones that were written.
    ChecksumDiffers,
    /// A field is missing, or not of the form that its type asks for.
    BadField {
        /// The record's type.
        type_name: String,
        /// The field.
        field: &'static str,
    },
    /// A line of session-manager's that cannot be read; what the parser says.
    BadLegacyLine(String),
}

impl fmt::Display for FaultReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotUtf8 => f.write_str("not UTF-8 text"),
            Self::NotJson(why) => write!(f, "not a JSON object: {why}"),
            Self::NoChecksum => f.write_str("no checksum at the end of the line"),
            Self::ChecksumDiffers => f.write_str("checksum mismatch: the line is not as it was written"),
            Self::BadField { type_name, field } => {
                write!(f, "a `{type_name}` record with a missing or malformed `{field}`")
            }
            Self::BadLegacyLine(why) => write!(f, "not a record of session-manager: {why}"),
        }
    }
}

/// What can be told from a damaged line.
#[derive(Clone, Debug, PartialEq)]
pub struct Salvaged {
    /// The line's number, if it can be read.
    pub seq: Option<Seq>,
    /// The line's time, if it can be read.
    pub time_ms: Option<i64>,
    /// What the line was about.
    pub what: SalvagedWhat,
    /// Whether the line certainly left the session's metadata as it was.
    pub metadata: MetadataEffect,
}

/// What a damaged line may have done to the session's metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataEffect {
    /// Nothing: no record of its type does, and it is one record.
    None,
    /// It may have set it.
    Possible,
}

/// What a damaged line was about.
#[derive(Clone, Debug, PartialEq)]
pub enum SalvagedWhat {
    /// The session's beginning.
    Created {
        /// The session's id.
        session_id: Option<SessionId>,
        /// Its incarnation.
        born: Option<Born>,
        /// Where a fork's first entries come from.
        base: Option<Base>,
    },
    /// A new entry.
    Entry {
        /// Its id.
        entry_id: EntryId,
        /// What it follows.
        parent_id: Option<EntryId>,
        /// What it is.
        kind: NodeKind,
    },
    /// An entry that was put, new or in place of another.
    Put {
        /// Its id.
        entry_id: EntryId,
        /// What it follows.
        parent_id: Option<EntryId>,
        /// What it is.
        kind: NodeKind,
    },
    /// A newer text of this entry, now lost.
    Text(EntryId),
    /// Something else.
    Other,
}
