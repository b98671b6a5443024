//! A whole store, told as events: what open subscribers hear when another store takes the place of the one before.
//!
//! Sessions that are gone are deleted; those that are there are created, and each entry is added after the one that it
//! follows. A session is read when it is told.

use std::collections::VecDeque;
use std::sync::Arc;

use banyan::model::{Event, EventFilter, SessionId};
use banyan::rules::filter::event_matches;
use banyan::{Banyan, Delivery, Start, Subscribe, Subscription};

use super::main_session;
use super::source::the_one_session;
use crate::bridge::Main;

/// See the module.
#[derive(Clone)]
pub(super) struct Whole {
    pub(super) gone: Arc<[Arc<Event>]>,
    pub(super) sessions: Arc<[SessionId]>,
    pub(super) from: Shelf,
}

/// What a whole store is read from.
#[derive(Clone)]
pub(super) enum Shelf {
    /// A store of this machine.
    Here(Banyan),
    /// A main instance elsewhere.
    There(Arc<dyn Main>),
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
            if let Some(session) = &mut self.session {
                match session.next().await {
                    Ok(Some(Delivery::Snapshot(event))) => return Some(Arc::new(*event)),
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
                continue;
            }
            let id = self.following(filters)?;
            match self.whole.from.clone() {
                Shelf::Here(store) => {
                    let subscribe = Subscribe { filters: filters.to_vec(), start: Start::Snapshot(id) };
                    // One that is gone again by now has nothing to tell.
                    self.session = store.subscribe(subscribe).ok();
                }
                Shelf::There(main) => {
                    // Asked for again if this is interrupted.
                    self.told -= 1;
                    let events = main_session::events(main.as_ref(), &id).await;
                    self.told += 1;
                    match events {
                        Ok(events) => {
                            let asked = |event: &Arc<Event>| filters.iter().any(|it| event_matches(it, event));
                            self.waiting.extend(events.into_iter().map(Arc::new).filter(asked));
                        }
                        Err(why) => tracing::error!(%why, "a session of the new store could not be told"),
                    }
                }
            }
        }
    }

    /// The next session that the filters could ask for.
    fn following(&mut self, filters: &[EventFilter]) -> Option<SessionId> {
        let asked = the_one_session(filters);
        loop {
            let session = self.whole.sessions.get(self.told)?;
            self.told += 1;
            if asked.is_none_or(|asked| asked == session) {
                return Some(session.clone());
            }
        }
    }
}
