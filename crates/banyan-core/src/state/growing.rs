//! The entry that grows: texts are added to it faster than it is written whole.

use std::collections::BTreeSet;

use banyan_model::{AgentMessage, CommitNo, ContentBlock, EntryId, Revision, Seq};

use super::node::{NodeIx, Place, SourceIx, flag};
use super::tree::clamp;
use super::{SessionState, StateFault};
use crate::record::Grew;

/// The one entry, if any, whose newest text is in no full record yet.
#[derive(Clone, Debug)]
pub struct Growing {
    node: NodeIx,
    message: Option<AgentMessage>,
    open: Option<OpenLine>,
}

/// The `grew` line at the end of the log that more can be added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenLine {
    /// Its number.
    pub seq: Seq,
    /// The block that it is about.
    pub block: u32,
    /// Its time, that of its first add.
    pub time_ms: i64,
    /// Its commit, that of its first add.
    pub commit: CommitNo,
    /// Where it begins, and how long it is so far.
    pub place: Place,
}

/// A text that was added just now.
#[derive(Clone, Copy, Debug)]
pub struct LiveAdd<'a> {
    /// The entry.
    pub entry_id: &'a EntryId,
    /// Which of its blocks.
    pub block: u32,
    /// Its revision now.
    pub revision: Revision,
    /// What was added.
    pub text: &'a str,
    /// When.
    pub time_ms: i64,
    /// In which commit.
    pub commit: CommitNo,
}

/// How an add was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// In a line of its own, left open.
    Opened {
        /// Where the line begins.
        offset: u64,
        /// How many bytes it has so far.
        len: u32,
    },
    /// At the end of the open line.
    Continued {
        /// How many bytes were added.
        len: u32,
    },
}

impl Growing {
    /// An entry whose message is still to be read.
    pub(super) fn unread(node: NodeIx) -> Self {
        Self { node, message: None, open: None }
    }

    /// The entry.
    pub fn node(&self) -> NodeIx {
        self.node
    }

    /// Its message with everything added, once it was hydrated.
    pub fn message(&self) -> Option<&AgentMessage> {
        self.message.as_ref()
    }

    /// The line that can still be added to.
    pub fn open(&self) -> Option<&OpenLine> {
        self.open.as_ref()
    }
}

impl SessionState {
    /// The entry that grows.
    pub fn growing(&self) -> Option<&Growing> {
        self.growing.as_ref()
    }

    /// The entries that grew in these lines of the session's own file, told by where the lines begin.
    pub fn grown_in(&self, lines: &BTreeSet<u64>) -> Vec<NodeIx> {
        if lines.is_empty() {
            return Vec::new();
        }
        // Mostly it is the line that is open.
        if let Some(Growing { node, open: Some(open), .. }) = &self.growing
            && lines.iter().eq([&open.place.offset])
        {
            return vec![*node];
        }
        let is_asked = |place: &Place| place.source == SourceIx::OWN && lines.contains(&place.offset);
        let growths = self.history.growths.iter();
        let asked = growths.filter(|(_, lines)| lines.iter().any(|(_, place)| is_asked(place)));
        asked.map(|(ix, _)| NodeIx(*ix)).collect()
    }

    /// The line that an add can be written behind instead of beginning a new one.
    pub fn continues(&self, grew: &Grew) -> Option<&OpenLine> {
        let growing = self.growing.as_ref()?;
        let open = growing.open.as_ref()?;
        (self.find(&grew.entry_id) == Some(growing.node) && open.block == grew.block).then_some(open)
    }

    /// The entry whose message must be read, with everything added, and given to [`SessionState::hydrate`] before a
    /// mutation is decided.
    pub fn needs_hydration(&self) -> Option<NodeIx> {
        let growing = self.growing.as_ref()?;
        growing.message.is_none().then_some(growing.node)
    }

    /// Gives the growing entry its whole message, as read from [`SessionState::body`].
    pub fn hydrate(&mut self, message: AgentMessage) {
        if let Some(growing) = &mut self.growing {
            growing.message = Some(message);
        }
    }

