//! A disk in memory, for stores that need not outlive the process and for tests that cut the power.
//!
//! A plain disk only holds bytes. A crashable one also remembers what a power cut would leave: a
//! durable image of each file and directory, and the ordered changes since. Only `sync` makes a
//! file's content durable and only `sync_dir` its name, for no file system promises more.

mod bytes;
mod dice;
mod file;
mod inode;
mod moments;
mod shared;
mod tree;

use std::io::{self, ErrorKind};
use std::mem;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::{Disk, DiskFile, HeldLock, Listed, LockGuard, LockOutcome, Space};
use bytes::Bytes;
use file::MemFile;
use inode::Inode;
pub use moments::{Mishap, Moment};
use shared::Shared;
use tree::{Dir, Node, ancestors, join, split};

/// What a power cut leaves of the changes that were not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nothing.
    LoseUnsynced,
    /// All that succeeded before the cut; nothing of the operation it hit.
    KeepAll,
    /// Each change by itself is lost, kept, or torn between sectors; this seed decides.
    Random(u64),
    /// As [`Fate::KeepAll`], but the last unsynced write is cut off after any of its bytes.
    /// A write that the power cut hit counts as the last.
    TornLast,
}

/// A disk in memory. A clone is the same disk.
///
/// Operations are numbered from 1. The controls work on every disk, but only a crashable one
/// knows what was not synced: a plain one loses nothing in a crash.
#[derive(Clone)]
pub struct MemDisk(Arc<Shared>);

impl Default for MemDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl MemDisk {
    /// An empty disk that records no history, to be used as a store.
    pub fn new() -> Self {
        Self(Arc::new(Shared::new(None)))
    }

    /// An empty disk that can lose what was not synced; `seed` decides what is left to chance.
    pub fn crashable(seed: u64) -> Self {
        Self(Arc::new(Shared::new(Some(seed))))
    }

    /// How many changing operations were asked for, the one that crashed included.
    pub fn ops(&self) -> u64 {
        self.0.ops.load(SeqCst)
    }

    /// Cuts the power in operation `op`, or in the next one if that is past; `u64::MAX` is never.
    pub fn crash_at(&self, op: u64) {
        self.0.crash_at.store(op, SeqCst);
    }

    /// Whether the power is off.
    pub fn crashed(&self) -> bool {
        self.0.crashed.load(SeqCst)
    }

    /// Whether an error came from the simulated power cut.
    pub fn is_crash(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|e| e.is::<SimulatedCrash>())
    }

    /// Makes operation `op`, if it is a sync of any kind, fail once with EIO. What it should have
    /// saved can still be read, but no later sync saves it: the system takes those pages for clean.
    pub fn fail_sync_at(&self, op: u64) {
        lock(&self.0.failing_syncs).insert(op);
    }

    /// Sets how many bytes all files together may have; `None` is without end.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.0.capacity.store(bytes.unwrap_or(u64::MAX), SeqCst);
    }

    /// Has the disk say from now on how much room it has. Until then, as under a quota, room that is missing is only found by
    /// writing.
    pub fn report_space(&self) {
        self.0.reports_space.store(true, SeqCst);
    }

    /// The disk as found when the power is back: unlocked, counting from 0, of the same capacity,
    /// with no fault planned. This disk stays as it is, so that other fates can be tried.
    pub fn after_crash(&self, fate: Fate) -> Self {
        let _gate = lock(&self.0.gate);
        Self(Arc::new(self.0.after_crash(fate)))
    }

    /// What a file holds, synced or not, even while the power is off.
    pub fn read_file(&self, path: &str) -> Option<Vec<u8>> {
        let inode = read(&self.0.tree).file(path).ok()??;
        Some(read(&inode.0).now.bytes.to_vec())
    }

    /// Puts a durable file, and its directories, in place. Not counted.
    pub fn write_file(&self, path: &str, bytes: &[u8]) {
        let _gate = lock(&self.0.gate);
        let mut tree = write(&self.0.tree);
        debug_assert!(!tree.dirs.contains_key(path), "{path:?} is a directory");
        let existing = tree.file(path).ok().flatten();
        let inode = existing.unwrap_or_else(|| self.0.new_file());
        for dir in ancestors(path) {
            tree.force(self.0.tick(), dir, Some(Node::Dir));
            tree.dirs.entry(dir.to_owned()).or_default();
        }
        tree.force(self.0.tick(), path, Some(Node::File(inode.clone())));
        let mut state = write(&inode.0);
        let before = state.now.bytes.len();
        state.now.bytes = Bytes::default();
        state.now.bytes.write(0, bytes);
        state.now.modified = self.0.tick();
        state.durable = state.now.clone();
        state.pending.clear();
        self.0.resized(&state, before);
    }

    /// Removes a file durably, if it is there. Not counted.
    pub fn remove_file(&self, path: &str) {
        let _gate = lock(&self.0.gate);
        let mut tree = write(&self.0.tree);
        if let Ok(Some(inode)) = tree.file(path) {
            self.0.unlink(&inode);
            tree.force(self.0.tick(), path, None);
        }
    }

    /// The paths of all files, sorted, even while the power is off.
    pub fn paths(&self) -> Vec<String> {
        let tree = read(&self.0.tree);
        let mut paths = Vec::new();
        for (path, dir) in &tree.dirs {
            let files = dir.now.iter().filter(|(_, node)| matches!(node, Node::File(_)));
            paths.extend(files.map(|(name, _)| join(path, name)));
        }
        paths.sort();
        paths
    }

    fn open_file(&self, inode: Arc<Inode>) -> Arc<dyn DiskFile> {
        Arc::new(MemFile { disk: self.0.clone(), inode })
    }
}

