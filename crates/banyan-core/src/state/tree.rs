//! The tree: entries below entries, one of them the active leaf, and the path to it.

use banyan_model::EntryId;

use super::node::{NO_PARENT, NO_TYPE, Node, NodeIx, Place, flag};
use super::{SessionState, StateFault};
use crate::id_key::IdKey;
use crate::node_kind::NodeKind;

/// An entry about to be put into the tree.
pub(super) struct NewNode<'a> {
    pub(super) key: IdKey,
    pub(super) parent: Option<NodeIx>,
    pub(super) place: Place,
    pub(super) seq: u64,
    pub(super) weight: u64,
    pub(super) revision: u64,
    pub(super) timestamp: i64,
    pub(super) kind: NodeKind,
    pub(super) custom_type: Option<&'a str>,
    pub(super) flags: u8,
}

impl SessionState {
    /// Puts an entry into the tree. Its id must be new.
    pub(super) fn insert(&mut self, new: NewNode<'_>) -> NodeIx {
        let ix = NodeIx(self.nodes.len() as u32);
        let (depth, messages, endless) = new.parent.map_or((0, 0, 0), |parent| below(self.node(parent)));
        let custom_type = new.custom_type.map_or(NO_TYPE, |name| self.intern(name));
        self.nodes.push(Node {
            key: new.key,
            offset: new.place.offset,
            len: new.place.len,
            source: new.place.source.0,
            body_seq: new.seq,
            timestamp: new.timestamp,
            parent: new.parent.map_or(NO_PARENT, |parent| parent.0),
            depth,
            messages: messages + u32::from(new.kind.is_message()),
            weight: clamp(new.weight),
            revision: clamp(new.revision),
            custom_type,
            kind: new.kind,
            flags: new.flags | endless,
        });
        self.by_id.add(ix, &self.nodes);
        ix
    }

    /// The entry with this id, or a placeholder for it where the text of the file must once have had it.
    pub(super) fn parent_for(
        &mut self,
        entry_id: &IdKey,
        parent_id: Option<&str>,
        place: Place,
        faults: &mut Vec<StateFault>,
    ) -> Option<NodeIx> {
        let key = IdKey::of(parent_id?);
        // Most entries follow the active leaf, which needs no search.
        let leaf = self.leaf.filter(|leaf| self.node(*leaf).key == key);
        if let Some(known) = leaf.or_else(|| self.find_key(&key)) {
            return Some(known);
        }
        let fault = StateFault::UnknownParent { entry_id: entry_id.to_entry_id(), parent_id: key.to_entry_id() };
        faults.push(fault);
        Some(self.insert(NewNode {
            key,
            parent: self.leaf_at_damage.flatten(),
            place,
            seq: self.next_seq,
            weight: 0,
            revision: 0,
            timestamp: 0,
            kind: NodeKind::Lost,
            custom_type: None,
            flags: flag::DAMAGED | flag::PLACEHOLDER,
        }))
    }

    /// Makes an entry the active leaf.
    pub(super) fn set_leaf(&mut self, leaf: Option<NodeIx>) {
        self.leaf = leaf;
        if self.relink {
            return;
        }
        let Some(leaf) = leaf else {
            self.path.clear();
            self.cyclic = false;
            return;
        };
        if self.node(leaf).has(flag::CYCLIC) {
            self.path.clear();
            self.cyclic = true;
            return;
        }
        self.cyclic = false;
        let mut tail = Vec::new();
        let mut next = Some(leaf);
        while let Some(ix) = next {
            if self.on_path(ix) {
                break;
            }
            tail.push(ix);
            next = self.node(ix).parent();
        }
        self.path.truncate(next.map_or(0, |common| self.node(common).depth as usize + 1));
        self.path.extend(tail.into_iter().rev());
    }

    /// True when an entry's parents form a cycle, which only a foreign file can hold.
    pub fn is_endless(&self, ix: NodeIx) -> bool {
        self.node(ix).has(flag::CYCLIC)
    }

    /// The path from the root to an entry, or `None` when its parents form a cycle.
    pub fn chain(&self, ix: NodeIx) -> Option<Vec<NodeIx>> {
        if self.is_endless(ix) {
            return None;
        }
        if self.on_path(ix) {
            return Some(self.path[..=self.node(ix).depth as usize].to_vec());
        }
        let mut chain = Vec::with_capacity(self.node(ix).depth as usize + 1);
        let mut next = Some(ix);
        while let Some(ix) = next {
            chain.push(ix);
            next = self.node(ix).parent();
        }
        chain.reverse();
        Some(chain)
    }

    /// Computes depths and the path anew, for files in which an entry can come before its parent.
    pub(super) fn relink(&mut self, faults: &mut Vec<StateFault>) {
        for node in &mut self.nodes {
            node.depth = UNKNOWN;
            node.clear(flag::CYCLIC);
        }
        let mut chain = Vec::new();
        for start in 0..self.nodes.len() as u32 {
            self.link_chain(NodeIx(start), &mut chain);
        }
        self.relink = false;
        self.path.clear();
        self.set_leaf(self.leaf);
        if self.cyclic {
            faults.push(StateFault::Cycle);
        }
    }

    /// Links an entry and those of its parents that are not linked yet. `chain` is empty before and after.
    fn link_chain(&mut self, start: NodeIx, chain: &mut Vec<NodeIx>) {
        let mut next = Some(start);
        while let Some(ix) = next.filter(|ix| self.node(*ix).depth == UNKNOWN) {
            self.nodes[ix.at()].depth = IN_CHAIN;
            chain.push(ix);
            next = self.node(ix).parent();
        }
        let (mut depth, mut messages, endless) = match next.map(|end| self.node(end)) {
            Some(end) if end.depth == IN_CHAIN => (0, 0, flag::CYCLIC),
            Some(end) => below(end),
            None => (0, 0, 0),
        };
        for ix in chain.drain(..).rev() {
            let node = &mut self.nodes[ix.at()];
            messages += u32::from(node.kind.is_message());
            node.depth = depth;
            node.messages = messages;
            node.set(endless);
            depth += 1;
        }
    }

    pub(super) fn intern(&mut self, name: &str) -> u16 {
        let known = self.custom_types.iter().position(|known| known.as_ref() == name);
        let index = known.unwrap_or_else(|| {
            self.custom_types.push(name.into());
            self.custom_types.len() - 1
        });
        u16::try_from(index).unwrap_or(NO_TYPE)
    }

    pub(super) fn known(&self, id: &str, faults: &mut Vec<StateFault>) -> Option<NodeIx> {
        let found = self.find_key(&IdKey::of(id));
        if found.is_none() {
            faults.push(StateFault::UnknownEntry(EntryId::from(id)));
        }
        found
    }
}

/// The depth of an entry that is not linked yet.
const UNKNOWN: u32 = u32::MAX;
/// The depth of an entry while it is being linked. Who meets it again goes in a circle.
const IN_CHAIN: u32 = u32::MAX - 1;

/// Depth, messages before it, and flag of an entry that follows `parent`. What follows a circle has no path either.
fn below(parent: &Node) -> (u32, u32, u8) {
    if parent.has(flag::CYCLIC) { (0, 0, flag::CYCLIC) } else { (parent.depth + 1, parent.messages, 0) }
}

/// Counters are kept in 32 bits; what would need more stays at the top.
pub(super) fn clamp(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
