//! Blanking a line of a session's file in place, durably.
//!
//! The write-ahead log must not bring the old bytes back, so it is emptied first, and its files are removed instead of
//! reused. A write in place can be torn: what is to be written stands in `.banyan/erase` until the file has it, and
//! opening the directory finishes it.

use std::io;
use std::sync::{Arc, PoisonError};

use banyan_core::record;
use serde::{Deserialize, Serialize};

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
        // The log must not bring the old bytes back.
        self.clear_segments()?;
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
