//! One entry of the tree, in few bytes: where its body is, not what it says.

use banyan_model::{EntryId, Revision, Seq, SessionId};

use crate::born::Born;
use crate::fork_ids::InheritedIds;
use crate::id_key::IdKey;
use crate::node_kind::NodeKind;

/// An entry's number in its session's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeIx(pub u32);

impl NodeIx {
    pub(crate) fn at(self) -> usize {
        self.0 as usize
    }
}

/// A file's number in its session's state; 0 is the session's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceIx(pub u16);

impl SourceIx {
    /// The session's own file.
    pub const OWN: Self = Self(0);
}

/// A file that bodies of this session are in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// The session whose file it is.
    pub session_id: SessionId,
    /// Which incarnation of it.
    pub born: Born,
    /// How the ids of its entries become those of this session; `None` for the session's own file.
    pub ids: Option<InheritedIds>,
}

impl Source {
    /// True if both are the file of one incarnation.
    pub fn is_same_file(&self, other: &Self) -> bool {
        self.session_id == other.session_id && self.born == other.born
    }

    /// True when an entry of this session is the one that a line of this file calls `written`.
    pub fn names(&self, entry: &EntryId, written: &str) -> bool {
        match &self.ids {
            None => entry.as_str() == written,
            Some(ids) => ids.derive_key(&IdKey::of(written)) == IdKey::of(entry.as_str()),
        }
    }
}

/// A line, known by its place and by its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    /// Where it is.
    pub place: Place,
    /// Its number in that file. Lines of session-manager are counted, and do not say it themselves.
    pub seq: Seq,
}

impl Line {
    pub(crate) fn new(seq: u64, place: Place) -> Self {
        Self { place, seq: Seq(seq) }
    }

    /// Its number among the records of this session: 0 when it is in another file.
    pub(crate) fn own_seq(&self) -> u64 {
        if self.place.source == SourceIx::OWN { self.seq.0 } else { 0 }
    }
}

/// Where a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The file.
    pub source: SourceIx,
    /// Where in the file the line begins.
    pub offset: u64,
    /// How many bytes it has, line feed included.
    pub len: u32,
}

/// What is known of an entry without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub(crate) key: IdKey,
    pub(crate) offset: u64,
    pub(crate) body_seq: u64,
    pub(crate) timestamp: i64,
    pub(crate) len: u32,
    pub(crate) parent: u32,
    pub(crate) depth: u32,
    pub(crate) messages: u32,
    pub(crate) weight: u32,
    pub(crate) revision: u32,
    pub(crate) source: u16,
    pub(crate) custom_type: u16,
    pub(crate) kind: NodeKind,
    pub(crate) flags: u8,
}

/// The parent of a root.
pub(crate) const NO_PARENT: u32 = u32::MAX;
/// The custom type of an entry that has none.
pub(crate) const NO_TYPE: u16 = u16::MAX;

pub(crate) mod flag {
    //! What can be said of a node with yes or no.

    /// Its body is lost and never served.
    pub(crate) const DAMAGED: u8 = 1;
    /// It has an origin, on the line that appended it.
    pub(crate) const HAS_ORIGIN: u8 = 2;
    /// Texts were added since its last full record.
    pub(crate) const GROWN: u8 = 4;
    /// A crash of session-manager left it off the path.
    pub(crate) const UNCOMMITTED: u8 = 8;
    /// Following its parents never ends.
    pub(crate) const CYCLIC: u8 = 16;
    /// Only another entry's parent field names it so far.
    pub(crate) const PLACEHOLDER: u8 = 32;
}

impl Node {
    /// Its id.
    pub fn id(&self) -> EntryId {
        self.key.to_entry_id()
    }

    /// Its id, compact.
    pub fn key(&self) -> &IdKey {
        &self.key
    }

    /// What it follows.
    pub fn parent(&self) -> Option<NodeIx> {
        (self.parent != NO_PARENT).then_some(NodeIx(self.parent))
    }

    /// How many entries come before it on its path.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// How many messages its path has, itself included.
    pub fn messages_on_path(&self) -> u64 {
        u64::from(self.messages)
    }

    /// Where its last full record is.
    pub fn place(&self) -> Place {
        Place { source: SourceIx(self.source), offset: self.offset, len: self.len }
    }

    /// Its last full record.
    pub fn line(&self) -> Line {
        Line::new(self.body_seq, self.place())
    }

    /// How many bytes its body has, with what is stored elsewhere.
    pub fn weight(&self) -> u64 {
        u64::from(self.weight)
    }

    /// How often it has changed.
    pub fn revision(&self) -> Revision {
        Revision(u64::from(self.revision))
    }

    /// When it was taken.
    pub fn timestamp(&self) -> i64 {
        self.timestamp
    }

    /// What it is.
    pub fn kind(&self) -> NodeKind {
        self.kind
    }

    /// True when its body is lost: it keeps its place in the tree, and is never served.
    pub fn is_damaged(&self) -> bool {
        self.has(flag::DAMAGED)
    }

    /// True when texts were added since its last full record, so that the body is that record and the adds after it.
    pub fn is_grown(&self) -> bool {
        self.has(flag::GROWN)
    }

    /// True when a crash of session-manager left it off the path, until its append is redelivered.
    pub fn is_uncommitted(&self) -> bool {
        self.has(flag::UNCOMMITTED)
    }

    /// True when it was appended with an origin.
    pub fn has_origin(&self) -> bool {
        self.has(flag::HAS_ORIGIN)
    }

    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub(crate) fn set(&mut self, flag: u8) {
        self.flags |= flag;
    }

    pub(crate) fn clear(&mut self, flag: u8) {
        self.flags &= !flag;
    }
}
