//! Taking in one readable line.

use super::node::{Place, SourceIx, flag};
use super::tree::{NewNode, clamp};
use super::{NodeIx, SessionState, StateFault};
use crate::id_key::IdKey;
use crate::node_kind::NodeKind;
use crate::record::{Created, Envelope, GrewHead, Head, HeadKind};

impl SessionState {
    /// Takes in one line of the session's own file, which begins at `offset` and has `len` bytes with its line feed.
    /// Blank lines are not records and are not given. What comes back is wrong with the log, and noted for its owner.
    pub fn apply(&mut self, head: &Head<'_>, offset: u64, len: u32) -> Vec<StateFault> {
        let mut faults = Vec::new();
        let place = Place { source: SourceIx::OWN, offset, len };
        self.forget_open_line();
        let Some(envelope) = head.envelope else {
            match &head.kind {
                HeadKind::Legacy(legacy) => self.apply_legacy(legacy, head, place, &mut faults),
                HeadKind::Newer(newer) => self.apply_newer(newer, self.next_seq, place, &mut faults),
                _ => {}
            }
            self.keep_certain(&mut faults);
            self.next_seq = self.next_seq.saturating_add(1);
            self.slack = 0;
            return faults;
        };
        if !self.take_number(envelope, &mut faults) {
            return faults;
        }
        self.begin_unless_begun(head, envelope, &mut faults);
        self.apply_own(head, envelope, place, &mut faults);
        self.keep_certain(&mut faults);
        faults
    }

    /// Ends a load: what could only be told from the whole file is settled now.
    pub fn finish(&mut self) -> Vec<StateFault> {
        let mut faults = Vec::new();
        if self.relink {
            self.relink(&mut faults);
        }
        if !self.exists && self.newer.is_some() {
            // Such a file is no leftover: a newer Banyan knows what it is.
            self.make_up_meta();
        }
        if !self.exists && !self.importing && self.damaged_lines > 0 && !self.nodes.is_empty() {
            self.make_up_meta();
            faults.push(StateFault::NoBeginning);
        }
        self.keep_certain(&mut faults);
        faults
    }

    /// Checks a record's number and says whether the record is new.
    fn take_number(&mut self, envelope: Envelope, faults: &mut Vec<StateFault>) -> bool {
        let found = envelope.seq;
        if found.0 < self.next_seq - self.slack {
            faults.push(StateFault::Repeated(found));
            return false;
        }
        if found.0 > self.next_seq {
            faults.push(StateFault::Gap { expected: self.next_seq(), found });
            self.doubt_metadata(faults);
            self.leaf_at_damage = Some(self.leaf);
        }
        self.next_seq = found.0.saturating_add(1);
        self.slack = 0;
        self.last_commit = self.last_commit.max(envelope.commit);
        true
    }

