//! A disk that folds case, as those of macOS and Windows do: two spellings of a name are one file, which keeps the first.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use banyan_log::disk::{Disk, DiskFile, Listed, LockOutcome, MemDisk, Stat};

#[derive(Clone)]
pub(super) struct FoldingDisk {
    disk: MemDisk,
    /// The spelling that each name was made with, by its folded form.
    spelled: Arc<Mutex<HashMap<String, String>>>,
}

impl FoldingDisk {
    pub(super) fn new() -> Self {
        Self { disk: MemDisk::new(), spelled: Arc::default() }
    }

    /// Puts a file there as another program would.
    pub(super) fn write_file(&self, path: &str, bytes: &[u8]) {
        let path = self.made(path);
        self.disk.write_file(&path, bytes);
    }

    fn found(&self, path: &str) -> String {
        let spelled = self.spelled.lock().expect("names");
        spelled.get(&path.to_lowercase()).cloned().unwrap_or_else(|| path.to_owned())
    }

    fn made(&self, path: &str) -> String {
        let mut spelled = self.spelled.lock().expect("names");
        spelled.entry(path.to_lowercase()).or_insert_with(|| path.to_owned()).clone()
    }

    fn forget(&self, path: &str) {
        self.spelled.lock().expect("names").remove(&path.to_lowercase());
    }
}

impl Disk for FoldingDisk {
    fn open(&self, path: &str) -> io::Result<Option<Arc<dyn DiskFile>>> {
        self.disk.open(&self.found(path))
    }

    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.create(&self.made(path))
    }

    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.disk.create_dir(&self.made(path))
    }

    fn list(&self, dir: &str) -> io::Result<Vec<Listed>> {
        self.disk.list(&self.found(dir))
    }

    fn stat(&self, path: &str) -> io::Result<Option<Stat>> {
        self.disk.stat(&self.found(path))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let from_spelled = self.found(from);
        self.forget(from);
        self.forget(to);
        self.disk.rename(&from_spelled, &self.made(to))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let removed = self.disk.remove(&self.found(path));
        self.forget(path);
        removed
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        self.disk.sync_dir(&self.found(dir))
    }

    fn sync_all(&self) -> io::Result<()> {
        self.disk.sync_all()
    }

    fn lock(&self, path: &str, owner: &str) -> io::Result<LockOutcome> {
        self.disk.lock(&self.made(path), owner)
    }

    fn lock_unchanged(&self, path: &str) -> io::Result<LockOutcome> {
        self.disk.lock_unchanged(&self.found(path))
    }
}
