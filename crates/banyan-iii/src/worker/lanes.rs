//! What one binding has taken and not yet delivered: a lane for each session, so that one session's events stay in order and
//! sessions do not wait for each other.
//!
//! An event stays here until it is settled. Whoever loses the way to the consumer puts back what was under way, and whoever is
//! asked where to begin again is told a position with everything before it settled.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use banyan::model::{EntryId, Event, EventPayload, Position, SessionId};

/// See the module.
pub(super) struct Lanes {
    lanes: HashMap<SessionId, VecDeque<Item>>,
    /// Sessions with an event that the next one has to wait for.
    busy: HashSet<SessionId>,
    /// Sessions that may have something to deliver.
    ready: VecDeque<SessionId>,
    sent: BTreeMap<u64, Item>,
    /// For each event here, the position before it.
    held: BTreeMap<u64, Position>,
    next: u64,
    taken: Position,
    bytes: usize,
    /// Whether updates had to wait when something was last asked for.
    waits: bool,
}

/// What there is to send.
pub(super) enum Next {
    Item(Item),
    /// Only updates, which may not be sent yet.
    Later,
    Nothing,
}

/// An event that is to be delivered.
#[derive(Clone)]
pub(super) struct Item {
    /// Counts what the binding has taken.
    pub(super) number: u64,
    pub(super) event: Arc<Event>,
    /// How often the way to the consumer was lost while this was the largest event on it.
    lost: u32,
}

/// How much is held before no more is taken.
const MOST_ITEMS: usize = 512;
const MOST_BYTES: usize = 4 << 20;
/// How many events of a session wait before its consumer counts as one that cannot keep up.
const BEHIND: usize = 16;
/// An event of so many bytes may be more than its consumer takes, which then ends the connection. It is sent so many times.
const LARGE: usize = 256 << 10;
const TIMES: u32 = 5;

impl Lanes {
    /// Nothing is held, and everything up to a position is settled.
    pub(super) fn after(taken: Position) -> Self {
        Self {
            lanes: HashMap::new(),
            busy: HashSet::new(),
            ready: VecDeque::new(),
            sent: BTreeMap::new(),
            held: BTreeMap::new(),
            next: 0,
            taken,
            bytes: 0,
            waits: false,
        }
    }

    /// Whether there is room for more.
    pub(super) fn has_room(&self) -> bool {
        self.held.len() < MOST_ITEMS && self.bytes < MOST_BYTES
    }

    /// Takes an event. For a consumer that is behind, or while updates have to wait, an update that was not sent yet is replaced
    /// by a newer one of the same message.
    pub(super) fn take(&mut self, event: Arc<Event>) {
        let session = event.session_id().clone();
        let item = Item { number: self.next, event, lost: 0 };
        self.next += 1;
        self.held.insert(item.number, self.taken);
        // Parts of a snapshot have no place in the order.
        self.taken = self.taken.max(item.event.position);
        self.bytes += size(&item.event);
        let lane = self.lanes.entry(session.clone()).or_default();
        let behind = self.waits || lane.len() >= BEHIND;
        if let Some(last) = lane.back_mut()
            && behind
            && of_one_message(&last.event, &item.event)
        {
            self.bytes -= size(&last.event);
            self.held.remove(&last.number);
            *last = item;
            return;
        }
        lane.push_back(item);
        if !self.busy.contains(&session) {
            self.ready.push_back(session);
        }
    }

    /// Of the updates of a message that are taken until something is sent, only the newest is sent.
    pub(super) fn keep_the_newest(&mut self) {
        self.waits = true;
    }

    /// The next event that nothing has to be waited for. Updates are sent only if they may be, by their size.
    pub(super) fn next(&mut self, mut may_update: impl FnMut(usize) -> bool) -> Next {
        self.waits = false;
        for _ in 0..self.ready.len() {
            let Some(session) = self.ready.pop_front() else { break };
            if self.busy.contains(&session) {
                continue;
            }
            let Some(lane) = self.lanes.get_mut(&session) else { continue };
            let update = lane.front().filter(|item| updated(&item.event).is_some());
            if update.is_some_and(|update| self.waits || !may_update(size(&update.event))) {
                self.waits = true;
                self.ready.push_back(session);
                continue;
            }
            let Some(item) = lane.pop_front() else { continue };
            if lane.is_empty() {
                self.lanes.remove(&session);
            }
            self.busy.insert(session);
            self.sent.insert(item.number, item.clone());
            return Next::Item(item);
        }
        if self.waits { Next::Later } else { Next::Nothing }
    }