    /// Takes in a text that was added just now. `before` is the message without it, needed when the entry begins to grow.
    pub fn apply_add(
        &mut self,
        add: &LiveAdd<'_>,
        written: Written,
        before: Option<&AgentMessage>,
    ) -> Vec<StateFault> {
        let Some(ix) = self.find(add.entry_id) else {
            return vec![StateFault::UnknownEntry(add.entry_id.clone())];
        };
        let (message, open) = match self.growing.take() {
            Some(growing) if growing.node == ix => (growing.message, growing.open),
            _ => (before.cloned(), None),
        };
        let mut message = message;
        if let Some(message) = &mut message {
            extend_text(message, add.block, add.text);
        }
        let open = match (written, open) {
            (Written::Continued { len }, Some(mut open)) => {
                open.place.len = open.place.len.saturating_add(len);
                Some(open)
            }
            (Written::Continued { .. }, None) => None,
            (Written::Opened { offset, len }, _) => Some(self.open_line(ix, add, offset, len)),
        };
        if let Some(open) = open {
            self.record_growth_line(ix, open);
        }
        self.note_growth(ix);
        let node = &mut self.nodes[ix.at()];
        node.revision = clamp(add.revision.0);
        node.weight = clamp(u64::from(node.weight) + escaped_len(add.text));
        node.set(flag::GROWN);
        self.last_commit = self.last_commit.max(add.commit);
        self.meta_mut().updated_at = add.time_ms;
        self.growing = Some(Growing { node: ix, message, open });
        Vec::new()
    }

    /// Takes in that the open line was closed with so many bytes.
    pub fn apply_closed(&mut self, len: u32) {
        let Some(growing) = &mut self.growing else { return };
        let Some(mut open) = growing.open.take() else { return };
        let node = growing.node;
        open.place.len = open.place.len.saturating_add(len);
        self.record_growth_line(node, open);
    }

    /// Takes in a `grew` line that is on disk. `growing` keeps its message only if nothing was missed.
    pub(super) fn grow(&mut self, ix: NodeIx, seq: u64, place: Place) {
        self.history.growths.entry(ix.0).or_default().push((seq, place));
        self.nodes[ix.at()].set(flag::GROWN);
        self.growing = Some(Growing::unread(ix));
    }

    /// Forgets the growing entry if it is this one: it was written whole.
    pub(super) fn end_growth_of(&mut self, ix: NodeIx) {
        self.growing.take_if(|growing| growing.node == ix);
    }

    /// Whatever is written next, the open line is no longer the last.
    pub(super) fn forget_open_line(&mut self) {
        if let Some(growing) = &mut self.growing {
            growing.open = None;
        }
    }

    fn open_line(&mut self, ix: NodeIx, add: &LiveAdd<'_>, offset: u64, len: u32) -> OpenLine {
        let seq = self.next_seq;
        self.next_seq = self.next_seq.saturating_add(1);
        self.slack = 0;
        let place = Place { source: SourceIx::OWN, offset, len };
        self.history.growths.entry(ix.0).or_default().push((seq, place));
        OpenLine { seq: Seq(seq), block: add.block, time_ms: add.time_ms, commit: add.commit, place }
    }

    fn record_growth_line(&mut self, ix: NodeIx, open: OpenLine) {
        if let Some((_, place)) = self.history.growths.get_mut(&ix.0).and_then(|lines| lines.last_mut()) {
            *place = open.place;
        }
    }
}

/// Adds text to the end of a text or thinking block; says whether there is such a block.
pub fn extend_text(message: &mut AgentMessage, block: u32, text: &str) -> bool {
    match message.content_mut().get_mut(block as usize) {
        Some(ContentBlock::Text(block)) => block.text.push_str(text),
        Some(ContentBlock::Thinking(block)) => block.text.push_str(text),
        _ => return false,
    }
    true
}

/// How many bytes a text has in JSON, without quotes.
fn escaped_len(text: &str) -> u64 {
    let of_byte = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 2,
        0..0x20 => 6,
        _ => 1,
    };
    text.bytes().map(of_byte).sum()
}
