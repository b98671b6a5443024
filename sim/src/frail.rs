//! A disk as its user sees it: the user can be killed while the disk and the system's cache go on, and the flush of a
//! directory can fail once, with nothing lost that the next flush would not save.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use banyan_log::disk::{Disk, DiskFile, Listed, LockOutcome, MemDisk};

/// See the module.
#[derive(Clone)]
pub struct Frail {
    disk: MemDisk,
    last: u64,
    fails: u64,
    failed: Arc<AtomicBool>,
}

struct FrailFile {
    file: Arc<dyn DiskFile>,
    user: Frail,
}

impl Frail {
    /// The user of this disk is killed after so many of its operations.
    pub fn killed_after(disk: &MemDisk, last: u64) -> Self {
        Self { disk: disk.clone(), last, fails: u64::MAX, failed: Arc::default() }
    }

    /// Operation `at` of the disk fails, if it is the flush of a directory.
    pub fn failing_at(disk: &MemDisk, at: u64) -> Self {
        Self { fails: at, ..Self::killed_after(disk, u64::MAX) }
    }

    /// Whether the user was killed.
    pub fn is_dead(&self) -> bool {
        self.disk.ops() >= self.last
    }

    /// Whether a flush failed.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }

    fn alive(&self) -> io::Result<()> {
        if self.is_dead() { Err(io::Error::other("the process was killed")) } else { Ok(()) }
    }

    fn opened(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(FrailFile { file, user: self.clone() })
    }
}

impl Disk for Frail {
    fn open(&self, path: &str) -> io::Result<Option<Arc<dyn DiskFile>>> {
        self.alive()?;
        Ok(self.disk.open(path)?.map(|file| self.opened(file)))
    }

    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.alive()?;
        Ok(self.opened(self.disk.create(path)?))
    }

    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.alive()?;
        self.disk.create_dir(path)
    }

    fn list(&self, dir: &str) -> io::Result<Vec<Listed>> {
        self.alive()?;
        self.disk.list(dir)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.alive()?;
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.alive()?;
        self.disk.remove(path)
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        self.alive()?;
        if self.disk.ops() + 1 == self.fails && !self.failed.swap(true, Ordering::SeqCst) {
            return Err(io::Error::other("the flush failed"));
        }
        self.disk.sync_dir(dir)
    }

    fn sync_all(&self) -> io::Result<()> {
        self.alive()?;
        self.disk.sync_all()
    }

    fn lock(&self, path: &str, owner: &str) -> io::Result<LockOutcome> {
        self.alive()?;
        self.disk.lock(path, owner)
    }
}

impl DiskFile for FrailFile {
    fn len(&self) -> io::Result<u64> {
        self.user.alive()?;
        self.file.len()
    }

    fn modified(&self) -> io::Result<u64> {
        self.user.alive()?;
        self.file.modified()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        self.user.alive()?;
        self.file.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.user.alive()?;
        self.file.write_at(offset, data)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.user.alive()?;
        self.file.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.user.alive()?;
        self.file.sync()
    }
}
