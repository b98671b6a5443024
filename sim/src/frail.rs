//! A disk on which the flush of a directory can fail once, with nothing lost that the next flush would not save.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use banyan_log::disk::{Disk, DiskFile, Listed, LockOutcome, MemDisk};

/// See the module.
#[derive(Clone)]
pub struct Frail {
    disk: MemDisk,
    fails: u64,
    failed: Arc<AtomicBool>,
}

impl Frail {
    /// Operation `at` of the disk fails, if it is the flush of a directory.
    pub fn failing_at(disk: &MemDisk, at: u64) -> Self {
        Self { disk: disk.clone(), fails: at, failed: Arc::default() }
    }

    /// Whether a flush failed.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }
}

impl Disk for Frail {
    fn open(&self, path: &str) -> io::Result<Option<Arc<dyn DiskFile>>> {
        self.disk.open(path)
    }

    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.create(path)
    }

    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.disk.create_dir(path)
    }

    fn list(&self, dir: &str) -> io::Result<Vec<Listed>> {
        self.disk.list(dir)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        if self.disk.ops() + 1 == self.fails && !self.failed.swap(true, Ordering::SeqCst) {
            return Err(io::Error::other("the flush failed"));
        }
        self.disk.sync_dir(dir)
    }

    fn sync_all(&self) -> io::Result<()> {
        self.disk.sync_all()
    }

    fn lock(&self, path: &str, owner: &str) -> io::Result<LockOutcome> {
        self.disk.lock(path, owner)
    }

    fn lock_unchanged(&self, path: &str) -> io::Result<LockOutcome> {
        self.disk.lock_unchanged(path)
    }
}
