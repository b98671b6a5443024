//! Large content, stored once under its hash.

use std::collections::{HashMap, HashSet};
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
    /// Content came back from aside.
    returned: AtomicBool,
}

#[derive(Default)]
struct Inner {
    pins: HashMap<BlobHash, usize>,
    /// Directories that this process has flushed: the names that were in them by then are durable.
    flushed: HashSet<String>,
    /// Blobs that were stored without a flush.
    unflushed: HashSet<BlobHash>,
    /// Blobs that calls under way stored, and that were not there before.
    fresh: HashSet<BlobHash>,
    /// Blobs that are aside, and since when, in seconds since 1970.
    aside: HashMap<BlobHash, u64>,
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
            None => {
                inner.write(disk, &hash, bytes, durability).map_err(storing())?;
                inner.stored(disk, &hash, durability);
            }
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
            let is_fresh = disk.stat(&layout::blob(hash))?.is_none();
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
            if is_fresh {
                inner.stored(disk, hash, durability);
            }
            Ok(())
        });
        if stored.is_err() {
            let _ = disk.remove(&temporary);
        }
        stored.map_err(LogError::io(format!("storing {}", layout::blob(hash))))
    }

    pub(crate) fn unpin(&self, hash: &str) {
        let mut inner = self.lock();
        inner.fresh.remove(hash);
        inner.unpin(hash);
    }

    /// Notes that a commit uses content.
    pub(crate) fn keep(&self, hash: &str) {
        self.lock().fresh.remove(hash);
    }

    /// Ends a call that stored content and committed nothing. Content that it stored first is removed; other content goes
    /// aside if it seems unused.
    pub(crate) fn forget(
        &self,
        disk: &dyn Disk,
        hash: &str,
        now: u64,
        unused: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        let mut inner = self.lock();
        if inner.unpin(hash) > 0 {
            return Ok(());
        }
        if inner.fresh.remove(hash) && unused() {
            return disk.remove(&layout::blob(hash));
        }
        inner.set_aside(disk, hash, now, unused)
    }

    /// Moves content aside unless a call needs it or, checked while no call can begin to, `unused` returns false.
    pub(crate) fn set_aside(
        &self,
        disk: &dyn Disk,
        hash: &str,
        now: u64,
        unused: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        self.lock().set_aside(disk, hash, now, unused)
    }

    /// Reads which content is aside.
    pub(crate) fn open_aside(&self, disk: &dyn Disk) -> io::Result<()> {
        let listed = disk.list(layout::ASIDE_CONTENT)?;
        let aside = listed.iter().filter_map(|listed| {
            let (hash, since) = listed.name.split_once('.')?;
            Some((hash.to_owned(), since.parse().ok()?))
        });
        self.lock().aside = aside.collect();
        Ok(())
    }

    /// The content that is aside, and since when.
    pub(crate) fn aside(&self) -> Vec<(BlobHash, u64)> {
        let mut aside: Vec<_> = self.lock().aside.iter().map(|(hash, since)| (hash.clone(), *since)).collect();
        aside.sort_unstable();
        aside
    }

    /// Puts content back that is aside. Returns false if it is not.
    pub(crate) fn bring_back(&self, disk: &dyn Disk, hash: &str) -> io::Result<bool> {
        let mut inner = self.lock();
        let Some(since) = inner.aside.get(hash).copied() else { return Ok(false) };
        // Content that was stored again meanwhile is as good.
        if disk.stat(&layout::blob(hash))?.is_none() {
            disk.create_dir(&layout::blob_dir(hash))?;
            disk.rename(&layout::aside_content(hash, since), &layout::blob(hash))?;
            inner.aside.remove(hash);
            self.returned.store(true, Ordering::Release);
        }
        Ok(true)
    }

    /// Whether content came back since this was called last.
    pub(crate) fn take_returned(&self) -> bool {
        self.returned.swap(false, Ordering::AcqRel)
    }

    /// Removes content that is aside. Returns how many bytes it had, or `None` if it is not aside any more.
    pub(crate) fn remove_aside(&self, disk: &dyn Disk, hash: &str) -> io::Result<Option<u64>> {
        self.lock().remove_aside(disk, hash)
    }

    /// Reads a blob; `None` when it is not there or its content is not what its hash says. Content that is aside is put back.
    pub(crate) fn get(&self, disk: &dyn Disk, hash: &str) -> Result<Option<Vec<u8>>, LogError> {
        let path = layout::blob(hash);
        let read = || {
            let found = disk.open(&path)?;
            let found = if found.is_none() && self.bring_back(disk, hash)? { disk.open(&path)? } else { found };
            found.map(|file| read_all(file.as_ref())).transpose()
        };
        let bytes = read().map_err(LogError::io(format!("reading {path}")))?;
        Ok(bytes.filter(|bytes| blake3::hash(bytes).to_hex().as_str() == hash))
    }

    /// Opens a blob; `None` when it is not there. Content that is aside is put back.
    pub(crate) fn open(&self, disk: &dyn Disk, hash: &str) -> Result<Option<Box<dyn Read + Send>>, LogError> {
        let path = layout::blob(hash);
        let open = || match disk.open(&path)? {
            None if self.bring_back(disk, hash)? => disk.open(&path),
            found => Ok(found),
        };
        let file = open().map_err(LogError::io(format!("reading {path}")))?;
        Ok(file.map(|file| Box::new(Stream { file, at: 0 }) as Box<dyn Read + Send>))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
    /// Ends one need of a blob. Returns how many are left.
    fn unpin(&mut self, hash: &str) -> usize {
        let Some(count) = self.pins.get_mut(hash) else { return 0 };
        *count -= 1;
        let left = *count;
        if left == 0 {
            self.pins.remove(hash);
        }
        left
    }

    fn remove_aside(&mut self, disk: &dyn Disk, hash: &str) -> io::Result<Option<u64>> {
        let Some(since) = self.aside.get(hash).copied() else { return Ok(None) };
        let path = layout::aside_content(hash, since);
        let length = disk.stat(&path)?.map_or(0, |stat| stat.len);
        disk.remove(&path)?;
        self.aside.remove(hash);
        Ok(Some(length))
    }

    /// Notes content that was stored and was not there before. A copy that is aside is then of no use.
    fn stored(&mut self, disk: &dyn Disk, hash: &str, durability: Durability) {
        self.fresh.insert(hash.to_owned());
        if durability == Durability::Synced && self.aside.contains_key(hash) {
            // What cannot be removed now is removed after its time.
            let _ = self.remove_aside(disk, hash);
            self.fresh.remove(hash);
        }
    }

    fn set_aside(&mut self, disk: &dyn Disk, hash: &str, now: u64, unused: &dyn Fn() -> bool) -> io::Result<()> {
        let path = layout::blob(hash);
        if self.pins.contains_key(hash) || !unused() || disk.stat(&path)?.is_none() {
            return Ok(());
        }
        disk.create_dir(layout::ASIDE_CONTENT)?;
        // What was aside before under this name has the same content, if it is sound; then it stays for its time.
        let since = self.aside.get(hash).copied().unwrap_or(now);
        disk.rename(&path, &layout::aside_content(hash, since))?;
        self.aside.insert(hash.to_owned(), since);
        Ok(())
    }

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
