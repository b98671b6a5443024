//! What recovery does to each file: the operations of all frames, by the file that they end up in.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;

use banyan_model::CommitNo;

use super::damage_log::LostCommits;
use super::file_check::FileDamage;
use super::frame::Op;
use super::layout;
use super::lazy_file::LazyFile;
use super::recovery::{Recovered, SET_ASIDE};
use super::shared::Shared;
use crate::LogError;

/// Bytes for a file, each with its offset and its commit, in order.
type Writes<'a> = Vec<(u64, &'a [u8], CommitNo)>;

/// See the module.
pub(crate) struct Plan<'a> {
    /// Bytes for each path since it was last removed or moved away.
    writes: BTreeMap<&'a str, Writes<'a>>,
    /// Which commit removed a file.
    removed: BTreeMap<&'a str, CommitNo>,
    /// Where a path's file was moved to, with the bytes that it had coming.
    moves: Vec<(&'a str, &'a str, Writes<'a>, CommitNo)>,
    blobs: Vec<&'a str>,
    lost: &'a [LostCommits],
    /// Files that commits removed which are lost, by the register.
    removed_by_lost: HashMap<String, CommitNo>,
}

impl<'a> Plan<'a> {
    /// A plan for a log that has lost some commits. `removed` are the files that the register says were removed.
    pub(crate) fn new(lost: &'a [LostCommits], removed: HashMap<String, CommitNo>) -> Self {
        let removed_by_lost = removed.into_iter().filter(|(_, commit)| is_lost(lost, *commit)).collect();
        Self {
            writes: BTreeMap::new(),
            removed: BTreeMap::new(),
            moves: Vec::new(),
            blobs: Vec::new(),
            lost,
            removed_by_lost,
        }
    }

    /// Adds the operations of the next commit.
    pub(crate) fn add(&mut self, commit: CommitNo, ops: Vec<Op<'a>>) {
        for op in ops {
            match op {
                Op::Write { path, .. }
                    if self.removed_by_lost.get(path).is_some_and(|removed| *removed > commit) =>
                {
                    self.removed.insert(path, commit);
                }
                Op::Write { path, offset, bytes } => {
                    self.writes.entry(path).or_default().push((offset, bytes, commit));
                }
                Op::Remove { path } => {
                    self.writes.remove(path);
                    self.removed.insert(path, commit);
                }
                Op::Retain { path, base } => {
                    let writes = self.writes.remove(path).unwrap_or_default();
                    self.moves.push((path, base, writes, commit));
                }
                Op::Blob { hash } => self.blobs.push(hash),
                Op::Flushed { .. } | Op::End => {}
            }
        }
    }

    /// Restores the files. What the log has lost is taken from the files, where they still have it.
    pub(crate) fn carry_out(self, shared: &Shared, recovered: &mut Recovered) -> Result<(), LogError> {
        for (path, base, writes, commit) in &self.moves {
            match self.carry_out_move(shared, path, base, writes, recovered) {
                Ok(()) => {}
                Err(error @ LogError::Full(_)) => return Err(error),
                Err(error) => put_off(shared, base, &error, recovered)?,
            }
            shared.register.note_removed(path, *commit)?;
        }
        for (path, commit) in &self.removed {
            // Bytes that the log has for a file of this name are of a later one: it starts empty.
            let removed = shared.files.ensure(path).and_then(|file| file.remove());
            removed.or_else(|_| shared.disk.remove(path)).map_err(LogError::io(format!("removing {path}")))?;
            shared.register.note_removed(path, *commit)?;
            shared.files.forget(path);
            recovered.touched.push((*path).to_owned());
        }
        for (path, writes) in &self.writes {
            match self.restore(shared, path, writes, recovered) {
                Ok(()) => {}
                Err(error @ LogError::Full(_)) => return Err(error),
                Err(error) => put_off(shared, path, &error, recovered)?,
            }
            if layout::stem(path).is_some() {
                recovered.touched.push((*path).to_owned());
            }
        }
        for (path, _) in self.lost.iter().flat_map(|lost| &lost.files) {
            if self.writes.contains_key(path.as_str()) {
                continue;
            }
            // Only its own file may still have what was lost: it is flushed with the others.
            if let Ok(Some(file)) = shared.files.existing(path) {
                shared.mark_dirty(&file);
                recovered.touched.push(path.clone());
            }
        }
        recovered.touched.sort_unstable();
        recovered.touched.dedup();
        recovered.blobs = self.blobs.iter().map(|hash| (*hash).to_owned()).collect();
        Ok(())
    }

