//! A file whose newest bytes may still be in memory only, because the write-ahead log has them.
//!
//! Bytes move through four stages: *staged* (their commit is being flushed; nobody sees them), *visible*
//! (committed, in memory), *flushing* (being written to the file) and written. Readers see
//! everything that is visible or further on as one file. Staged bytes stand behind the visible ones, so that becoming visible moves nothing. A growing message's line stays *open*, without its end,
//! until something else follows it or it is written to the file.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use banyan_core::record::{self, AddPlace, Grew};
use banyan_model::{CommitNo, EntryId, Seq};

use super::fds::Fds;
use super::frame::{FrameWriter, Op};
use super::register::{RegisteredFile, first_line_sum};
use crate::{Growth, Piece, Written};

/// See the module.
pub(crate) struct LazyFile {
    path: String,
    fds: Arc<Fds>,
    /// Held while bytes go to the file, so that two writers never interleave and none outlives a removal.
    io: Mutex<()>,
    inner: Mutex<Inner>,
    /// Told when staged bytes become visible.
    unstaged: Condvar,
}

struct Inner {
    written: u64,
    flushing: Option<Arc<Vec<u8>>>,
    /// Visible bytes, then staged ones.
    memory: Vec<u8>,
    /// How many bytes of `memory` are visible.
    visible: usize,
    open: Option<OpenLine>,
    /// The open line as it was before anything was staged.
    open_before: Option<OpenLine>,
    next_seq: Option<Seq>,
    /// The file may hold stale bytes past the end, from before a crash.
    trim: bool,
    gone: bool,
    /// In the set of files that the next checkpoint must flush.
    dirty: bool,
    /// The last commit with bytes here.
    last_commit: CommitNo,
    /// What is in the file: up to where, and up to which commit.
    in_file: (u64, CommitNo),
    /// The first line of a file that is new, by its checksum, and whole for a fork.
    first: Option<u32>,
    begins: Option<String>,
    /// How many wait for staged bytes to become visible. Telling nobody costs a system call too.
    waiting: usize,
}

/// The line of a growing message.
#[derive(Clone)]
struct OpenLine {
    start: u64,
    segment: u64,
    commit: CommitNo,
    time_ms: i64,
    entry_id: EntryId,
    block: u32,
    additions: u32,
}

/// What staging a write came to.
pub(crate) struct Staged {
    /// Where the new bytes go.
    pub(crate) offset: u64,
    /// How many they are.
    pub(crate) len: u64,
    /// Where each piece went.
    pub(crate) written: Vec<Written>,
    /// For a single growth: which addition of its line it is.
    pub(crate) addition: Option<u32>,
}

