//! Entries by id. Only their numbers are kept here; the ids themselves are in the nodes.

use std::hash::BuildHasher;

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

use super::node::{Node, NodeIx};
use crate::id_key::IdKey;

/// The entries of one session by id. Every call is given the nodes that the numbers are about.
#[derive(Clone, Debug, Default)]
pub(super) struct ById {
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl ById {
    pub(super) fn find(&self, key: &IdKey, nodes: &[Node]) -> Option<NodeIx> {
        let found = self.table.find(hash(&self.hasher, key), |ix| nodes[*ix as usize].key == *key);
        found.copied().map(NodeIx)
    }

    /// Adds an entry, unless another has its id, and says whether it did.
    pub(super) fn add(&mut self, ix: NodeIx, nodes: &[Node]) -> bool {
        let key_of = |ix: &u32| &nodes[*ix as usize].key;
        let (key, hasher) = (key_of(&ix.0), &self.hasher);
        match self.table.entry(hash(hasher, key), |ix| key_of(ix) == key, |ix| hash(hasher, key_of(ix))) {
            Entry::Occupied(_) => false,
            Entry::Vacant(place) => {
                place.insert(ix.0);
                true
            }
        }
    }

    /// Makes room for so many more.
    pub(super) fn reserve(&mut self, more: usize, nodes: &[Node]) {
        self.table.reserve(more, |ix| hash(&self.hasher, &nodes[*ix as usize].key));
    }

    pub(super) fn clear(&mut self) {
        self.table.clear();
    }
}

fn hash(hasher: &DefaultHashBuilder, key: &IdKey) -> u64 {
    match key {
        IdKey::Canonical(bytes) => hasher.hash_one(u128::from_ne_bytes(*bytes)),
        IdKey::Other(text) => hasher.hash_one(text),
    }
}
