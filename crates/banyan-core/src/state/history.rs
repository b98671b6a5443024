//! What the session was: older bodies, texts added, earlier titles and statuses. For forks and replays.

use banyan_model::{Revision, Seq, SessionStatus};
use hashbrown::HashMap;

use super::node::{Line, NodeIx, Place, SourceIx, flag};
use super::{Node, SessionState};
use crate::node_kind::NodeKind;

/// Everything that is no longer so.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct History {
    /// Bodies that were replaced, by entry, oldest first.
    pub(super) bodies: HashMap<u32, Vec<OldBody>>,
    /// The lines that texts were added in, by entry, oldest first.
    pub(super) growths: HashMap<u32, Vec<(u64, Place)>>,
    /// Weight and revision of the last full record of entries that have grown since.
    pub(super) before_growth: HashMap<u32, (u32, u32)>,
    /// The lines that appended inherited entries whose body is on another.
    pub(super) births: HashMap<u32, Line>,
    /// The lines that say title, description and metadata, oldest first.
    pub(super) metas: Vec<(u64, Place)>,
    /// True while the last of them is a legacy meta, which says everything.
    pub(super) legacy_meta_last: bool,
    /// Each status, and the record that set it.
    pub(super) statuses: Vec<(u64, SessionStatus)>,
}

impl History {
    /// About how many lines it is about.
    pub(super) fn lines(&self) -> usize {
        let Self { bodies, growths, before_growth, births, metas, legacy_meta_last: _, statuses } = self;
        2 * (bodies.len() + growths.len()) + before_growth.len() + births.len() + metas.len() + statuses.len()
    }
}

/// A body that was replaced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OldBody {
    pub(super) seq: u64,
    pub(super) place: Place,
    pub(super) revision: u32,
    pub(super) weight: u32,
    pub(super) damaged: bool,
}

impl OldBody {
    fn line(&self) -> Line {
        Line::new(self.seq, self.place)
    }
}

/// A body as of some record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyAt {
    /// The full record.
    pub line: Line,
    /// Its number among the records of this session: 0 for one in another file.
    pub seq: Seq,
    /// The revision that it has.
    pub revision: Revision,
    /// Its bytes, with what is stored elsewhere.
    pub weight: u64,
    /// True when it is lost.
    pub damaged: bool,
}

/// Where a body is: a full record, and the lines with texts added since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyParts {
    /// The full record.
    pub full: Line,
    /// The `grew` lines after it, in order.
    pub grown: Vec<Line>,
}

impl SessionState {
    /// Where an entry's body is; `None` when it is lost.
    pub fn body(&self, ix: NodeIx) -> Option<BodyParts> {
        let node = self.node(ix);
        if node.is_damaged() {
            return None;
        }
        let full = node.line();
        let grown = if node.is_grown() { self.grown_between(ix, full.own_seq(), u64::MAX) } else { Vec::new() };
        Some(BodyParts { full, grown })
    }

    /// The last full record of an entry that is not after `seq`, or `None` when there was none yet.
    pub fn body_as_of(&self, ix: NodeIx, seq: Seq) -> Option<BodyAt> {
        let node = self.node(ix);
        let line = node.line();
        if line.own_seq() <= seq.0 {
            let (weight, revision) = self.full_record(ix);
            return Some(BodyAt {
                line,
                seq: Seq(line.own_seq()),
                revision: Revision(u64::from(revision)),
                weight: u64::from(weight),
                damaged: node.is_damaged(),
            });
        }
        let old = self.history.bodies.get(&ix.0)?.iter().rev().find(|old| old.line().own_seq() <= seq.0)?;
        Some(BodyAt {
            line: old.line(),
            seq: Seq(old.line().own_seq()),
            revision: Revision(u64::from(old.revision)),
            weight: u64::from(old.weight),
            damaged: old.damaged,
        })
    }