impl LazyFile {
    /// A file as it is on the disk now; `len` is 0 for one that does not exist yet.
    pub(crate) fn new(path: String, fds: Arc<Fds>, len: u64) -> Self {
        let inner = Inner {
            written: len,
            flushing: None,
            memory: Vec::new(),
            visible: 0,
            open: None,
            open_before: None,
            next_seq: None,
            trim: false,
            gone: false,
            dirty: false,
            last_commit: CommitNo(0),
            in_file: (len, CommitNo(0)),
            first: None,
            begins: None,
            waiting: 0,
        };
        Self { path, fds, io: Mutex::new(()), inner: Mutex::new(inner), unstaged: Condvar::new() }
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Length of what readers see.
    pub(crate) fn end(&self) -> u64 {
        self.lock().end()
    }

    /// Whether there is anything to read. A file whose bytes are all staged is about to exist, and does not yet.
    pub(crate) fn exists(&self) -> bool {
        let inner = self.lock();
        !inner.gone && inner.end() > 0
    }

    /// True when every byte is in the file itself.
    pub(crate) fn is_written(&self) -> bool {
        let inner = self.lock();
        inner.flushing.is_none() && inner.memory.is_empty()
    }

    /// Says what the next line's number is, once a reader has counted.
    pub(crate) fn expect_seq(&self, seq: Seq) {
        self.lock().next_seq = Some(seq);
    }

    /// The number that the next line must carry, where it is known.
    pub(crate) fn next_seq(&self) -> Option<Seq> {
        self.lock().next_seq
    }

    /// Says that the file must be flushed before the log lets go; true when that is new. One that is gone need not be.
    pub(crate) fn mark_dirty(&self) -> bool {
        let mut inner = self.lock();
        !inner.gone && !std::mem::replace(&mut inner.dirty, true)
    }

    /// Takes the mark back, just before the file is flushed.
    pub(crate) fn clear_dirty(&self) {
        self.lock().dirty = false;
    }

    /// Adds pieces, not yet visible, also to the frame of their commit, and says where they went.
    pub(crate) fn stage(
        &self,
        pieces: &[Piece],
        commit: CommitNo,
        segment: u64,
        frame: &mut FrameWriter<'_>,
    ) -> Staged {
        let mut inner = self.lock();
        let inner = &mut *inner;
        if !inner.has_staged() {
            inner.open_before.clone_from(&inner.open);
        }
        if inner.memory.capacity() == 0 {
            inner.memory = self.fds.buffer();
        }
        // A large commit would have it grow, and be copied, again and again.
        inner.memory.reserve(pieces.iter().map(Piece::most_of_a_line).sum());
        let first = inner.memory.len();
        let offset = inner.staged_end();
        let mut written = Vec::with_capacity(pieces.len());
        let mut addition = None;
        for piece in pieces {
            match piece {
                Piece::Line(line) => {
                    inner.close_line();
                    let (start, at) = (inner.memory.len(), inner.staged_end());
                    inner.memory.extend_from_slice(line);
                    record::seal(&mut inner.memory, start, commit);
                    let len = (inner.memory.len() - start) as u32;
                    written.push(Written { offset: at, len, continued: false });
                    inner.next_seq = inner.next_seq.map(|seq| Seq(seq.0 + 1));
                }
                Piece::Growth(growth) => {
                    let (line, index) = inner.grow(growth, commit, segment);
                    written.push(line);
                    addition = Some(index);
                }
            }
        }
        inner.last_commit = commit;
        if offset == 0 {
            inner.note_beginning(first);
        }
        let bytes = inner.memory.get(first..).unwrap_or_default();
        frame.push(&Op::Write { path: &self.path, offset, bytes });
        Staged { offset, len: bytes.len() as u64, written, addition }
    }

    /// Adds bytes as they are, not yet visible, also to the frame of their commit.
    pub(crate) fn stage_bytes(&self, bytes: &[u8], frame: &mut FrameWriter<'_>) {
        let mut inner = self.lock();
        frame.push(&Op::Write { path: &self.path, offset: inner.staged_end(), bytes });
        inner.memory.extend_from_slice(bytes);
    }

    /// Makes staged bytes visible: their commit is safe. True when the file must now be flushed before the log lets go, and
    /// nobody said so before.
    pub(crate) fn publish(&self) -> bool {
        let mut inner = self.lock();
        inner.visible = inner.memory.len();
        if inner.waiting > 0 {
            self.unstaged.notify_all();
        }
        !std::mem::replace(&mut inner.dirty, true)
    }

    /// Takes staged bytes back: their commit failed, and with it the log.
    pub(crate) fn discard(&self) {
        let mut inner = self.lock();
        if inner.has_staged() {
            let visible = inner.visible;
            inner.memory.truncate(visible);
            inner.open = inner.open_before.take();
        }
        self.unstaged.notify_all();
    }

    /// Puts bytes back that the write-ahead log has, while recovering. Says how many bytes before them are missing.
    pub(crate) fn restore(&self, offset: u64, bytes: &[u8], commit: CommitNo) -> io::Result<u64> {
        let mut inner = self.lock();
        inner.last_commit = inner.last_commit.max(commit);
        if !inner.trim {
            // Whatever the file has from here on is older than what the log has.
            inner.written = inner.written.min(offset);
            inner.trim = true;
        }
        if inner.end() > offset {
            let keep = offset.saturating_sub(inner.written) as usize;
            inner.memory.truncate(keep);
            inner.visible = inner.memory.len();
            inner.written = inner.written.min(offset);
        }
        let mut missing = offset - inner.end();
        if missing > 0 && inner.memory.last().is_some_and(|byte| *byte != b'\n') {
            // The line was open when it went to the file; its end was not logged.
            let closing = record::close_grew(inner.last_line());
            if closing.len() as u64 == missing {
                inner.add_visible(&closing);
                missing = 0;
            }
        }
        if missing > 0 {
            missing = self.fill_hole(&mut inner, offset, bytes)?;
        }
        let start = inner.memory.len();
        inner.add_visible(bytes);
        if offset == 0 {
            inner.note_beginning(start);
        }
        Ok(missing)
    }

    /// Fills what is missing before `offset` from the file, where it still has it. Returns how many bytes it has not.
    fn fill_hole(&self, inner: &mut Inner, offset: u64, next: &[u8]) -> io::Result<u64> {
        /// Larger holes are left to the file system.
        const MOST: u64 = 16 << 20;
        let missing = offset - inner.end();
        let mut found = Vec::new();
        if missing <= MOST
            && let Some(file) = self.fds.get(&self.path)?
        {
            found.resize(missing as usize, 0);
            let read = file.read_at(inner.end(), &mut found)?;
            found.truncate(read);
        }
        let lacking = missing - found.len() as u64;
        if missing > MOST {
            let file = self.fds.create(&self.path)?;
            file.write_at(inner.written, &inner.memory)?;
            file.set_len(offset)?;
            file.write_at(offset - 1, b"\n")?;
            inner.memory.clear();
            inner.visible = 0;
            inner.written = offset;
            return Ok(lacking);
        }
        found.resize(missing as usize, 0);
        // A line feed keeps the hole from the line that follows.
        if next.starts_with(b"{")
            && let Some(last) = found.last_mut()
        {
            *last = b'\n';
        }
        inner.add_visible(&found);
        Ok(lacking)
    }

    /// Puts back the lines that the file still has behind what the write-ahead log has, as long as their commits are wanted.
    pub(crate) fn restore_end(&self, wanted: &dyn Fn(CommitNo) -> bool) -> io::Result<()> {
        let mut inner = self.lock();
        let Some(file) = self.fds.get(&self.path)? else { return Ok(()) };
        let end = inner.end();
        let mut bytes = vec![0; file.len()?.saturating_sub(end) as usize];
        let read = file.read_at(end, &mut bytes)?;
        bytes.truncate(read);
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let commit =
                record::Head::parse(line).ok().and_then(|head| head.envelope).map(|envelope| envelope.commit);
            if !line.ends_with(b"\n") || !commit.is_some_and(wanted) {
                break;
            }
            inner.add_visible(line);
            inner.last_commit = inner.last_commit.max(commit.unwrap_or_default());
        }
        Ok(())
    }

