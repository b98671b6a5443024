//! Taking in a line that is set aside: its structure where that can be told, never its text.

use super::node::{Place, SourceIx, flag};
use super::tree::NewNode;
use super::{SessionState, StateFault};
use crate::id_key::IdKey;
use crate::record::{LineFault, MetadataEffect, Salvaged, SalvagedWhat};

impl SessionState {
    /// Takes in one line of the session's own file that cannot be read.
    pub fn apply_damaged(&mut self, fault: &LineFault, offset: u64, len: u32) -> Vec<StateFault> {
        let mut faults = vec![StateFault::Damaged(fault.reason.clone())];
        let place = Place { source: SourceIx::OWN, offset, len };
        self.forget_open_line();
        self.damaged_lines += 1;
        let next = self.next_seq;
        let harmless = fault.salvage.as_ref().is_some_and(|salvaged| {
            salvaged.metadata == MetadataEffect::None && salvaged.seq.is_some_and(|seq| seq.0 == next)
        });
        if !harmless {
            self.doubt_metadata(&mut faults);
        }
        self.leaf_at_damage = Some(self.leaf);
        if let Some(salvaged) = &fault.salvage {
            self.apply_salvaged(salvaged, place, &mut faults);
        }
        self.next_seq = self.next_seq.saturating_add(1);
        self.slack += 1;
        faults
    }

    pub(super) fn apply_salvaged(&mut self, salvaged: &Salvaged, place: Place, faults: &mut Vec<StateFault>) {
        let time_ms = salvaged.time_ms.unwrap_or(self.meta.updated_at);
        match &salvaged.what {
            SalvagedWhat::Created { session_id: _, born, base } => {
                if self.exists {
                    return;
                }
                self.exists = true;
                // The id is the one that the caller opened: what a damaged line says may be damaged itself.
                if let Some(born) = born {
                    self.sources[0].born = *born;
                }
                self.base.clone_from(base);
                let session_id = self.session_id.clone();
                let meta = self.meta_mut();
                meta.session_id = session_id;
                meta.created_at = time_ms;
                meta.updated_at = time_ms;
                if let Some(base) = base {
                    meta.forked_from = Some(base.session_id.clone());
                    meta.message_count = base.messages;
                }
            }
            SalvagedWhat::Entry { entry_id, parent_id, kind } => {
                let key = IdKey::of(entry_id.as_str());
                let ours = salvaged.seq.is_some();
                if let Some(ix) = self.find_key(&key) {
                    // Here an id is given once, so it is the line's id that is damaged, not the known entry.
                    if !ours {
                        self.nodes[ix.at()].set(flag::DAMAGED);
                        self.end_growth_of(ix);
                    }
                    return;
                }
                // A parent that is not there either is no better known than the leaf.
                let parent = match parent_id {
                    Some(id) => self.find(id).or(self.leaf),
                    None => None,
                };
                let uncommitted = if ours { 0 } else { flag::UNCOMMITTED };
                let ix = self.insert(NewNode {
                    key,
                    parent,
                    place,
                    seq: self.next_seq,
                    weight: 0,
                    revision: 0,
                    timestamp: time_ms,
                    kind: *kind,
                    custom_type: None,
                    flags: flag::DAMAGED | uncommitted,
                });
                if ours {
                    self.became_leaf(ix, time_ms);
                }
            }
            SalvagedWhat::Put { entry_id, parent_id, kind } => {
                if let Some(ix) = self.find(entry_id) {
                    self.nodes[ix.at()].set(flag::DAMAGED);
                    self.end_growth_of(ix);
                    return;
                }
                self.insert(NewNode {
                    key: IdKey::of(entry_id.as_str()),
                    parent: parent_id.as_ref().and_then(|id| self.find(id).or(self.leaf)),
                    place,
                    seq: self.next_seq,
                    weight: 0,
                    revision: 0,
                    timestamp: time_ms,
                    kind: *kind,
                    custom_type: None,
                    flags: flag::DAMAGED | flag::UNCOMMITTED,
                });
            }
            SalvagedWhat::Text(entry_id) => {
                if let Some(ix) = self.known(entry_id.as_str(), faults) {
                    self.nodes[ix.at()].set(flag::DAMAGED);
                    self.end_growth_of(ix);
                }
            }
            SalvagedWhat::Other => {}
        }
    }

    /// Notes that the metadata may have been changed by what is lost.
    pub(super) fn doubt_metadata(&mut self, faults: &mut Vec<StateFault>) {
        if self.meta.metadata.is_some() && !self.metadata_in_doubt {
            self.metadata_in_doubt = true;
            self.metadata = None;
            faults.push(StateFault::MetadataInDoubt);
        }
    }

    /// Notes that the file lost its end, which may have set metadata.
    pub fn lost_its_end(&mut self) -> Vec<StateFault> {
        let mut faults = Vec::new();
        self.doubt_metadata(&mut faults);
        faults
    }

    /// What can be said of a session whose beginning is lost.
    pub(super) fn make_up_meta(&mut self) {
        self.exists = true;
        let first = self.nodes.iter().map(|node| node.timestamp).find(|time| *time > 0).unwrap_or(0);
        let last = self.nodes.iter().map(|node| node.timestamp).max().unwrap_or(0);
        let messages = self.nodes.iter().filter(|node| node.kind.is_message()).count() as u64;
        let meta = self.meta_mut();
        meta.created_at = first;
        meta.updated_at = last;
        meta.message_count = messages;
    }
}
