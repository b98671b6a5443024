//! Where Banyan's records live.
//!
//! [`SessionLog`] is the seam between the rules and an engine that stores records. [`FsLog`] keeps
//! them on a file system, or in memory when it is given a [`disk::MemDisk`].
//! Nothing here knows what a record means: lines go in, lines come out.

mod commit;
pub mod disk;
mod error;
mod fs;
mod session_log;

pub use commit::{Answer, Commit, Committed, Done, Growth, Piece, Removal, Write, WriteDone, Written};
pub use error::LogError;
/// The session that a first line is of.
pub use fs::session_named_in;
pub use fs::{
    ClearedLog, DirectoryId, Durability, FileDamage, FsLog, LostCommits, NotADirectoryId, Options, Recovered,
    RegisteredFile, Room, first_line_sum, inspect, restored,
};
pub use session_log::{At, BlobHash, JournalEntry, JournalKind, Replay, Scanned, SessionLog};