    /// What the register is to say of the file, once it is flushed.
    pub(crate) fn registered(&self) -> RegisteredFile {
        let inner = self.lock();
        let (length, commit) = inner.in_file;
        RegisteredFile { length, commit, first: inner.first, begins: inner.begins.clone() }
    }

    /// The register has the first line by now.
    pub(crate) fn forget_beginning(&self) {
        let mut inner = self.lock();
        (inner.first, inner.begins) = (None, None);
    }

    /// Closes a line that recovery left open.
    pub(crate) fn close_restored(&self) {
        let mut inner = self.lock();
        if inner.memory.last().is_some_and(|byte| *byte != b'\n') {
            let closing = record::close_grew(inner.last_line());
            inner.add_visible(&closing);
        }
    }

    /// Cuts the file at `len`, when everything is in it: a torn last line goes, or gets its line feed.
    pub(crate) fn repair_tail(&self, len: u64, add_line_feed: bool) -> io::Result<()> {
        let _io = self.io.lock().unwrap_or_else(PoisonError::into_inner);
        let mut inner = self.lock();
        let Some(file) = self.fds.get(&self.path)? else { return Ok(()) };
        if add_line_feed {
            file.write_at(len, b"\n")?;
            inner.written = len + 1;
        } else {
            file.set_len(len)?;
            inner.written = len;
        }
        inner.in_file.0 = inner.written;
        file.sync()
    }

