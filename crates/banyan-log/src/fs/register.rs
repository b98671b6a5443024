//! The register of session files, `.banyan/files`: how long each file was when it was last flushed, and its last commit.
//!
//! It is a second witness. A file that is gone or shorter than registered is damaged, and not a new session; a fork's first
//! line, which alone says what the fork inherits, stands here a second time; a file that was removed says so, also when the
//! commit that removed it is lost. Each line is a checked one; the last line of a path counts. Nothing that is damaged in
//! the register closes a session: an older line only says less.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use banyan_core::born::Born;
use banyan_core::record::{Head, HeadKind};
use banyan_model::CommitNo;
use serde::{Deserialize, Serialize};

use super::format::DirectoryId;
use super::segment::read_all;
use super::{checked_line, layout};
use crate::LogError;
use crate::disk::{Disk, DiskFile};
use crate::error::is_full;

/// A session file as it was flushed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisteredFile {
    /// Its length.
    pub length: u64,
    /// The last commit in it; 0 where it is not known.
    pub commit: CommitNo,
    /// The checksum of its first line, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<u32>,
    /// Its first line, for a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins: Option<String>,
}

/// One line of the register.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Directory {
        directory: String,
    },
    File {
        file: String,
        #[serde(flatten)]
        registered: RegisteredFile,
    },
    Removed {
        removed: String,
        commit: CommitNo,
    },
}

/// What the register says.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) files: HashMap<String, RegisteredFile>,
    /// Files that were removed, and by which commit.
    pub(crate) removed: HashMap<String, CommitNo>,
    /// Numbers of lines that cannot be read.
    pub(crate) damaged: Vec<u64>,
    lines: u64,
}

/// Why a register says nothing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// There is none.
    Missing,
    /// It is another directory's, or cannot be read.
    Unusable(String),
}

/// The register of an open directory.
#[derive(Default)]
pub(crate) struct Register(Mutex<Open>);

#[derive(Default)]
struct Open {
    file: Option<Arc<dyn DiskFile>>,
    end: u64,
    unsynced: bool,
    /// Lines for which there was no room yet.
    unwritten: Vec<u8>,
    /// How long it may get before it is written anew.
    compact_at: u64,
}

/// A smaller register is never written anew while the directory is in use.
const SMALL: u64 = 16 << 20;

/// Whether the register can be used: its first line names the directory.
pub(crate) fn check(disk: &dyn Disk, directory: DirectoryId) -> Result<(), Absent> {
    let unusable = |error: std::io::Error| Absent::Unusable(format!("cannot be read: {error}"));
    let file = disk.open(layout::REGISTER).map_err(unusable)?.ok_or(Absent::Missing)?;
    let mut first = [0; 256];
    let read = file.read_at(0, &mut first).map_err(unusable)?;
    let line = first[..read].split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
    match checked_line::decode(line) {
        Some(Line::Directory { directory: named }) if named == directory.to_string() => Ok(()),
        Some(Line::Directory { .. }) => Err(Absent::Unusable("is another directory's".to_owned())),
        _ => Err(Absent::Unusable("does not say which directory it is of".to_owned())),
    }
}

/// Reads the register of a directory, which [`check`] found usable.
pub(crate) fn read(disk: &dyn Disk, directory: DirectoryId) -> Result<Contents, Absent> {
    check(disk, directory)?;
    let unusable = |error: std::io::Error| Absent::Unusable(format!("cannot be read: {error}"));
    let file = disk.open(layout::REGISTER).map_err(unusable)?.ok_or(Absent::Missing)?;
    let bytes = read_all(file.as_ref()).map_err(unusable)?;
    let mut contents = Contents::default();
    for (number, line) in (1..).zip(bytes.split_inclusive(|byte| *byte == b'\n')) {
        contents.lines += 1;
        match checked_line::decode(line) {
            Some(Line::Directory { .. }) => {}
            Some(Line::File { file, mut registered }) => {
                contents.removed.remove(&file);
                if let Some(before) = contents.files.remove(&file) {
                    registered.first = registered.first.or(before.first);
                    registered.begins = registered.begins.or(before.begins);
                }
                contents.files.insert(file, registered);
            }
            Some(Line::Removed { removed, commit }) => {
                contents.files.remove(&removed);
                contents.removed.insert(removed, commit);
            }
            None => contents.damaged.push(number),
        }
    }
    Ok(contents)
}

/// Which directory the register is of, whatever else it says.
pub(crate) fn directory_named(disk: &dyn Disk) -> Option<DirectoryId> {
    let file = disk.open(layout::REGISTER).ok()??;
    let mut first = [0; 256];
    let read = file.read_at(0, &mut first).ok()?;
    match checked_line::decode(first[..read].split_inclusive(|byte| *byte == b'\n').next()?) {
        Some(Line::Directory { directory }) => directory.parse().ok(),
        _ => None,
    }
}

/// The checksum of a session's first line, by which the register knows its file.
pub fn first_line_sum(line: &[u8]) -> u32 {
    crc32c::crc32c(line)
}

/// The bases that registered forks name. A fork's first line is registered with it.
pub(crate) fn bases(disk: &dyn Disk, directory: DirectoryId) -> HashSet<Born> {
    let files = read(disk, directory).map(|contents| contents.files).unwrap_or_default();
    let lines = files.into_values().filter_map(|file| file.begins);
    let base = |line: String| match Head::parse(line.as_bytes()).ok()?.kind {
        HeadKind::Created(created) => created.base.map(|base| base.born),
        _ => None,
    };
    lines.filter_map(base).collect()
}

