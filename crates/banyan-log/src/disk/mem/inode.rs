//! Files: their content now, their durable content, and what changed in between.

use std::borrow::Cow;
use std::mem;
use std::ops::Range;
use std::sync::{Arc, RwLock};

use super::Fate;
use super::bytes::Bytes;
use super::dice::Dice;

pub(super) const SECTOR: usize = 512;

/// A file, under whatever names.
pub(super) struct Inode(pub(super) RwLock<State>);

impl Inode {
    pub(super) fn new(image: Image) -> Arc<Self> {
        Arc::new(Self(RwLock::new(State {
            now: image.clone(),
            durable: image,
            pending: Vec::new(),
            links: 0,
            listed: false,
        })))
    }
}

#[derive(Clone)]
pub(super) struct State {
    pub(super) now: Image,
    pub(super) durable: Image,
    /// What `now` has been through since `durable`, save what a failed sync made the disk forget.
    pub(super) pending: Vec<Change>,
    /// How many names it has. A crash can leave a renamed file under two.
    pub(super) links: u32,
    /// Whether it is on the disk's list of dirty files.
    pub(super) listed: bool,
}

/// Content, and when it was last changed.
#[derive(Clone, Default)]
pub(super) struct Image {
    pub(super) bytes: Bytes,
    pub(super) modified: u64,
}

#[derive(Clone)]
pub(super) struct Change {
    pub(super) stamp: u64,
    pub(super) in_flight: bool,
    pub(super) edit: Edit<'static>,
}

#[derive(Clone)]
pub(super) enum Edit<'a> {
    Write(usize, Cow<'a, [u8]>),
    SetLen(usize),
}

impl Edit<'_> {
    pub(super) fn into_owned(self) -> Edit<'static> {
        match self {
            Edit::Write(offset, data) => Edit::Write(offset, Cow::Owned(data.into_owned())),
            Edit::SetLen(len) => Edit::SetLen(len),
        }
    }
}

impl State {
    pub(super) fn sync(&mut self, fails: bool) {
        for change in mem::take(&mut self.pending) {
            if !fails {
                self.durable.apply(change.stamp, &change.edit);
            }
        }
    }

    pub(super) fn last_write(&self) -> Option<u64> {
        let mut newest_first = self.pending.iter().rev();
        let write = newest_first.find(|change| matches!(change.edit, Edit::Write(..)));
        write.map(|change| change.stamp)
    }

    /// The content after a crash, where `last` is the stamp of the last write on the disk.
    pub(super) fn found(&self, fate: Fate, last: Option<u64>, dice: &mut Dice) -> Image {
        let mut image = self.durable.clone();
        // Data is often written back in order, so chance tries that often.
        let in_order = dice.one_in(4).then(|| dice.below(self.pending.len()));
        for (index, change) in self.pending.iter().enumerate() {
            let Change { stamp, in_flight, edit } = change;
            match (fate, edit) {
                (Fate::LoseUnsynced, _) => {}
                (Fate::TornLast, Edit::Write(offset, data)) if last == Some(*stamp) => {
                    image.write(*stamp, *offset, &data[..dice.below(data.len())]);
                }
                (Fate::KeepAll | Fate::TornLast, _) if *in_flight => {}
                (Fate::KeepAll | Fate::TornLast, edit) => image.apply(*stamp, edit),
                (Fate::Random(_), edit) => match in_order {
                    Some(until) if index < until => image.apply(*stamp, edit),
                    Some(until) if index > until => {}
                    _ => image.apply_by_chance(*stamp, edit, dice),
                },
            }
        }
        image
    }
}

impl Image {
    pub(super) fn apply(&mut self, stamp: u64, edit: &Edit<'_>) {
        match edit {
            Edit::Write(offset, data) => self.write(stamp, *offset, data),
            Edit::SetLen(len) => self.resize(stamp, *len),
        }
    }

    pub(super) fn write(&mut self, stamp: u64, offset: usize, data: &[u8]) {
        if !data.is_empty() {
            self.modified = stamp;
            self.bytes.write(offset, data);
        }
    }

    pub(super) fn resize(&mut self, stamp: u64, len: usize) {
        self.modified = stamp;
        self.bytes.resize(len);
    }

    /// Applies all of an edit, nothing of it, or some sectors. The length can be written apart
    /// from the data, and is then followed by zeros.
    pub(super) fn apply_by_chance(&mut self, stamp: u64, edit: &Edit<'_>, dice: &mut Dice) {
        let (offset, data) = match edit {
            Edit::Write(offset, data) => (*offset, data),
            Edit::SetLen(len) if dice.one_in(2) => return self.resize(stamp, *len),
            Edit::SetLen(_) => return,
        };
        match dice.below(4) {
            0 => {}
            1 => self.write(stamp, offset, data),
            2 => {
                let sectors = sectors(offset, data.len());
                let until = dice.below(sectors.len() + 1);
                let end = sectors.get(until).map_or(data.len(), |sector| sector.start);
                self.write(stamp, offset, &data[..end]);
            }
            _ => {
                for sector in sectors(offset, data.len()) {
                    if dice.one_in(2) {
                        self.write(stamp, offset + sector.start, &data[sector]);
                    }
                }
            }
        }
        let end = offset + data.len();
        if end > self.bytes.len() && dice.one_in(4) {
            self.resize(stamp, end);
        }
    }
}

/// The parts of a write of `len` bytes at `offset` that lie in one sector of the file each.
pub(super) fn sectors(offset: usize, len: usize) -> Vec<Range<usize>> {
    let mut sectors = Vec::with_capacity(len / SECTOR + 2);
    let mut start = 0;
    while start < len {
        let end = len.min(start + SECTOR - (offset + start) % SECTOR);
        sectors.push(start..end);
        start = end;
    }
    sectors
}
