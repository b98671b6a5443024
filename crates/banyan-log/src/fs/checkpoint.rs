//! Letting go of the write-ahead log: session files are written and flushed, then full segments are dropped.

use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use banyan_model::CommitNo;

use super::lazy_file::LazyFile;
use super::recovery::SET_ASIDE;
use super::segment::Segment;
use super::shared::Shared;
use super::{journal, layout, replay};
use crate::LogError;
use crate::error::is_full;

/// A full segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sealed {
    pub(crate) segment: u64,
    /// The last commit in it.
    pub(crate) through: CommitNo,
    /// How large its file is.
    pub(crate) size: u64,
    /// Commits in it cannot be read: its file is kept.
    pub(crate) damaged: bool,
}

/// From so many dirty files on, one flush of the whole file system is cheaper than one of each.
const MANY: usize = 256;

/// How long committed bytes stay out of their session file when nothing else happens.
const IDLE: Duration = Duration::from_millis(500);

/// Works until the log is closed.
pub(crate) fn run(shared: &Shared) {
    loop {
        let full = {
            let mut upkeep = shared.upkeep();
            if upkeep.stop {
                return;
            }
            // After trouble it is tried again when a writer asks, or after a while.
            if upkeep.sealed.is_empty() || upkeep.trouble.is_some() {
                let waited = shared.wanted.wait_timeout(upkeep, IDLE);
                upkeep = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            if upkeep.stop {
                return;
            }
            !upkeep.sealed.is_empty()
        };
        if full {
            shared.checkpoint_and_note();
            shared.prepare_next();
        } else {
            shared.show_files();
        }
        shared.reserve.keep(shared.disk.as_ref());
        shared.withdraw_grant();
    }
}

impl Shared {
    /// Makes every dirty file durable and drops the segments that are full by now.
    pub(crate) fn checkpoint(&self) -> Result<(), LogError> {
        self.healthy()?;
        let (sealed, mut dirty) = {
            let mut upkeep = self.upkeep();
            let dirty: Vec<Arc<LazyFile>> = upkeep.dirty.drain().map(|(_, file)| file).collect();
            (upkeep.sealed.clone(), dirty)
        };
        // Always in the same order, so that a simulation can be repeated.
        dirty.sort_unstable_by(|a, b| a.path().cmp(b.path()));
        for file in &dirty {
            file.clear_dirty();
        }
        let flushed = self.flush_files(&dirty);
        if let Err(error) = flushed {
            for file in &dirty {
                self.mark_dirty(file);
            }
            return Err(error);
        }
        self.register_flushed(&dirty)?;
        let Some(through) = sealed.last().map(|sealed| sealed.through) else { return Ok(()) };
        if let Some(hook) = self.before_drop.get() {
            hook(through)?;
        }
        let ids: Vec<u64> = sealed.iter().map(|sealed| sealed.segment).collect();
        self.live.end(self.disk.as_ref(), &ids)?;
        for sealed in &sealed {
            let path = layout::segment(sealed.segment);
            self.drop_segment(sealed, &path).map_err(LogError::io(format!("dropping {path}")))?;
            self.upkeep().sealed.retain(|kept| kept.segment != sealed.segment);
        }
        self.prune_journal()
    }

    /// Lets go of a segment, or keeps its file for a later one. Segments go in order and each is gone for good before the
    /// next, so that a segment which is missing between others can only be damage.
    fn drop_segment(&self, sealed: &Sealed, path: &str) -> io::Result<()> {
        if sealed.damaged {
            self.disk.rename(path, &format!("{path}{SET_ASIDE}"))?;
            return self.disk.sync_dir(layout::WAL);
        }
        let may_keep = self.may_keep_ready(sealed.size);
        let reuse = {
            let mut upkeep = self.upkeep();
            let wanted = self.options.background && upkeep.ready.is_none() && !upkeep.stop && !upkeep.clearing;
            (wanted && may_keep && sealed.size >= upkeep.next_size).then(|| {
                upkeep.next_id += 1;
                upkeep.next_id - 1
            })
        };
        let Some(id) = reuse else {
            self.disk.remove(path)?;
            return self.disk.sync_dir(layout::WAL);
        };
        // Its frames are valid under the old number only.
        let new = layout::segment(id);
        self.disk.rename(path, &new)?;
        self.disk.sync_dir(layout::WAL)?;
        if let Some(file) = self.disk.open(&new)? {
            let mut upkeep = self.upkeep();
            if upkeep.clearing {
                drop(upkeep);
                return self.disk.remove(&new);
            }
            upkeep.ready = Some(Segment { id, file, size: sealed.size, at: 0 });
        }
        Ok(())
    }

    /// Notes in the register what was just flushed.
    fn register_flushed(&self, flushed: &[Arc<LazyFile>]) -> Result<(), LogError> {
        let live = |file: &&Arc<LazyFile>| layout::stem(file.path()).is_some_and(|stem| !stem.contains('/'));
        let sessions: Vec<&Arc<LazyFile>> = flushed.iter().filter(live).filter(|file| file.exists()).collect();
        let lines = sessions.iter().map(|file| (file.path().to_owned(), file.registered())).collect();
        self.register.note(self.disk.as_ref(), self.directory, lines)?;
        sessions.iter().for_each(|file| file.forget_beginning());
        Ok(())
    }

    fn flush_files(&self, dirty: &[Arc<LazyFile>]) -> Result<(), LogError> {
        for file in dirty {
            file.write_out().map_err(LogError::io(format!("writing {}", file.path())))?;
        }
        if dirty.len() > MANY {
            return self.disk.sync_all().map_err(LogError::io("flushing the session files"));
        }
        for file in dirty {
            file.sync().map_err(LogError::io(format!("flushing {}", file.path())))?;
        }
        for dir in ["", layout::JOURNAL] {
            self.disk.sync_dir(dir).map_err(LogError::io("flushing the data directory"))?;
        }
        Ok(())
    }

    /// Drops journal files that are older than what must be kept.
    fn prune_journal(&self) -> Result<(), LogError> {
        let keep_from = self.head().0.saturating_sub(self.options.keep_commits);
        if keep_from < journal::PER_FILE {
            return Ok(());
        }
        for first in replay::journal_files(self)? {
            if first + journal::PER_FILE <= keep_from {
                let path = layout::journal(first);
                self.files.remove(&path).map_err(LogError::io(format!("removing {path}")))?;
            }
        }
        Ok(())
    }

    /// Checkpoints; a full disk is tried again later, any other failure ends writing.
    pub(crate) fn checkpoint_and_note(&self) {
        let outcome = self.checkpoint();
        if let Err(error) = &outcome
            && !matches!(error, LogError::Full(_))
        {
            self.poison(&error.to_string());
        }
        if !self.options.background {
            self.reserve.keep(self.disk.as_ref());
        }
        let mut upkeep = self.upkeep();
        upkeep.trouble = outcome.err();
        if upkeep.trouble.is_some()
            && let Some(ready) = upkeep.ready.take()
        {
            // Room that is kept for later is room that the session files need now.
            let _ = self.disk.remove(&layout::segment(ready.id));
        }
        drop(upkeep);
        self.settled.notify_all();
    }

    /// Makes the next segment ahead of time, while writers fill the current one.
    fn prepare_next(&self) {
        let wanted = self.upkeep().next_size;
        if !self.may_keep_ready(wanted) {
            return;
        }
        let (id, size) = {
            let mut upkeep = self.upkeep();
            if upkeep.ready.is_some() || upkeep.trouble.is_some() || upkeep.stop {
                return;
            }
            let id = upkeep.next_id;
            upkeep.next_id += 1;
            (id, upkeep.next_size)
        };
        if let Ok(segment) = Segment::prepare(self.disk.as_ref(), id, size) {
            self.upkeep().ready = Some(segment);
        }
    }

    /// Writes committed bytes to their files, without a flush, so that a person who looks finds them.
    fn show_files(&self) {
        self.files.fds().drop_buffers();
        if self.healthy().is_err() {
            return;
        }
        let dirty: Vec<Arc<LazyFile>> = self.upkeep().dirty.values().cloned().collect();
        for file in dirty.iter().filter(|file| !file.is_written()) {
            match file.write_out() {
                Ok(_) => {}
                // There is time until the segment is full.
                Err(error) if is_full(&error) => return,
                Err(error) => return self.poison(&format!("writing {}: {error}", file.path())),
            }
        }
    }
}
