//! Who hears of a commit: subscriptions, found by what they ask for, each with a bounded queue.
//!
//! A commit looks up its session, its session's metadata and its kinds of event; subscriptions that ask for
//! something else are never touched, however many there are. A queue that is full ends its subscription
//! and never holds up a writer. When all queues together hold more than the store allows, those that hold most are given up.

mod queue;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use banyan_core::filter;
use banyan_model::{CommitNo, Event, EventFilter, EventPayload, EventType, Object, Position, Role, SessionId};

use queue::Queued;
pub(crate) use queue::{Queue, Taken, Waiting};

/// See the module.
#[derive(Default)]
pub(crate) struct Hub {
    inner: Mutex<Inner>,
    /// Lets a writer skip everything else when nobody listens.
    listeners: AtomicUsize,
    waiting: Arc<Waiting>,
    /// How many bytes may wait for all subscribers together.
    most_waiting: usize,
}

#[derive(Default)]
struct Inner {
    next: u64,
    members: HashMap<u64, Member>,
    /// Which filters to try, by the narrowest thing they ask for.
    wanted: HashMap<Key, Vec<(u64, usize)>>,
    /// The names in the metadata that such filters ask for, and how many do. Metadata can be long.
    names: HashMap<String, usize>,
    published: CommitNo,
    /// How many events of others were told since that commit.
    foreign: u32,
    /// How many events were told in all.
    told: u64,
    /// Nothing will be told any more.
    closed: bool,
}

struct Member {
    filters: Arc<[EventFilter]>,
    queue: Arc<Queue>,
    /// The last event that it was told, so that two of its filters do not tell it twice.
    told: Option<u64>,
}

/// The narrowest thing that a filter asks for.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    Session(SessionId),
    Metadata(String, String),
    Kind(EventType),
}

/// How much a subscriber may be behind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) events: usize,
    pub(crate) bytes: usize,
}

/// A place in the hub; leaving it is dropping this.
pub(crate) struct Seat {
    hub: Arc<Hub>,
    id: u64,
    pub(crate) queue: Arc<Queue>,
    /// The last commit that was published before this seat was taken.
    pub(crate) since: CommitNo,
}

impl Hub {
    /// A hub whose queues together may hold `most_waiting` bytes.
    pub(crate) fn new(most_waiting: usize) -> Self {
        Self { most_waiting, ..Self::default() }
    }

