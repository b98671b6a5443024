//! Blanking a line of a session's file in place, durably.
//!
//! The write-ahead log must not bring the old bytes back, so it is emptied first, and its files are removed instead of
//! reused. A write in place can be torn: what is to be written stands in `.banyan/erase` until the file has it, and
//! opening the directory finishes it.

use std::io;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, PoisonError};

use banyan_core::record;
use serde::{Deserialize, Serialize};

use super::committer::Item;
use super::lazy_file::LazyFile;
use super::segment::read_all;
use super::shared::Shared;
use super::{FsLog, checked_line, layout, register};
use crate::disk::Disk;
use crate::{At, LogError};

/// A line that is to be written over another.
#[derive(Serialize, Deserialize)]
struct Pending {
    path: String,
    offset: u64,
    /// How many bytes both lines begin with. They have the commit's number, so a later file of this name has others.
    same: usize,
    line: String,
}

impl FsLog {
    /// Erases the content of the line that begins at `offset`: the record keeps its number, its length and its part in the
    /// session's structure. Durable when it returns, and nothing of the log has the old bytes. Erasing a line again changes
    /// nothing. What a caller holds in memory of the line is the caller's.
    pub fn blank_line(&self, at: At<'_>, offset: u64) -> Result<(), LogError> {
        let _erasing = self.shared.erasing.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.path(at);
        self.shared.damaged.refuse(&path)?;
        self.empty_log()?;
        let doing = || format!("erasing a record of {path}");
        let refused = |cause: String| LogError::Io { doing: doing(), cause };
        let file = self.find(at)?.ok_or_else(|| refused("there is no such file".to_owned()))?;
        let line = line_at(&file, offset).map_err(LogError::io(doing()))?;
        let blanked = record::blank(&line).map_err(|error| refused(error.to_string()))?;
        let (At::Live(session) | At::Incarnation(session, _)) = at;
        // It may say what the line said.
        self.shared.disk.remove(&layout::tree(self.shared.naming, session)).map_err(LogError::io(doing()))?;
        if blanked != line {
            let same = line.iter().zip(&blanked).take_while(|(old, new)| old == new).count();
            let text = String::from_utf8(blanked).map_err(|error| refused(error.to_string()))?;
            let pending = Pending { path: path.clone(), offset, same, line: text };
            announce(self.shared.disk.as_ref(), &pending).map_err(LogError::io(doing()))?;
            file.overwrite(offset, pending.line.as_bytes()).map_err(LogError::io(doing()))?;
            if offset == 0 {
                self.shared.register_erased_beginning(&path, &pending.line)?;
            }
        }
        withdraw(self.shared.disk.as_ref()).map_err(LogError::io(doing()))
    }

    /// Waits until session files have everything that is committed, and removes what the log had of it.
    fn empty_log(&self) -> Result<(), LogError> {
        let shared = &self.shared;
        shared.healthy()?;
        shared.forbid_reuse(true);
        let emptied = self.end_segment().and_then(|()| shared.wait_until_dropped());
        shared.forbid_reuse(false);
        emptied
    }

    fn end_segment(&self) -> Result<(), LogError> {
        let (answer, answered) = sync_channel(1);
        let done = Box::new(move |outcome| {
            let _ = answer.send(outcome);
        });
        match self.enqueue(Item::EndSegment(done)) {
            Some((_, error)) => Err(error),
            None => answered.recv().unwrap_or(Err(LogError::Closed)),
        }
    }
}

impl Shared {
    /// Finishes what a crash interrupted. The register is open by now.
    pub(crate) fn finish_erasing(&self) -> Result<(), LogError> {
        let disk = self.disk.as_ref();
        let finishing = || LogError::io(format!("finishing what {} says", layout::ERASE));
        let Some(file) = disk.open(layout::ERASE).map_err(finishing())? else { return Ok(()) };
        let bytes = read_all(file.as_ref()).map_err(finishing())?;
        // One that is torn was not durable, so nothing was begun.
        if let Some(pending) = checked_line::decode::<Pending>(&bytes)
            && overwrite(disk, &pending).map_err(finishing())?
            && pending.offset == 0
        {
            self.register_erased_beginning(&pending.path, &pending.line)?;
        }
        withdraw(disk).map_err(finishing())
    }

    /// The register knows the first line of a file by its checksum, and that of a fork as a whole.
    fn register_erased_beginning(&self, path: &str, line: &str) -> Result<(), LogError> {
        let Ok(mut contents) = register::read(self.disk.as_ref(), self.directory) else { return Ok(()) };
        let Some(registered) = contents.files.get_mut(path) else { return Ok(()) };
        registered.first = registered.first.map(|_| register::first_line_sum(line.as_bytes()));
        registered.begins = registered.begins.take().map(|_| line.to_owned());
        self.register.compact(self.disk.as_ref(), self.directory, contents)
    }

    /// Whether the file of a segment that is done with may serve again. It has old bytes until they are overwritten.
    fn forbid_reuse(&self, forbid: bool) {
        let mut upkeep = self.upkeep();
        match forbid {
            true => upkeep.reuse_forbidden += 1,
            false => upkeep.reuse_forbidden -= 1,
        }
        if let Some(ready) = upkeep.ready.take() {
            let _ = self.disk.remove(&layout::segment(ready.id));
        }
    }

    /// Waits until the segments that are full by now are gone.
    fn wait_until_dropped(&self) -> Result<(), LogError> {
        let mut upkeep = self.upkeep();
        let last = upkeep.sealed.last().map(|sealed| sealed.segment);
        while upkeep.sealed.iter().any(|sealed| Some(sealed.segment) <= last) {
            if !self.options.background {
                drop(upkeep);
                self.checkpoint_and_note();
                return self.upkeep().trouble.clone().map_or(Ok(()), Err);
            }
            if let Some(trouble) = upkeep.trouble.take() {
                self.wanted.notify_all();
                return Err(trouble);
            }
            self.healthy()?;
            self.wanted.notify_all();
            upkeep = self.settled.wait(upkeep).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }
}

/// Writes the line over the other one. False if that is not there any more.
fn overwrite(disk: &dyn Disk, pending: &Pending) -> io::Result<bool> {
    let Some(file) = disk.open(&pending.path)? else { return Ok(false) };
    let mut there = vec![0; pending.line.len()];
    let read = file.read_at(pending.offset, &mut there)?;
    let is_the_line =
        read == there.len() && there.get(..pending.same) == pending.line.as_bytes().get(..pending.same);
    if is_the_line {
        file.write_at(pending.offset, pending.line.as_bytes())?;
        file.sync()?;
    }
    Ok(is_the_line)
}

fn announce(disk: &dyn Disk, pending: &Pending) -> io::Result<()> {
    let file = disk.create(layout::ERASE)?;
    file.set_len(0)?;
    file.write_at(0, &checked_line::encode(pending))?;
    file.sync()?;
    disk.sync_dir(layout::STATE)
}

fn withdraw(disk: &dyn Disk) -> io::Result<()> {
    disk.remove(layout::ERASE)?;
    disk.sync_dir(layout::STATE)
}

fn line_at(file: &Arc<LazyFile>, offset: u64) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    loop {
        let more = file.read(offset + line.len() as u64, 4096.max(line.len()))?;
        let end = memchr::memchr(b'\n', &more);
        line.extend_from_slice(&more[..end.map_or(more.len(), |end| end + 1)]);
        if end.is_some() {
            return Ok(line);
        }
        if more.is_empty() {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "no whole line begins there"));
        }
    }
}
