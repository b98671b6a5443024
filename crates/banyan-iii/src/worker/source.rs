//! Where a binding's events come from: first a store that took another's place, if that is why it begins anew, then what
//! happens.

use std::sync::Arc;

use banyan::model::{Error, Event, EventFilter, EventType, Position, SessionId};
use banyan::{Banyan, Delivery, Start, Subscribe, Subscription};

use super::replay::Replay;

/// See the module.
pub(super) struct Source {
    store: Banyan,
    filters: Vec<EventFilter>,
    subscription: Option<Subscription>,
    replay: Option<Replay>,
    /// Whether what was missed can be read again.
    keeps: bool,
}

impl Source {
    /// What happens from now on. `keeps` says whether the store can tell again what it told.
    pub(super) fn from_now(store: &Banyan, filters: Vec<EventFilter>, keeps: bool) -> Result<Self, Error> {
        let mut source = Self { store: store.clone(), filters, subscription: None, replay: None, keeps };
        source.subscription = Some(source.subscribe(Start::Now)?);
        Ok(source)
    }

    /// What happened since a position, and goes on happening.
    pub(super) fn after(store: &Banyan, filters: Vec<EventFilter>, position: Position) -> Result<Self, Error> {
        let mut source = Self { store: store.clone(), filters, subscription: None, replay: None, keeps: true };
        source.subscription = Some(source.subscribe(Start::After(position))?);
        Ok(source)
    }

    /// The same, beginning with a whole store.
    pub(super) fn beginning_with(mut self, replay: Replay) -> Self {
        self.replay = Some(replay);
        self
    }

    /// Where a source that begins now begins.
    pub(super) fn began_at(&self) -> Position {
        self.subscription.as_ref().map_or(Position::BEGINNING, Subscription::began_at)
    }

    /// Whether what comes from here may be left for a while: updates of messages, which can be read again.
    pub(super) fn can_wait(&self) -> bool {
        self.keeps && self.filters.iter().all(|filter| filter.event_type == EventType::MessageUpdated)
    }

    fn subscribe(&self, start: Start) -> Result<Subscription, Error> {
        self.store.subscribe(Subscribe { filters: self.filters.clone(), start })
    }

    /// The next event. `taken` is the position of the last one. Dropping the future loses nothing.
    pub(super) async fn next(&mut self, taken: Position) -> Arc<Event> {
        loop {
            if let Some(replay) = &mut self.replay {
                match replay.next(&self.filters).await {
                    Some(event) => return event,
                    None => self.replay = None,
                }
            }
            let subscription = match &mut self.subscription {
                Some(subscription) => subscription,
                None => match self.subscribe(Start::After(taken)).or_else(|error| self.give_up(&error)) {
                    Ok(subscription) => self.subscription.insert(subscription),
                    Err(error) => {
                        tracing::error!(%error, "a binding hears nothing any more");
                        std::future::pending().await
                    }
                },
            };
            match subscription.next().await {
                Ok(Some(Delivery::Event(event))) => return event,
                Ok(Some(Delivery::Snapshot(_) | Delivery::SnapshotEnd(_))) => {}
                // Read on from the last one: nothing is lost.
                Ok(Some(Delivery::Lagged)) if self.keeps => self.subscription = None,
                Ok(Some(Delivery::Lagged | Delivery::Resync)) => {
                    tracing::warn!("a consumer was away for so long, or so slow, that events are lost to it");
                    self.subscription = self.subscribe(Start::Now).ok();
                }
                // The store is closed: there is nothing more to come.
                Ok(None) => std::future::pending().await,
                Err(error) => {
                    tracing::error!(%error, "events could not be read, and are lost to a binding; it goes on from now");
                    self.subscription = self.subscribe(Start::Now).ok();
                }
            }
        }
    }

    fn give_up(&self, error: &Error) -> Result<Subscription, Error> {
        tracing::warn!(%error, "a binding cannot go on where it was, and goes on from now");
        self.subscribe(Start::Now)
    }

    /// Nobody listens for a while. What can be read again later need not be kept meanwhile.
    pub(super) fn rest(&mut self) {
        if self.keeps {
            self.subscription = None;
        }
    }
}

/// The session that all filters ask for, if it is one.
pub(super) fn the_one_session(filters: &[EventFilter]) -> Option<&SessionId> {
    let first = filters.first()?.session_id.as_ref()?;
    filters.iter().all(|filter| filter.session_id.as_ref() == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use banyan::Options;

    use super::*;

    #[tokio::test]
    async fn sources_of_one_store_share_the_events_that_they_wait_for() {
        let store = Banyan::in_memory(Options::default()).unwrap();
        let source = || Source::from_now(&store, EventType::ALL.map(EventFilter::all).into(), false).unwrap();
        let (mut one, mut other) = (source(), source());
        store.call("session::create", b"{}").await.unwrap();
        let (one, other) = (one.next(Position::BEGINNING).await, other.next(Position::BEGINNING).await);
        assert!(Arc::ptr_eq(&one, &other));
    }
}
