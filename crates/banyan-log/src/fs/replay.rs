//! Reading the journal.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use banyan_model::CommitNo;

use super::journal;
use super::layout;
use super::shared::Shared;
use crate::{JournalEntry, LogError, Replay};

/// Where readers stopped, so that they need not start over when they go on.
#[derive(Default)]
pub(crate) struct Bookmarks(Mutex<VecDeque<Bookmark>>);

/// The entry of `commit` ends at `offset` of the file that starts with `first`.
#[derive(Clone, Copy)]
struct Bookmark {
    commit: CommitNo,
    first: u64,
    offset: u64,
}

/// So many readers are remembered.
const BOOKMARKS: usize = 256;

/// How much of a journal file is read at a time.
const CHUNK: usize = 64 << 10;

impl Bookmarks {
    fn find(&self, commit: CommitNo) -> Option<Bookmark> {
        let marks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        marks.iter().rev().find(|mark| mark.commit == commit).copied()
    }

    fn put(&self, mark: Bookmark) {
        let mut marks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if marks.len() == BOOKMARKS {
            marks.pop_front();
        }
        marks.push_back(mark);
    }
}

/// First commits of the journal files that there are, oldest first.
pub(crate) fn journal_files(shared: &Shared) -> Result<Vec<u64>, LogError> {
    // What is only in memory first: a file that is written meanwhile is then found on disk.
    let in_memory: Vec<String> = shared
        .files
        .unwritten()
        .into_iter()
        .filter_map(|path| path.strip_prefix(layout::JOURNAL).map(|name| name.trim_start_matches('/').to_owned()))
        .collect();
    let listed = shared.disk.list(layout::JOURNAL).map_err(LogError::io("listing the journal"))?;
    let on_disk = listed.into_iter().map(|listed| listed.name);
    let mut firsts: Vec<u64> = on_disk.chain(in_memory).filter_map(|name| journal::first_of(&name)).collect();
    firsts.sort_unstable();
    firsts.dedup();
    Ok(firsts)
}

/// Shows the entries of one journal file from an offset on, each with the offset where it ends, until `visit` says no.
/// Damaged entries are left out.
pub(crate) fn entries(
    shared: &Shared,
    first: u64,
    from: u64,
    visit: &mut dyn FnMut(JournalEntry, u64) -> bool,
) -> Result<bool, LogError> {
    let path = layout::journal(first);
    let reading = || LogError::io(format!("reading {path}"));
    let Some(file) = shared.files.existing(&path).map_err(reading())? else { return Ok(true) };
    let mut at = from;
    let mut bytes = Vec::new();
    let mut commits = first..first + journal::PER_FILE;
    loop {
        let more = file.read(at + bytes.len() as u64, CHUNK.max(bytes.len())).map_err(reading())?;
        let is_end = more.is_empty();
        bytes.extend_from_slice(&more);
        let mut used = 0;
        loop {
            let rest = bytes.get(used..).unwrap_or_default();
            let found = match journal::decode(rest) {
                Some((entry, len)) => Some((0, entry, len)),
                // Damage; what follows it is looked for once the rest of the file is here, which is short.
                None if is_end => journal::find_next(rest, &commits),
                None => None,
            };
            let Some((start, entry, len)) = found else { break };
            used += start + len;
            commits.start = entry.commit.0.saturating_add(1);
            if !visit(entry, at + used as u64) {
                return Ok(false);
            }
        }
        if is_end {
            return Ok(true);
        }
        bytes.drain(..used);
        at += used as u64;
    }
}

/// See [`SessionLog::replay`](crate::SessionLog::replay).
pub(crate) fn replay(
    shared: &Shared,
    after: CommitNo,
    upto: CommitNo,
    visit: &mut dyn FnMut(JournalEntry) -> bool,
) -> Result<Replay, LogError> {
    let mark = shared.bookmarks.find(after);
    let start = mark.map_or(after.0.saturating_sub(journal::PER_FILE), |mark| mark.first);
    let mut through = after;
    let mut gap = None;
    let mut reached = None;
    for first in journal_files(shared)?.into_iter().filter(|first| *first >= start) {
        let from = mark.filter(|mark| mark.first == first).map_or(0, |mark| mark.offset);
        let more = entries(shared, first, from, &mut |entry, end| {
            if entry.commit <= after {
                return true;
            }
            if entry.commit > upto {
                return false;
            }
            if through.0 != 0 && entry.commit.0 != through.0.saturating_add(1) {
                gap = Some(CommitNo(entry.commit.0 - 1));
                return false;
            }
            through = entry.commit;
            reached = Some(Bookmark { commit: through, first, offset: end });
            visit(entry)
        })?;
        if !more {
            break;
        }
    }
    if let Some(reached) = reached {
        shared.bookmarks.put(reached);
        // A gap behind what was shown is met by whoever goes on from there.
        return Ok(Replay::Through(through));
    }
    Ok(match gap {
        Some(start) => Replay::Forgotten(start),
        None if through < upto => Replay::Forgotten(upto),
        None => Replay::Through(through),
    })
}
