//! Large content, stored once under its hash.

use std::collections::{HashMap, HashSet};
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    /// How many streams were begun, for the names of their files.
    streams: AtomicU64,
}

#[derive(Default)]
struct Inner {
    pins: HashMap<BlobHash, usize>,
    /// Directories that this process has flushed: the names that were in them by then are durable.
    flushed: HashSet<String>,
    /// Blobs that were stored without a flush.
    unflushed: HashSet<BlobHash>,
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
        inner.note(&hash, durability);
        *inner.pins.entry(hash.clone()).or_default() += 1;
        Ok(hash)
    }

    /// Makes everything stored so far durable. A blob that is gone by now needs nothing.
    pub(crate) fn flush(&self, disk: &dyn Disk) -> Result<(), LogError> {
        let mut inner = self.lock();
        let mut dirs = HashSet::new();
        for hash in &inner.unflushed {
            let path = layout::blob(hash);
            let flushing = || LogError::io(format!("flushing {path}"));
            if let Some(file) = disk.open(&path).map_err(flushing())? {
                file.sync().map_err(flushing())?;
                dirs.insert(layout::blob_dir(hash));
            }
        }
        for dir in dirs {
            inner.flush(disk, &dir).map_err(LogError::io(format!("flushing {dir}")))?;
        }
        inner.unflushed.clear();
        Ok(())
    }

    /// Stores content as it is read. Others go on meanwhile: only giving it its name takes the lock.
    pub(crate) fn put_from(
        &self,
        disk: &dyn Disk,
        hash: &str,
        content: &mut dyn Read,
        durability: Durability,
    ) -> Result<(), LogError> {
        let dir = layout::blob_dir(hash);
        let temporary = format!("{dir}/{hash}.{}.tmp", self.streams.fetch_add(1, Ordering::Relaxed));
        let stored = disk.create_dir(&dir).and_then(|()| {
            let file = disk.create(&temporary)?;
            copy(content, file.as_ref(), hash)?;
            if durability == Durability::Synced {
                file.sync()?;
            }
            let mut inner = self.lock();
            disk.rename(&temporary, &layout::blob(hash))?;
            if durability == Durability::Synced
                && let Err(error) = inner.flush(disk, &dir)
            {
                // Under its name it would be taken for safe.
                if !inner.pins.contains_key(hash) {
                    let _ = disk.remove(&layout::blob(hash));
                }
                return Err(error);
            }
            inner.note(hash, durability);
            *inner.pins.entry(hash.to_owned()).or_default() += 1;
            Ok(())
        });
        if stored.is_err() {
            let _ = disk.remove(&temporary);
        }
        stored.map_err(LogError::io(format!("storing {}", layout::blob(hash))))
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

/// Opens a blob; `None` when it is not there.
pub(crate) fn open(disk: &dyn Disk, hash: &str) -> Result<Option<Box<dyn Read + Send>>, LogError> {
    let path = layout::blob(hash);
    let file = disk.open(&path).map_err(LogError::io(format!("reading {path}")))?;
    Ok(file.map(|file| Box::new(Stream { file, at: 0 }) as Box<dyn Read + Send>))
}

/// A blob from its beginning to its end.
struct Stream {
    file: Arc<dyn DiskFile>,
    at: u64,
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(self.at, into)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// So much of a stream is held.
const PIECE: usize = 256 << 10;

/// Writes a stream to a file, and refuses it if it is not what its hash says.
fn copy(content: &mut dyn Read, file: &dyn DiskFile, hash: &str) -> io::Result<()> {
    file.set_len(0)?;
    let (mut hasher, mut at, mut piece) = (blake3::Hasher::new(), 0, vec![0; PIECE]);
    loop {
        match content.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => {
                hasher.update(&piece[..read]);
                file.write_at(at, &piece[..read])?;
                at += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    match hasher.finalize().to_hex().as_str() == hash {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::InvalidData, "the content changed while it was read")),
    }
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

    fn note(&mut self, hash: &str, durability: Durability) {
        if durability == Durability::Buffered {
            self.unflushed.insert(hash.to_owned());
        }
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