    /// How many bytes of events wait for subscribers.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.bytes()
    }

    /// Joins: everything published from now on that a filter matches arrives at the seat. In a hub that is closed the seat has
    /// an end at once.
    pub(crate) fn join(self: &Arc<Self>, filters: Arc<[EventFilter]>, bounds: Bounds) -> Seat {
        let queue = Arc::new(Queue::new(bounds));
        let mut inner = self.lock();
        let id = inner.next;
        inner.next += 1;
        if inner.closed {
            queue.end();
            return Seat { hub: Arc::clone(self), id, queue, since: inner.published };
        }
        for (at, filter) in filters.iter().enumerate() {
            let key = key_of(filter);
            if let Key::Metadata(name, _) = &key {
                *inner.names.entry(name.clone()).or_default() += 1;
            }
            inner.wanted.entry(key).or_default().push((id, at));
        }
        inner.members.insert(id, Member { filters, queue: Arc::clone(&queue), told: None });
        self.listeners.store(inner.members.len(), Ordering::Release);
        Seat { hub: Arc::clone(self), id, queue, since: inner.published }
    }

    /// Says where the order of commits stands when the store opens.
    pub(crate) fn begin(&self, head: CommitNo) {
        self.lock().published = head;
    }

    /// Tells a commit to those who asked. `events` is called only when somebody may have.
    pub(crate) fn publish(
        &self,
        commit: CommitNo,
        session: &SessionId,
        metadata: Option<&Object>,
        kinds: &[EventType],
        events: impl FnOnce() -> Vec<Event>,
    ) {
        let mut inner = self.lock();
        inner.published = commit;
        inner.foreign = 0;
        if self.listeners.load(Ordering::Acquire) == 0 || kinds.is_empty() {
            return;
        }
        let candidates = inner.candidates(session, metadata, kinds);
        if candidates.is_empty() {
            return;
        }
        for event in events() {
            inner.tell(&candidates, &Queued::new(Arc::new(event), &self.waiting));
        }
        self.make_room(&mut inner);
        self.listeners.store(inner.members.len(), Ordering::Release);
    }

    /// Gives up the subscribers for whom most waits, until what waits is within the bound. One that has only one event waiting
    /// keeps up, and stays.
    fn make_room(&self, inner: &mut Inner) {
        if self.waiting.bytes() <= self.most_waiting {
            return;
        }
        let behind = inner.members.iter().filter_map(|(id, member)| Some((member.queue.behind()?, *id)));
        let mut behind: Vec<(usize, u64)> = behind.collect();
        behind.sort_unstable();
        while self.waiting.bytes() > self.most_waiting
            && let Some((_, id)) = behind.pop()
        {
            if let Some(member) = inner.remove(id) {
                member.queue.give_up();
            }
        }
    }

    /// Passes a commit that nobody is told of.
    pub(crate) fn pass(&self, commit: CommitNo) {
        let mut inner = self.lock();
        inner.published = commit;
        inner.foreign = 0;
    }

    /// Tells events of another instance's commits, each at a place of its own behind the last commit here. When there are no
    /// places left, they share the last one: none of them is told again from a position anyway.
    pub(crate) fn publish_foreign(&self, events: impl Iterator<Item = ForeignEvent>) {
        let mut inner = self.lock();
        for (payload, role, metadata) in events {
            let index = FOREIGN.start.saturating_add(inner.foreign).min(FOREIGN.end - 1);
            inner.foreign = inner.foreign.saturating_add(1);
            let kinds = [payload.event_type()];
            let candidates = inner.candidates(payload.session_id(), metadata.as_ref(), &kinds);
            let position = Position::new(inner.published, index);
            let event = Event::new(position, payload, role, metadata.map(Arc::new));
            inner.tell(&candidates, &Queued::new(Arc::new(event), &self.waiting));
        }
        self.make_room(&mut inner);
        self.listeners.store(inner.members.len(), Ordering::Release);
    }

    /// Ends every subscription; what is queued can still be read.
    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        for member in std::mem::take(&mut inner.members).into_values() {
            member.queue.end();
        }
        inner.wanted.clear();
        inner.names.clear();
        self.listeners.store(0, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The places of events that were told for another instance. No commit has so many of its own.
pub(crate) const FOREIGN: Range<u32> = 0x80_0000..0xff_ffff;

/// What another instance tells: the event, and what filters look at.
pub(crate) type ForeignEvent = (EventPayload, Option<Role>, Option<Object>);

impl Inner {
    /// Tells those of the candidates who asked for an event.
    fn tell(&mut self, candidates: &[(u64, usize)], queued: &Arc<Queued>) {
        self.told += 1;
        let told = Some(self.told);
        let mut ended = Vec::new();
        for (id, at) in candidates {
            let Some(member) = self.members.get_mut(id) else { continue };
            let matches =
                member.filters.get(*at).is_some_and(|filter| filter::event_matches(filter, queued.event()));
            if matches && std::mem::replace(&mut member.told, told) != told && !member.queue.push(queued) {
                ended.push(*id);
            }
        }
        for id in ended {
            self.remove(id);
        }
    }

    fn candidates(
        &self,
        session: &SessionId,
        metadata: Option<&Object>,
        kinds: &[EventType],
    ) -> Vec<(u64, usize)> {
        let mut found = Vec::new();
        let mut look = |key: &Key| {
            if let Some(wanted) = self.wanted.get(key) {
                found.extend_from_slice(wanted);
            }
        };
        look(&Key::Session(session.clone()));
        for (name, value) in metadata.filter(|_| !self.names.is_empty()).into_iter().flatten() {
            if self.names.contains_key(name) {
                look(&Key::Metadata(name.clone(), canonical(value)));
            }
        }
        for kind in kinds {
            look(&Key::Kind(*kind));
        }
        found
    }

    fn remove(&mut self, id: u64) -> Option<Member> {
        let member = self.members.remove(&id)?;
        for filter in member.filters.iter() {
            let key = key_of(filter);
            if let Key::Metadata(name, _) = &key
                && let Some(count) = self.names.get_mut(name)
            {
                *count -= 1;
                if *count == 0 {
                    self.names.remove(name);
                }
            }
            if let Some(wanted) = self.wanted.get_mut(&key) {
                wanted.retain(|(kept, _)| *kept != id);
                if wanted.is_empty() {
                    self.wanted.remove(&key);
                }
            }
        }
        Some(member)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut inner = self.hub.lock();
        inner.remove(self.id);
        self.hub.listeners.store(inner.members.len(), Ordering::Release);
    }
}

fn key_of(filter: &EventFilter) -> Key {
    if let Some(session) = &filter.session_id {
        return Key::Session(session.clone());
    }
    match filter.metadata.as_ref().and_then(|wanted| wanted.iter().next()) {
        Some((name, value)) => Key::Metadata(name.clone(), canonical(value)),
        None => Key::Kind(filter.event_type),
    }
}

/// Equal values have equal texts, in whatever order their keys were given.
fn canonical(value: &serde_json::Value) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    value.to_string()
}

/// About how much memory an event takes.
pub(crate) fn size_of(event: &Event) -> usize {
    use banyan_model::EventPayload as P;
    256 + match &event.payload {
        P::MessageAdded(added) => {
            added.message.as_ref().map_or(0, |message| message.get().len())
                + added.custom.as_ref().map_or(0, |custom| custom.data.get().len())
        }
        P::MessageUpdated(updated) => updated.message.get().len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use banyan_model::DeletedEvent;

    use super::*;

    fn gone(timestamp: i64) -> ForeignEvent {
        (EventPayload::Deleted(DeletedEvent { session_id: "s".into(), timestamp }), None, None)
    }

    #[test]
    fn events_of_others_are_told_once_each_also_when_no_places_are_left_for_them() {
        let hub = Arc::new(Hub::new(1 << 20));
        let everywhere = EventFilter::all(EventType::Deleted);
        let here = EventFilter { session_id: Some("s".into()), ..everywhere.clone() };
        let seat = hub.join([everywhere, here].into(), Bounds { events: 16, bytes: 1 << 20 });
        hub.lock().foreign = FOREIGN.end - FOREIGN.start - 2;
        hub.publish_foreign((0..5).map(gone));
        let taken = || match seat.queue.take() {
            Taken::Event(event) => Some(event),
            Taken::Empty | Taken::Ended => None,
        };
        let told: Vec<Arc<Event>> = std::iter::from_fn(taken).collect();
        let times = told.iter().map(|event| match &event.payload {
            EventPayload::Deleted(deleted) => deleted.timestamp,
            _ => -1,
        });
        assert_eq!(times.collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert!(told.is_sorted_by_key(|event| event.position));
        assert!(told.iter().all(|event| FOREIGN.contains(&event.position.index)));
    }
}
