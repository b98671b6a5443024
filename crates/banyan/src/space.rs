//! How much room the disk has: enough, short, or none.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use banyan_log::Room;

use crate::store::Store;

/// The room on the disk that a store is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    /// Whether there is enough.
    pub level: SpaceLevel,
    /// The size of the file system, in bytes; 0 where it is not known.
    pub total: u64,
    /// What is free of it.
    pub free: u64,
    /// Below this the disk is short.
    pub low_mark: u64,
}

/// Whether the disk has room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpaceLevel {
    /// There is enough.
    #[default]
    Enough,
    /// Less is free than the low mark. What is derived does not grow.
    Short,
    /// Writes are refused. Reading and deleting go on.
    Full,
}

/// The low mark where none is set: this much of the file system, or [`MOST_LOW_MARK`] if that is less.
const LOW_MARK_PERCENT: u64 = 5;
const MOST_LOW_MARK: u64 = 1 << 30;

/// What was found last.
pub(crate) struct SpaceWatch {
    /// The low mark that was set.
    configured: Option<u64>,
    level: AtomicU8,
    /// How large the search index was that was removed to make room.
    given_back: AtomicU64,
}

impl SpaceWatch {
    pub(crate) fn new(configured: Option<u64>) -> Self {
        Self { configured, level: AtomicU8::new(SpaceLevel::Enough as u8), given_back: AtomicU64::new(0) }
    }

    /// What was found when it was last looked.
    pub(crate) fn level(&self) -> SpaceLevel {
        match self.level.load(Ordering::Relaxed) {
            0 => SpaceLevel::Enough,
            1 => SpaceLevel::Short,
            _ => SpaceLevel::Full,
        }
    }

    fn low_mark(&self, total: u64) -> u64 {
        self.configured.unwrap_or_else(|| (total / 100 * LOW_MARK_PERCENT).min(MOST_LOW_MARK))
    }

    /// The level, which is left again only when a tenth more is free than it takes.
    fn judge(&self, room: Room) -> SpaceLevel {
        let low = self.low_mark(room.total);
        let enough = if self.level() == SpaceLevel::Enough { low } else { low.saturating_add(low / 10) };
        match room {
            Room { full: true, .. } => SpaceLevel::Full,
            Room { free, .. } if free < enough => SpaceLevel::Short,
            Room { .. } => SpaceLevel::Enough,
        }
    }
}

impl Store {
    pub(crate) fn disk_space(&self) -> DiskSpace {
        let Some(room) = self.log.room() else {
            return DiskSpace { level: SpaceLevel::Enough, total: 0, free: 0, low_mark: 0 };
        };
        let level = self.space.judge(room);
        DiskSpace { level, total: room.total, free: room.free, low_mark: self.space.low_mark(room.total) }
    }

    /// Looks how much room there is, says so when that has changed, and gives room back when there is none.
    pub(crate) fn watch_space(&self) {
        let found = self.disk_space();
        let before = self.space.level();
        if found.level == before {
            return;
        }
        self.space.level.store(found.level as u8, Ordering::Relaxed);
        let (free, low) = (in_words(found.free), in_words(found.low_mark));
        match found.level {
            SpaceLevel::Enough => self.warn(&format!("the disk has room again: {free} are free")),
            SpaceLevel::Short => self.warn(&format!(
                "the disk is short: {free} are free, less than storage.low_mark ({low}); the search index and other derived \
                 files do not grow until there is more"
            )),
            SpaceLevel::Full => {
                self.warn(&format!(
                    "the disk is full: {free} are free; writes are refused until there is more, reading and deleting go on"
                ));
                // They are written anew when there is room.
                self.log.remove_trees();
                let _ = self.catalogue.shrink();
                self.search.give_room_back();
            }
        }
    }

    /// Whether derived files may take a number of further bytes.
    pub(crate) fn may_derive(&self, bytes: u64) -> bool {
        self.log
            .room()
            .is_none_or(|room| !room.full && room.free.saturating_sub(bytes) >= self.space.low_mark(room.total))
    }

    /// Whether the search index may go on after it met the low mark. One that was removed needs room for growing back.
    pub(crate) fn may_index_again(&self) -> bool {
        let given_back = self.space.given_back.load(Ordering::Relaxed);
        let slack = self.log.room().map_or(0, |room| self.space.low_mark(room.total) / 4);
        self.may_derive(slack.saturating_add(given_back))
    }

    /// Notes how many bytes the search index had that was removed; 0 when it is made again.
    pub(crate) fn note_given_back(&self, bytes: u64) {
        self.space.given_back.store(bytes, Ordering::Relaxed);
    }
}

fn in_words(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let unit = UNITS.into_iter().find(|(_, size)| bytes >= *size);
    unit.map_or_else(
        || format!("{bytes} bytes"),
        |(name, size)| format!("{:.1} {name}", bytes as f64 / size as f64),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(total: u64, free: u64) -> Room {
        Room { total, free, full: false }
    }

    #[test]
    fn the_low_mark_is_a_twentieth_and_at_most_a_gibibyte() {
        let watch = SpaceWatch::new(None);
        assert_eq!(watch.low_mark(100 << 20), 5 << 20);
        assert_eq!(watch.low_mark(1 << 40), 1 << 30);
        assert_eq!(SpaceWatch::new(Some(7)).low_mark(1 << 40), 7);
    }

    #[test]
    fn a_level_is_left_only_when_clearly_more_is_free() {
        let watch = SpaceWatch::new(Some(1000));
        assert_eq!(watch.judge(room(1 << 30, 1000)), SpaceLevel::Enough);
        assert_eq!(watch.judge(room(1 << 30, 999)), SpaceLevel::Short);
        watch.level.store(SpaceLevel::Short as u8, Ordering::Relaxed);
        assert_eq!(watch.judge(room(1 << 30, 1050)), SpaceLevel::Short);
        assert_eq!(watch.judge(room(1 << 30, 1100)), SpaceLevel::Enough);
        assert_eq!(watch.judge(Room { full: true, ..room(1 << 30, 1100) }), SpaceLevel::Full);
    }

    #[test]
    fn sizes_are_in_the_largest_unit_that_fits() {
        assert_eq!([in_words(12), in_words(3 << 20), in_words(3 << 29)], ["12 bytes", "3.0 MiB", "1.5 GiB"]);
    }
}
