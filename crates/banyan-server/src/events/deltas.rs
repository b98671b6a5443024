//! Messages that grow, sent as what was added.
//!
//! An addition is sent alone only when the message that it adds to was sent on the same connection, whole or in additions.
//! A subscriber therefore never needs a message from elsewhere, and one that connects again needs no rule of its own.

use std::collections::HashMap;

use banyan::Delivery;
use banyan::model::{EntryId, Event, EventPayload, Position, Revision, SessionId};
use serde::Serialize;

use super::frames::Frame;

/// What was added to a message. What is missing is as in the delta before on the same connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Delta {
    #[serde(skip)]
    pub(crate) position: Position,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entry_id: Option<EntryId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<u32>,
    revision: Revision,
    pub(crate) text: String,
}

/// Which message an entry is in.
type Key = (SessionId, EntryId);

/// What one connection was sent.
#[derive(Default)]
pub(crate) struct Deltas {
    /// The newest revision of each message that was sent. Only so many are remembered: the additions to one that was
    /// forgotten begin with the whole message again.
    recent: HashMap<Key, Revision>,
    earlier: HashMap<Key, Revision>,
    /// What the last delta was about.
    last: Option<(Key, u32)>,
}

/// How many messages are remembered before the earlier half is forgotten.
const HALF: usize = 256;

impl Deltas {
    /// Adds a delivery to what is to be sent when an addition says it all, and says about how many bytes that takes.
    /// Additions to one message that follow each other are joined.
    pub(crate) fn add(&mut self, delivery: &Delivery, frames: &mut Vec<Frame>) -> Option<usize> {
        let event = match delivery {
            Delivery::Event(event) => event,
            Delivery::Snapshot(event) => {
                self.note(event);
                return None;
            }
            Delivery::SnapshotEnd(_) | Delivery::Lagged | Delivery::Resync => return None,
        };
        let (EventPayload::MessageUpdated(updated), Some(added)) = (&event.payload, &event.added) else {
            self.note(event);
            return None;
        };
        let key = (updated.session_id.clone(), updated.entry_id.clone());
        let before = self.recent.get(&key).or_else(|| self.earlier.get(&key)).copied();
        self.remember(key.clone(), updated.revision);
        if before != Some(added.after) {
            return None;
        }
        let about = (key, added.block);
        let same = self.last.as_ref() == Some(&about);
        if let Some(Frame::Delta(delta)) = frames.last_mut()
            && same
        {
            delta.text.push_str(&added.text);
            delta.revision = updated.revision;
            delta.position = event.position;
            return Some(added.text.len());
        }
        let (last_key, last_block) = self.last.take().unzip();
        let ((session_id, entry_id), block) = about.clone();
        let known_session = last_key.as_ref().is_some_and(|(session, _)| *session == session_id);
        let known_entry = known_session && last_key.as_ref().is_some_and(|(_, entry)| *entry == entry_id);
        frames.push(Frame::Delta(Delta {
            position: event.position,
            session_id: Some(session_id).filter(|_| !known_session),
            entry_id: Some(entry_id).filter(|_| !known_entry),
            block: Some(block).filter(|_| !known_entry || last_block != Some(block)),
            revision: updated.revision,
            text: added.text.clone(),
        }));
        self.last = Some(about);
        frames.last().map(Frame::size)
    }

    /// Remembers a message that is sent whole.
    fn note(&mut self, event: &Event) {
        match &event.payload {
            EventPayload::MessageAdded(added) if added.message.is_some() => {
                self.remember((added.session_id.clone(), added.entry_id.clone()), Revision(0));
            }
            EventPayload::MessageUpdated(updated) => {
                self.remember((updated.session_id.clone(), updated.entry_id.clone()), updated.revision);
            }
            // Another session may have the same id, and the same entries, one day.
            EventPayload::Deleted(deleted) => self.forget(&deleted.session_id),
            _ => {}
        }
    }

    fn forget(&mut self, session: &SessionId) {
        self.recent.retain(|(of, _), _| of != session);
        self.earlier.retain(|(of, _), _| of != session);
        self.last = self.last.take().filter(|((of, _), _)| of != session);
    }

    fn remember(&mut self, key: Key, revision: Revision) {
        if self.recent.len() >= HALF && !self.recent.contains_key(&key) {
            self.earlier = std::mem::take(&mut self.recent);
        }
        self.recent.insert(key, revision);
    }
}
