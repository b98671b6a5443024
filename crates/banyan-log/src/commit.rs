//! What a caller hands to the log: all records of one call, and what to do when they are safe.

use banyan_core::born::Born;
use banyan_core::record::Grew;
use banyan_model::{CommitNo, Seq, SessionId};

use crate::{BlobHash, LogError};

/// All records of one call. They become durable together or not at all.
pub struct Commit {
    /// Lines for one or more sessions. The last write is the one the commit is known by in the journal.
    pub writes: Vec<Write>,
    /// A session that ends with this commit.
    pub removal: Option<Removal>,
    /// Called once, on a thread of the log's own, in commit order: after the flush, or when the commit is refused.
    pub done: Done,
}

/// See [`Commit::done`]. What it returns is called a little later, together with those of its neighbours: waking whoever
/// waits, one by one, would cost more than committing.
pub type Done = Box<dyn FnOnce(Result<Committed, LogError>) -> Answer + Send>;

/// Answers whoever waits for a commit.
pub type Answer = Box<dyn FnOnce() + Send>;

/// Lines for one session.
pub struct Write {
    /// The session.
    pub session: SessionId,
    /// Which incarnation of the session.
    pub born: Born,
    /// The sequence number that the first line carries.
    pub expected: Seq,
    /// The lines, in order.
    pub pieces: Vec<Piece>,
}

/// One thing to add to a session's file.
pub enum Piece {
    /// A record line that still lacks its commit number and checksum.
    Line(Vec<u8>),
    /// One more revision of a message that grows.
    Growth(Growth),
}

impl Piece {
    /// The most bytes that a line takes in its file once it is sealed. What a growth takes is known when it is written.
    pub(crate) fn most_of_a_line(&self) -> usize {
        const SEAL: usize = 64;
        match self {
            Self::Line(line) => line.len() + SEAL,
            Self::Growth(_) => 0,
        }
    }
}

/// A text that got longer. Consecutive growths of one block share a line in the file.
pub struct Growth {
    /// The sequence number of the line, if this starts a new one.
    pub seq: Seq,
    /// When it grew, in milliseconds since the epoch.
    pub time_ms: i64,
    /// What grew, with exactly one addition.
    pub grew: Grew,
}

/// The end of a session.
pub struct Removal {
    /// The session.
    pub session: SessionId,
    /// Which incarnation of the session.
    pub born: Born,
    /// What the journal keeps of it, for subscribers that come back later.
    pub tombstone: Vec<u8>,
    /// Whether forks still read from its records.
    pub keep_for_forks: bool,
    /// Blobs that may have lost their last user.
    pub blobs: Vec<BlobHash>,
}

/// What the log says of a commit that is safe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Its place in the one order over all sessions.
    pub commit: CommitNo,
    /// What became of each write, in order.
    pub writes: Vec<WriteDone>,
}

/// What became of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteDone {
    /// Where in the session's file its bytes start.
    pub offset: u64,
    /// How many they are. They may begin with the end of a line that was open until now.
    pub len: u64,
    /// Where each piece went.
    pub pieces: Vec<Written>,
}

impl WriteDone {
    /// Where the session's file ends now.
    pub fn end(&self) -> u64 {
        self.offset + self.len
    }
}

/// Where a piece is in its session's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Where its line starts.
    pub offset: u64,
    /// How long the line is, its line feed included. While a line is open: how long it is so far.
    pub len: u32,
    /// True when a growth went into the line of the growth before it, so that no sequence number was used.
    pub continued: bool,
}
