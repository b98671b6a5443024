//! The one thread that commits: it takes what has queued up, writes it in one go, flushes once, and makes it visible.
//!
//! There is no timer: a batch is what arrived while the batch before it was being flushed. Telling and answering is left to
//! the [`finisher`](super::finisher), except where that would only cost time.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use banyan_model::{CommitNo, SessionId};

use super::Durability;
use super::checkpoint::Sealed;
use super::finisher::{self, Safe};
use super::frame::{FrameWriter, Op};
use super::lazy_file::{LazyFile, Staged};
use super::segment::{HEADER, Segment};
use super::shared::{Shared, rounded};
use super::{journal, layout};
use crate::error::is_full;
use crate::{Commit, Committed, Done, JournalEntry, JournalKind, LogError, Piece, Removal, Write, WriteDone};

/// What waits for the committer.
pub(crate) enum Item {
    Commit(Queued),
    /// End the segment that is being written, so that the checkpointer drops it.
    Seal(Box<dyn FnOnce(Result<(), LogError>) + Send>),
    /// Flush whatever was written without a flush.
    Flush(Box<dyn FnOnce(Result<(), LogError>) + Send>),
}

/// A commit with its files found.
pub(crate) struct Queued {
    pub(crate) writes: Vec<(Arc<LazyFile>, Write)>,
    pub(crate) removal: Option<(Arc<LazyFile>, Removal)>,
    pub(crate) done: Done,
    most: usize,
}

impl Queued {
    pub(crate) fn new(shared: &Shared, commit: Commit) -> Result<Self, (Done, LogError)> {
        let Commit { writes, removal, done } = commit;
        let found = (|| {
            let mut most = 256;
            let mut with_files = Vec::with_capacity(writes.len());
            for write in writes {
                most += bound(&write);
                with_files.push((file_of(shared, &write.session)?, write));
            }
            let mut end = None;
            if let Some(removal) = removal {
                most +=
                    512 + removal.session.as_str().len() * 8 + removal.tombstone.len() + removal.blobs.len() * 80;
                end = Some((file_of(shared, &removal.session)?, removal));
            }
            Ok((with_files, end, most))
        })();
        match found {
            Ok((writes, removal, most)) => Ok(Self { writes, removal, done, most }),
            Err(error) => Err((done, error)),
        }
    }

    /// A caller whose view of a session is old must look again.
    fn conflict(&self) -> Option<LogError> {
        self.writes.iter().find_map(|(file, write)| match file.next_seq() {
            Some(actual) if actual != write.expected => Some(LogError::Conflict { actual }),
            _ => None,
        })
    }
}

/// The file that a session is in. Every commit asks for it, so words for an error are found when there is one.
fn file_of(shared: &Shared, session: &SessionId) -> Result<Arc<LazyFile>, LogError> {
    let path = layout::session(shared.naming, session);
    shared.damaged.refuse(&path)?;
    shared.files.ensure(&path).map_err(|error| LogError::io(format!("opening {path}"))(error))
}

/// The most bytes that a write can take in the log, frame and journal entry included.
fn bound(write: &Write) -> usize {
    let pieces: usize = write
        .pieces
        .iter()
        .map(|piece| match piece {
            Piece::Line(_) => piece.most_of_a_line(),
            // Every byte of a text may need six in JSON.
            Piece::Growth(growth) => {
                512 + growth.grew.entry_id.as_str().len() * 6
                    + growth.grew.adds.iter().map(|add| add.text.len() * 6 + 64).sum::<usize>()
                    + growth
                        .grew
                        .adds
                        .iter()
                        .filter_map(|add| add.origin.as_ref())
                        .map(|origin| serde_json::to_string(origin).map_or(0, |text| text.len()))
                        .sum::<usize>()
            }
        })
        .sum();
    pieces + 256 + write.session.as_str().len() * 4
}

/// See the module.
pub(crate) struct Committer {
    shared: Arc<Shared>,
    segment: Option<Segment>,
    buffer: Vec<u8>,
    unflushed: bool,
    /// Nothing was flushed to the segment yet.
    first_batch: bool,
    /// The last commit that was flushed.
    flushed: CommitNo,
    /// So many commits are told without the finisher.
    few: usize,
}

/// A commit that is in the buffer.
struct Prepared {
    queued: Queued,
    commit: CommitNo,
    writes: Vec<WriteDone>,
}

/// So few commits are told by the committer itself: waking another thread would take longer.
const FEW: usize = 2;

/// The same on two cores, which those who write have use for: then another thread gains nothing by telling while this one flushes.
const FEW_ON_TWO_CORES: usize = 64;

