//! Going on where a stream was left: what has changed since then, or everything when the path is another one.

use std::collections::HashSet;

use banyan::model::{EntryId, Error, Event, EventPayload};
use banyan::{PathState, Whereabouts};
use banyan_formats::history::Projected;

use super::cursor::Mark;
use super::read::{Back, Newest, Reader};

/// What happened while nobody listened.
#[derive(Default)]
pub(crate) struct Missed {
    added: HashSet<EntryId>,
    updated: HashSet<EntryId>,
    pub(crate) deleted: bool,
}

/// What has changed in a path that goes on.
pub(crate) struct Changed {
    /// The messages that have, oldest first, and at least the newest that there was.
    pub(crate) messages: Vec<Projected>,
    pub(crate) newest: Newest,
    pub(crate) state: PathState,
    /// How many entries come before the first message that is told when it changes.
    pub(crate) window: usize,
}

impl Missed {
    pub(crate) fn note(&mut self, event: &Event) {
        match &event.payload {
            EventPayload::MessageAdded(added) => {
                self.added.insert(added.entry_id.clone());
            }
            EventPayload::MessageUpdated(updated) => {
                self.updated.insert(updated.entry_id.clone());
            }
            EventPayload::Deleted(_) => self.deleted = true,
            EventPayload::Created(_) | EventPayload::StatusChanged(_) | EventPayload::MetaUpdated(_) => {}
        }
    }

    /// What has changed since the mark; none when the path is not the one that was left, gone on.
    pub(crate) fn changed(&self, reader: &Reader, left_at: Mark) -> Result<Option<Changed>, Error> {
        let state = reader.state()?;
        let Some(path) = left_at.path.filter(|_| !self.deleted) else { return Ok(None) };
        let mut back = Back::from_end(reader, &state);
        let (mut messages, mut seen) = (Vec::new(), HashSet::new());
        let mut leaf_then = None;
        while leaf_then.is_none()
            && let Some(segment) = back.next()?
        {
            leaf_then = segment.entries.iter().rev().find(|entry| !self.added.contains(*entry)).cloned();
            seen.extend(segment.entries);
            messages.splice(0..0, segment.messages);
        }
        if !path.ends_in(leaf_then.as_ref()) {
            return Ok(None);
        }
        // What was the newest message may have ended since, which changes no entry.
        let newest_then = messages.iter().rposition(|message: &Projected| !self.is_all_new(message)).unwrap_or(0);
        let mut told = self.older(reader, &state, &seen, path.window)?;
        for (at, message) in messages.into_iter().enumerate() {
            if at >= newest_then || (self.has_changed(&message) && is_told(reader, &message, path.window)?) {
                told.push(message);
            }
        }
        let newest = back.newest.take().unwrap_or_else(|| Newest::none(reader));
        Ok(Some(Changed { messages: told, newest, state, window: path.window }))
    }

    fn is_all_new(&self, message: &Projected) -> bool {
        message.entries.iter().all(|entry| self.added.contains(entry))
    }

    fn has_changed(&self, message: &Projected) -> bool {
        message.entries.iter().any(|entry| self.added.contains(entry) || self.updated.contains(entry))
    }

    /// Messages from before what was read that have changed, in the order of the path.
    fn older(
        &self,
        reader: &Reader,
        state: &PathState,
        seen: &HashSet<EntryId>,
        window: usize,
    ) -> Result<Vec<Projected>, Error> {
        let entries: Vec<EntryId> = self.updated.iter().filter(|entry| !seen.contains(*entry)).cloned().collect();
        let (_, places) = reader.store.whereabouts(&reader.session_id, &entries)?;
        let placed = entries.into_iter().zip(places).filter_map(|(entry, place)| match place {
            Whereabouts::OnPath(place) if place >= window => Some((place, entry)),
            _ => None,
        });
        let mut placed: Vec<(usize, EntryId)> = placed.collect();
        placed.sort_unstable_by_key(|(place, _)| *place);
        let mut messages: Vec<Projected> = Vec::new();
        for (_, entry) in placed {
            if messages.last().is_some_and(|message| message.entries.contains(&entry)) {
                continue;
            }
            messages.extend(reader.message_of(&entry, state)?);
        }
        Ok(messages)
    }
}

/// Whether a message is one of those that were told.
fn is_told(reader: &Reader, message: &Projected, window: usize) -> Result<bool, Error> {
    match message.entries.first() {
        Some(first) => Ok(place_of(reader, first)? >= window),
        None => Ok(false),
    }
}

/// How many entries come before one on the path.
pub(crate) fn place_of(reader: &Reader, entry: &EntryId) -> Result<usize, Error> {
    let (_, found) = reader.store.whereabouts(&reader.session_id, std::slice::from_ref(entry))?;
    Ok(match found.as_slice() {
        [Whereabouts::OnPath(place)] => *place,
        _ => 0,
    })
}
