//! A history as it goes on: events become what has changed in the newest message. No other message is held.

use std::collections::HashMap;

use banyan::model::{
    AddedText, EntryId, Error, Event, EventPayload, MessageAddedEvent, MessageUpdatedEvent, Position, Revision,
    SessionStatus,
};
use banyan::{PathState, Whereabouts};
use banyan_formats::history::{Change, Delta, Entry, Projected, Projector, Speaker, Standing};

use super::cursor::Mark;
use super::get::json;
use super::read::{Newest, Reader, standing};
use super::stream::frame;

/// See the module.
pub(crate) struct Follower {
    reader: Reader,
    deltas: bool,
    projector: Projector,
    /// The entries that the newest message is made of, or after it, and how often each had changed.
    revisions: HashMap<EntryId, Revision>,
    pub(crate) leaf: Option<EntryId>,
    /// Everything up to here is told.
    seen: Position,
    status: SessionStatus,
    updated_at: i64,
    standing: Standing,
    /// How many entries come before the first message that was told. Older messages are not told when they change.
    window: usize,
    /// What is to be sent before what has changed in the newest message.
    out: Vec<(&'static str, String)>,
    pending: Option<Pending>,
}

/// What has changed in the newest message since it was sent.
enum Pending {
    Grew(Delta),
    Whole,
}

/// What came of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// It is taken in.
    Fine,
    /// The path is another one now, and all is to be told again.
    OtherPath,
    /// The session is gone.
    Deleted,
}

impl Follower {
    /// Goes on from the end of a path that was told as it was at some moment.
    pub(crate) fn new(reader: Reader, deltas: bool, newest: Newest, state: &PathState, window: usize) -> Self {
        Self {
            revisions: newest.revisions.into_iter().collect(),
            projector: newest.projector,
            reader,
            deltas,
            leaf: state.leaf.clone(),
            seen: state.position,
            status: state.status,
            updated_at: state.updated_at,
            standing: standing(state.status, state.updated_at),
            window,
            out: Vec::new(),
            pending: None,
        }
    }

    /// Where a front end that has seen all this goes on.
    pub(crate) fn mark(&self) -> Mark {
        Mark::of(self.seen, self.leaf.as_ref(), self.window)
    }

    /// Says that the past is known up to here, and nothing in it was missed.
    pub(crate) fn caught_up(&mut self, position: Position) {
        self.seen = self.seen.max(position);
    }

    /// Takes in an event.
    pub(crate) fn hear(&mut self, event: &Event) -> Result<Heard, Error> {
        if event.position <= self.seen {
            return Ok(Heard::Fine);
        }
        match &event.payload {
            EventPayload::MessageAdded(added) => {
                if added.parent_id != self.leaf {
                    return Ok(Heard::OtherPath);
                }
                self.updated_at = added.timestamp;
                self.look_around();
                self.added(added);
            }
            EventPayload::MessageUpdated(updated) => {
                self.updated_at = updated.timestamp;
                self.look_around();
                self.updated(updated, event.added.as_ref())?;
            }
            EventPayload::StatusChanged(changed) => {
                self.status = changed.status;
                self.updated_at = changed.timestamp;
                self.look_around();
            }
            EventPayload::Deleted(_) => {
                self.seen = event.position;
                self.leaf = None;
                return Ok(Heard::Deleted);
            }
            EventPayload::Created(_) | EventPayload::MetaUpdated(_) => {}
        }
        self.seen = event.position;
        Ok(Heard::Fine)
    }

    /// Notices what is not an event: that somebody went away, or is there again.
    pub(crate) fn look_around(&mut self) {
        let now = standing(self.status, self.updated_at);
        if now == self.standing {
            return;
        }
        let before = self.projector.open().cloned();
        self.projector.set_standing(now);
        self.standing = now;
        if self.projector.open() != before.as_ref() {
            self.pending = Some(Pending::Whole);
        }
    }

    /// What is to be sent by now, as frames. The last one says where to go on.
    pub(crate) fn take_frames(&mut self) -> String {
        match self.pending.take() {
            Some(Pending::Grew(delta)) => self.delta(&delta),
            Some(Pending::Whole) => {
                let newest = self.projector.open().map(json);
                self.out.extend(newest.map(|newest| ("history::message", newest)));
            }
            None => {}
        }
        let mark = self.mark();
        let mut text = String::new();
        let last = self.out.len();
        for (at, (event, data)) in self.out.drain(..).enumerate() {
            frame(&mut text, Some(mark).filter(|_| at + 1 == last), event, &data);
        }
        text
    }

    fn added(&mut self, added: &MessageAddedEvent) {
        let count = |projected: Option<&Projected>| projected.map_or(0, |projected| projected.entries.len());
        let before = count(self.projector.open());
        self.leaf = Some(added.entry_id.clone());
        if let Some(finished) = self.projector.push(Entry::from(added)) {
            // Somebody was said to be writing it, or it has changed since it was sent.
            let answer = finished.message.role == Speaker::Assistant;
            if self.pending.take().is_some() || (answer && self.standing != Standing::Over) {
                self.whole(&finished);
            }
            self.revisions.clear();
            self.pending = Some(Pending::Whole);
        } else if count(self.projector.open()) != before {
            self.pending = Some(Pending::Whole);
        }
        self.revisions.insert(added.entry_id.clone(), Revision(0));
    }

    fn updated(&mut self, updated: &MessageUpdatedEvent, grown: Option<&AddedText>) -> Result<(), Error> {
        let Some(known) = self.revisions.get_mut(&updated.entry_id) else { return self.older(&updated.entry_id) };
        // What was read for the beginning of a stream may be newer than where its events begin.
        if updated.revision <= *known {
            return Ok(());
        }
        let before = std::mem::replace(known, updated.revision);
        let change = match grown.filter(|added| added.after == before) {
            Some(added) => self.projector.grow(&updated.entry_id, added.block as usize, &added.text),
            None => self.projector.update(&updated.entry_id, updated.message.parse()?),
        };
        match change {
            Change::Nothing => Ok(()),
            Change::Grew(delta) => {
                self.grew(delta);
                Ok(())
            }
            Change::Whole => {
                self.pending = Some(Pending::Whole);
                Ok(())
            }
            Change::Elsewhere => self.older(&updated.entry_id),
        }
    }

    fn grew(&mut self, delta: Delta) {
        match &mut self.pending {
            _ if !self.deltas => self.pending = Some(Pending::Whole),
            Some(Pending::Whole) => {}
            Some(Pending::Grew(before)) if (before.part, before.main) == (delta.part, delta.main) => {
                before.text.push_str(&delta.text);
            }
            Some(Pending::Grew(_)) => {
                if let Some(Pending::Grew(before)) = self.pending.replace(Pending::Grew(delta)) {
                    self.delta(&before);
                }
            }
            None => self.pending = Some(Pending::Grew(delta)),
        }
    }

    /// Tells a message that is not the newest, if it was told before.
    fn older(&mut self, entry: &EntryId) -> Result<(), Error> {
        let (state, found) =
            self.reader.store.whereabouts(&self.reader.session_id, std::slice::from_ref(entry))?;
        match found.as_slice() {
            [Whereabouts::OnPath(place)] if *place >= self.window => {
                if let Some(message) = self.reader.message_of(entry, &state)? {
                    self.whole(&message);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, message: &Projected) {
        self.out.push(("history::message", json(message)));
    }

    fn delta(&mut self, delta: &Delta) {
        // A delta always has a JSON form.
        self.out.push(("history::delta", serde_json::to_string(delta).unwrap_or_default()));
    }
}
