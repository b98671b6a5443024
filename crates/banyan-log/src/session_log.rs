//! The seam: what the store asks of an engine that keeps records.

use std::io;

use banyan_core::born::Born;
use banyan_model::{CommitNo, SessionId};

use crate::{Commit, LogError};

/// The blake3 hash, in hex, that a blob is known by.
pub type BlobHash = String;

/// An engine that keeps the records of sessions.
///
/// One order over all sessions: commit numbers are consecutive, never given twice, and
/// [`Commit::done`] is called in that order. A session's own lines are in the order of their commits.
pub trait SessionLog: Send + Sync + 'static {
    /// Takes a commit. The answer comes through [`Commit::done`].
    fn append(&self, commit: Commit);

    /// Shows every whole line of a session that starts at `from` or later, oldest first, with the offset where it
    /// starts. `from` is 0 or where a line was said to start. `None` when there is no such session.
    fn scan(&self, at: At<'_>, from: u64, visit: &mut dyn FnMut(u64, &[u8])) -> Result<Option<Scanned>, LogError>;

    /// Cuts a torn last line off, so that nothing is ever written behind it.
    fn mend(&self, at: At<'_>, scanned: Scanned) -> Result<(), LogError>;

    /// The first line of a session, if there is one.
    fn first_line(&self, at: At<'_>) -> Result<Option<Vec<u8>>, LogError>;

    /// Reads a part of a session's records, as [`Written`](crate::Written) or `scan` placed it.
    fn read(&self, at: At<'_>, offset: u64, len: usize) -> Result<Vec<u8>, LogError>;

    /// Shows, in order, what was committed after a commit and up to `upto`.
    fn replay(
        &self,
        after: CommitNo,
        upto: CommitNo,
        visit: &mut dyn FnMut(JournalEntry) -> bool,
    ) -> Result<Replay, LogError>;

    /// The last commit that is safe.
    fn head(&self) -> CommitNo;

    /// Every session that has records, in no order.
    fn sessions(&self) -> Result<Vec<SessionId>, LogError>;

    /// Stores content under its hash, once, durable before the commit that names it.
    /// It cannot be removed until [`unpin_blob`](Self::unpin_blob) was called as often.
    fn put_blob(&self, bytes: &[u8]) -> Result<BlobHash, LogError>;

    /// The same for content that is too much to be held: its hash is known, and checked while it is written.
    fn put_blob_from(&self, hash: &str, content: &mut dyn io::Read) -> Result<(), LogError>;

    /// Notes that a commit uses a blob.
    fn keep_blob(&self, hash: &str);

    /// Ends the need for a blob of the call that put it.
    fn unpin_blob(&self, hash: &str);

    /// Ends it for a call that committed nothing. Content that it stored first is removed; other content goes aside, as
    /// with [`set_blob_aside`](Self::set_blob_aside).
    fn forget_blob(&self, hash: &str, unused: &dyn Fn() -> bool) -> Result<(), LogError>;

    /// Content by its hash; `None` when it is not there or is not what its hash says.
    fn get_blob(&self, hash: &str) -> Result<Option<Vec<u8>>, LogError>;

    /// The same piece by piece. Whoever reads it to its end compares the hash.
    fn open_blob(&self, hash: &str) -> Result<Option<Box<dyn io::Read + Send>>, LogError>;

    /// Moves content aside unless it is pinned or, checked while it cannot be pinned, `unused` returns false. It is found
    /// there, and put back, by [`get_blob`](Self::get_blob) and [`open_blob`](Self::open_blob).
    fn set_blob_aside(&self, hash: &str, unused: &dyn Fn() -> bool) -> Result<(), LogError>;

    /// Makes everything acknowledged so far durable, whatever the durability chosen.
    fn flush(&self) -> Result<(), LogError>;

    /// Ends writing: what is queued is finished, the session files hold everything, the log is empty.
    fn close(&self) -> Result<(), LogError>;
}

/// Which records are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At<'a> {
    /// The session that has this id now.
    Live(&'a SessionId),
    /// One incarnation of a session, which may have been deleted since and be kept for its forks.
    Incarnation(&'a SessionId, Born),
}

/// What a scan saw besides lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Where the last line that was shown ends.
    pub len: u64,
    /// Bytes of a last line without its end, which were not shown.
    pub torn: u64,
}

/// How far a replay got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// Everything up to here was shown.
    Through(CommitNo),
    /// The order is no longer kept that far back; it starts after this commit.
    Forgotten(CommitNo),
}

/// One commit, as the journal remembers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalEntry {
    /// Its number.
    pub commit: CommitNo,
    /// Whose records.
    pub session: SessionId,
    /// Which incarnation.
    pub born: Born,
    /// Where to find them.
    pub kind: JournalKind,
}

/// Where the records of a commit are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalKind {
    /// Whole lines.
    Lines {
        /// Where the first one starts.
        offset: u64,
        /// Length of all of them together.
        len: u32,
    },
    /// One addition inside a line.
    Addition {
        /// Where the line starts.
        offset: u64,
        /// Which of its additions.
        index: u32,
    },
    /// The session ended here; what was said of it then.
    Removed(Vec<u8>),
}