    fn begin_unless_begun(&mut self, head: &Head<'_>, envelope: Envelope, faults: &mut Vec<StateFault>) {
        let may_come_before = |kind: &HeadKind<'_>| {
            use HeadKind::{Begun, Created, EntryPut, LeafPut, MetaPut, Newer};
            matches!(kind, Created(_) | Begun(_) | MetaPut(_) | EntryPut(_) | LeafPut { .. } | Newer(_))
        };
        if self.exists || may_come_before(&head.kind) {
            return;
        }
        self.exists = true;
        let meta = self.meta_mut();
        meta.created_at = envelope.time_ms;
        meta.updated_at = envelope.time_ms;
        faults.push(StateFault::NoBeginning);
    }

    fn apply_own(&mut self, head: &Head<'_>, envelope: Envelope, place: Place, faults: &mut Vec<StateFault>) {
        let (seq, time) = (envelope.seq.0, envelope.time_ms);
        match &head.kind {
            HeadKind::Created(created) => self.apply_created(created, envelope, place, faults),
            HeadKind::Message { entry_id, parent_id, role } => {
                let kind = NodeKind::of_role(*role);
                self.append(head, envelope, place, (entry_id, parent_id.as_deref(), kind, None), faults);
            }
            HeadKind::Custom { entry_id, parent_id, custom_type } => {
                let entry =
                    (entry_id.as_ref(), parent_id.as_deref(), NodeKind::CustomEntry, Some(custom_type.as_ref()));
                self.append(head, envelope, place, entry, faults);
            }
            HeadKind::Updated { entry_id, revision } => {
                let Some(ix) = self.known(entry_id, faults) else { return };
                self.replace_body(ix, seq, place, head.weight());
                self.nodes[ix.at()].revision = clamp(revision.0);
                self.end_growth_of(ix);
                self.meta_mut().updated_at = time;
            }
            HeadKind::Settled { entry_id, revision } => {
                let Some(ix) = self.known(entry_id, faults) else { return };
                self.replace_body(ix, seq, place, head.weight());
                self.nodes[ix.at()].revision = clamp(revision.0);
                self.end_growth_of(ix);
            }
            HeadKind::Grew(grew) => self.apply_grew(grew, seq, place, faults),
            HeadKind::LeafMoved { entry_id } => {
                if let Some(ix) = self.known(entry_id, faults) {
                    self.set_leaf(Some(ix));
                }
            }
            HeadKind::MetaSet(set) => {
                let meta = self.meta_mut();
                if let Some(title) = &set.title {
                    meta.title.clone_from(title);
                }
                if let Some(description) = &set.description {
                    meta.description.clone_from(description);
                }
                if let Some(metadata) = &set.metadata {
                    meta.metadata = Some(metadata.clone());
                }
                meta.updated_at = time;
                if set.metadata.is_some() {
                    self.share_metadata();
                }
                self.note_meta(seq, place);
            }
            HeadKind::StatusSet(set) => {
                let meta = self.meta_mut();
                meta.status = set.status;
                meta.status_reason.clone_from(&set.reason);
                meta.updated_at = time;
                self.note_status(seq, set.status);
            }
            HeadKind::Attached(attached) => {
                self.attachments.insert(attached.attachment.attachment_id.clone(), attached.as_ref().clone());
            }
            HeadKind::Detached(detached) => {
                self.attachments.remove(&detached.attachment_id);
            }
            HeadKind::Adopted { entry_id } => {
                if let Some(ix) = self.known(entry_id, faults) {
                    self.commit_chain(ix);
                    self.set_leaf(Some(ix));
                    self.meta_mut().updated_at = time;
                }
            }
            HeadKind::Begun(begun) => self.begun(begun, seq, faults),
            HeadKind::MetaPut(put) => self.put_meta(&put.meta, seq, place),
            HeadKind::EntryPut(entry) => self.put_entry(entry, head, seq, place, faults),
            HeadKind::LeafPut { entry_id } => self.put_leaf(entry_id.as_deref(), seq, place),
            HeadKind::Newer(newer) => self.apply_newer(newer, seq, place, faults),
            HeadKind::Erased | HeadKind::Unknown(_) | HeadKind::Legacy(_) => {}
        }
    }

    fn apply_created(
        &mut self,
        created: &Created,
        envelope: Envelope,
        place: Place,
        faults: &mut Vec<StateFault>,
    ) {
        if self.exists {
            faults.push(StateFault::SecondBeginning);
            return;
        }
        // Entries that were put before are those of the session only when an import put them, and has ended.
        let imported = std::mem::take(&mut self.importing) && self.born() == created.born;
        if self.inherited == 0 && !imported {
            self.forget_entries();
        }
        self.exists = true;
        self.session_id = created.session_id.clone();
        self.sources[0].session_id = created.session_id.clone();
        self.sources[0].born = created.born;
        let meta = self.meta_mut();
        meta.session_id = created.session_id.clone();
        meta.title.clone_from(&created.title);
        meta.description.clone_from(&created.description);
        meta.metadata.clone_from(&created.metadata);
        meta.created_at = envelope.time_ms;
        meta.updated_at = envelope.time_ms;
        if let Some(base) = &created.base {
            meta.forked_from = Some(base.session_id.clone());
            meta.message_count = base.messages;
            if self.inherited == 0 && base.entries > 0 {
                faults.push(StateFault::NoBase);
                self.leaf_at_damage.get_or_insert(None);
            }
            self.base = Some(base.clone());
        }
        self.share_metadata();
        self.note_meta(envelope.seq.0, place);
    }

    fn append(
        &mut self,
        head: &Head<'_>,
        envelope: Envelope,
        place: Place,
        (entry_id, parent_id, kind, custom_type): (&str, Option<&str>, NodeKind, Option<&str>),
        faults: &mut Vec<StateFault>,
    ) {
        let key = IdKey::of(entry_id);
        if self.find_key(&key).is_some() {
            faults.push(StateFault::DuplicateEntry(key.to_entry_id()));
            return;
        }
        // Nothing that is written here follows itself; a line that says so tells no parent.
        let parent = self.parent_for(&key, parent_id.filter(|id| *id != entry_id), place, faults);
        if let Some(parent) = parent.filter(|parent| self.node(*parent).is_uncommitted()) {
            self.commit_chain(parent);
        }
        let ix = self.insert(NewNode {
            key,
            parent,
            place,
            seq: envelope.seq.0,
            weight: head.weight(),
            revision: 0,
            timestamp: envelope.time_ms,
            kind,
            custom_type,
            flags: if head.origin.is_some() { flag::HAS_ORIGIN } else { 0 },
        });
        self.became_leaf(ix, envelope.time_ms);
    }

    /// Counts a new entry and makes it the leaf.
    pub(super) fn became_leaf(&mut self, ix: NodeIx, time_ms: i64) {
        if self.node(ix).parent() == self.leaf && !self.relink && !self.cyclic {
            self.leaf = Some(ix);
            self.path.push(ix);
        } else {
            self.set_leaf(Some(ix));
        }
        let counted = u64::from(self.node(ix).kind.is_message());
        let meta = self.meta_mut();
        meta.message_count = meta.message_count.saturating_add(counted);
        meta.updated_at = time_ms;
    }

    fn apply_grew(&mut self, grew: &GrewHead<'_>, seq: u64, place: Place, faults: &mut Vec<StateFault>) {
        let Some(ix) = self.known(&grew.entry_id, faults) else { return };
        self.note_growth(ix);
        let node = &mut self.nodes[ix.at()];
        let expected = node.revision().next();
        node.revision = clamp(grew.last_revision().0);
        node.weight = clamp(u64::from(node.weight) + grew.bytes);
        let lost = node.is_damaged();
        if !lost && grew.revision != expected {
            node.set(flag::DAMAGED);
            faults.push(StateFault::LostText { entry_id: node.id(), missing: expected });
        }
        let usable = !self.node(ix).is_damaged();
        if usable {
            self.grow(ix, seq, place);
        } else {
            self.end_growth_of(ix);
        }
        self.last_commit = self.last_commit.max(grew.last_commit);
        self.meta_mut().updated_at = grew.last_time_ms;
    }
}
