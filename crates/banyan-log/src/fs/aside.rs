//! What seems unused waits here before it is removed: content in `.banyan/aside/content`, and marks of bases.
//!
//! Removing is up to the owner, who first reads all session files. A base stays where forks read it; only a mark says that
//! no fork seems to.

use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use banyan_core::born::Born;

use super::shared::Shared;
use super::{FsLog, layout};
use crate::{BlobHash, LogError};

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Shared {
    /// Reads what is aside.
    pub(crate) fn open_aside(&self) -> Result<(), LogError> {
        let listing = || LogError::io(format!("listing {}", layout::ASIDE));
        self.blobs.open_aside(self.disk.as_ref()).map_err(listing())?;
        let marks = self.disk.list(layout::ASIDE_BASES).map_err(listing())?;
        let marks = marks.iter().filter_map(|mark| {
            let (born, since) = mark.name.split_once('.')?;
            Some((born.parse().ok()?, since.parse().ok()?))
        });
        *self.marks() = marks.collect();
        Ok(())
    }

    fn marks(&self) -> MutexGuard<'_, HashMap<Born, u64>> {
        self.aside_bases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FsLog {
    /// The content that is aside, and for how many seconds.
    pub fn aside_content(&self) -> Vec<(BlobHash, u64)> {
        let now = now();
        self.shared.blobs.aside().into_iter().map(|(hash, since)| (hash, now.saturating_sub(since))).collect()
    }

    /// The incarnations that seem unused though they are kept, and for how many seconds.
    pub fn aside_bases(&self) -> Vec<(Born, u64)> {
        let now = now();
        let marks = self.shared.marks();
        let mut marks: Vec<_> = marks.iter().map(|(born, since)| (*born, now.saturating_sub(*since))).collect();
        marks.sort_unstable();
        marks
    }

    /// Puts content back. The caller found a record that uses it.
    pub fn bring_back_content(&self, hash: &str) -> Result<(), LogError> {
        let moving = LogError::io(format!("moving content {hash} back"));
        self.shared.blobs.bring_back(self.shared.disk.as_ref(), hash).map(drop).map_err(moving)
    }

    /// Whether content that is in use came back from aside since this was called last.
    pub fn take_content_returned(&self) -> bool {
        self.shared.blobs.take_returned()
    }

    /// Removes content that is aside, for good. The caller has read all session files, and none uses it. Returns its length, or
    /// `None` if it is not aside any more.
    pub fn remove_aside_content(&self, hash: &str) -> Result<Option<u64>, LogError> {
        let removing = LogError::io(format!("removing content {hash}"));
        self.shared.blobs.remove_aside(self.shared.disk.as_ref(), hash).map_err(removing)
    }

    /// Removes what a call left that stored content and ended before it was whole.
    pub fn remove_unfinished_content(&self) -> Result<(), LogError> {
        for (path, name) in super::inspect::blobs(self.shared.disk.as_ref())? {
            if name.ends_with(".tmp") {
                self.shared.disk.remove(&path).map_err(LogError::io(format!("removing {path}")))?;
            }
        }
        Ok(())
    }

    /// Marks an incarnation that no fork seems to read. It stays, and is read as before.
    pub fn mark_unused(&self, born: Born) -> Result<(), LogError> {
        let mut marks = self.shared.marks();
        if marks.contains_key(&born) {
            return Ok(());
        }
        let since = now();
        let path = layout::aside_base(born, since);
        let disk = &self.shared.disk;
        let mark = disk.create_dir(layout::ASIDE_BASES).and_then(|()| disk.create(&path));
        mark.map_err(LogError::io(format!("writing {path}")))?;
        marks.insert(born, since);
        Ok(())
    }

    /// Removes the mark of an incarnation. The caller found a fork that reads it.
    pub fn unmark(&self, born: Born) -> Result<(), LogError> {
        let mut marks = self.shared.marks();
        let Some(since) = marks.get(&born).copied() else { return Ok(()) };
        let path = layout::aside_base(born, since);
        self.shared.disk.remove(&path).map_err(LogError::io(format!("removing {path}")))?;
        marks.remove(&born);
        Ok(())
    }

    /// Removes an incarnation that was kept for forks, for good. The caller has read all session files, and no fork reads
    /// it. Returns its length.
    pub fn release(&self, born: Born) -> Result<u64, LogError> {
        let path = layout::base(born);
        let removing = || LogError::io(format!("removing {path}"));
        let length = self.shared.disk.stat(&path).map_err(removing())?.map_or(0, |stat| stat.len);
        self.shared.retained.write().unwrap_or_else(PoisonError::into_inner).remove(&born);
        self.shared.files.remove(&path).map_err(removing())?;
        self.unmark(born)?;
        Ok(length)
    }

    /// Whether commits of this directory are known to be lost, so that what seems unfinished may have been finished.
    pub fn has_lost_commits(&self) -> bool {
        super::damage_log::read(self.shared.disk.as_ref())
            .map_or(true, |(lost, unreadable)| !lost.is_empty() || !unreadable.is_empty())
    }

    /// Whether the register knows a fork of this incarnation.
    pub fn has_registered_fork(&self, born: Born) -> bool {
        let bases = || super::register::bases(self.shared.disk.as_ref(), self.shared.directory);
        // Forks that began since the first call are in the catalogue for certain; those that ended since need another look.
        self.shared.registered_bases.get_or_init(bases).contains(&born) && bases().contains(&born)
    }

    /// What keeps a reading of all session files from being complete: files that are damaged, missing or unknown, and
    /// witnesses that cannot be read. Changes nothing.
    pub fn unreadable(&self) -> Result<Vec<String>, LogError> {
        let mut found = self.doubts_of_files();
        found.extend(self.unknown_files()?);
        let kept = self.shared.disk.list(layout::WAL).map_err(LogError::io("listing the write-ahead log"))?;
        let kept = kept.into_iter().filter(|listed| listed.name.ends_with(super::recovery::SET_ASIDE));
        found.extend(kept.map(|listed| format!("{}/{}: damaged, and kept", layout::WAL, listed.name)));
        found.extend(self.poisoned());
        Ok(found)
    }

    /// Session files of which it cannot be told whose they are.
    fn unknown_files(&self) -> Result<Vec<String>, LogError> {
        let listed = self.shared.disk.list("").map_err(LogError::io("listing the data directory"))?;
        let mut unknown = Vec::new();
        for name in listed.into_iter().filter(|listed| !listed.is_dir).map(|listed| listed.name) {
            let Some(stem) = layout::stem(&name) else { continue };
            let is_known = match self.shared.naming.session_id_of(stem) {
                Some(_) => true,
                None => self
                    .id_inside(&name)
                    .ok()
                    .flatten()
                    .is_some_and(|id| layout::session(self.shared.naming, &id) == name),
            };
            if !is_known {
                unknown.push(format!("{name}: it cannot be told which session's file it is"));
            }
        }
        unknown.sort_unstable();
        Ok(unknown)
    }
}