/// How many bytes a batch may have before the rest waits for the next one.
const BATCH: usize = 4 << 20;

impl Committer {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let few = if cores > 2 { FEW } else { FEW_ON_TWO_CORES };
        // What is in files when the committer starts was flushed by the checkpoint before.
        let flushed = shared.head();
        Self { shared, segment: None, buffer: Vec::new(), unflushed: false, first_batch: true, flushed, few }
    }

    /// Works until the log is closed and everything queued is answered.
    pub(crate) fn run(mut self) {
        while let Some(items) = self.next_items() {
            let mut items = VecDeque::from(items);
            while !items.is_empty() {
                self.work(&mut items);
            }
        }
        self.settle();
        self.shared.finisher.end();
        if let Some(segment) = self.segment.take() {
            self.shared.seal(Sealed {
                segment: segment.id,
                through: self.shared.head(),
                size: segment.size,
                damaged: false,
            });
        }
        self.shared.upkeep().stop = true;
        self.shared.wanted.notify_all();
    }

    fn next_items(&self) -> Option<Vec<Item>> {
        let mut queue = self.shared.queue();
        loop {
            if !queue.items.is_empty() {
                return Some(std::mem::take(&mut queue.items));
            }
            if queue.closing {
                return None;
            }
            queue.idle = true;
            queue = self.shared.arrived.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.idle = false;
        }
    }

    /// Commits one batch off the front of `items`.
    fn work(&mut self, items: &mut VecDeque<Item>) {
        let mut batch = Vec::new();
        let (mut flushes, mut seals) = (Vec::new(), Vec::new());
        let mut size = 0;
        while let Some(item) = items.pop_front() {
            match item {
                Item::Commit(queued) => {
                    size += queued.most;
                    batch.push(queued);
                }
                Item::Flush(done) => flushes.push(done),
                Item::Seal(done) => seals.push(done),
            }
            if size > BATCH || !flushes.is_empty() || !seals.is_empty() {
                break;
            }
        }
        let synced = self.shared.options.durability == Durability::Synced || !flushes.is_empty();
        let outcome =
            if batch.is_empty() && !seals.is_empty() { Ok(()) } else { self.commit(batch, size, synced) };
        for done in seals {
            done(self.shared.healthy().and_then(|()| self.seal_early()));
        }
        if !flushes.is_empty() {
            self.settle();
        }
        for done in flushes {
            done(outcome.clone());
        }
    }

    fn commit(&mut self, batch: Vec<Queued>, size: usize, synced: bool) -> Result<(), LogError> {
        let batch = match self.shared.healthy().and_then(|()| self.make_room(size)) {
            Ok(()) => batch,
            Err(error) => self.only_removals(batch, error)?,
        };
        let prepared = self.prepare(self.ready(batch));
        let last = prepared.last().map_or_else(|| self.shared.head(), |prepared| prepared.commit);
        if let Err(error) = self.write(synced, last) {
            self.shared.poison(&error.to_string());
            let refusal = LogError::Poisoned(error.to_string());
            for prepared in prepared {
                for (file, _) in &prepared.queued.writes {
                    file.discard();
                }
                self.shared.journal_file(prepared.commit).discard();
                (prepared.queued.done)(Err(refusal.clone()))();
            }
            return Err(refusal);
        }
        self.publish(&prepared);
        if prepared.iter().any(|prepared| prepared.queued.removal.is_some()) {
            // What is told may be read from a file that is about to go.
            self.settle();
            for prepared in prepared {
                self.remove(&prepared);
                finisher::tell(vec![prepared.into()]);
            }
            return Ok(());
        }
        let safe: Vec<Safe> = prepared.into_iter().map(Safe::from).collect();
        if !self.shared.options.background || (safe.len() <= self.few && self.shared.finisher.is_settled()) {
            finisher::tell(safe);
        } else {
            self.shared.finisher.hand_over(safe);
        }
        Ok(())
    }

    /// Refuses a batch for which there is no room, except for what frees room: that has the reserve.
    fn only_removals(&mut self, batch: Vec<Queued>, error: LogError) -> Result<Vec<Queued>, LogError> {
        let is_full = matches!(error, LogError::Full(_));
        let (removals, others): (Vec<Queued>, Vec<Queued>) =
            batch.into_iter().partition(|queued| is_full && queued.removal.is_some() && queued.writes.is_empty());
        let refuse = |batch: Vec<Queued>, error: &LogError| {
            batch.into_iter().for_each(|queued| (queued.done)(Err(error.clone()))());
        };
        refuse(others, &error);
        if removals.is_empty() {
            return Err(error);
        }
        let need = removals.iter().map(|queued| queued.most).sum::<usize>() + HEADER;
        match self.make_room_from_reserve(need as u64) {
            Ok(()) => Ok(removals),
            Err(error) => {
                refuse(removals, &error);
                Err(error)
            }
        }
    }

    /// Waits until everything committed is told.
    fn settle(&self) {
        if self.shared.options.background {
            self.shared.finisher.settle();
        }
    }

    /// Leaves out what could not be finished once it is committed: a file that forks go on reading is moved, and must be whole
    /// before that.
    fn ready(&self, batch: Vec<Queued>) -> Vec<Queued> {
        let mut ready = Vec::with_capacity(batch.len());
        for queued in batch {
            let kept = queued.removal.as_ref().filter(|(_, removal)| removal.keep_for_forks);
            match kept.map(|(file, _)| self.write_out(file)) {
                Some(Err(error)) => (queued.done)(Err(error))(),
                Some(Ok(())) | None => ready.push(queued),
            }
        }
        ready
    }

    /// Writes a file that is about to be moved, with the room of the reserve if need be.
    fn write_out(&self, file: &LazyFile) -> Result<(), LogError> {
        let written = match file.write_out() {
            Err(error) if is_full(&error) => {
                self.shared.reserve.spend(self.shared.disk.as_ref());
                file.write_out()
            }
            written => written,
        };
        written.map(drop).map_err(LogError::io(format!("writing {}", file.path())))
    }

    /// Puts a batch into the buffer as frames.
    fn prepare(&mut self, batch: Vec<Queued>) -> Vec<Prepared> {
        self.buffer.clear();
        let Some(segment) = &self.segment else { return Vec::new() };
        let mut next = self.shared.head().0 + 1;
        if segment.at == 0 {
            self.buffer.extend_from_slice(&segment.header(CommitNo(next), self.shared.directory));
        }
        let mut prepared = Vec::with_capacity(batch.len());
        let mut journal_entry = Vec::new();
        for queued in batch {
            if let Some(conflict) = queued.conflict() {
                (queued.done)(Err(conflict))();
                continue;
            }
            let commit = CommitNo(next);
            next += 1;
            let mut frame = FrameWriter::begin(&mut self.buffer, segment.id, commit);
            if prepared.is_empty() {
                frame.push(&Op::Flushed { through: self.flushed });
            }
            let mut writes = Vec::with_capacity(queued.writes.len());
            let mut entry = None;
            for (file, write) in &queued.writes {
                let staged = file.stage(&write.pieces, commit, segment.id, &mut frame);
                entry = Some(journal_of(write, commit, &staged));
                let Staged { offset, len, written, .. } = staged;
                writes.push(WriteDone { offset, len, pieces: written });
            }
            if let Some((file, removal)) = &queued.removal {
                let base = layout::base(removal.born);
                if removal.keep_for_forks {
                    frame.push(&Op::Retain { path: file.path(), base: &base });
                } else {
                    frame.push(&Op::Remove { path: file.path() });
                }
                for hash in &removal.blobs {
                    frame.push(&Op::Blob { hash });
                }
                entry = Some(JournalEntry {
                    commit,
                    session: removal.session.clone(),
                    born: removal.born,
                    kind: JournalKind::Removed(removal.tombstone.clone()),
                });
            }
            if let Some(entry) = entry {
                journal_entry.clear();
                journal::encode(&entry, &mut journal_entry);
                self.shared.journal_file(commit).stage_bytes(&journal_entry, &mut frame);
            }
            frame.finish();
            prepared.push(Prepared { queued, commit, writes });
        }
        prepared
    }

    fn write(&mut self, synced: bool, last: CommitNo) -> Result<(), LogError> {
        let Some(segment) = &mut self.segment else { return Ok(()) };
        if !self.buffer.is_empty() {
            let writing = LogError::io("writing to the write-ahead log");
            segment.file.write_at(segment.at, &self.buffer).map_err(writing)?;
            segment.at += self.buffer.len() as u64;
            self.unflushed = true;
        }
        if synced && self.unflushed {
            segment.file.sync().map_err(LogError::io("flushing the write-ahead log"))?;
            if std::mem::take(&mut self.first_batch) {
                // Only a witness: without it the flush holds all the same.
                let _ = self.shared.live.begun(self.shared.disk.as_ref(), segment.id);
            }
            self.unflushed = false;
            self.flushed = last;
        }
        Ok(())
    }

    /// Makes a batch visible.
    fn publish(&self, batch: &[Prepared]) {
        for prepared in batch {
            for (file, _) in &prepared.queued.writes {
                self.shared.publish(file);
            }
        }
        let (Some(first), Some(last)) = (batch.first(), batch.last()) else { return };
        // A batch is smaller than a file of the journal, so it is in two of them at most.
        for commit in [first.commit, last.commit] {
            self.shared.publish(&self.shared.journal_file(commit));
        }
        self.shared.head.store(last.commit.0, Ordering::Release);
    }

    /// Takes away the file of a session that ends with a commit.
    fn remove(&self, prepared: &Prepared) {
        if let Some((file, removal)) = &prepared.queued.removal
            && let Err(error) = self.shared.remove_session(file, removal, prepared.commit)
        {
            // The commit is safe in the log, but the directory is not as it should be.
            self.shared.poison(&error.to_string());
        }
    }

    /// Makes sure that the current segment has room for `size` bytes, by starting another one when it has not.
    fn make_room(&mut self, size: usize) -> Result<(), LogError> {
        let need = (size + HEADER) as u64;
        if self.segment.as_ref().is_some_and(|segment| segment.room() >= need) {
            return Ok(());
        }
        self.shared.wait_for_checkpoints()?;
        let next = match self.shared.next_segment(rounded(need)) {
            Err(LogError::Full(_)) => {
                // What is in the log is in the session files, too, once these are written.
                self.seal()?;
                self.shared.wait_until_dropped(self.shared.upcoming_id())?;
                self.shared.next_segment(rounded(need))?
            }
            next => next?,
        };
        self.begin(next)
    }

    /// The same for commits that free room.
    fn make_room_from_reserve(&mut self, need: u64) -> Result<(), LogError> {
        if self.segment.as_ref().is_some_and(|segment| segment.room() >= need) {
            return Ok(());
        }
        let next = self.shared.segment_from_reserve(rounded(need))?;
        self.begin(next)
    }

    /// Goes on in another segment.
    fn begin(&mut self, next: Segment) -> Result<(), LogError> {
        let disk = Arc::clone(&self.shared.disk);
        let noted = self.shared.check_ownership().and_then(|()| self.sync_segment()).and_then(|()| {
            // Before anything in it is acknowledged, so that a segment that goes missing is missed.
            self.shared.live.begin(disk.as_ref(), &next, CommitNo(self.shared.head().0 + 1))
        });
        if let Err(error) = noted {
            let _ = disk.remove(&layout::segment(next.id));
            return Err(error);
        }
        self.seal()?;
        self.first_batch = true;
        self.shared.upkeep().current = next.size;
        self.segment = Some(next);
        Ok(())
    }

    /// What was written without a flush must not be overtaken by what follows.
    fn sync_segment(&mut self) -> Result<(), LogError> {
        if let Some(segment) = &self.segment
            && self.unflushed
        {
            if let Err(error) = segment.file.sync() {
                self.shared.poison(&error.to_string());
                return Err(LogError::Poisoned(error.to_string()));
            }
            self.unflushed = false;
            self.flushed = self.shared.head();
        }
        Ok(())
    }

    /// Ends the segment before it is full. After one that is nearly empty, the next one is small.
    fn seal_early(&mut self) -> Result<(), LogError> {
        if self.segment.as_ref().is_some_and(|segment| segment.at < segment.size / 4) {
            self.shared.upkeep().next_size = self.shared.options.first_segment;
        }
        self.seal()
    }

    /// Hands the segment that is being written to the checkpointer, which drops it.
    fn seal(&mut self) -> Result<(), LogError> {
        self.sync_segment()?;
        // A checkpoint drops what the catalogue has noted, and noting is part of telling.
        self.settle();
        let Some(old) = self.segment.take() else { return Ok(()) };
        self.shared.upkeep().current = 0;
        let through = self.shared.head();
        self.shared.seal(Sealed { segment: old.id, through, size: old.size, damaged: false });
        Ok(())
    }
}

impl From<Prepared> for Safe {
    fn from(prepared: Prepared) -> Self {
        let Prepared { queued, commit, writes } = prepared;
        Self { done: queued.done, committed: Committed { commit, writes } }
    }
}

fn journal_of(write: &Write, commit: CommitNo, staged: &Staged) -> JournalEntry {
    let kind = match (staged.addition, staged.written.as_slice()) {
        // Whatever comes before a growth in its commit only settles another message, and is silent.
        (Some(index), [.., last]) => JournalKind::Addition { offset: last.offset, index },
        (_, written) => {
            let first = written.first().map_or(staged.offset, |line| line.offset);
            let last = written.last().map_or(first, |line| line.offset + u64::from(line.len));
            JournalKind::Lines { offset: first, len: (last - first) as u32 }
        }
    };
    JournalEntry { commit, session: write.session.clone(), born: write.born, kind }
}