    /// Writes over bytes that are in the file, durably.
    pub(crate) fn overwrite(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let _io = self.io.lock().unwrap_or_else(PoisonError::into_inner);
        let inner = self.lock();
        let in_file = !inner.gone && offset + bytes.len() as u64 <= inner.written;
        drop(inner);
        match self.fds.get(&self.path)?.filter(|_| in_file) {
            Some(file) => {
                file.write_at(offset, bytes)?;
                file.sync()
            }
            None => Err(io::Error::other("the line is not in its file")),
        }
    }

    /// Writes what is in memory to the file. Returns true when there was anything to write.
    pub(crate) fn write_out(&self) -> io::Result<bool> {
        let _io = self.io.lock().unwrap_or_else(PoisonError::into_inner);
        let (bytes, at, trim, commit) = {
            let mut inner = self.unstaged();
            if inner.gone {
                return Ok(false);
            }
            inner.close_line();
            inner.visible = 0;
            let bytes = match inner.flushing.take() {
                // An earlier attempt failed: its bytes go first.
                Some(before) => {
                    let mut all = before.as_ref().clone();
                    all.append(&mut inner.memory);
                    all
                }
                None => std::mem::take(&mut inner.memory),
            };
            if bytes.is_empty() && !inner.trim {
                return Ok(false);
            }
            let bytes = Arc::new(bytes);
            inner.flushing = Some(Arc::clone(&bytes));
            (bytes, inner.written, inner.trim, inner.last_commit)
        };
        let file = self.fds.create(&self.path)?;
        file.write_at(at, &bytes)?;
        if trim {
            file.set_len(at + bytes.len() as u64)?;
        }
        let mut inner = self.lock();
        inner.written = at + bytes.len() as u64;
        inner.in_file = (inner.written, commit);
        inner.flushing = None;
        inner.trim = false;
        drop(inner);
        if let Some(bytes) = Arc::into_inner(bytes) {
            self.fds.give_back(bytes);
        }
        Ok(true)
    }

