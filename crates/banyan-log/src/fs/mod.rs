//! The log on a file system: one file a session, a write-ahead log as the commit point.
//!
//! The life of a commit: its lines are *staged* into the session's [`LazyFile`](lazy_file::LazyFile), go into
//! the write-ahead log as one frame, are flushed together with everything else that was waiting, and
//! become visible. The session file itself is written later; [`checkpoint`] does that and drops the log.

mod aside;
mod blobs;
mod checked_line;
mod checkpoint;
mod clear;
mod committer;
mod damage_log;
mod erase;
mod fds;
mod file_check;
mod files;
mod finisher;
mod format;
mod frame;
mod history;
pub mod inspect;
mod journal;
mod layout;
mod lazy_file;
mod live_segments;
mod plan;
mod recovery;
mod register;
mod replay;
pub mod restored;
mod room;
mod scan;
mod segment;
mod segment_scan;
mod shared;
mod unusable;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use banyan_core::born::Born;
use banyan_core::names;
use banyan_model::{CommitNo, Seq, SessionId};

use committer::{Committer, Item, Queued};
use fds::Fds;
use files::Files;
use lazy_file::LazyFile;
use shared::Shared;

use crate::disk::{Disk, LockOutcome};
use crate::{At, BlobHash, Commit, JournalEntry, LogError, Replay, Scanned, SessionLog};

pub use clear::ClearedLog;
pub use damage_log::LostCommits;
pub use file_check::FileDamage;
pub use format::{DirectoryId, NotADirectoryId};
pub use recovery::Recovered;
pub use register::{RegisteredFile, first_line_sum};
pub use room::Room;
pub use scan::session_named_in;

/// When an answer leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// After the flush: it survives a power cut.
    Synced,
    /// After the write: it survives the end of the process, and a power cut only after the next flush. For bulk imports.
    Buffered,
}

/// How a log behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// When an answer leaves.
    pub durability: Durability,
    /// Whether session files are written, and commits told, by threads of their own, or by the committer. Without it nothing
    /// happens that no caller asked for, and the committer itself starts with the first commit.
    pub background: bool,
    /// Size of the first segment of the write-ahead log; each one is four times the size of the one before.
    pub first_segment: u64,
    /// The most that a segment grows to.
    pub largest_segment: u64,
    /// How many session files may be open at once.
    pub open_files: usize,
    /// How many commits the journal keeps at least.
    pub keep_commits: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Synced,
            background: true,
            first_segment: 256 << 10,
            largest_segment: 32 << 20,
            open_files: 256,
            keep_commits: 1_000_000,
        }
    }
}

/// See the module.
pub struct FsLog {
    shared: Arc<Shared>,
    /// The committer first: it ends the others.
    threads: Mutex<Vec<JoinHandle<()>>>,
    started: AtomicBool,
}

impl FsLog {
    /// Takes the lock of a directory and puts back what its write-ahead log has.
    /// Commits are taken after [`start`](Self::start).
    pub fn open(disk: Arc<dyn Disk>, options: Options) -> Result<(Self, Recovered), LogError> {
        // Before anything is touched: a newer directory stays as it is.
        let format = format::check(disk.as_ref())?;
        restored::refuse_unfinished(disk.as_ref())?;
        let creating = LogError::io("making the data directory");
        disk.create_dir(layout::STATE).map_err(creating)?;
        let owner = format!("pid {}", std::process::id());
        let lock = match disk.lock(layout::LOCK, &owner).map_err(LogError::io("taking the lock"))? {
            LockOutcome::Held(guard) => guard,
            LockOutcome::Taken(owner) => return Err(LogError::Locked { owner }),
        };
        for dir in [layout::WAL, layout::JOURNAL, layout::BLOBS, layout::BASES] {
            disk.create_dir(dir).map_err(LogError::io(format!("making {dir}")))?;
        }
        disk.sync_dir(layout::STATE).map_err(LogError::io("flushing the data directory"))?;
        disk.sync_dir("").map_err(LogError::io("flushing the data directory"))?;
        let mut said = Recovered { warnings: disk.tighten(layout::STATE), ..Recovered::default() };
        unusable::set_aside(disk.as_ref(), &mut said)?;
        let directory = format::settle(disk.as_ref(), format, &mut said)?;
        let naming = layout::naming_by(disk.as_ref(), layout::FORMATS[0])?;
        let fds = Arc::new(Fds::new(Arc::clone(&disk), options.open_files));
        let shared = Arc::new(Shared::new(disk, options, Files::new(fds), lock, directory, naming));
        shared.open_register(&mut said)?;
        shared.finish_erasing()?;
        let mut recovered = recovery::recover(&shared)?;
        shared.open_history(&mut said)?;
        recovered.warnings.splice(..0, said.warnings);
        recovered.notes = said.notes;
        shared.take_restored(&mut recovered);
        let bases = shared.disk.list(layout::BASES).map_err(LogError::io("listing bases"))?;
        shared
            .retained
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(bases.iter().filter_map(|listed| layout::stem(&listed.name)?.parse::<Born>().ok()));
        shared.open_aside()?;
        Ok((Self { shared, threads: Mutex::default(), started: AtomicBool::new(false) }, recovered))
    }