    /// The next event of a session need not wait any longer.
    pub(super) fn free(&mut self, session: &SessionId) {
        if self.busy.remove(session) && self.lanes.contains_key(session) {
            self.ready.push_back(session.clone());
        }
    }

    /// An event was delivered.
    pub(super) fn settle(&mut self, number: u64) {
        if let Some(item) = self.sent.remove(&number) {
            self.bytes -= size(&item.event);
            self.held.remove(&number);
        }
    }

    /// Puts back what is under way: it has to be sent again. A large event that the way was lost with too often is given up.
    pub(super) fn put_back(&mut self) -> Option<Item> {
        self.busy.clear();
        let given_up = self.blame();
        if let Some(item) = &given_up {
            self.settle(item.number);
        }
        for (_, item) in std::mem::take(&mut self.sent).into_iter().rev() {
            self.lanes.entry(item.event.session_id().clone()).or_default().push_front(item);
        }
        self.ready = self.lanes.keys().cloned().collect();
        given_up
    }

    /// Counts the loss against the largest event under way, if it is large, and says when that was once too often.
    fn blame(&mut self) -> Option<Item> {
        let largest = self.sent.values_mut().max_by_key(|item| size(&item.event))?;
        if size(&largest.event) < LARGE {
            return None;
        }
        largest.lost += 1;
        (largest.lost >= TIMES).then(|| largest.clone())
    }

    /// Everything up to here is settled.
    pub(super) fn settled(&self) -> Position {
        self.held.first_key_value().map_or(self.taken, |(_, before)| *before)
    }

    /// Everything up to here was taken.
    pub(super) fn taken(&self) -> Position {
        self.taken
    }
}

/// Whether both are updates, and of the same message.
pub(super) fn of_one_message(one: &Event, other: &Event) -> bool {
    updated(one).is_some_and(|message| updated(other) == Some(message))
}

/// The entry that an event is about.
pub(super) fn entry(event: &Event) -> Option<&EntryId> {
    match &event.payload {
        EventPayload::MessageAdded(added) => Some(&added.entry_id),
        EventPayload::MessageUpdated(updated) => Some(&updated.entry_id),
        _ => None,
    }
}

/// The message that an update is of.
fn updated(event: &Event) -> Option<(&SessionId, &EntryId)> {
    match &event.payload {
        EventPayload::MessageUpdated(updated) => Some((&updated.session_id, &updated.entry_id)),
        _ => None,
    }
}

