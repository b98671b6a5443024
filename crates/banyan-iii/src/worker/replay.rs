//! A whole store, told as events: what open subscribers hear when another store takes the place of the one before.
//!
//! Sessions that are gone are deleted; those that are there are created, and each entry is added after the one that it
//! follows. A session is read when it is told.

use std::collections::VecDeque;
use std::sync::Arc;

use banyan::model::{Event, EventFilter, SessionId};
use banyan::{Banyan, Delivery, Start, Subscribe, Subscription, event_matches};

use super::source::the_one_session;

/// See the module.
#[derive(Clone)]
pub(super) struct Whole {
    pub(super) gone: Arc<[Arc<Event>]>,
    pub(super) sessions: Arc<[SessionId]>,
    pub(super) from: Banyan,
}

/// How far one binding has come with it.
pub(super) struct Replay {
    whole: Whole,
    gone: usize,
    told: usize,
    session: Option<Subscription>,
    waiting: VecDeque<Arc<Event>>,
}

impl Replay {
    pub(super) fn of(whole: Whole) -> Self {
        Self { whole, gone: 0, told: 0, session: None, waiting: VecDeque::new() }
    }

    /// The next event that a filter lets through. `None` when everything was told. Dropping the future loses nothing.
    pub(super) async fn next(&mut self, filters: &[EventFilter]) -> Option<Arc<Event>> {
        while let Some(event) = self.whole.gone.get(self.gone) {
            self.gone += 1;
            if filters.iter().any(|filter| event_matches(filter, event)) {
                return Some(Arc::clone(event));
            }
        }
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            let Some(session) = &mut self.session else {
                self.session = Some(self.open(filters)?);
                continue;
            };
            match session.next().await {
                Ok(Some(Delivery::Snapshot(event))) => self.waiting.push_back(Arc::new(*event)),
                Ok(Some(Delivery::Event(_))) => {}
                // What follows is told by the source that this belongs to.
                Ok(Some(Delivery::SnapshotEnd(_) | Delivery::Lagged | Delivery::Resync) | None) => {
                    self.session = None;
                }
                Err(error) => {
                    tracing::error!(%error, "a session of the new store could not be told");
                    self.session = None;
                }
            }
        }
    }

    /// The next session that the filters could ask for.
    fn open(&mut self, filters: &[EventFilter]) -> Option<Subscription> {
        let asked = the_one_session(filters);
        loop {
            let session = self.whole.sessions.get(self.told)?.clone();
            self.told += 1;
            if asked.is_some_and(|asked| *asked != session) {
                continue;
            }
            // One that is gone again by now has nothing to tell.
            let subscribe = Subscribe { filters: filters.to_vec(), start: Start::Snapshot(session) };
            if let Ok(subscription) = self.whole.from.subscribe(subscribe) {
                return Some(subscription);
            }
        }
    }
}
