//! What makes a record the right one: its number, and the entry that it is about. Together with its checksum that tells lines
//! that were exchanged.

use banyan_core::record::Head;
use banyan_core::state::{Line, Source};
use banyan_model::{EntryId, Seq};

use crate::bodies::Wanted;

/// The record that should stand at a place.
pub(crate) struct Expected<'a> {
    entry_id: &'a EntryId,
    source: Option<&'a Source>,
    seq: Seq,
}

impl<'a> Expected<'a> {
    pub(crate) fn of(sources: &'a [Source], wanted: &'a Wanted, line: Line) -> Self {
        let source = sources.get(usize::from(line.place.source.0));
        Self { entry_id: &wanted.entry_id, source, seq: line.seq }
    }

    /// True for a record with this number, about this entry. Lines of session-manager have no number.
    pub(crate) fn is(&self, seq: Option<Seq>, entry_id: Option<&str>) -> bool {
        let is_named = || Some(self.source?.names(self.entry_id, entry_id?));
        seq.is_none_or(|seq| seq == self.seq) && is_named() == Some(true)
    }

    pub(crate) fn is_head(&self, head: &Head<'_>) -> bool {
        self.is(head.envelope.map(|envelope| envelope.seq), head.entry_id())
    }
}
