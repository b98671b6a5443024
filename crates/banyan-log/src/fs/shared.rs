//! What the threads of a log share.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use banyan_core::born::Born;
use banyan_core::names::Naming;
use banyan_model::CommitNo;

use super::blobs::Blobs;
use super::checkpoint::Sealed;
use super::clear::Cleared;
use super::committer::Item;
use super::file_check::DamagedFiles;
use super::files::Files;
use super::finisher::Finisher;
use super::format::DirectoryId;
use super::lazy_file::LazyFile;
use super::live_segments::LiveSegments;
use super::register::Register;
use super::replay::Bookmarks;
use super::room::{Reserve, SMALLEST_SEGMENT};
use super::segment::Segment;
use super::{Options, journal, layout};
use crate::disk::{Disk, LockGuard};
use crate::{LogError, Removal};

/// See the module.
pub(crate) struct Shared {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) options: Options,
    pub(crate) directory: DirectoryId,
    /// How the disk tells names apart.
    pub(crate) naming: Naming,
    pub(crate) files: Files,
    pub(crate) blobs: Blobs,
    /// Bases that seem unused, and since when, in seconds since 1970.
    pub(crate) aside_bases: Mutex<HashMap<Born, u64>>,
    /// The bases of forks, by the register when it was first asked.
    pub(crate) registered_bases: OnceLock<HashSet<Born>>,
    /// Positions before this commit are not resumed from.
    pub(crate) floor: AtomicU64,
    /// The last commit that is safe and visible.
    pub(crate) head: AtomicU64,
    /// The last commit when the log was opened.
    pub(crate) opened_at: AtomicU64,
    queue: Mutex<Queue>,
    /// Told when something was queued, or the log is closing.
    pub(crate) arrived: Condvar,
    pub(crate) upkeep: Mutex<Upkeep>,
    /// Told when the checkpointer has something to do.
    pub(crate) wanted: Condvar,
    /// Told when a checkpoint ended, well or not.
    pub(crate) settled: Condvar,
    /// Incarnations whose files were moved to where forks read them.
    pub(crate) retained: RwLock<HashSet<Born>>,
    /// Called before segments are dropped, with the last commit in them.
    pub(crate) before_drop: OnceLock<BeforeDrop>,
    pub(crate) bookmarks: Bookmarks,
    pub(crate) live: LiveSegments,
    pub(crate) register: Register,
    /// The register was begun when the log was opened.
    pub(crate) register_is_new: AtomicBool,
    pub(crate) damaged: DamagedFiles,
    pub(crate) reserve: Reserve,
    /// How many bytes may be stored beside the log before the disk is asked for room.
    pub(crate) granted: AtomicU64,
    pub(crate) cleared: Cleared,
    journal: Mutex<Option<(u64, Arc<LazyFile>)>>,
    /// Held while a line is blanked.
    pub(crate) erasing: Mutex<()>,
    /// Given back when the log is closed, or else when the last of its threads has ended.
    pub(crate) lock: Mutex<Option<LockGuard>>,
    /// What was committed and waits to be told.
    pub(crate) finisher: Finisher,
}

/// What must be made durable before the log lets go of a commit.
pub(crate) type BeforeDrop = Box<dyn Fn(CommitNo) -> Result<(), LogError> + Send + Sync>;

/// What waits to be committed.
#[derive(Default)]
pub(crate) struct Queue {
    pub(crate) items: Vec<Item>,
    /// The committer sleeps. Waking one that does not costs a system call.
    pub(crate) idle: bool,
    pub(crate) closing: bool,
    pub(crate) poison: Option<String>,
}

/// What the checkpointer works on.
pub(crate) struct Upkeep {
    /// Files with bytes that only the log has made durable.
    pub(crate) dirty: HashMap<String, Arc<LazyFile>>,
    /// Segments that are full.
    pub(crate) sealed: Vec<Sealed>,
    /// How large the segment is that is being written.
    pub(crate) current: u64,
    /// The segment that comes next, made ahead of time.
    pub(crate) ready: Option<Segment>,
    pub(crate) next_id: u64,
    pub(crate) next_size: u64,
    /// Why the last checkpoint could not be done.
    pub(crate) trouble: Option<LogError>,
    /// Files of segments are removed, and none is used again.
    pub(crate) clearing: bool,
    pub(crate) stop: bool,
}

/// So many of the largest segments may wait for their files before writers wait too, or so many bytes of small ones.
const MOST_SEALED: u64 = 2;
const FEW_BYTES: u64 = 1 << 20;