    /// Starts taking commits. `before_drop` is called before the write-ahead log lets go of commits, with the last of them.
    pub fn start(
        &self,
        before_drop: Box<dyn Fn(CommitNo) -> Result<(), LogError> + Send + Sync>,
    ) -> Result<(), LogError> {
        let _ = self.shared.before_drop.set(before_drop);
        // A file of before may hold what was deleted since: none is used again.
        self.shared.upkeep().clearing = true;
        self.shared.settle_floor();
        self.shared.opened_at.store(self.shared.head().0, Ordering::Release);
        let outcome = self.shared.checkpoint();
        self.shared.upkeep().clearing = false;
        match outcome {
            // What was recovered stays in the log until there is room.
            Ok(()) | Err(LogError::Full(_)) => {}
            Err(error) => return Err(error),
        }
        self.started.store(true, Ordering::Release);
        if self.shared.options.background {
            let shared = Arc::clone(&self.shared);
            self.start_committer()?;
            self.spawn(&mut self.threads(), "banyan-finish", move || shared.finisher.run())?;
            let shared = Arc::clone(&self.shared);
            self.spawn(&mut self.threads(), "banyan-files", move || checkpoint::run(&shared))?;
        }
        Ok(())
    }

    /// Starts the committer, unless it works already.
    fn start_committer(&self) -> Result<(), LogError> {
        let mut threads = self.threads();
        if threads.is_empty() {
            let committer = Committer::new(Arc::clone(&self.shared));
            self.spawn(&mut threads, "banyan-commit", move || committer.run())?;
        }
        Ok(())
    }

    fn spawn(
        &self,
        threads: &mut Vec<JoinHandle<()>>,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), LogError> {
        let spawned = thread::Builder::new().name(name.to_owned()).spawn(work);
        threads.push(spawned.map_err(LogError::io("starting a thread"))?);
        Ok(())
    }

    fn threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of the directory, which everything that is derived from it names.
    pub fn directory_id(&self) -> DirectoryId {
        self.shared.directory
    }

    /// Makes sure that commit numbers go on after this one, which some other witness has seen.
    pub fn raise_head(&self, seen: CommitNo) {
        self.shared.head.fetch_max(seen.0, Ordering::AcqRel);
    }

    /// The room on the disk, where the disk can tell.
    pub fn room(&self) -> Option<Room> {
        self.shared.room()
    }

    /// Gives the reserve back to the file system, so that a session can be deleted on a full disk.
    pub fn spend_reserve(&self) {
        self.shared.reserve.spend(self.shared.disk.as_ref());
    }

    /// Positions before this commit are of another history: the directory was restored from a backup. 0 in any other directory.
    pub fn history_floor(&self) -> CommitNo {
        CommitNo(self.shared.floor.load(Ordering::Acquire))
    }

    /// Ends the line that is growing, if there is one, and returns the length of the session's records: whole lines, but for a
    /// torn end. `None` if the session has no records.
    pub fn whole_length(&self, at: At<'_>) -> Result<Option<u64>, LogError> {
        let Some(file) = self.find(at)? else { return Ok(None) };
        file.close_open_line();
        Ok(Some(file.end()))
    }

