//! What waits for one subscriber, and how much waits for all of them.
//!
//! An event that waits for several is held once, and counted once. A queue that is given up is emptied at once: a subscriber that
//! does not read holds no memory for longer than the server can afford.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use banyan_model::Event;
use tokio::sync::Notify;

use super::{Bounds, size_of};

/// How many bytes of events wait, over all queues.
#[derive(Default)]
pub(crate) struct Waiting(AtomicUsize);

/// An event on its way to subscribers. Its bytes count until the last of them has taken it.
pub(super) struct Queued {
    event: Arc<Event>,
    bytes: usize,
    waiting: Arc<Waiting>,
}

/// See the module.
pub(crate) struct Queue {
    inner: Mutex<Inner>,
    changed: Notify,
    bounds: Bounds,
}

#[derive(Default)]
struct Inner {
    events: VecDeque<Arc<Queued>>,
    bytes: usize,
    /// Nothing is added any more.
    ended: bool,
    lagged: bool,
}

/// What a subscriber gets from its queue.
pub(crate) enum Taken {
    Event(Arc<Event>),
    /// Nothing is there now.
    Empty,
    /// Nothing is there, and nothing will be.
    Ended,
}

impl Waiting {
    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

impl Queued {
    pub(super) fn new(event: Arc<Event>, waiting: &Arc<Waiting>) -> Arc<Self> {
        let bytes = size_of(&event);
        waiting.0.fetch_add(bytes, Ordering::AcqRel);
        Arc::new(Self { event, bytes, waiting: Arc::clone(waiting) })
    }

    pub(super) fn event(&self) -> &Event {
        &self.event
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.waiting.0.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

impl Queue {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { inner: Mutex::default(), changed: Notify::new(), bounds }
    }

    /// Adds an event. False when the subscriber is too far behind: it gets what waits, and then that it lagged. One event is
    /// always let in, however large.
    pub(super) fn push(&self, queued: &Arc<Queued>) -> bool {
        let mut inner = self.lock();
        let bytes = inner.bytes + queued.bytes;
        let fits = inner.events.len() < self.bounds.events.max(1) && bytes <= self.bounds.bytes;
        if inner.ended || !(fits || inner.events.is_empty()) {
            inner.lagged |= !inner.ended;
            inner.ended = true;
            drop(inner);
            self.changed.notify_one();
            return false;
        }
        inner.bytes = bytes;
        inner.events.push_back(Arc::clone(queued));
        drop(inner);
        self.changed.notify_one();
        true
    }

    /// Takes the next event.
    pub(crate) fn take(&self) -> Taken {
        let mut inner = self.lock();
        match inner.events.pop_front() {
            Some(queued) => {
                inner.bytes -= queued.bytes;
                Taken::Event(Arc::clone(&queued.event))
            }
            None if inner.ended => Taken::Ended,
            None => Taken::Empty,
        }
    }

    /// Waits for the next event. `None` at the end. Cancel-safe.
    pub(crate) async fn next(&self) -> Option<Arc<Event>> {
        loop {
            match self.take() {
                Taken::Event(event) => return Some(event),
                Taken::Ended => return None,
                // A change since then is remembered.
                Taken::Empty => self.changed.notified().await,
            }
        }
    }

    /// Ends the queue; what waits can still be taken.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_one();
    }

    /// Gives the subscriber up: what waits is dropped, and it gets that it lagged.
    pub(super) fn give_up(&self) {
        let mut inner = self.lock();
        (inner.ended, inner.lagged) = (true, true);
        inner.bytes = 0;
        let events = std::mem::take(&mut inner.events);
        drop(inner);
        self.changed.notify_one();
        drop(events);
    }

    /// How many bytes wait, if there is more than one event.
    pub(super) fn behind(&self) -> Option<usize> {
        let inner = self.lock();
        (inner.events.len() > 1).then_some(inner.bytes)
    }

    pub(crate) fn lagged(&self) -> bool {
        self.lock().lagged
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
