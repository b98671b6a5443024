//! A path as it goes on: events of the store become AG-UI's.

use banyan::model::{EntryId, Error, Event, EventPayload, MessageUpdatedEvent, Position, Revision, SessionStatus};
use banyan::{PathState, Whereabouts};
use banyan_formats::history::Standing;
use banyan_formats::shapes::{Item, Live, Told};
use serde_json::Value;

use super::read::Reader;
use crate::history::standing;

const ABANDONED: &str = "Whoever worked on this session has gone away.";

/// The path as it goes on.
pub(super) struct Follower {
    pub(super) live: Live,
    pub(super) leaf: Option<EntryId>,
    /// The newest entry that was told, and how often it had changed.
    newest: Option<(EntryId, Revision)>,
    /// Everything up to here is told.
    pub(super) seen: Position,
    status: SessionStatus,
    updated_at: i64,
}

impl Follower {
    pub(super) fn new(live: Live, items: &[Item], revision: Revision, state: &PathState) -> Self {
        Self {
            live,
            leaf: state.leaf.clone(),
            newest: items.last().map(|item| (item.id().clone(), revision)),
            seen: state.position,
            status: state.status,
            updated_at: state.updated_at,
        }
    }

    pub(super) fn hear(&mut self, event: &Event, reader: &Reader) -> Result<Told, Error> {
        if event.position <= self.seen {
            return Ok(Told::Events(Vec::new()));
        }
        let run = event.position.to_string();
        let told = match &event.payload {
            EventPayload::MessageAdded(added) => {
                if added.parent_id != self.leaf {
                    return Ok(Told::Snapshot);
                }
                self.updated_at = added.timestamp;
                self.leaf = Some(added.entry_id.clone());
                self.newest = Some((added.entry_id.clone(), Revision(0)));
                self.live.added(Item::from(added), &run)
            }
            EventPayload::MessageUpdated(updated) => {
                self.updated_at = updated.timestamp;
                self.updated(updated, event, reader, &run)?
            }
            EventPayload::StatusChanged(changed) => {
                (self.status, self.updated_at) = (changed.status, changed.timestamp);
                let reason = changed.status_reason.as_deref();
                Told::Events(self.live.status_changed(changed.status, reason, &run))
            }
            EventPayload::Created(_) | EventPayload::MetaUpdated(_) | EventPayload::Deleted(_) => {
                Told::Events(Vec::new())
            }
        };
        self.seen = event.position;
        Ok(told)
    }

    fn updated(
        &mut self,
        updated: &MessageUpdatedEvent,
        event: &Event,
        reader: &Reader,
        run: &str,
    ) -> Result<Told, Error> {
        let entry = &updated.entry_id;
        let Some((_, known)) = self.newest.as_mut().filter(|(newest, _)| newest == entry) else {
            let (_, found) = reader.store.whereabouts(&reader.session_id, std::slice::from_ref(entry))?;
            return Ok(match found.as_slice() {
                [Whereabouts::OnPath(_)] => Told::Snapshot,
                _ => Told::Events(Vec::new()),
            });
        };
        // What was read for a snapshot may be newer than where its events begin.
        if updated.revision <= *known {
            return Ok(Told::Events(Vec::new()));
        }
        let before = std::mem::replace(known, updated.revision);
        match event.added.as_ref().filter(|added| added.after == before) {
            Some(added) => Ok(self.live.grew(entry, added.block as usize, &added.text, run)),
            None => Ok(self.live.updated(entry, updated.message.parse()?, run)),
        }
    }

    /// Notices what is not an event: that somebody went away.
    pub(super) fn look_around(&mut self) -> Vec<Value> {
        match standing(self.status, self.updated_at) {
            Standing::Abandoned if self.status == SessionStatus::Working => {
                self.status = SessionStatus::Error;
                self.live.status_changed(SessionStatus::Error, Some(ABANDONED), &self.seen.to_string())
            }
            _ => Vec::new(),
        }
    }
}

/// What a session is doing, as far as anybody can tell.
pub(super) fn doing(state: &PathState) -> SessionStatus {
    match standing(state.status, state.updated_at) {
        Standing::Abandoned => SessionStatus::Error,
        Standing::Over | Standing::Running | Standing::Failed => state.status,
    }
}