    /// The disk that the directory is on, for reading.
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.shared.disk
    }

    /// Why writing has stopped, if it has.
    pub fn poisoned(&self) -> Option<String> {
        self.shared.queue().poison.clone()
    }

    /// Says what the next line of a session is numbered, once its records have been counted.
    pub fn expect_seq(&self, session: &SessionId, seq: Seq) -> Result<(), LogError> {
        let path = layout::session(self.shared.naming, session);
        let file = self.shared.files.ensure(&path).map_err(LogError::io(format!("opening {path}")))?;
        file.expect_seq(seq);
        Ok(())
    }

    /// Writes what is committed to a session's file, without a flush, so that it is not held. Whoever writes much at a time asks for it.
    pub fn write_out(&self, session: &SessionId) -> Result<(), LogError> {
        let writing = LogError::io(format!("writing {}", layout::session(self.shared.naming, session)));
        match self.find(At::Live(session))? {
            Some(file) => file.write_out().map(drop).map_err(writing),
            None => Ok(()),
        }
    }

    /// Length and time of change of a session's file, for telling whether somebody else wrote to it.
    pub fn stamp(&self, at: At<'_>) -> Result<Option<(u64, u64)>, LogError> {
        let path = self.path(at);
        if let Some(len) = self.shared.files.len_in_memory(&path) {
            return Ok(Some((len, 0)));
        }
        let stat = self.shared.disk.stat(&path).map_err(LogError::io(format!("looking at {path}")))?;
        Ok(stat.map(|stat| (stat.len, stat.modified)))
    }

    /// Something that changes whenever a session file is made or removed; `None` where a disk cannot tell.
    pub fn directory_stamp(&self) -> Option<String> {
        let stat = self.shared.disk.stat("").ok()??;
        (stat.modified > 0).then(|| stat.modified.to_string())
    }

    /// The hashes of all blobs, and the names of other files among them.
    pub fn blobs(&self) -> Result<Vec<String>, LogError> {
        Ok(inspect::blobs(self.shared.disk.as_ref())?.into_iter().map(|(_, hash)| hash).collect())
    }

    /// Keeps the image of a session's tree, which can be thrown away.
    pub fn save_tree(&self, session: &SessionId, image: &[u8]) -> Result<(), LogError> {
        let path = layout::tree(self.shared.naming, session);
        let saving = LogError::io(format!("writing {path}"));
        let save = || {
            self.shared.disk.create_dir(layout::TREES)?;
            let file = self.shared.disk.create(&path)?;
            file.set_len(0)?;
            file.write_at(0, image)
        };
        save().map_err(saving)
    }

    /// The image of a session's tree, if one was kept. It says itself whether it is whole.
    pub fn tree(&self, session: &SessionId) -> Option<Vec<u8>> {
        let file = self.shared.disk.open(&layout::tree(self.shared.naming, session)).ok()??;
        segment::read_all(file.as_ref()).ok()
    }

    /// Removes the images of all trees.
    pub fn remove_trees(&self) {
        for listed in self.shared.disk.list(layout::TREES).unwrap_or_default() {
            // One that stays takes room, and is as right as before.
            let _ = self.shared.disk.remove(&format!("{}/{}", layout::TREES, listed.name));
        }
    }

    /// True when the incarnation was deleted and its records are kept for forks.
    pub fn is_retained(&self, born: Born) -> bool {
        self.shared.retained.read().unwrap_or_else(PoisonError::into_inner).contains(&born)
    }

    /// Incarnations that are kept for forks, in order.
    pub fn retained(&self) -> Vec<Born> {
        let retained = self.shared.retained.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<Born> = retained.iter().copied().collect();
        all.sort_unstable();
        all
    }

    fn path(&self, at: At<'_>) -> String {
        match at {
            At::Incarnation(_, born) if self.is_retained(born) => layout::base(born),
            At::Live(session) | At::Incarnation(session, _) => layout::session(self.shared.naming, session),
        }
    }

    fn find(&self, at: At<'_>) -> Result<Option<Arc<LazyFile>>, LogError> {
        let path = self.path(at);
        self.shared.files.existing(&path).map_err(LogError::io(format!("opening {path}")))
    }

    /// The name of a session's file.
    pub fn file_name(&self, session: &SessionId) -> String {
        layout::session(self.shared.naming, session)
    }

    /// The session that has a file of this name, as far as the name tells.
    pub fn session_of_file(&self, name: &str) -> Option<SessionId> {
        self.shared.naming.session_id_of(layout::stem(name)?)
    }

    /// Gives session files whose names are spelled otherwise than here, as other programs may, the names that they have here.
    pub fn respell(&self) -> Result<(), LogError> {
        let listing = LogError::io("listing the data directory");
        for listed in self.shared.disk.list("").map_err(listing)?.into_iter().filter(|listed| !listed.is_dir) {
            let Some(stem) = layout::stem(&listed.name) else { continue };
            let Some(session) = names::legacy_session_id_of(stem) else { continue };
            let path = layout::session(self.shared.naming, &session);
            if path == listed.name || stem.starts_with('~') {
                continue;
            }
            let renaming = || LogError::io(format!("renaming {} to {path}", listed.name));
            if self.shared.disk.stat(&path).map_err(renaming())?.is_none() {
                self.shared.disk.rename(&listed.name, &path).map_err(renaming())?;
                self.shared.disk.sync_dir("").map_err(renaming())?;
                self.register_renamed(&listed.name, &path)?;
            }
        }
        Ok(())
    }

    /// The id that a file's first record tells, for names that do not tell it.
    fn id_inside(&self, path: &str) -> Result<Option<SessionId>, LogError> {
        let reading = || LogError::io(format!("reading {path}"));
        let Some(file) = self.shared.files.existing(path).map_err(reading())? else { return Ok(None) };
        let mut id = None;
        scan::first_line(&file, &mut |line| id = scan::session_named_in(line)).map_err(reading())?;
        if id.is_none() {
            // A fork of session-manager's names itself in a later line.
            scan::scan(&file, 0, &mut |_, line| {
                if id.is_none() {
                    id = scan::session_named_in(line);
                }
            })?;
        }
        Ok(id)
    }

    /// Gives the item back when it cannot be taken.
    fn enqueue(&self, item: Item) -> Option<(Item, LogError)> {
        if !self.shared.options.background
            && self.started.load(Ordering::Acquire)
            && let Err(error) = self.start_committer()
        {
            return Some((item, error));
        }
        let mut queue = self.shared.queue();
        if queue.closing {
            return Some((item, LogError::Closed));
        }
        if let Some(reason) = &queue.poison {
            return Some((item, LogError::Poisoned(reason.clone())));
        }
        queue.items.push(item);
        // One call wakes the committer; those that come before it is awake need not call again.
        let wake = std::mem::take(&mut queue.idle);
        drop(queue);
        if wake {
            self.shared.arrived.notify_one();
        }
        None
    }
}

