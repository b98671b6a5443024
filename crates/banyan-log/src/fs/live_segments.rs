//! Which segments of the write-ahead log are in use, in `.banyan/wal/live`: so that one that is gone, cut or replaced is missed.
//!
//! The file is a witness and nothing more. Where it is damaged or missing, nothing follows from it.

use std::sync::{Mutex, PoisonError};

use banyan_model::CommitNo;
use serde::{Deserialize, Serialize};

use super::segment::{Segment, read_all};
use super::{checked_line, layout};
use crate::LogError;
use crate::disk::Disk;

/// A segment in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Live {
    pub(crate) segment: u64,
    pub(crate) size: u64,
    /// The first commit in it.
    pub(crate) first: CommitNo,
    /// Whether a batch was flushed to it.
    pub(crate) begun: bool,
}

/// See the module.
#[derive(Default)]
pub(crate) struct LiveSegments(Mutex<Vec<Live>>);

#[derive(Serialize, Deserialize)]
struct Stored {
    live: Vec<Live>,
}

impl LiveSegments {
    /// Notes, durably, that a segment is about to be used.
    pub(crate) fn begin(&self, disk: &dyn Disk, segment: &Segment, first: CommitNo) -> Result<(), LogError> {
        self.change(disk, Durably::Yes, |live| {
            live.push(Live { segment: segment.id, size: segment.size, first, begun: false });
        })
    }

    /// Notes that a batch was flushed to a segment. A power cut may undo that.
    pub(crate) fn begun(&self, disk: &dyn Disk, segment: u64) -> Result<(), LogError> {
        self.change(disk, Durably::No, |live| {
            live.iter_mut().filter(|live| live.segment == segment).for_each(|live| live.begun = true);
        })
    }

    /// Notes, durably, that segments are no longer needed.
    pub(crate) fn end(&self, disk: &dyn Disk, segments: &[u64]) -> Result<(), LogError> {
        self.change(disk, Durably::Yes, |live| live.retain(|live| !segments.contains(&live.segment)))
    }

    /// Takes over what recovery found in use.
    pub(crate) fn set(&self, live: Vec<Live>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = live;
    }

    fn change(
        &self,
        disk: &dyn Disk,
        durably: Durably,
        change: impl FnOnce(&mut Vec<Live>),
    ) -> Result<(), LogError> {
        let mut live = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut live);
        let text = checked_line::encode(&Stored { live: live.clone() });
        let write = || {
            let file = disk.create(layout::LIVE)?;
            file.write_at(0, &text)?;
            file.set_len(text.len() as u64)?;
            if durably == Durably::Yes { file.sync() } else { Ok(()) }
        };
        write().map_err(LogError::io(format!("writing {}", layout::LIVE)))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Durably {
    Yes,
    No,
}

/// The segments that were in use, as far as the file says.
pub(crate) fn read(disk: &dyn Disk) -> Vec<Live> {
    let read = || read_all(disk.open(layout::LIVE).ok()??.as_ref()).ok();
    let stored: Option<Stored> = read().and_then(|bytes| checked_line::decode(&bytes));
    stored.map_or_else(Vec::new, |stored| stored.live)
}
