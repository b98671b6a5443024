//! Names: what directories hold now, what they hold durably, and what changed in between.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::mem;
use std::sync::Arc;

use super::Fate;
use super::dice::Dice;
use super::inode::Inode;
use super::shared::Op;

/// Directories by path, and the changes to them that no sync has made durable, by stamp.
pub(super) struct Tree {
    pub(super) dirs: BTreeMap<String, Dir>,
    pub(super) pending: BTreeMap<u64, NameChange>,
}

pub(super) type Names = BTreeMap<String, Node>;
/// What each name stands for and since which change, so that the newest wins in whatever order
/// changes become durable. A removed name stays, with nothing.
pub(super) type DurableNames = BTreeMap<String, (u64, Option<Node>)>;

#[derive(Default)]
pub(super) struct Dir {
    pub(super) now: Names,
    pub(super) durable: DurableNames,
    /// Stamps of the pending changes that touch this directory.
    pub(super) unsynced: Vec<u64>,
    /// Stamp of the change that made this directory.
    pub(super) made: u64,
}

#[derive(Clone)]
pub(super) enum Node {
    File(Arc<Inode>),
    Dir,
}

impl Node {
    pub(super) fn as_file(&self) -> Option<&Arc<Inode>> {
        match self {
            Node::File(inode) => Some(inode),
            Node::Dir => None,
        }
    }
}

/// Names that change together or not at all.
pub(super) struct NameChange {
    pub(super) in_flight: bool,
    /// Stamps of the changes without which this one would lose the file it moves.
    pub(super) needs: Vec<u64>,
    pub(super) sets: Vec<(String, Option<Node>)>,
}

impl Tree {
    pub(super) fn find(&self, path: &str) -> Option<&Node> {
        let (dir, name) = split(path);
        self.dirs.get(dir)?.now.get(name)
    }

    pub(super) fn file(&self, path: &str) -> io::Result<Option<Arc<Inode>>> {
        match self.find(path) {
            Some(Node::File(inode)) => Ok(Some(inode.clone())),
            Some(Node::Dir) => Err(ErrorKind::IsADirectory.into()),
            None => Ok(None),
        }
    }

    pub(super) fn expect_dir(&self, path: &str) -> io::Result<()> {
        match self.dirs.contains_key(path) {
            true => Ok(()),
            false => Err(ErrorKind::NotFound.into()),
        }
    }

    /// Stamps of the changes that made the directories above a path.
    pub(super) fn makers(&self, path: &str) -> Vec<u64> {
        let above = ancestors(path).filter_map(|dir| self.dirs.get(dir));
        above.map(|dir| dir.made).collect()
    }

    pub(super) fn change(&mut self, op: &Op, needs: Vec<u64>, sets: Vec<(&str, Option<Node>)>) {
        for (path, node) in &sets {
            let (parent, name) = split(path);
            let dir = self.dirs.entry(parent.to_owned()).or_default();
            if !op.dying {
                put(&mut dir.now, name, node.clone());
            }
            if op.recorded {
                dir.unsynced.push(op.stamp);
            }
        }
        if op.recorded {
            let in_flight = op.dying;
            let sets = sets.into_iter().map(|(path, node)| (path.to_owned(), node));
            let sets = sets.collect();
            self.pending.insert(op.stamp, NameChange { in_flight, needs, sets });
        }
    }

    /// Sets a name durably, whatever is pending for it.
    pub(super) fn force(&mut self, stamp: u64, path: &str, node: Option<Node>) {
        let (parent, name) = split(path);
        let dir = self.dirs.entry(parent.to_owned()).or_default();
        put(&mut dir.now, name, node.clone());
        dir.durable.insert(name.to_owned(), (stamp, node));
    }

    pub(super) fn sync(&mut self, path: &str, fails: bool) {
        let Some(dir) = self.dirs.get_mut(path) else {
            return;
        };
        for stamp in mem::take(&mut dir.unsynced) {
            if fails {
                self.pending.remove(&stamp);
            } else {
                self.settle(stamp);
            }
        }
        // Nothing pending touches the directory now, so no removed name has to be remembered.
        // Forgetting them only when they are the most keeps a sync from walking a large directory.
        if let Some(dir) = self.dirs.get_mut(path)
            && dir.durable.len() > 2 * dir.now.len() + 16
        {
            dir.durable.retain(|_, (_, node)| node.is_some());
        }
    }

    pub(super) fn settle(&mut self, stamp: u64) {
        let Some(change) = self.pending.remove(&stamp) else {
            return;
        };
        for maker in change.needs {
            self.settle(maker);
        }
        for (path, node) in change.sets {
            let (parent, name) = split(&path);
            if let Some(dir) = self.dirs.get_mut(parent) {
                put_newest(&mut dir.durable, name, stamp, node);
            }
        }
    }

    /// The directories that can be reached after a crash.
    pub(super) fn found(&self, fate: Fate, dice: &mut Dice) -> BTreeMap<String, Names> {
        let durable = |path: &str| self.dirs.get(path).map(|dir| dir.durable.clone());
        let mut changed: BTreeMap<&str, DurableNames> = BTreeMap::new();
        for stamp in self.kept(fate, dice) {
            for (path, node) in self.pending.get(&stamp).iter().flat_map(|change| &change.sets) {
                let (parent, name) = split(path);
                let names = changed.entry(parent);
                let names = names.or_insert_with(|| durable(parent).unwrap_or_default());
                put_newest(names, name, stamp, node.clone());
            }
        }
        let mut found = BTreeMap::new();
        let mut reached = vec![String::new()];
        while let Some(path) = reached.pop() {
            let names = changed.remove(path.as_str()).or_else(|| durable(&path));
            let names = names.unwrap_or_default().into_iter();
            let names: Names = names.filter_map(|(name, (_, node))| Some((name, node?))).collect();
            let dirs = names.iter().filter(|(_, node)| matches!(node, Node::Dir));
            reached.extend(dirs.map(|(name, _)| join(&path, name)));
            found.insert(path, names);
        }
        found
    }

    /// Stamps of the pending changes that survive a crash.
    pub(super) fn kept(&self, fate: Fate, dice: &mut Dice) -> BTreeSet<u64> {
        // Most file systems journal names in order, so chance tries that often.
        let in_order = dice.one_in(4).then(|| dice.below(self.pending.len() + 1));
        let mut kept = BTreeSet::new();
        for (index, (stamp, change)) in self.pending.iter().enumerate() {
            let survives = match (fate, in_order) {
                (Fate::LoseUnsynced, _) => false,
                (Fate::KeepAll | Fate::TornLast, _) => !change.in_flight,
                (Fate::Random(_), Some(until)) => index < until,
                (Fate::Random(_), None) => dice.one_in(2),
            };
            if survives {
                kept.insert(*stamp);
                kept.extend(&change.needs);
            }
        }
        kept
    }
}

pub(super) fn put(names: &mut Names, name: &str, node: Option<Node>) {
    match node {
        Some(node) => names.insert(name.to_owned(), node),
        None => names.remove(name),
    };
}

pub(super) fn put_newest(names: &mut DurableNames, name: &str, stamp: u64, node: Option<Node>) {
    if names.get(name).is_none_or(|(since, _)| *since < stamp) {
        names.insert(name.to_owned(), (stamp, node));
    }
}

pub(super) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

pub(super) fn join(dir: &str, name: &str) -> String {
    if dir.is_empty() { name.to_owned() } else { format!("{dir}/{name}") }
}

/// The directories above a path, outermost first, without the root.
pub(super) fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}