    /// Where an entry's body was right after record `seq`: that full record, and the texts added until then.
    pub fn body_parts_as_of(&self, ix: NodeIx, seq: Seq) -> Option<BodyParts> {
        let full = self.body_as_of(ix, seq)?;
        Some(BodyParts { full: full.line, grown: self.grown_between(ix, full.seq.0, seq.0) })
    }

    /// The line that has an entry's origin; `None` when it has none.
    pub fn origin_line(&self, ix: NodeIx) -> Option<Line> {
        self.node(ix).has_origin().then(|| self.birth(ix))
    }

    /// The lines that say title, description and metadata as they were before record `seq`, oldest first.
    pub fn metas_before(&self, seq: Seq) -> impl Iterator<Item = Line> + '_ {
        let count = self.history.metas.partition_point(|(at, _)| *at < seq.0);
        self.history.metas[..count].iter().map(|(seq, place)| Line::new(*seq, *place))
    }

    /// The status as it was before record `seq`.
    pub fn status_before(&self, seq: Seq) -> SessionStatus {
        let count = self.history.statuses.partition_point(|(at, _)| *at < seq.0);
        count.checked_sub(1).map_or(SessionStatus::Idle, |last| self.history.statuses[last].1)
    }

    /// The line that appended an entry.
    pub(super) fn birth(&self, ix: NodeIx) -> Line {
        let oldest = || self.history.bodies.get(&ix.0).and_then(|bodies| bodies.first()).map(OldBody::line);
        self.history.births.get(&ix.0).copied().or_else(oldest).unwrap_or_else(|| self.node(ix).line())
    }

    pub(super) fn grown_between(&self, ix: NodeIx, after: u64, until: u64) -> Vec<Line> {
        let lines = self.history.growths.get(&ix.0).map_or(&[][..], Vec::as_slice);
        lines
            .iter()
            .filter(|(seq, _)| *seq > after && *seq <= until)
            .map(|(seq, place)| Line::new(*seq, *place))
            .collect()
    }

    /// Weight and revision of an entry's last full record.
    fn full_record(&self, ix: NodeIx) -> (u32, u32) {
        let node = self.node(ix);
        self.history.before_growth.get(&ix.0).copied().unwrap_or((node.weight, node.revision))
    }

    /// Remembers an entry's last full record as it is, before text is added.
    pub(super) fn note_growth(&mut self, ix: NodeIx) {
        let full = self.full_record(ix);
        self.history.before_growth.insert(ix.0, full);
    }

    /// Gives an entry a new full record.
    pub(super) fn replace_body(&mut self, ix: NodeIx, seq: u64, place: Place, weight: u64) {
        let (old_weight, old_revision) = self.full_record(ix);
        self.history.before_growth.remove(&ix.0);
        let node = &mut self.nodes[ix.at()];
        let old = OldBody {
            seq: node.body_seq,
            place: node.place(),
            revision: old_revision,
            weight: old_weight,
            damaged: node.is_damaged(),
        };
        node.body_seq = seq;
        set_place(node, place);
        node.weight = super::tree::clamp(weight);
        node.clear(flag::GROWN);
        // What an entry is stays unknown when that was lost, whatever is written about it later.
        if !node.has(flag::PLACEHOLDER) && node.kind != NodeKind::Lost {
            node.clear(flag::DAMAGED);
        }
        self.history.bodies.entry(ix.0).or_default().push(old);
    }

    pub(super) fn note_status(&mut self, seq: u64, status: SessionStatus) {
        self.history.statuses.push((seq, status));
    }

    pub(super) fn note_meta(&mut self, seq: u64, place: Place) {
        self.history.metas.push((seq, place));
        self.history.legacy_meta_last = false;
    }

    pub(super) fn note_legacy_meta(&mut self, seq: u64, place: Place) {
        if self.history.legacy_meta_last {
            self.history.metas.pop();
        }
        self.note_meta(seq, place);
        self.history.legacy_meta_last = true;
    }
}

pub(super) fn set_place(node: &mut Node, place: Place) {
    let SourceIx(source) = place.source;
    node.source = source;
    node.offset = place.offset;
    node.len = place.len;
}