    fn carry_out_move(
        &self,
        shared: &Shared,
        path: &str,
        base: &str,
        writes: &[(u64, &[u8], CommitNo)],
        recovered: &mut Recovered,
    ) -> Result<(), LogError> {
        let opening = || LogError::io(format!("opening {base}"));
        let moved = shared.disk.open(base).map_err(opening())?.is_some();
        let at = if moved { base } else { path };
        let whole = writes.first().is_some_and(|(offset, ..)| *offset == 0);
        if !moved && !whole && shared.disk.open(path).map_err(opening())?.is_none() {
            // It was moved, and then let go because no fork read it any more.
            return Ok(());
        }
        self.restore(shared, at, writes, recovered)?;
        let file = shared.files.ensure(at).map_err(LogError::io(format!("opening {at}")))?;
        let finish = || {
            file.write_out()?;
            file.sync()?;
            if !moved {
                shared.disk.create_dir(layout::BASES)?;
                file.rename(base)?;
                shared.files.forget(path);
            }
            shared.disk.sync_dir(layout::BASES)?;
            shared.disk.sync_dir("")
        };
        finish().map_err(LogError::io(format!("moving {path} to {base}")))?;
        shared.upkeep().dirty.remove(at);
        recovered.touched.push(path.to_owned());
        Ok(())
    }

    fn restore(
        &self,
        shared: &Shared,
        path: &str,
        writes: &[(u64, &[u8], CommitNo)],
        recovered: &mut Recovered,
    ) -> Result<(), LogError> {
        if writes.is_empty() {
            return Ok(());
        }
        let file = shared.files.ensure(path).map_err(LogError::io(format!("opening {path}")))?;
        let restoring = || LogError::io(format!("recovering {path}"));
        for (offset, bytes, commit) in writes {
            let missing = file.restore(*offset, bytes, *commit).map_err(restoring())?;
            if missing > 0 && layout::is_session_file(path) {
                recovered.warnings.push(format!("{path}: {missing} bytes are missing before offset {offset}"));
            }
        }
        if layout::is_session_file(path) {
            file.close_restored();
            self.restore_end(&file).map_err(restoring())?;
        }
        shared.mark_dirty(&Arc::clone(&file));
        Ok(())
    }

    /// Keeps the lines behind what the log has that are of commits which the log has lost.
    fn restore_end(&self, file: &LazyFile) -> io::Result<()> {
        if self.lost.is_empty() {
            return Ok(());
        }
        file.restore_end(&|commit| is_lost(self.lost, commit))
    }
}

/// Goes on without a file that cannot be restored: a session is closed, a journal file is begun anew.
fn put_off(shared: &Shared, path: &str, error: &LogError, recovered: &mut Recovered) -> Result<(), LogError> {
    recovered.warnings.push(format!("{path}: {error}"));
    if layout::is_session_file(path) {
        // What it had coming stays in the log, whose segments are kept.
        shared.damaged.put(path.to_owned(), FileDamage::Unreadable { reason: error.to_string() });
        recovered.kept_back = true;
        return Ok(());
    }
    let moving = LogError::io(format!("moving {path} aside"));
    shared.disk.rename(path, &format!("{path}{SET_ASIDE}")).map_err(moving)
}

fn is_lost(lost: &[LostCommits], commit: CommitNo) -> bool {
    lost.iter().any(|lost| lost.first <= commit && lost.last.is_none_or(|last| commit <= last))
}