    /// Makes the file durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        if self.lock().gone {
            return Ok(());
        }
        match self.fds.get(&self.path)? {
            Some(file) => file.sync(),
            None => Ok(()),
        }
    }

    /// Removes the file; nothing will be written to it again.
    pub(crate) fn remove(&self) -> io::Result<()> {
        let _io = self.io.lock().unwrap_or_else(PoisonError::into_inner);
        self.mark_gone();
        let removed = self.fds.disk().remove(&self.path);
        self.fds.forget(&self.path);
        removed
    }

    /// Moves the file, written out by now, to another path; nothing will be written to it again.
    pub(crate) fn rename(&self, to: &str) -> io::Result<()> {
        let _io = self.io.lock().unwrap_or_else(PoisonError::into_inner);
        self.mark_gone();
        let moved = self.fds.disk().rename(&self.path, to);
        self.fds.forget(&self.path);
        moved
    }

    fn mark_gone(&self) {
        let mut inner = self.lock();
        inner.gone = true;
        let visible = inner.visible;
        inner.memory.truncate(visible);
        self.unstaged.notify_all();
    }

    /// Reads up to `len` bytes from `offset`; fewer at the end.
    pub(crate) fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut out = Vec::with_capacity(len);
        let until = offset + len as u64;
        let (written, flushing, visible) = {
            let inner = self.lock();
            let written = inner.written;
            let flushing = inner.flushing.clone();
            let visible = inner.memory.get(..inner.visible).unwrap_or_default();
            (written, flushing, slice_of(visible, inner.memory_at(), offset, until).to_vec())
        };
        if offset < written {
            let wanted = (until.min(written) - offset) as usize;
            out.resize(wanted, 0);
            let file = self.fds.get(&self.path)?;
            let got = match file {
                Some(file) => file.read_at(offset, &mut out)?,
                None => 0,
            };
            if got < wanted {
                out.truncate(got);
                return Ok(out);
            }
        }
        if let Some(flushing) = &flushing {
            out.extend_from_slice(slice_of(flushing, written, offset, until));
        }
        out.extend_from_slice(&visible);
        Ok(out)
    }

    /// Closes an open line, so that a reader finds whole lines only.
    pub(crate) fn close_open_line(&self) {
        let mut inner = self.unstaged();
        inner.close_line();
        inner.visible = inner.memory.len();
    }

    /// The lock, once nothing is staged.
    fn unstaged(&self) -> MutexGuard<'_, Inner> {
        let mut inner = self.lock();
        inner.waiting += 1;
        while inner.has_staged() && !inner.gone {
            inner = self.unstaged.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        inner.waiting -= 1;
        inner
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Where in the file `memory` begins.
    fn memory_at(&self) -> u64 {
        self.written + self.flushing.as_ref().map_or(0, |bytes| bytes.len() as u64)
    }

    fn end(&self) -> u64 {
        self.memory_at() + self.visible as u64
    }

    fn staged_end(&self) -> u64 {
        self.memory_at() + self.memory.len() as u64
    }

    fn has_staged(&self) -> bool {
        self.memory.len() > self.visible
    }

    /// Adds bytes that are visible at once, while nothing is staged.
    fn add_visible(&mut self, bytes: &[u8]) {
        self.memory.extend_from_slice(bytes);
        self.visible = self.memory.len();
    }

    /// Ends the open line, if there is one. What ends it is staged.
    fn close_line(&mut self) {
        if let Some(open) = self.open.take() {
            // An open line is never in the file: writing out closes it first.
            let start = open.start.saturating_sub(self.memory_at()) as usize;
            let closing = record::close_grew(self.memory.get(start..).unwrap_or_default());
            self.memory.extend_from_slice(&closing);
        }
    }

    /// Notes the first line of the file, which is in memory from `start` on.
    fn note_beginning(&mut self, start: usize) {
        let bytes = self.memory.get(start..).unwrap_or_default();
        let Some(line) = bytes.split_inclusive(|byte| *byte == b'\n').next() else { return };
        self.first = line.ends_with(b"\n").then(|| first_line_sum(line));
        self.begins = fork_line(line);
    }

    fn last_line(&self) -> &[u8] {
        let start = self.memory.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.memory.get(start..).unwrap_or_default()
    }

    fn grow(&mut self, growth: &Growth, commit: CommitNo, segment: u64) -> (Written, u32) {
        let grew = &growth.grew;
        let memory_at = self.memory_at();
        match &mut self.open {
            Some(open) if open.continues(grew, segment) => {
                open.additions += 1;
                for add in &grew.adds {
                    self.memory.extend_from_slice(&record::encode_add(
                        AddPlace::Next,
                        &add.text,
                        growth.time_ms - open.time_ms,
                        commit.0 - open.commit.0,
                        add.origin.as_ref(),
                    ));
                }
                let len = (memory_at + self.memory.len() as u64 - open.start) as u32;
                (Written { offset: open.start, len, continued: true }, open.additions - 1)
            }
            _ => {
                self.close_line();
                let start = self.memory.len();
                let offset = memory_at + start as u64;
                record::open_grew(grew, growth.seq, growth.time_ms, commit, &mut self.memory);
                self.open = Some(OpenLine {
                    start: offset,
                    segment,
                    commit,
                    time_ms: growth.time_ms,
                    entry_id: grew.entry_id.clone(),
                    block: grew.block,
                    additions: 1,
                });
                self.next_seq = self.next_seq.map(|seq| Seq(seq.0 + 1));
                let len = (self.memory.len() - start) as u32;
                (Written { offset, len, continued: false }, 0)
            }
        }
    }
}

impl OpenLine {
    /// A line may be continued only in the segment that started it, so that recovery always has its start.
    fn continues(&self, grew: &Grew, segment: u64) -> bool {
        self.segment == segment && self.entry_id == grew.entry_id && self.block == grew.block
    }
}

/// The first line of a file, if it is a fork's.
fn fork_line(line: &[u8]) -> Option<String> {
    let is_fork = line.ends_with(b"\n") && memchr::memmem::find(line, b",\"base\":{").is_some();
    if is_fork { String::from_utf8(line.to_vec()).ok() } else { None }
}

/// The part of `bytes`, which start at `at` in the file, that lies in `from..until`.
fn slice_of(bytes: &[u8], at: u64, from: u64, until: u64) -> &[u8] {
    let start = from.saturating_sub(at).min(bytes.len() as u64) as usize;
    let end = until.saturating_sub(at).min(bytes.len() as u64) as usize;
    bytes.get(start..end.max(start)).unwrap_or_default()
}
