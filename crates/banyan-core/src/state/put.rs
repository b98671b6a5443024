//! Taking in what another instance puts: the last record about a thing decides, as with session-manager's lines.
//!
//! Messages are counted here, when they come on a path. Those who put a meta count by themselves what they know of, and two
//! of them at once would lose each other's.

use banyan_model::SessionMeta;

use super::node::{NodeIx, Place, flag};
use super::tree::NewNode;
use super::{SessionState, StateFault};
use crate::id_key::IdKey;
use crate::node_kind::NodeKind;
use crate::record::{Begun, Head, LegacyEntryHead};

impl SessionState {
    pub(super) fn begun(&mut self, begun: &Begun, seq: u64, faults: &mut Vec<StateFault>) {
        if self.exists || seq > 0 {
            faults.push(StateFault::SecondBeginning);
            return;
        }
        self.session_id = begun.session_id.clone();
        self.sources[0].session_id = begun.session_id.clone();
        self.sources[0].born = begun.born;
        self.meta_mut().session_id = begun.session_id.clone();
        self.importing = begun.import;
    }

    pub(super) fn put_meta(&mut self, meta: &SessionMeta, seq: u64, place: Place) {
        let known = &self.meta;
        let same_name = self.exists
            && (&known.title, &known.description, &known.metadata)
                == (&meta.title, &meta.description, &meta.metadata);
        self.exists = true;
        self.importing = false;
        if self.meta.status != meta.status {
            self.note_status(seq, meta.status);
        }
        let (session_id, message_count) = (self.session_id.clone(), self.meta.message_count);
        *self.meta_mut() = SessionMeta { session_id, message_count, ..meta.clone() };
        if !same_name || self.metadata_in_doubt {
            self.share_metadata();
        }
        if !same_name {
            self.note_meta(seq, place);
        }
    }

    pub(super) fn put_entry(
        &mut self,
        entry: &LegacyEntryHead,
        head: &Head<'_>,
        seq: u64,
        place: Place,
        faults: &mut Vec<StateFault>,
    ) {
        let was_counted = self.find(&entry.id).is_some_and(|ix| self.is_counted(ix));
        // What it follows may be put later, so that is no fault.
        let ix = self.legacy_entry(entry, head, seq, place, &mut Vec::new());
        self.end_growth_of(ix);
        if self.relink {
            self.relink(faults);
        }
        let is_counted = self.is_counted(ix);
        let meta = self.meta_mut();
        meta.message_count = match (was_counted, is_counted) {
            (false, true) => meta.message_count.saturating_add(1),
            (true, false) => meta.message_count.saturating_sub(1),
            _ => meta.message_count,
        };
        // The leaf may have been put before.
        if self.on_path(ix) {
            self.commit_chain(ix);
        }
    }

    pub(super) fn put_leaf(&mut self, entry_id: Option<&str>, seq: u64, place: Place) {
        let Some(entry_id) = entry_id else {
            self.set_leaf(None);
            return;
        };
        let key = IdKey::of(entry_id);
        let ix = self.find_key(&key).unwrap_or_else(|| {
            self.insert(NewNode {
                key,
                parent: None,
                place,
                seq,
                weight: 0,
                revision: 0,
                timestamp: 0,
                kind: NodeKind::Lost,
                custom_type: None,
                flags: flag::DAMAGED | flag::PLACEHOLDER,
            })
        });
        self.set_leaf(Some(ix));
        self.commit_chain(ix);
    }

    /// Whether the number of messages has this entry in it.
    fn is_counted(&self, ix: NodeIx) -> bool {
        let node = self.node(ix);
        node.kind().is_message() && !node.is_uncommitted()
    }
}
