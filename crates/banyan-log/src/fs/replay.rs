//! Reading the journal.

use banyan_model::CommitNo;

use super::journal;
use super::layout;
use super::shared::Shared;
use crate::{JournalEntry, LogError, Replay};

/// First commits of the journal files that there are, oldest first.
pub(crate) fn journal_files(shared: &Shared) -> Result<Vec<u64>, LogError> {
    let listed = shared.disk.list(layout::JOURNAL).map_err(LogError::io("listing the journal"))?;
    let on_disk = listed.into_iter().map(|listed| listed.name);
    let in_memory = shared.files.unwritten().into_iter().filter_map(|path| {
        path.strip_prefix(layout::JOURNAL).map(|name| name.trim_start_matches('/').to_owned())
    });
    let mut firsts: Vec<u64> = on_disk
        .chain(in_memory)
        .filter_map(|name| u64::from_str_radix(name.strip_suffix(".log")?, 16).ok())
        .collect();
    firsts.sort_unstable();
    firsts.dedup();
    Ok(firsts)
}

/// Shows the entries of one journal file until `visit` says no. Stops at damage.
pub(crate) fn entries(
    shared: &Shared,
    first: u64,
    visit: &mut dyn FnMut(JournalEntry) -> bool,
) -> Result<bool, LogError> {
    let path = layout::journal(first);
    let reading = || LogError::io(format!("reading {path}"));
    let Some(file) = shared.files.existing(&path).map_err(reading())? else { return Ok(true) };
    let bytes = file.read(0, file.end() as usize).map_err(reading())?;
    let mut rest = bytes.as_slice();
    while let Some((entry, len)) = journal::decode(rest) {
        rest = rest.get(len..).unwrap_or_default();
        if !visit(entry) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// See [`SessionLog::replay`](crate::SessionLog::replay).
pub(crate) fn replay(
    shared: &Shared,
    after: CommitNo,
    upto: CommitNo,
    visit: &mut dyn FnMut(JournalEntry) -> bool,
) -> Result<Replay, LogError> {
    let mut through = after;
    let mut forgotten = None;
    for first in journal_files(shared)? {
        if first + journal::PER_FILE <= after.0 {
            continue;
        }
        let more = entries(shared, first, &mut |entry| {
            if entry.commit <= after {
                return true;
            }
            if entry.commit > upto {
                return false;
            }
            if entry.commit.0 != through.0 + 1 && after.0 != 0 && through == after {
                forgotten = Some(CommitNo(entry.commit.0 - 1));
                return false;
            }
            through = entry.commit;
            visit(entry)
        })?;
        if !more {
            break;
        }
    }
    Ok(match forgotten {
        Some(start) => Replay::Forgotten(start),
        None if through < upto && through == after && after.0 != 0 => Replay::Forgotten(upto),
        None => Replay::Through(through),
    })
}
