//! Large content, stored once under its hash.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Durability;
use super::layout;
use super::segment::read_all;
use crate::disk::{Disk, DiskFile};
use crate::{BlobHash, LogError};

/// See the module.
#[derive(Default)]
pub(crate) struct Blobs {
    /// How many commits under way need a blob. The lock is held while a blob is written or removed, so that
    /// one that was found to be there is durable and stays.
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    pins: HashMap<BlobHash, usize>,
    /// Directories that this process has flushed: the names that were in them by then are durable.
    flushed: HashSet<String>,
}

impl Blobs {
    pub(crate) fn put(&self, disk: &dyn Disk, bytes: &[u8], durability: Durability) -> Result<BlobHash, LogError> {
        let hash = blake3::hash(bytes).to_hex().to_string();
        let mut inner = self.lock();
        let path = layout::blob(&hash);
        let storing = || LogError::io(format!("storing {path}"));
        match disk.open(&path).map_err(storing())? {
            Some(known) if durability == Durability::Synced => {
                inner.make_sure(disk, &hash, known.as_ref()).map_err(storing())?;
            }
            Some(_) => {}
            None => inner.write(disk, &hash, bytes, durability).map_err(storing())?,
        }
        *inner.pins.entry(hash.clone()).or_default() += 1;
        Ok(hash)
    }

    pub(crate) fn unpin(&self, hash: &str) {
        let mut inner = self.lock();
        if let Some(count) = inner.pins.get_mut(hash) {
            *count -= 1;
            if *count == 0 {
                inner.pins.remove(hash);
            }
        }
    }

    pub(crate) fn remove(&self, disk: &dyn Disk, hash: &str, unused: &dyn Fn() -> bool) -> io::Result<()> {
        let inner = self.lock();
        if inner.pins.contains_key(hash) || !unused() {
            return Ok(());
        }
        disk.remove(&layout::blob(hash))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a blob; `None` when it is not there or its content is not what its hash says.
pub(crate) fn get(disk: &dyn Disk, hash: &str) -> Result<Option<Vec<u8>>, LogError> {
    let path = layout::blob(hash);
    let read = || match disk.open(&path)? {
        Some(file) => read_all(file.as_ref()).map(Some),
        None => Ok(None),
    };
    let bytes = read().map_err(LogError::io(format!("reading {path}")))?;
    Ok(bytes.filter(|bytes| blake3::hash(bytes).to_hex().as_str() == hash))
}

impl Inner {
    /// A blob appears under its name only when its content is durable.
    fn write(&mut self, disk: &dyn Disk, hash: &str, bytes: &[u8], durability: Durability) -> io::Result<()> {
        let dir = layout::blob_dir(hash);
        let temporary = format!("{dir}/{hash}.tmp");
        let path = layout::blob(hash);
        disk.create_dir(&dir)?;
        let written = disk.create(&temporary).and_then(|file| {
            file.set_len(0)?;
            file.write_at(0, bytes)?;
            if durability == Durability::Synced { file.sync() } else { Ok(()) }
        });
        if let Err(error) = written {
            let _ = disk.remove(&temporary);
            return Err(error);
        }
        disk.rename(&temporary, &path)?;
        if durability == Durability::Synced
            && let Err(error) = self.flush(disk, &dir)
        {
            // Under its name it would be taken for safe.
            let _ = disk.remove(&path);
            return Err(error);
        }
        Ok(())
    }

    /// Makes a blob durable that is there already: whoever wrote it may have ended before it was.
    fn make_sure(&mut self, disk: &dyn Disk, hash: &str, file: &dyn DiskFile) -> io::Result<()> {
        let dir = layout::blob_dir(hash);
        file.sync()?;
        if self.flushed.contains(&dir) { Ok(()) } else { self.flush(disk, &dir) }
    }

    fn flush(&mut self, disk: &dyn Disk, dir: &str) -> io::Result<()> {
        disk.sync_dir(dir)?;
        disk.sync_dir(layout::BLOBS)?;
        self.flushed.insert(dir.to_owned());
        Ok(())
    }
}