impl Register {
    /// Opens the register for adding to it; one that is missing or unusable is begun anew.
    pub(crate) fn open(&self, disk: &dyn Disk, directory: DirectoryId, usable: bool) -> Result<(), LogError> {
        let opening = || LogError::io(format!("opening {}", layout::REGISTER));
        let mut open = self.lock();
        let existing = if usable { disk.open(layout::REGISTER).map_err(opening())? } else { None };
        match existing {
            Some(file) => {
                open.end = file.len().map_err(opening())?;
                open.file = Some(file);
            }
            None => *open = rewrite(disk, directory, HashMap::new()).map_err(opening())?,
        }
        open.compact_at = (open.end * 2).max(SMALL);
        Ok(())
    }

    /// Notes files that were just flushed. Durable when it returns.
    pub(crate) fn note(
        &self,
        disk: &dyn Disk,
        directory: DirectoryId,
        files: Vec<(String, RegisteredFile)>,
    ) -> Result<(), LogError> {
        let writing = || LogError::io(format!("writing {}", layout::REGISTER));
        let mut lines = Vec::with_capacity(files.len() * 96);
        for (file, registered) in files {
            lines.extend_from_slice(&checked_line::encode(&Line::File { file, registered }));
        }
        let mut open = self.lock();
        let before = open.unwritten.len();
        let added = open.add(&lines);
        if added.is_err() {
            // They are noted again with the next flush of their files.
            open.unwritten.truncate(before);
        }
        added.map_err(writing())?;
        if let Some(file) = open.file.clone().filter(|_| open.unsynced) {
            file.sync().map_err(writing())?;
            open.unsynced = false;
        }
        if open.end > open.compact_at
            && let Ok(contents) = read(disk, directory)
        {
            *open = rewrite(disk, directory, contents.files).map_err(writing())?;
            open.compact_at = (open.end * 2).max(SMALL);
        }
        Ok(())
    }

    /// Writes the register anew if most of it is of no use.
    pub(crate) fn compact(
        &self,
        disk: &dyn Disk,
        directory: DirectoryId,
        contents: Contents,
    ) -> Result<(), LogError> {
        let mut open = self.lock();
        let writing = LogError::io(format!("writing {}", layout::REGISTER));
        *open = rewrite(disk, directory, contents.files).map_err(writing)?;
        open.compact_at = (open.end * 2).max(SMALL);
        Ok(())
    }

    /// Writes the register anew without what it says of removed files, except of those that a later commit removed.
    pub(crate) fn forget_removed(
        &self,
        disk: &dyn Disk,
        directory: DirectoryId,
        through: CommitNo,
    ) -> Result<(), LogError> {
        let writing = || LogError::io(format!("writing {}", layout::REGISTER));
        let mut open = self.lock();
        open.add(&[]).map_err(writing())?;
        let Ok(contents) = read(disk, directory) else { return Ok(()) };
        let mut lines = Vec::new();
        for (removed, commit) in contents.removed.into_iter().filter(|(_, commit)| *commit > through) {
            lines.extend_from_slice(&checked_line::encode(&Line::Removed { removed, commit }));
        }
        let mut anew = rewrite(disk, directory, contents.files).map_err(writing())?;
        anew.unwritten = lines;
        anew.compact_at = (anew.end * 2).max(SMALL);
        *open = anew;
        open.add(&[]).map_err(writing())
    }

    /// Notes that a file was removed by a commit. It is durable with the next note; until then the log says the same.
    pub(crate) fn note_removed(&self, path: &str, commit: CommitNo) -> Result<(), LogError> {
        let line = checked_line::encode(&Line::Removed { removed: path.to_owned(), commit });
        match self.lock().add(&line) {
            // It is kept for the next note.
            Err(error) if is_full(&error) => Ok(()),
            added => added.map_err(LogError::io(format!("writing {}", layout::REGISTER))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn add(&mut self, lines: &[u8]) -> std::io::Result<()> {
        self.unwritten.extend_from_slice(lines);
        if let Some(file) = self.file.as_ref().filter(|_| !self.unwritten.is_empty()) {
            self.unsynced = true;
            file.write_at(self.end, &self.unwritten)?;
            self.end += self.unwritten.len() as u64;
            self.unwritten.clear();
        }
        Ok(())
    }
}

/// Writes the register anew, beside the old one, and puts it in its place.
fn rewrite(
    disk: &dyn Disk,
    directory: DirectoryId,
    files: HashMap<String, RegisteredFile>,
) -> std::io::Result<Open> {
    let mut files: Vec<_> = files.into_iter().collect();
    files.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    let mut text = checked_line::encode(&Line::Directory { directory: directory.to_string() });
    for (file, registered) in files {
        text.extend_from_slice(&checked_line::encode(&Line::File { file, registered }));
    }
    let beside = format!("{}.new", layout::REGISTER);
    let file = disk.create(&beside)?;
    file.set_len(0)?;
    file.write_at(0, &text)?;
    file.sync()?;
    disk.rename(&beside, layout::REGISTER)?;
    disk.sync_dir(layout::STATE)?;
    // Through its new name, so that nothing depends on how a disk treats files that are renamed while they are open.
    Ok(Open { file: disk.open(layout::REGISTER)?, end: text.len() as u64, ..Open::default() })
}

impl Contents {
    /// The last commit that any file had when it was flushed or removed.
    pub(crate) fn head(&self) -> CommitNo {
        let files = self.files.values().map(|file| file.commit);
        files.chain(self.removed.values().copied()).max().unwrap_or_default()
    }

    /// Whether most lines say what later ones say again.
    pub(crate) fn is_bloated(&self) -> bool {
        self.lines > 2 * self.files.len() as u64 + 10_000
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#[path = "register_tests.rs"]
mod tests;