impl Disk for MemDisk {
    fn open(&self, path: &str) -> io::Result<Option<Arc<dyn DiskFile>>> {
        self.0.alive()?;
        let inode = read(&self.0.tree).file(checked(path)?)?;
        Ok(inode.map(|inode| self.open_file(inode)))
    }

    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        let path = checked(path)?;
        self.0.mutate(|op| {
            let mut tree = write(&self.0.tree);
            if let Some(inode) = tree.file(path)? {
                return Ok(self.open_file(inode));
            }
            tree.expect_dir(split(path).0)?;
            self.0.expect_room()?;
            let inode = self.0.new_file();
            tree.change(op, Vec::new(), vec![(path, Some(Node::File(inode.clone())))]);
            Ok(self.open_file(inode))
        })
    }

    /// Each directory that is made counts as an operation, and is durable when its parent is synced.
    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.0.alive()?;
        let path = if path.is_empty() { path } else { checked(path)? };
        for dir in ancestors(path).chain([path]) {
            if read(&self.0.tree).dirs.contains_key(dir) {
                continue;
            }
            self.0.mutate(|op| {
                let mut tree = write(&self.0.tree);
                if tree.file(dir)?.is_some() {
                    return Err(ErrorKind::NotADirectory.into());
                }
                self.0.expect_room()?;
                tree.change(op, Vec::new(), vec![(dir, Some(Node::Dir))]);
                if !op.dying {
                    let made = op.stamp;
                    tree.dirs.entry(dir.to_owned()).or_insert(Dir { made, ..Dir::default() });
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn list(&self, dir: &str) -> io::Result<Vec<Listed>> {
        self.0.alive()?;
        let tree = read(&self.0.tree);
        let Some(found) = tree.dirs.get(dir) else {
            return match tree.file(checked(dir)?)? {
                Some(_) => Err(ErrorKind::NotADirectory.into()),
                None => Ok(Vec::new()),
            };
        };
        let listed =
            found.now.iter().map(|(name, node)| Listed { name: name.clone(), is_dir: matches!(node, Node::Dir) });
        Ok(listed.collect())
    }

    /// A crash leaves a rename done or not done, also from one directory to another.
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (from, to) = (checked(from)?, checked(to)?);
        self.0.mutate(|op| {
            let mut tree = write(&self.0.tree);
            let inode = tree.file(from)?.ok_or(ErrorKind::NotFound)?;
            let replaced = tree.file(to)?;
            tree.expect_dir(split(to).0)?;
            if from == to {
                return Ok(());
            }
            let needs = if split(from).0 == split(to).0 { Vec::new() } else { tree.makers(to) };
            tree.change(op, needs, vec![(from, None), (to, Some(Node::File(inode)))]);
            if let Some(replaced) = replaced {
                self.0.unlink(&replaced);
            }
            Ok(())
        })
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let path = checked(path)?;
        self.0.mutate(|op| {
            let mut tree = write(&self.0.tree);
            if let Some(inode) = tree.file(path)? {
                tree.change(op, Vec::new(), vec![(path, None)]);
                self.0.unlink(&inode);
            }
            Ok(())
        })
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        self.0.sync(|fails| {
            let mut tree = write(&self.0.tree);
            tree.expect_dir(dir)?;
            tree.sync(dir, fails);
            Ok(())
        })
    }

    fn sync_all(&self) -> io::Result<()> {
        self.0.sync(|fails| {
            let dirty = mem::take(&mut *lock(&self.0.dirty));
            for inode in dirty {
                let mut state = write(&inode.0);
                state.listed = false;
                state.sync(fails);
            }
            let mut tree = write(&self.0.tree);
            while let Some(change) = tree.pending.values().next() {
                let dir = split(&change.sets[0].0).0.to_owned();
                tree.sync(&dir, fails);
            }
            Ok(())
        })
    }

    fn space(&self) -> io::Result<Option<Space>> {
        self.0.alive()?;
        let total = self.0.capacity.load(SeqCst);
        let known = self.0.reports_space.load(SeqCst) && total < u64::MAX;
        Ok(known.then(|| Space { total, free: self.0.free() }))
    }

    /// The lock is kept beside the files, and leaves none.
    fn lock(&self, path: &str, owner: &str) -> io::Result<LockOutcome> {
        self.0.alive()?;
        let mut locks = lock(&self.0.locks);
        if let Some(holder) = locks.get(checked(path)?) {
            return Ok(LockOutcome::Taken(holder.clone()));
        }
        locks.insert(path.to_owned(), owner.to_owned());
        let held = MemLock(self.0.clone(), path.to_owned());
        Ok(LockOutcome::Held(LockGuard(Box::new(held))))
    }

    fn lock_unchanged(&self, path: &str) -> io::Result<LockOutcome> {
        self.lock(path, "")
    }
}

/// Held until it is dropped.
struct MemLock(Arc<Shared>, String);

impl HeldLock for MemLock {
    fn check(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for MemLock {
    fn drop(&mut self) {
        lock(&self.0.locks).remove(&self.1);
    }
}

#[derive(Debug, thiserror::Error)]
#[error("simulated crash")]
struct SimulatedCrash;

fn checked(path: &str) -> io::Result<&str> {
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        let message = format!("path {path:?} is not made of names joined by `/`");
        return Err(io::Error::new(ErrorKind::InvalidInput, message));
    }
    Ok(path)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "mem_tests.rs"]
mod tests;
