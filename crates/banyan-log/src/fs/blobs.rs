//! Large content, stored once under its hash.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Durability;
use super::layout;
use super::segment::read_all;
use crate::disk::Disk;
use crate::{BlobHash, LogError};

/// See the module.
#[derive(Default)]
pub(crate) struct Blobs {
    /// How many commits under way need a blob. The lock is held while a blob is written or removed, so that
    /// one that was found to be there is durable and stays.
    pins: Mutex<HashMap<BlobHash, usize>>,
}

impl Blobs {
    pub(crate) fn put(&self, disk: &dyn Disk, bytes: &[u8], durability: Durability) -> Result<BlobHash, LogError> {
        let hash = blake3::hash(bytes).to_hex().to_string();
        let mut pins = self.lock();
        let path = layout::blob(&hash);
        let known = disk.open(&path).map_err(LogError::io(format!("looking for {path}")))?;
        if known.is_none() {
            write(disk, &hash, bytes, durability).map_err(LogError::io(format!("storing {path}")))?;
        }
        *pins.entry(hash.clone()).or_default() += 1;
        Ok(hash)
    }

    pub(crate) fn unpin(&self, hash: &str) {
        let mut pins = self.lock();
        if let Some(count) = pins.get_mut(hash) {
            *count -= 1;
            if *count == 0 {
                pins.remove(hash);
            }
        }
    }

    pub(crate) fn remove(&self, disk: &dyn Disk, hash: &str, unused: &dyn Fn() -> bool) -> io::Result<()> {
        let pins = self.lock();
        if pins.contains_key(hash) || !unused() {
            return Ok(());
        }
        disk.remove(&layout::blob(hash))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<BlobHash, usize>> {
        self.pins.lock().unwrap_or_else(PoisonError::into_inner)
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

/// A blob appears under its name only when its content is durable.
fn write(disk: &dyn Disk, hash: &str, bytes: &[u8], durability: Durability) -> io::Result<()> {
    let dir = layout::blob_dir(hash);
    let temporary = format!("{dir}/{hash}.tmp");
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
    disk.rename(&temporary, &layout::blob(hash))?;
    if durability == Durability::Synced {
        disk.sync_dir(&dir)?;
        disk.sync_dir(layout::BLOBS)?;
    }
    Ok(())
}
