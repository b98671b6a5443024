//! Open files, at most so many at once.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::disk::{Disk, DiskFile};

/// Keeps the most recently used files open. Thousands of sessions may be in use where a process may hold few files.
pub(crate) struct Fds {
    disk: Arc<dyn Disk>,
    open: Mutex<Open>,
    most: usize,
    spare: Mutex<Vec<Vec<u8>>>,
}

/// So many bytes of buffers are kept for the next file that needs one. New memory costs more than what goes into it.
const SPARE: usize = 32 << 20;

#[derive(Default)]
struct Open {
    files: HashMap<String, (Arc<dyn DiskFile>, u64)>,
    clock: u64,
    /// How often a path was forgotten.
    forgotten: u64,
}

impl Fds {
    pub(crate) fn new(disk: Arc<dyn Disk>, most: usize) -> Self {
        Self { disk, open: Mutex::default(), most, spare: Mutex::default() }
    }

    pub(crate) fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// An existing file, or `None`.
    pub(crate) fn get(&self, path: &str) -> io::Result<Option<Arc<dyn DiskFile>>> {
        let forgotten = match self.hit(path) {
            Ok(file) => return Ok(Some(file)),
            Err(forgotten) => forgotten,
        };
        let file = self.disk.open(path)?;
        Ok(file.map(|file| self.keep(path, file, forgotten)))
    }

    /// A file, made when it is not there.
    pub(crate) fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        let forgotten = match self.hit(path) {
            Ok(file) => return Ok(file),
            Err(forgotten) => forgotten,
        };
        let file = self.disk.create(path)?;
        Ok(self.keep(path, file, forgotten))
    }

    /// An empty buffer, with room if there is one to spare.
    pub(crate) fn buffer(&self) -> Vec<u8> {
        self.spare().pop().unwrap_or_default()
    }

    /// Takes a buffer that is no longer needed.
    pub(crate) fn give_back(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut spare = self.spare();
        if spare.iter().map(Vec::capacity).sum::<usize>() + buffer.capacity() <= SPARE {
            spare.push(buffer);
        }
    }

    /// Lets go of the buffers that are kept, when there is little to do.
    pub(crate) fn drop_buffers(&self) {
        self.spare().clear();
    }

    fn spare(&self) -> std::sync::MutexGuard<'_, Vec<Vec<u8>>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a file, after it was moved or removed.
    pub(crate) fn forget(&self, path: &str) {
        let mut open = self.lock();
        open.files.remove(path);
        open.forgotten += 1;
    }

    /// How often a path was forgotten. While this stays as it is, what was opened is what its path stands for.
    pub(crate) fn forgotten(&self) -> u64 {
        self.lock().forgotten
    }

    /// The file, if it is open; else how often a path was forgotten by now.
    fn hit(&self, path: &str) -> Result<Arc<dyn DiskFile>, u64> {
        let mut open = self.lock();
        open.clock += 1;
        let (now, forgotten) = (open.clock, open.forgotten);
        let (file, used) = open.files.get_mut(path).ok_or(forgotten)?;
        *used = now;
        Ok(Arc::clone(file))
    }

    /// Keeps a file open, unless it may have been removed since: its path may stand for another one by now.
    fn keep(&self, path: &str, file: Arc<dyn DiskFile>, forgotten: u64) -> Arc<dyn DiskFile> {
        let mut open = self.lock();
        if open.forgotten != forgotten {
            return file;
        }
        if open.files.len() >= self.most {
            let oldest = open.files.iter().min_by_key(|(_, (_, used))| *used).map(|(path, _)| path.clone());
            if let Some(oldest) = oldest {
                open.files.remove(&oldest);
            }
        }
        open.clock += 1;
        let now = open.clock;
        open.files.insert(path.to_owned(), (Arc::clone(&file), now));
        file
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
