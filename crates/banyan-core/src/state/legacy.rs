//! Taking in lines of session-manager's: the last line about a thing decides.

use super::node::{NO_PARENT, NodeIx, Place, flag};
use super::tree::{NewNode, clamp};
use super::{SessionState, StateFault};
use crate::id_key::IdKey;
use crate::record::{Head, LegacyEntryHead, LegacyHead};

impl SessionState {
    pub(super) fn apply_legacy(
        &mut self,
        legacy: &LegacyHead,
        head: &Head<'_>,
        place: Place,
        faults: &mut Vec<StateFault>,
    ) {
        match legacy {
            LegacyHead::Meta(meta) => self.legacy_meta(meta, place),
            LegacyHead::Entry(entry) => {
                self.legacy_entry(entry, head, self.next_seq, place, faults);
            }
            LegacyHead::Leaf(None) => self.set_leaf(None),
            LegacyHead::Leaf(Some(id)) => {
                if let Some(ix) = self.known(id.as_str(), faults) {
                    self.set_leaf(Some(ix));
                    self.legacy_leaf_pending = true;
                }
            }
            LegacyHead::Append(entry, meta) => {
                let ix = self.legacy_entry(entry, head, self.next_seq, place, faults);
                self.nodes[ix.at()].clear(flag::UNCOMMITTED);
                self.set_leaf(Some(ix));
                self.legacy_meta(meta, place);
            }
            LegacyHead::Commit(id) => {
                if let Some(ix) = self.known(id.as_str(), faults) {
                    self.nodes[ix.at()].clear(flag::UNCOMMITTED);
                }
            }
        }
    }

    fn legacy_meta(&mut self, meta: &banyan_model::SessionMeta, place: Place) {
        self.exists = true;
        let seq = self.next_seq;
        if self.meta.status != meta.status {
            self.note_status(seq, meta.status);
        }
        let session_id = self.session_id.clone();
        let same_metadata = self.meta.metadata == meta.metadata;
        *self.meta_mut() = banyan_model::SessionMeta { session_id, ..meta.clone() };
        if !same_metadata || self.metadata_in_doubt {
            self.share_metadata();
        }
        self.note_legacy_meta(seq, place);
        if std::mem::take(&mut self.legacy_leaf_pending) {
            self.clear_uncommitted(self.leaf);
        }
    }

    pub(super) fn legacy_entry(
        &mut self,
        entry: &LegacyEntryHead,
        head: &Head<'_>,
        seq: u64,
        place: Place,
        faults: &mut Vec<StateFault>,
    ) -> NodeIx {
        let key = IdKey::of(entry.id.as_str());
        let parent_id = entry.parent_id.as_ref().map(|id| id.as_str());
        let origin = if head.origin.is_some() { flag::HAS_ORIGIN } else { 0 };
        let known = self.find_key(&key);
        let parent = self.parent_for(&key, parent_id, place, faults);
        // An entry that follows itself has a placeholder by now.
        let Some(ix) = known.or(parent.filter(|parent| self.node(*parent).key == key)) else {
            return self.insert(NewNode {
                key,
                parent,
                place,
                seq,
                weight: head.weight(),
                revision: entry.revision.0,
                timestamp: entry.timestamp,
                kind: entry.kind,
                custom_type: entry.custom_type.as_deref(),
                flags: origin | flag::UNCOMMITTED,
            });
        };
        let parent = parent.map_or(NO_PARENT, |parent| parent.0);
        let custom_type = entry.custom_type.as_deref().map(|name| self.intern(name));
        let new_kind = entry.kind != self.node(ix).kind;
        if !self.node(ix).has(flag::PLACEHOLDER) {
            self.replace_body(ix, seq, place, head.weight());
        }
        let node = &mut self.nodes[ix.at()];
        if node.has(flag::PLACEHOLDER) {
            node.body_seq = seq;
            super::history::set_place(node, place);
            node.weight = clamp(head.weight());
            node.set(flag::UNCOMMITTED);
        }
        node.clear(flag::PLACEHOLDER | flag::DAMAGED | flag::HAS_ORIGIN);
        node.set(origin);
        node.revision = clamp(entry.revision.0);
        node.timestamp = entry.timestamp;
        node.kind = entry.kind;
        node.custom_type = custom_type.unwrap_or(super::node::NO_TYPE);
        if node.parent != parent || new_kind {
            node.parent = parent;
            self.relink = true;
        }
        // Each legacy entry line is whole, its origin included.
        if origin != 0 {
            self.history.births.insert(ix.0, super::node::Line::new(seq, place));
        }
        ix
    }

    /// Drops entries that never became a session: one begins after them, empty.
    pub(super) fn forget_entries(&mut self) {
        self.nodes.clear();
        self.by_id.clear();
        self.path.clear();
        self.leaf = None;
        self.growing = None;
        self.relink = false;
        self.cyclic = false;
        self.legacy_leaf_pending = false;
        self.history = super::history::History::default();
        self.leaf_at_damage = self.leaf_at_damage.map(|_| None);
        self.meta_mut().message_count = 0;
    }

    /// Puts an entry, and what it follows, on the path for good, and counts the messages among them.
    pub(super) fn commit_chain(&mut self, ix: NodeIx) {
        let counted = self.clear_uncommitted(Some(ix));
        let meta = self.meta_mut();
        meta.message_count = meta.message_count.saturating_add(counted);
    }

    /// Marks the entries up to the first committed one, and says how many of them are messages.
    fn clear_uncommitted(&mut self, from: Option<NodeIx>) -> u64 {
        let mut messages = 0;
        let mut next = from;
        while let Some(ix) = next.filter(|ix| self.node(*ix).is_uncommitted()) {
            let node = &mut self.nodes[ix.at()];
            node.clear(flag::UNCOMMITTED);
            messages += u64::from(node.kind.is_message());
            next = node.parent();
        }
        messages
    }
}
