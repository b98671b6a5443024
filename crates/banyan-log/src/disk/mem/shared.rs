//! What all clones of a disk in memory have in common: its order of operations, its faults, its room.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, RwLock};

use super::dice::Dice;
use super::inode::{Change, Edit, Image, Inode, State};
use super::moments::{Mishap, Moment};
use super::tree::{Dir, Node, Tree};
use super::{Fate, SimulatedCrash, lock, read, write};

pub(super) const EIO: i32 = 5;

/// One disk, behind all its clones and open files. Locks are taken in the order of the fields.
pub(super) struct Shared {
    /// Given to crashable disks, which record their changes.
    pub(super) seed: Option<u64>,
    /// Puts the operations of a crashable disk in one order.
    pub(super) gate: Mutex<()>,
    pub(super) locks: Mutex<BTreeMap<String, String>>,
    pub(super) tree: RwLock<Tree>,
    /// Files that may have unsynced changes.
    pub(super) dirty: Mutex<Vec<Arc<Inode>>>,
    pub(super) failing_syncs: Mutex<BTreeSet<u64>>,
    pub(super) keeping: Mutex<Option<Mishap>>,
    pub(super) moments: Mutex<Vec<Moment>>,
    pub(super) ops: AtomicU64,
    pub(super) clock: AtomicU64,
    pub(super) crash_at: AtomicU64,
    pub(super) crashed: AtomicBool,
    pub(super) capacity: AtomicU64,
    pub(super) used: AtomicU64,
    pub(super) reports_space: AtomicBool,
}

/// An operation under way.
pub(super) struct Op {
    pub(super) number: u64,
    /// Unique on the disk, growing, and never reused after a crash.
    pub(super) stamp: u64,
    /// The power is cut in it: it may only be recorded, as a change in flight.
    pub(super) dying: bool,
    pub(super) recorded: bool,
}

/// What an operation does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Change,
    Sync,
}

impl Shared {
    pub(super) fn new(seed: Option<u64>) -> Self {
        Self {
            seed,
            gate: Mutex::default(),
            locks: Mutex::default(),
            tree: RwLock::new(Tree {
                dirs: BTreeMap::from([(String::new(), Dir::default())]),
                pending: BTreeMap::new(),
            }),
            dirty: Mutex::default(),
            failing_syncs: Mutex::default(),
            keeping: Mutex::default(),
            moments: Mutex::default(),
            ops: AtomicU64::new(0),
            clock: AtomicU64::new(0),
            crash_at: AtomicU64::new(u64::MAX),
            crashed: AtomicBool::new(false),
            capacity: AtomicU64::new(u64::MAX),
            used: AtomicU64::new(0),
            reports_space: AtomicBool::new(false),
        }
    }

    pub(super) fn alive(&self) -> io::Result<()> {
        if self.crashed.load(SeqCst) { Err(io::Error::other(SimulatedCrash)) } else { Ok(()) }
    }

    pub(super) fn tick(&self) -> u64 {
        self.clock.fetch_add(1, SeqCst) + 1
    }

    /// An empty file that is about to get its first name.
    pub(super) fn new_file(&self) -> Arc<Inode> {
        let inode = Inode::new(Image { modified: self.tick(), ..Image::default() });
        write(&inode.0).links = 1;
        inode
    }

    pub(super) fn mutate<T>(&self, act: impl FnOnce(&Op) -> io::Result<T>) -> io::Result<T> {
        self.operate(Kind::Change, act)
    }

    fn operate<T>(&self, kind: Kind, act: impl FnOnce(&Op) -> io::Result<T>) -> io::Result<T> {
        let _gate = self.seed.map(|_| lock(&self.gate));
        self.alive()?;
        let number = self.ops.fetch_add(1, SeqCst) + 1;
        let dying = number >= self.crash_at.load(SeqCst);
        let op = Op { number, stamp: self.tick(), dying, recorded: self.seed.is_some() };
        let keeping = if op.recorded { *lock(&self.keeping) } else { None };
        let (before, after) = match (keeping, kind) {
            (Some(Mishap::PowerCut), Kind::Change) => (None, keeping),
            _ => (keeping, None),
        };
        if let Some(mishap) = before {
            self.keep(&op, kind, mishap);
        }
        let result = act(&op);
        if let Some(mishap) = after {
            self.keep(&op, kind, mishap);
        }
        if dying {
            self.crashed.store(true, SeqCst);
        }
        self.alive().and(result)
    }