impl SessionLog for FsLog {
    fn append(&self, commit: Commit) {
        let refused = match Queued::new(&self.shared, commit) {
            Ok(queued) => self.enqueue(Item::Commit(queued)),
            Err((done, error)) => return done(Err(error))(),
        };
        if let Some((Item::Commit(queued), error)) = refused {
            (queued.done)(Err(error))();
        }
    }

    fn scan(&self, at: At<'_>, from: u64, visit: &mut dyn FnMut(u64, &[u8])) -> Result<Option<Scanned>, LogError> {
        match self.find(at)? {
            Some(file) => scan::scan(&file, from, visit).map(Some),
            None => Ok(None),
        }
    }

    fn mend(&self, at: At<'_>, scanned: Scanned) -> Result<(), LogError> {
        match self.find(at)? {
            Some(file) => {
                let mending = LogError::io(format!("mending the end of {}", file.path()));
                scan::mend(&file, scanned).map_err(mending)
            }
            None => Ok(()),
        }
    }

    fn first_line(&self, at: At<'_>) -> Result<Option<Vec<u8>>, LogError> {
        let Some(file) = self.find(at)? else { return Ok(None) };
        let mut first = None;
        let reading = LogError::io(format!("reading {}", file.path()));
        scan::first_line(&file, &mut |line| first = Some(line.to_vec())).map_err(reading)?;
        Ok(first)
    }

    fn read(&self, at: At<'_>, offset: u64, len: usize) -> Result<Vec<u8>, LogError> {
        let read = || match self.find(at)? {
            Some(file) => file.read(offset, len).map_err(LogError::io(format!("reading {}", file.path()))),
            None => Ok(Vec::new()),
        };
        let kept = |at| matches!(at, At::Incarnation(_, born) if self.is_retained(born));
        let kept_before = kept(at);
        let bytes = read()?;
        // When it was moved meanwhile, another session may have its name already.
        if !kept_before && kept(at) { read() } else { Ok(bytes) }
    }

