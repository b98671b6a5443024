//! Room on the disk: a reserve that only the log may use, and what may be taken without touching it.
//!
//! The reserve is a file of zeros, `.banyan/reserve`. It is removed when a session is to be deleted and there is no room
//! for the commit, and made again when there is. What is committed needs room a second time, in the session files; so the log
//! takes a new segment only if there is room for its content, too.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::layout;
use super::segment::Segment;
use super::shared::Shared;
use crate::LogError;
use crate::disk::{Disk, Space};

/// The room that the log finds on its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// All of the file system, in bytes.
    pub total: u64,
    /// What is free of it.
    pub free: u64,
    /// Whether commits are refused for want of room.
    pub full: bool,
}

/// The smallest segment that a busy log begins, unless a commit needs a larger one.
pub(super) const SMALLEST_SEGMENT: u64 = 64 << 10;

/// A segment takes at most this part of what is free, so that the log does not hold much of a small disk.
pub(super) const SHARE_OF_FREE: u64 = 8;

/// Maximum number of bytes stored beside the log between two looks at the free space.
const MOST_GRANTED: u64 = 64 << 20;

/// What the catalogue may need to note what was committed.
const FOR_THE_CATALOGUE: u64 = 64 << 10;

/// What a file takes beyond its content.
const OF_A_FILE: u64 = 4 << 10;

/// See the module.
#[derive(Default)]
pub(crate) struct Reserve(Mutex<State>);

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Unknown,
    Kept,
    Missing,
}

/// How large the reserve of a file system is.
fn size_for(space: Space) -> u64 {
    (space.total / 64).clamp(64 << 10, 4 << 20)
}

impl Reserve {
    /// Makes the file when it is missing and there is room for twice its size.
    pub(crate) fn keep(&self, disk: &dyn Disk) {
        let mut state = self.find(disk);
        let space = match *state {
            State::Missing => disk.space().ok().flatten(),
            State::Unknown | State::Kept => None,
        };
        if let Some(space) = space
            && space.free >= 2 * size_for(space)
            && make(disk, size_for(space)).is_ok()
        {
            *state = State::Kept;
        }
    }

    /// Gives the reserve back to the file system, for a commit or a file that must have room.
    pub(crate) fn spend(&self, disk: &dyn Disk) {
        let mut state = self.find(disk);
        if *state == State::Kept && disk.remove(layout::RESERVE).is_ok() {
            *state = State::Missing;
        }
    }

    /// How many of the free bytes are to become the reserve again.
    fn missing(&self, disk: &dyn Disk, space: Space) -> u64 {
        if *self.find(disk) == State::Kept { 0 } else { size_for(space) }
    }

    fn find(&self, disk: &dyn Disk) -> MutexGuard<'_, State> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *state == State::Unknown {
            let found = disk.stat(layout::RESERVE).ok().flatten().is_some_and(|stat| stat.len > 0);
            *state = if found { State::Kept } else { State::Missing };
        }
        state
    }
}

fn make(disk: &dyn Disk, size: u64) -> io::Result<()> {
    let made = disk.create(layout::RESERVE).and_then(|file| {
        file.allocate(size)?;
        file.sync()
    });
    if made.is_err() {
        let _ = disk.remove(layout::RESERVE);
    }
    made
}

impl Shared {
    /// The room on the disk, where the disk can tell.
    pub(crate) fn room(&self) -> Option<Room> {
        let space = self.disk.space().ok().flatten()?;
        let refused = matches!(self.upkeep().trouble, Some(LogError::Full(_)));
        let full = refused || self.spare(space) < 2 * SMALLEST_SEGMENT;
        Some(Room { total: space.total, free: space.free, full })
    }

    /// Refuses to store so many bytes beside the log where that would leave too little for what is committed. The disk is asked
    /// for many at a time.
    pub(crate) fn expect_room(&self, bytes: u64) -> Result<(), LogError> {
        let take = |granted: u64| granted.checked_sub(bytes);
        if self.granted.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).is_ok() {
            return Ok(());
        }
        let Some(spare) = self.disk.space().ok().flatten().map(|space| self.spare(space)) else { return Ok(()) };
        if spare < bytes {
            return Err(too_little(spare));
        }
        self.granted.store(((spare - bytes) / SHARE_OF_FREE).min(MOST_GRANTED), Ordering::Release);
        Ok(())
    }

    /// Has the disk be asked again before anything more is stored.
    pub(crate) fn withdraw_grant(&self) {
        self.granted.store(0, Ordering::Release);
    }

    /// Whether the content of a segment that is there already fits into the session files.
    pub(crate) fn has_room_for(&self, segment: &Segment) -> bool {
        self.disk.space().ok().flatten().is_none_or(|space| self.spare(space) >= segment.size)
    }

    /// How large the next segment may be that is to hold `need` bytes. Its content needs as much again in the session files.
    pub(crate) fn segment_size(&self, need: u64, wanted: u64) -> Result<u64, LogError> {
        let Some(space) = self.disk.space().ok().flatten() else { return Ok(wanted.max(need)) };
        let spare = self.spare(space);
        let most = (spare / SHARE_OF_FREE).max(SMALLEST_SEGMENT);
        let size = wanted.min(most).max(need);
        if spare < 2 * size { Err(too_little(spare)) } else { Ok(size) }
    }

    /// Whether a segment that is not needed yet may stay on the disk.
    pub(crate) fn may_keep_ready(&self, size: u64) -> bool {
        self.disk.space().ok().flatten().is_none_or(|space| self.spare(space) / SHARE_OF_FREE >= size)
    }

    /// What is free besides the reserve and what the segments in use will need in the session files.
    fn spare(&self, space: Space) -> u64 {
        let reserve = self.reserve.missing(self.disk.as_ref(), space);
        let upkeep = self.upkeep();
        let unwritten = upkeep.sealed.iter().map(|sealed| sealed.size).sum::<u64>() + upkeep.current;
        let files = upkeep.dirty.len() as u64 * OF_A_FILE;
        drop(upkeep);
        space.free.saturating_sub(reserve + unwritten + files + FOR_THE_CATALOGUE)
    }
}

fn too_little(spare: u64) -> LogError {
    LogError::Full(format!("{spare} bytes are left beside the reserve"))
}
