//! Copies of a disk as it was in each of its operations: one run of a program gives every crash of it.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, RwLock};

use super::inode::Inode;
use super::shared::{Kind, Op, Shared};
use super::tree::{Dir, NameChange, Node, Tree};
use super::{Fate, MemDisk, lock, read};

/// What can go wrong in an operation, for [`MemDisk::keep_moments`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    /// The power goes in it.
    PowerCut,
    /// The process is killed before it.
    Kill,
}

/// A disk as it was in one operation.
pub struct Moment {
    op: u64,
    kind: Kind,
    disk: MemDisk,
}

impl Moment {
    /// The number of the operation.
    pub fn op(&self) -> u64 {
        self.op
    }

    /// Whether the operation was a sync of any kind.
    pub fn is_sync(&self) -> bool {
        self.kind == Kind::Sync
    }

    /// The disk as found when the power is back, or will be when it goes now. Other fates can be tried.
    pub fn after_crash(&self, fate: Fate) -> MemDisk {
        self.disk.after_crash(fate)
    }

    /// The disk as the next process finds it: everything is there, and what was not synced is not safe yet.
    /// Only for moments that were kept for kills.
    pub fn after_kill(self) -> MemDisk {
        self.disk
    }
}

impl Shared {
    /// Keeps the moment of an operation that is about to be done or, when it changes something, was just done. A power
    /// cut leaves a change that it hits as one in flight, and a sync undone.
    pub(super) fn keep(&self, op: &Op, kind: Kind, mishap: Mishap) {
        let in_flight = (mishap == Mishap::PowerCut).then_some(op.stamp);
        let disk = self.copy(in_flight);
        let done = if mishap == Mishap::Kill { op.number - 1 } else { op.number };
        disk.ops.store(done, SeqCst);
        lock(&self.moments).push(Moment { op: op.number, kind, disk: MemDisk(Arc::new(disk)) });
    }

    /// Another disk with the same history. The change with this stamp is in flight.
    fn copy(&self, in_flight: Option<u64>) -> Self {
        let tree = read(&self.tree);
        let mut copies = Copies { in_flight, made: BTreeMap::new() };
        let mut copy = Tree { dirs: BTreeMap::new(), pending: BTreeMap::new() };
        for (path, dir) in &tree.dirs {
            let now = dir.now.iter().map(|(name, node)| (name.clone(), copies.node(node))).collect();
            let durable = dir.durable.iter().map(|(name, (since, node))| {
                (name.clone(), (*since, node.as_ref().map(|node| copies.node(node))))
            });
            let durable = durable.collect();
            copy.dirs.insert(path.clone(), Dir { now, durable, unsynced: dir.unsynced.clone(), made: dir.made });
        }
        for (stamp, change) in &tree.pending {
            let sets = change.sets.iter();
            let sets = sets.map(|(path, node)| (path.clone(), node.as_ref().map(|node| copies.node(node))));
            let sets = sets.collect();
            let in_flight = change.in_flight || in_flight == Some(*stamp);
            copy.pending.insert(*stamp, NameChange { in_flight, needs: change.needs.clone(), sets });
        }
        let disk = Self::new(self.seed);
        for (counter, original) in
            [(&disk.clock, &self.clock), (&disk.capacity, &self.capacity), (&disk.used, &self.used)]
        {
            counter.store(original.load(SeqCst), SeqCst);
        }
        let dirty = copies.made.values().filter(|inode| read(&inode.0).listed).cloned().collect();
        *lock(&disk.dirty) = dirty;
        Self { tree: RwLock::new(copy), ..disk }
    }
}

/// The copies of files, by the address of the original.
struct Copies {
    in_flight: Option<u64>,
    made: BTreeMap<*const Inode, Arc<Inode>>,
}

impl Copies {
    fn node(&mut self, node: &Node) -> Node {
        let Some(inode) = node.as_file() else { return Node::Dir };
        let copy = self.made.entry(Arc::as_ptr(inode)).or_insert_with(|| {
            let mut state = read(&inode.0).clone();
            if let Some(last) = state.pending.last_mut().filter(|last| self.in_flight == Some(last.stamp)) {
                last.in_flight = true;
            }
            Arc::new(Inode(RwLock::new(state)))
        });
        Node::File(copy.clone())
    }
}

impl MemDisk {
    /// From now on, keeps the moment of every operation. Only for crashable disks.
    pub fn keep_moments(&self, mishap: Mishap) {
        *lock(&self.0.keeping) = Some(mishap);
    }

    /// The moments kept since this was last asked.
    pub fn moments(&self) -> Vec<Moment> {
        std::mem::take(&mut *lock(&self.0.moments))
    }

    /// A hash of all names and contents, synced or not, but for those in one directory.
    pub fn fingerprint(&self, but: &str) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        let tree = read(&self.0.tree);
        for (path, dir) in tree.dirs.iter().filter(|(path, _)| but.is_empty() || *path != but) {
            hasher.update(path.as_bytes()).update(b"/");
            for (name, node) in &dir.now {
                hasher.update(name.as_bytes()).update(b"\0");
                if let Some(inode) = node.as_file() {
                    let state = read(&inode.0);
                    hasher.update(&(state.now.bytes.len() as u64).to_le_bytes());
                    for chunk in state.now.bytes.0.iter() {
                        hasher.update(chunk);
                    }
                }
            }
        }
        *hasher.finalize().as_bytes()
    }
}