    fn replay(
        &self,
        after: CommitNo,
        upto: CommitNo,
        visit: &mut dyn FnMut(JournalEntry) -> bool,
    ) -> Result<Replay, LogError> {
        replay::replay(&self.shared, after, upto, visit)
    }

    fn head(&self) -> CommitNo {
        self.shared.head()
    }

    fn sessions(&self) -> Result<Vec<SessionId>, LogError> {
        let listed = self.shared.disk.list("").map_err(LogError::io("listing the data directory"))?;
        let on_disk = listed.into_iter().filter(|listed| !listed.is_dir).map(|listed| listed.name);
        let mut names: Vec<String> = on_disk.chain(self.shared.files.unwritten()).collect();
        names.sort_unstable();
        names.dedup();
        let mut sessions = Vec::with_capacity(names.len());
        for name in &names {
            let Some(stem) = layout::stem(name) else { continue };
            match self.shared.naming.session_id_of(stem) {
                Some(session) => sessions.push(session),
                None if stem.starts_with('~') => {
                    // A file that cannot be read does not say whose it is; `verify` names it.
                    let told = self.id_inside(name).ok().flatten();
                    sessions.extend(told.filter(|session| layout::session(self.shared.naming, session) == *name));
                }
                None => {}
            }
        }
        Ok(sessions)
    }

    fn put_blob(&self, bytes: &[u8]) -> Result<BlobHash, LogError> {
        self.shared.healthy()?;
        self.shared.expect_room(bytes.len() as u64)?;
        self.shared.blobs.put(self.shared.disk.as_ref(), bytes, self.shared.options.durability)
    }

    fn put_blob_from(&self, hash: &str, content: &mut dyn io::Read) -> Result<(), LogError> {
        self.shared.healthy()?;
        self.shared.expect_room(1)?;
        self.shared.blobs.put_from(self.shared.disk.as_ref(), hash, content, self.shared.options.durability)
    }

    fn keep_blob(&self, hash: &str) {
        self.shared.blobs.keep(hash);
    }

    fn unpin_blob(&self, hash: &str) {
        self.shared.blobs.unpin(hash);
    }

    fn get_blob(&self, hash: &str) -> Result<Option<Vec<u8>>, LogError> {
        self.shared.blobs.get(self.shared.disk.as_ref(), hash)
    }

    fn open_blob(&self, hash: &str) -> Result<Option<Box<dyn io::Read + Send>>, LogError> {
        self.shared.blobs.open(self.shared.disk.as_ref(), hash)
    }

    fn forget_blob(&self, hash: &str, unused: &dyn Fn() -> bool) -> Result<(), LogError> {
        let removing = LogError::io(format!("removing content {hash}"));
        self.shared.blobs.forget(self.shared.disk.as_ref(), hash, aside::now(), unused).map_err(removing)
    }

    fn set_blob_aside(&self, hash: &str, unused: &dyn Fn() -> bool) -> Result<(), LogError> {
        let moving = LogError::io(format!("moving content {hash} aside"));
        self.shared.blobs.set_aside(self.shared.disk.as_ref(), hash, aside::now(), unused).map_err(moving)
    }

    fn flush(&self) -> Result<(), LogError> {
        // Before the lines that refer to them.
        self.shared.blobs.flush(self.shared.disk.as_ref())?;
        let (answer, answered) = sync_channel(1);
        let done = Box::new(move |outcome| {
            let _ = answer.send(outcome);
        });
        if let Some((_, error)) = self.enqueue(Item::Flush(done)) {
            return Err(error);
        }
        answered.recv().unwrap_or(Err(LogError::Closed))
    }

    fn close(&self) -> Result<(), LogError> {
        {
            let mut queue = self.shared.queue();
            queue.closing = true;
            self.shared.arrived.notify_all();
        }
        if !self.started.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let threads = std::mem::take(&mut *self.threads());
        // What a commit holds may be the last thing that holds the log. Its threads then end by themselves, and the lock with them.
        if threads.iter().any(|thread| thread.thread().id() == thread::current().id()) {
            return Ok(());
        }
        for thread in threads {
            let _ = thread.join();
        }
        let outcome = self.shared.checkpoint();
        if let Some(ready) = self.shared.upkeep().ready.take() {
            let _ = self.shared.disk.remove(&layout::segment(ready.id));
        }
        self.shared.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
        outcome
    }
}

impl Drop for FsLog {
    fn drop(&mut self) {
        let _ = self.close();
    }
}
