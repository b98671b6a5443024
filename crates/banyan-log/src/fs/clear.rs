//! Removing the bytes of deleted sessions from the log's own files.

use std::sync::PoisonError;
use std::sync::mpsc::sync_channel;

use banyan_model::CommitNo;

use super::committer::Item;
use super::shared::Shared;
use super::{FsLog, layout, segment};
use crate::{LogError, SessionLog};

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClearedLog {
    /// Segments of the write-ahead log.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl FsLog {
    /// Brings everything that is committed into the session files, and removes every segment of the write-ahead log that
    /// was in use. No file is used a second time, so nothing of a deleted session stays in one.
    pub fn clear_log(&self) -> Result<ClearedLog, LogError> {
        let _erasing = self.shared.erasing.lock().unwrap_or_else(PoisonError::into_inner);
        self.clear_segments()
    }

    /// The same, for a caller that holds the lock on erasing.
    pub(super) fn clear_segments(&self) -> Result<ClearedLog, LogError> {
        let shared = &self.shared;
        let before = segments(shared)?;
        let through = self.head();
        let ready = {
            let mut upkeep = shared.upkeep();
            upkeep.clearing = true;
            upkeep.ready.take()
        };
        let removed = ready.map_or(Ok(()), |ready| shared.disk.remove(&layout::segment(ready.id)));
        let cleared = self.seal_log().and_then(|()| shared.wait_until_dropped(shared.upcoming_id()));
        shared.upkeep().clearing = false;
        removed.map_err(LogError::io("removing a segment that was not in use"))?;
        cleared?;
        let after = segments(shared)?;
        let gone = before.iter().filter(|(id, _)| after.iter().all(|(kept, _)| kept != id));
        let cleared = gone.fold(ClearedLog::default(), |sum, (_, bytes)| ClearedLog {
            segments: sum.segments + 1,
            bytes: sum.bytes + bytes,
        });
        *shared.cleared.lock().unwrap_or_else(PoisonError::into_inner) = through;
        Ok(cleared)
    }

    /// Writes the register of session files anew without the lines of sessions that are gone.
    pub fn compact_register(&self) -> Result<(), LogError> {
        let shared = &self.shared;
        let through = *shared.cleared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.register.forget_removed(shared.disk.as_ref(), shared.directory, through)
    }

    /// Names of files that are kept because they are damaged, and may hold what was deleted.
    pub fn set_aside(&self) -> Result<Vec<String>, LogError> {
        let listed = self.shared.disk.list(layout::WAL).map_err(LogError::io("listing the write-ahead log"))?;
        let mut names: Vec<String> = listed.into_iter().map(|listed| listed.name).collect();
        names.retain(|name| name.ends_with(super::recovery::SET_ASIDE));
        names.sort_unstable();
        Ok(names.into_iter().map(|name| format!("{}/{name}", layout::WAL)).collect())
    }

    fn seal_log(&self) -> Result<(), LogError> {
        let (answer, answered) = sync_channel(1);
        let done = Box::new(move |outcome| {
            let _ = answer.send(outcome);
        });
        if let Some((_, error)) = self.enqueue(Item::Seal(done)) {
            return Err(error);
        }
        answered.recv().unwrap_or(Err(LogError::Closed))
    }
}

/// The segments that there are, and how large they are.
fn segments(shared: &Shared) -> Result<Vec<(u64, u64)>, LogError> {
    let listing = || LogError::io("listing the write-ahead log");
    let listed = shared.disk.list(layout::WAL).map_err(listing())?;
    let ids = listed.iter().filter_map(|listed| segment::id_of(&listed.name));
    ids.map(|id| {
        let stat = shared.disk.stat(&layout::segment(id)).map_err(listing())?;
        Ok((id, stat.map_or(0, |stat| stat.len)))
    })
    .collect()
}

/// The last commit whose segment is gone.
pub(crate) type Cleared = std::sync::Mutex<CommitNo>;