impl Shared {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        options: Options,
        files: Files,
        lock: LockGuard,
        directory: DirectoryId,
        naming: Naming,
    ) -> Self {
        let upkeep = Upkeep {
            dirty: HashMap::new(),
            sealed: Vec::new(),
            current: 0,
            ready: None,
            next_id: 1,
            next_size: options.first_segment,
            trouble: None,
            clearing: false,
            stop: false,
        };
        Self {
            disk,
            options,
            directory,
            naming,
            files,
            blobs: Blobs::default(),
            aside_bases: Mutex::default(),
            registered_bases: OnceLock::new(),
            floor: AtomicU64::new(0),
            head: AtomicU64::new(0),
            opened_at: AtomicU64::new(0),
            queue: Mutex::default(),
            arrived: Condvar::new(),
            upkeep: Mutex::new(upkeep),
            wanted: Condvar::new(),
            settled: Condvar::new(),
            retained: RwLock::default(),
            before_drop: OnceLock::new(),
            bookmarks: Bookmarks::default(),
            live: LiveSegments::default(),
            register: Register::default(),
            register_is_new: AtomicBool::new(false),
            damaged: DamagedFiles::default(),
            reserve: Reserve::default(),
            granted: AtomicU64::new(0),
            cleared: Cleared::default(),
            journal: Mutex::default(),
            erasing: Mutex::default(),
            lock: Mutex::new(Some(lock)),
            finisher: Finisher::default(),
        }
    }

    pub(crate) fn head(&self) -> CommitNo {
        CommitNo(self.head.load(Ordering::Acquire))
    }

    pub(crate) fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn upkeep(&self) -> MutexGuard<'_, Upkeep> {
        self.upkeep.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn healthy(&self) -> Result<(), LogError> {
        match &self.queue().poison {
            Some(reason) => Err(LogError::Poisoned(reason.clone())),
            None => Ok(()),
        }
    }

    /// After a failed flush nothing on the disk is certain, so nothing more is written.
    pub(crate) fn poison(&self, reason: &str) {
        self.queue().poison.get_or_insert_with(|| reason.to_owned());
        self.settled.notify_all();
    }

    /// Fails, and ends writing, if another process may own the directory by now.
    pub(crate) fn check_ownership(&self) -> Result<(), LogError> {
        let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Err(error)) = lock.as_ref().map(LockGuard::check) else { return Ok(()) };
        drop(lock);
        let reason = format!("{}: {error}", layout::LOCK);
        self.poison(&reason);
        Err(LogError::Poisoned(reason))
    }

    /// The journal file that a commit goes to.
    pub(crate) fn journal_file(&self, commit: CommitNo) -> Arc<LazyFile> {
        let first = journal::file_of(commit);
        let mut current = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        match &*current {
            Some((at, file)) if *at == first => Arc::clone(file),
            _ => {
                let path = layout::journal(first);
                let file = self.files.ensure(&path).unwrap_or_else(|_| {
                    // A journal that cannot be opened fails when it is written out, and is reported there.
                    Arc::new(LazyFile::new(path, Arc::clone(self.files.fds()), 0))
                });
                *current = Some((first, Arc::clone(&file)));
                file
            }
        }
    }

    pub(crate) fn mark_dirty(&self, file: &Arc<LazyFile>) {
        if file.mark_dirty() {
            self.upkeep().dirty.insert(file.path().to_owned(), Arc::clone(file));
        }
    }

    /// Makes a file's staged bytes visible.
    pub(crate) fn publish(&self, file: &Arc<LazyFile>) {
        if file.publish() {
            self.upkeep().dirty.insert(file.path().to_owned(), Arc::clone(file));
        }
    }

    pub(crate) fn seal(&self, sealed: Sealed) {
        self.upkeep().sealed.push(sealed);
        self.wanted.notify_all();
        if !self.options.background {
            self.checkpoint_and_note();
        }
    }

    /// Waits while too many full segments wait for their files.
    pub(crate) fn wait_for_checkpoints(&self) -> Result<(), LogError> {
        if !self.options.background {
            if self.upkeep().trouble.is_some() {
                self.checkpoint_and_note();
            }
            return self.upkeep().trouble.clone().map_or(Ok(()), Err);
        }
        let most = (self.options.largest_segment * MOST_SEALED).max(FEW_BYTES);
        let mut upkeep = self.upkeep();
        while upkeep.sealed.iter().map(|sealed| sealed.size).sum::<u64>() >= most
            || (upkeep.trouble.is_some() && !upkeep.sealed.is_empty())
        {
            if let Some(trouble) = upkeep.trouble.take() {
                // Refuse this one, and let the checkpointer try again for the next.
                self.wanted.notify_all();
                return Err(trouble);
            }
            self.healthy()?;
            self.wanted.notify_all();
            upkeep = self.settled.wait(upkeep).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }

    /// The id that the next segment gets.
    pub(crate) fn upcoming_id(&self) -> u64 {
        self.upkeep().next_id
    }

    /// Waits until the full segments before this one are gone, or cannot be let go of.
    pub(crate) fn wait_until_dropped(&self, before: u64) -> Result<(), LogError> {
        let mut upkeep = self.upkeep();
        while self.options.background
            && upkeep.sealed.iter().any(|sealed| sealed.segment < before)
            && upkeep.trouble.is_none()
            && !upkeep.stop
        {
            self.healthy()?;
            self.wanted.notify_all();
            upkeep = self.settled.wait(upkeep).unwrap_or_else(PoisonError::into_inner);
        }
        upkeep.trouble.clone().map_or(Ok(()), Err)
    }

    /// A segment with room for at least `need` bytes.
    pub(crate) fn next_segment(&self, need: u64) -> Result<Segment, LogError> {
        let (ready, wanted) = {
            let mut upkeep = self.upkeep();
            (upkeep.ready.take(), upkeep.next_size)
        };
        let ready = match ready {
            Some(ready) if ready.size >= need && self.has_room_for(&ready) => Some(ready),
            Some(unfit) => {
                let _ = self.disk.remove(&layout::segment(unfit.id));
                None
            }
            None => None,
        };
        let segment = match ready {
            Some(ready) => ready,
            None => {
                let size = self.segment_size(need, wanted)?;
                Segment::prepare(self.disk.as_ref(), self.next_id(), size)
                    // On a disk that is nearly full a small segment may still fit.
                    .or_else(|_| Segment::prepare(self.disk.as_ref(), self.next_id(), need))?
            }
        };
        let mut upkeep = self.upkeep();
        upkeep.next_size = (upkeep.next_size * 4).min(self.options.largest_segment);
        Ok(segment)
    }

    /// A segment for commits that free room. It may take the reserve.
    pub(crate) fn segment_from_reserve(&self, need: u64) -> Result<Segment, LogError> {
        let disk = self.disk.as_ref();
        let ready = self.upkeep().ready.take();
        match ready {
            Some(ready) if ready.size >= need => return Ok(ready),
            Some(small) => drop(disk.remove(&layout::segment(small.id))),
            None => {}
        }
        self.reserve.spend(disk);
        Segment::prepare(disk, self.next_id(), need.max(SMALLEST_SEGMENT))
            .or_else(|_| Segment::prepare(disk, self.next_id(), need))
    }

    fn next_id(&self) -> u64 {
        let mut upkeep = self.upkeep();
        upkeep.next_id += 1;
        upkeep.next_id - 1
    }

    /// Takes a deleted session's file away, or to where its forks read it.
    pub(crate) fn remove_session(
        &self,
        file: &LazyFile,
        removal: &Removal,
        commit: CommitNo,
    ) -> Result<(), LogError> {
        let path = file.path();
        self.register.note_removed(path, commit)?;
        self.upkeep().dirty.remove(path);
        let _ = self.disk.remove(&layout::tree(self.naming, &removal.session));
        let done = (|| {
            if !removal.keep_for_forks {
                return file.remove();
            }
            let base = layout::base(removal.born);
            self.disk.create_dir(layout::BASES)?;
            file.write_out()?;
            let flushed = file.sync();
            // Also after a failed flush: the session is gone, and its forks go on being read. Whoever finds the file gone
            // here asks whether it is kept, and waits for the answer.
            let mut retained = self.retained.write().unwrap_or_else(PoisonError::into_inner);
            file.rename(&base)?;
            retained.insert(removal.born);
            drop(retained);
            flushed?;
            // Durable before anyone can make a new session of this name.
            self.disk.sync_dir(layout::BASES)?;
            self.disk.sync_dir(layout::parent(path))
        })();
        // Last: whoever looks for the file finds the one that is gone until then, and never opens it again.
        self.files.forget(path);
        done.map_err(LogError::io(format!("removing {path}")))
    }
}

/// A size for a segment that must hold `need` bytes.
pub(crate) fn rounded(need: u64) -> u64 {
    need.next_multiple_of(4096)
}