/// About how much memory an event takes.
pub(super) fn size(event: &Event) -> usize {
    256 + match &event.payload {
        EventPayload::MessageAdded(added) => {
            added.message.as_ref().map_or(0, |message| message.get().len())
                + added.custom.as_ref().map_or(0, |custom| custom.data.get().len())
        }
        EventPayload::MessageUpdated(updated) => updated.message.get().len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use banyan::model::{CommitNo, DeletedEvent, MessageUpdatedEvent, Raw, Revision};

    use super::*;

    fn at(commit: u64) -> Position {
        Position::new(CommitNo(commit), 0)
    }

    fn deleted(session: &str, commit: u64) -> Arc<Event> {
        let payload = EventPayload::Deleted(DeletedEvent { session_id: session.into(), timestamp: 0 });
        Arc::new(Event::new(at(commit), payload, None, None))
    }

    fn grown(session: &str, entry: &str, revision: u64, commit: u64) -> Arc<Event> {
        let message = serde_json::json!({"role": "user", "content": [], "timestamp": 0});
        updated_to(message, session, entry, revision, commit)
    }

    fn sized(session: &str, bytes: usize, commit: u64) -> Arc<Event> {
        let content = serde_json::json!([{"type": "text", "text": "x".repeat(bytes)}]);
        let message = serde_json::json!({"role": "user", "content": content, "timestamp": 0});
        updated_to(message, session, "e", 1, commit)
    }

    fn updated_to(
        message: serde_json::Value,
        session: &str,
        entry: &str,
        revision: u64,
        commit: u64,
    ) -> Arc<Event> {
        let payload = EventPayload::MessageUpdated(MessageUpdatedEvent {
            session_id: session.into(),
            entry_id: entry.into(),
            message: Raw::of(&serde_json::from_value(message).expect("a message")).expect("it can be written"),
            revision: Revision(revision),
            origin: None,
            timestamp: 0,
        });
        Arc::new(Event::new(at(commit), payload, None, None))
    }

    impl Lanes {
        fn any(&mut self) -> Option<Item> {
            match self.next(|_| true) {
                Next::Item(item) => Some(item),
                Next::Later | Next::Nothing => None,
            }
        }
    }

    fn revisions(items: &[Item]) -> Vec<u64> {
        let revision = |item: &Item| match &item.event.payload {
            EventPayload::MessageUpdated(updated) => updated.revision.0,
            _ => 0,
        };
        items.iter().map(revision).collect()
    }

    #[test]
    fn one_sessions_events_wait_for_each_other_and_other_sessions_do_not() {
        let mut lanes = Lanes::after(at(0));
        for event in [deleted("a", 1), deleted("a", 2), deleted("b", 3)] {
            lanes.take(event);
        }
        let first = lanes.any().expect("a's first");
        let second = lanes.any().expect("b's");
        assert_eq!((first.event.position, second.event.position), (at(1), at(3)));
        assert!(lanes.any().is_none());
        lanes.free(&"a".into());
        assert_eq!(lanes.any().expect("a's second").event.position, at(2));
    }

    #[test]
    fn who_is_behind_is_sent_only_the_newest_of_the_updates_that_wait() {
        let mut lanes = Lanes::after(at(0));
        for revision in 1..=100 {
            lanes.take(grown("a", "e", revision, revision));
        }
        lanes.take(grown("a", "other", 1, 101));
        let sent: Vec<Item> = std::iter::from_fn(|| {
            lanes.free(&"a".into());
            lanes.any()
        })
        .collect();
        let each: Vec<u64> = (1..BEHIND as u64).chain([100, 1]).collect();
        assert_eq!(revisions(&sent), each);
    }

    #[test]
    fn updates_that_may_not_be_sent_yet_hold_up_nothing_else() {
        let mut lanes = Lanes::after(at(0));
        lanes.take(grown("a", "e", 1, 1));
        lanes.take(deleted("b", 2));
        assert!(matches!(lanes.next(|_| false), Next::Item(item) if item.event.position == at(2)));
        assert!(matches!(lanes.next(|_| false), Next::Later));
        // Meanwhile the newest is enough.
        lanes.take(grown("a", "e", 2, 3));
        assert_eq!(revisions(&[lanes.any().expect("the newest")]), [2]);
        assert!(matches!(lanes.next(|_| false), Next::Nothing));
    }

    #[test]
    fn what_was_under_way_is_sent_again_in_its_order_and_nothing_unsettled_is_skipped() {
        let mut lanes = Lanes::after(at(0));
        for event in [deleted("a", 1), deleted("b", 2), deleted("a", 3)] {
            lanes.take(event);
        }
        let a = lanes.any().expect("a's first");
        let b = lanes.any().expect("b's");
        lanes.free(&"a".into());
        let slow = lanes.any().expect("a's second, though the first is not answered");
        assert_eq!(slow.event.position, at(3));
        lanes.settle(b.number);
        assert_eq!((lanes.settled(), lanes.taken()), (at(0), at(3)));
        lanes.put_back();
        let again = [lanes.any().expect("a's first again"), {
            lanes.free(&"a".into());
            lanes.any().expect("a's second again")
        }];
        assert_eq!(again.map(|item| item.event.position), [at(1), at(3)]);
        lanes.settle(a.number);
        assert_eq!(lanes.settled(), at(2));
        lanes.settle(slow.number);
        assert_eq!(lanes.settled(), at(3));
        assert!(lanes.any().is_none());
    }

    #[test]
    fn a_large_event_that_is_lost_each_time_is_given_up_and_a_small_one_never() {
        let mut lanes = Lanes::after(at(0));
        lanes.take(deleted("small", 1));
        lanes.take(sized("large", LARGE, 2));
        for _ in 1..TIMES {
            while lanes.any().is_some() {}
            assert!(lanes.put_back().is_none());
        }
        while lanes.any().is_some() {}
        assert_eq!(lanes.put_back().map(|item| item.event.position), Some(at(2)));
        for _ in 0..2 * TIMES {
            let item = lanes.any().expect("the small one");
            assert_eq!(item.event.position, at(1));
            assert!(lanes.put_back().is_none());
        }
        let item = lanes.any().expect("the small one");
        lanes.settle(item.number);
        assert_eq!((lanes.settled(), lanes.bytes), (at(2), 0));
    }

    #[test]
    fn too_much_at_once_is_not_taken() {
        let mut lanes = Lanes::after(at(0));
        for commit in 1..=MOST_ITEMS as u64 {
            assert!(lanes.has_room());
            lanes.take(deleted("a", commit));
        }
        assert!(!lanes.has_room());
        let item = lanes.any().expect("the first");
        lanes.settle(item.number);
        assert!(lanes.has_room());
    }
}
