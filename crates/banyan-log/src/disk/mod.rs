//! The one seam to storage: what the log asks of a disk, and nothing else.
//!
//! [`OsDisk`] is the operating system's. [`MemDisk`] lives in memory, keeps apart what was
//! flushed from what was only written, and can be crashed at any operation.
//! Paths are relative to the data directory, with `/` between components.

mod mem;
mod os;
mod overlay;
pub mod private;

use std::io;
use std::sync::Arc;

pub use mem::{Fate, MemDisk, Mishap, Moment};
pub use os::OsDisk;
pub use overlay::Overlay;

/// A directory tree that holds one store.
pub trait Disk: Send + Sync + 'static {
    /// Opens an existing file for reading and writing, or `None` when there is none.
    fn open(&self, path: &str) -> io::Result<Option<Arc<dyn DiskFile>>>;
    /// Creates an empty file, or opens the one that is there.
    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// Makes a directory and its parents; existing ones are fine.
    fn create_dir(&self, path: &str) -> io::Result<()>;
    /// Names (not paths) in a directory, in no order. A missing directory is empty.
    fn list(&self, dir: &str) -> io::Result<Vec<Listed>>;
    /// Size and time of change of a file or directory, or `None` when there is none.
    fn stat(&self, path: &str) -> io::Result<Option<Stat>> {
        let Some(file) = self.open(path)? else { return Ok(None) };
        Ok(Some(Stat { len: file.len()?, modified: file.modified()?, is_dir: false }))
    }
    /// Moves a file, replacing what is at the target.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file; one that is not there is fine.
    fn remove(&self, path: &str) -> io::Result<()>;
    /// Makes creations, renames and removals in a directory durable.
    fn sync_dir(&self, dir: &str) -> io::Result<()>;
    /// Makes everything written to this disk durable, in one go. For when very many files are dirty.
    fn sync_all(&self) -> io::Result<()>;
    /// Makes what is there readable by its owner alone, and says what it could not. `state` is the directory of the log's own files.
    fn tighten(&self, _state: &str) -> Vec<String> {
        Vec::new()
    }
    /// How much room the file system has, where that can be told.
    fn space(&self) -> io::Result<Option<Space>> {
        Ok(None)
    }
    /// Takes the exclusive lock of the store, writing `owner` into the lock file, or says who holds it.
    fn lock(&self, path: &str, owner: &str) -> io::Result<LockOutcome>;
    /// Takes the same lock without changing anything on the disk. A lock file that does not exist is not created.
    fn lock_unchanged(&self, path: &str) -> io::Result<LockOutcome>;
}

/// An open file.
#[allow(clippy::len_without_is_empty, reason = "nobody asks a file whether it is empty")]
pub trait DiskFile: Send + Sync {
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// When it was last written, in nanoseconds since the epoch (0 where a disk keeps no times).
    fn modified(&self) -> io::Result<u64>;
    /// Fills `buf` from `offset`; fewer bytes come back only at the end of the file.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize>;
    /// Writes all of `data` at `offset`, growing the file as needed.
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()>;
    /// Cuts or extends (with zeros) the file.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Makes the content, and the length needed to read it back, durable (fdatasync).
    fn sync(&self) -> io::Result<()>;
    /// Takes room for the first `len` bytes of an empty file, which read as zeros.
    fn allocate(&self, len: u64) -> io::Result<()> {
        write_zeros(len, |at, zeros| self.write_at(at, zeros))
    }
}

/// Writes a number of zeros, piece by piece.
fn write_zeros(len: u64, mut write: impl FnMut(u64, &[u8]) -> io::Result<()>) -> io::Result<()> {
    const PIECE: u64 = 1 << 20;
    let zeros = vec![0; len.min(PIECE) as usize];
    let mut at = 0;
    while at < len {
        let piece = zeros.len().min((len - at) as usize);
        write(at, &zeros[..piece])?;
        at += piece as u64;
    }
    Ok(())
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name, without its directory.
    pub name: String,
    /// True for a directory.
    pub is_dir: bool,
}

/// What can be told of a file without opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Length in bytes.
    pub len: u64,
    /// When it was last changed, in nanoseconds since the epoch (0 where a disk keeps no times).
    pub modified: u64,
    /// True for a directory.
    pub is_dir: bool,
}

/// The room of a file system, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// All of it, used or not.
    pub total: u64,
    /// What this process may still use.
    pub free: u64,
}

/// The result of taking the lock.
pub enum LockOutcome {
    /// Ours until the guard is dropped.
    Held(LockGuard),
    /// Somebody else's; what they wrote about themselves.
    Taken(String),
}

/// The lock of a store, released when this is dropped.
pub struct LockGuard(pub(crate) Box<dyn HeldLock>);

impl LockGuard {
    /// Fails if the lock no longer keeps other processes out, because its file was removed or replaced.
    pub(crate) fn check(&self) -> io::Result<()> {
        self.0.check()
    }
}

/// See [`LockGuard`].
pub(crate) trait HeldLock: Send + Sync {
    /// See [`LockGuard::check`].
    fn check(&self) -> io::Result<()>;
}

/// A lock on nothing, for a directory that nobody can own yet.
impl HeldLock for () {
    fn check(&self) -> io::Result<()> {
        Ok(())
    }
}
