//! The additions of one line, as events.

use std::sync::Arc;

use banyan_model::{
    AgentMessage, CommitNo, EntryId, Error, Event, EventPayload, MessageUpdatedEvent, Object, Position, Raw,
    Revision, Seq, SessionId,
};

use crate::record::{Add, Envelope, Grew};
use crate::state::extend_text;

/// Applies the additions of one line to a message, in order, and makes events of them. It holds the message once, however
/// many additions there are; each event holds it as it was then.
#[derive(Clone, Debug)]
pub struct GrowthNarrator {
    pub(super) session_id: SessionId,
    pub(super) metadata: Option<Arc<Object>>,
    pub(super) envelope: Envelope,
    pub(super) grew: Grew,
    /// The message with the first `next` additions.
    pub(super) message: AgentMessage,
    pub(super) next: usize,
}

impl Grew {
    /// How many of the additions belong to commits up to this one. `first` is the line's own commit.
    pub fn additions_up_to(&self, first: CommitNo, upto: CommitNo) -> usize {
        self.adds.partition_point(|add| commit_of(first, add) <= upto)
    }

    /// The revision of the message after the addition with this index.
    pub fn revision_after(&self, index: usize) -> Revision {
        Revision(self.revision.0.saturating_add(index as u64))
    }
}

impl GrowthNarrator {
    /// The entry that grows.
    pub fn entry_id(&self) -> &EntryId {
        &self.grew.entry_id
    }

    /// Whether all additions are applied, and the record right after the line is this one.
    pub fn ended_before(&self, next: Seq) -> bool {
        self.next == self.grew.adds.len() && self.envelope.seq.next() == next
    }

    /// The message with everything applied so far.
    pub fn into_message(self) -> AgentMessage {
        self.message
    }

    /// Applies the additions before this index without making an event of them.
    pub fn skip_to(&mut self, index: usize) {
        for add in self.grew.adds.iter().take(index).skip(self.next) {
            extend_text(&mut self.message, self.grew.block, &add.text);
        }
        self.next = self.next.max(index.min(self.grew.adds.len()));
    }

    /// Applies the additions up to and including this index, and makes one event of them: that of the last addition, with the
    /// text of all of them. `None` if they were applied before, or there is no such addition.
    pub fn tell_through(&mut self, index: usize) -> Result<Option<Event>, Error> {
        let first = self.next;
        let Some(last) = self.grew.adds.get(index).filter(|_| index >= first) else { return Ok(None) };
        let text: String =
            self.grew.adds.iter().take(index + 1).skip(first).map(|add| add.text.as_str()).collect();
        extend_text(&mut self.message, self.grew.block, &text);
        self.next = index + 1;
        let payload = MessageUpdatedEvent {
            session_id: self.session_id.clone(),
            entry_id: self.grew.entry_id.clone(),
            message: Raw::of(&self.message)?,
            revision: self.grew.revision_after(index),
            origin: last.origin.clone(),
            timestamp: self.envelope.time_ms.saturating_add(last.ms_since),
        };
        let position = Position::new(commit_of(self.envelope.commit, last), 0);
        let role = Some(self.message.role());
        let event = Event::new(position, EventPayload::MessageUpdated(payload), role, self.metadata.clone());
        Ok(Some(event.with_joined(self.grew.block, text, index - first)))
    }
}

fn commit_of(first: CommitNo, add: &Add) -> CommitNo {
    CommitNo(first.0.saturating_add(add.commits_since))
}