    /// Runs a sync of any kind, telling it whether to fail.
    pub(super) fn sync(&self, act: impl FnOnce(bool) -> io::Result<()>) -> io::Result<()> {
        self.operate(Kind::Sync, |op| {
            let fails = lock(&self.failing_syncs).remove(&op.number);
            if !op.dying {
                act(fails)?;
            }
            if fails { Err(io::Error::from_raw_os_error(EIO)) } else { Ok(()) }
        })
    }

    pub(super) fn edit(&self, op: &Op, inode: &Arc<Inode>, state: &mut State, edit: Edit<'_>) {
        let before = state.now.bytes.len();
        if !op.dying {
            state.now.apply(op.stamp, &edit);
            self.resized(state, before);
        }
        if op.recorded {
            let (stamp, in_flight) = (op.stamp, op.dying);
            state.pending.push(Change { stamp, in_flight, edit: edit.into_owned() });
            if !mem::replace(&mut state.listed, true) {
                lock(&self.dirty).push(inode.clone());
            }
        }
    }

    pub(super) fn resized(&self, state: &State, before: usize) {
        if state.links > 0 {
            let by = (state.now.bytes.len() as u64).wrapping_sub(before as u64);
            self.used.fetch_add(by, SeqCst);
        }
    }

    pub(super) fn unlink(&self, inode: &Inode) {
        let mut state = write(&inode.0);
        state.links -= 1;
        if state.links == 0 {
            self.used.fetch_sub(state.now.bytes.len() as u64, SeqCst);
        }
    }

    pub(super) fn free(&self) -> u64 {
        self.capacity.load(SeqCst).saturating_sub(self.used.load(SeqCst))
    }

    pub(super) fn expect_room(&self) -> io::Result<()> {
        if self.free() == 0 { Err(ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    /// The length to which a file can grow. One without a name takes no room.
    pub(super) fn reach(&self, state: &State) -> usize {
        let free = if state.links == 0 { u64::MAX } else { self.free() };
        state.now.bytes.len().saturating_add(usize::try_from(free).unwrap_or(usize::MAX))
    }

    /// How much of a write that finds room for `most` of its bytes is done.
    pub(super) fn some_of(&self, op: &Op, most: usize) -> usize {
        self.seed.map_or(most, |seed| Dice::new(seed, op.stamp).below(most + 1))
    }

    pub(super) fn after_crash(&self, fate: Fate) -> Self {
        let throw = match fate {
            Fate::Random(seed) => seed,
            Fate::LoseUnsynced | Fate::KeepAll | Fate::TornLast => 0,
        };
        // With the clock, the same seed decides differently at each point of a run.
        let disk = self.seed.unwrap_or_default().wrapping_add(self.clock.load(SeqCst));
        let mut dice = Dice::new(disk, throw);
        let old = read(&self.tree);
        let names = match self.seed {
            Some(_) => old.found(fate, &mut dice),
            None => old.dirs.iter().map(|(path, dir)| (path.clone(), dir.now.clone())).collect(),
        };
        let files = || names.values().flat_map(BTreeMap::values).filter_map(Node::as_file);
        let last = files().filter_map(|inode| read(&inode.0).last_write()).max();
        let mut found: BTreeMap<*const Inode, Arc<Inode>> = BTreeMap::new();
        for inode in files() {
            let at = found.entry(Arc::as_ptr(inode)).or_insert_with(|| {
                let state = read(&inode.0);
                let recorded = self.seed.is_some();
                Inode::new(if recorded { state.found(fate, last, &mut dice) } else { state.now.clone() })
            });
            write(&at.0).links += 1;
        }
        let disk = Self::new(self.seed);
        disk.clock.store(self.clock.load(SeqCst), SeqCst);
        disk.capacity.store(self.capacity.load(SeqCst), SeqCst);
        disk.reports_space.store(self.reports_space.load(SeqCst), SeqCst);
        let used = found.values().map(|inode| read(&inode.0).now.bytes.len() as u64).sum();
        disk.used.store(used, SeqCst);
        let mut tree = write(&disk.tree);
        for (path, mut now) in names {
            for node in now.values_mut() {
                if let Some(new) = node.as_file().and_then(|old| found.get(&Arc::as_ptr(old))) {
                    *node = Node::File(new.clone());
                }
            }
            let durable = now.iter().map(|(name, node)| (name.clone(), (0, Some(node.clone()))));
            let durable = durable.collect();
            tree.dirs.insert(path, Dir { now, durable, ..Dir::default() });
        }
        drop(tree);
        disk
    }
}
