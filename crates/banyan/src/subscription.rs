//! Subscriptions: history and live in one stream, resumable by position.

use std::collections::VecDeque;
use std::sync::Arc;

use banyan_core::filter;
use banyan_log::{Replay, SessionLog};
use banyan_model::{CommitNo, Error, Event, EventFilter, Position, SessionId};

use crate::Banyan;
use crate::access::Access;
use crate::hub::{FOREIGN, Seat, Taken};
use crate::replay::{Backlog, GrowthDetail, More};
use crate::snapshot::Snapshot;
use crate::store::Store;

/// What a subscriber asks for.
#[derive(Clone, Debug)]
pub struct Subscribe {
    /// An event is delivered, once, when any of these matches it.
    pub filters: Vec<EventFilter>,
    /// From where on.
    pub start: Start,
}

/// From where on a subscriber wants events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// From now on.
    Now,
    /// From right after a position that was seen; [`Position::BEGINNING`] is the beginning of what is kept.
    After(Position),
    /// One session as it is, then what follows, with no gap between.
    Snapshot(SessionId),
}

/// What a subscription delivers.
#[derive(Clone, Debug)]
pub enum Delivery {
    /// Part of a session as it is. It has no position of its own.
    Snapshot(Box<Event>),
    /// The snapshot is complete; a subscriber that comes back with this position continues here.
    SnapshotEnd(Position),
    /// Something happened.
    Event(Arc<Event>),
    /// The subscriber was too far behind, and this is the last delivery. It resumes from the last position that it saw.
    Lagged,
    /// The order is no longer kept as far back as the position asked for; what was missed must be read again.
    Resync,
}

/// A stream of events. Dropping it ends it.
pub struct Subscription {
    store: Arc<Store>,
    access: Arc<Access>,
    seat: Seat,
    filters: Arc<[EventFilter]>,
    ready: VecDeque<Delivery>,
    snapshot: Option<Box<Snapshot>>,
    backlog: Option<Backlog>,
    detail: GrowthDetail,
    /// What is not after this was delivered already.
    seen: Position,
    over: bool,
}

/// An index that stands for all events of a commit.
pub(crate) const WHOLE: u32 = 0xff_ffff;

impl Banyan {
    /// Subscribes. A position that never existed is refused.
    pub fn subscribe(&self, request: Subscribe) -> Result<Subscription, Error> {
        let store = Arc::clone(&self.store);
        if let Start::After(after) = request.start {
            store.must_have_existed(&self.access, after)?;
        }
        let filters: Arc<[EventFilter]> = self.access.scope.filters(request.filters).into();
        let seat = store.hub.join(Arc::clone(&filters), store.settings.bounds);
        let mut subscription = Subscription {
            store,
            access: Arc::clone(&self.access),
            seat,
            filters,
            ready: VecDeque::new(),
            snapshot: None,
            backlog: None,
            detail: GrowthDetail::default(),
            seen: Position::BEGINNING,
            over: false,
        };
        match request.start {
            Start::Now => {}
            Start::After(after) => subscription.begin_after(&self.access, after)?,
            Start::Snapshot(session) => subscription.begin_with(&self.access, &session)?,
        }
        Ok(subscription)
    }
}

impl Subscription {
    /// The next delivery; `None` when the stream is over.
    pub async fn next(&mut self) -> Result<Option<Delivery>, Error> {
        loop {
            if let Some(delivery) = self.next_of_past()? {
                return Ok(Some(delivery));
            }
            if self.over {
                return Ok(None);
            }
            match self.seat.queue.next().await {
                Some(event) => {
                    if let Some(delivery) = self.take(event) {
                        return Ok(Some(delivery));
                    }
                }
                None => return Ok(self.end()),
            }
        }
    }

    /// What can be delivered without waiting.
    pub fn try_next(&mut self) -> Result<Option<Delivery>, Error> {
        loop {
            if let Some(delivery) = self.next_of_past()? {
                return Ok(Some(delivery));
            }
            if self.over {
                return Ok(None);
            }
            match self.seat.queue.take() {
                Taken::Event(event) => {
                    if let Some(delivery) = self.take(event) {
                        return Ok(Some(delivery));
                    }
                }
                Taken::Empty => return Ok(None),
                Taken::Ended => return Ok(self.end()),
            }
        }
    }

    /// From here on additions to one message that follow each other in the past are delivered as at most two events: the first,
    /// and one that joins the rest, see [`AddedText::after`](banyan_model::AddedText::after). For subscribers that use what was
    /// added, or only the newest revision. Without this each revision is delivered, unless that is much more than is read.
    #[must_use]
    pub fn with_joined_additions(mut self) -> Self {
        self.detail = GrowthDetail::Joined;
        self
    }

    /// Whether what comes next is read from disk, and so may take a moment.
    pub fn has_past(&self) -> bool {
        self.snapshot.is_some() || self.backlog.is_some() || !self.ready.is_empty()
    }

    /// Where the order stood when the subscription began. Who reads everything again after [`Delivery::Resync`] continues here.
    pub fn began_at(&self) -> Position {
        Position::new(self.seat.since, WHOLE)
    }

    fn take(&mut self, event: Arc<Event>) -> Option<Delivery> {
        // What was told for another instance is in no backlog, so it was not delivered yet, wherever it stands.
        let is_new = event.position > self.seen || FOREIGN.contains(&event.position.index);
        is_new.then(|| Delivery::Event(self.access.shown(event)))
    }

    fn end(&mut self) -> Option<Delivery> {
        self.over = true;
        self.seat.queue.lagged().then_some(Delivery::Lagged)
    }

    fn next_of_past(&mut self) -> Result<Option<Delivery>, Error> {
        loop {
            if let Some(delivery) = self.ready.pop_front() {
                return Ok(Some(delivery));
            }
            if let Some(snapshot) = &mut self.snapshot {
                match self.store.more_of_snapshot(snapshot)? {
                    Some(parts) => {
                        let asked = |event: &Event| self.filters.iter().any(|it| filter::event_matches(it, event));
                        let parts = parts.into_iter().filter(asked);
                        self.ready.extend(parts.map(|event| Delivery::Snapshot(Box::new(event))));
                    }
                    None => {
                        self.snapshot = None;
                        self.ready.push_back(Delivery::SnapshotEnd(self.seen));
                    }
                }
                continue;
            }
            let Some(backlog) = &mut self.backlog else { return Ok(None) };
            match self.store.tell_more(&self.access, backlog, &self.filters, self.detail)? {
                More::Some(events) => {
                    let since = Position::new(self.seat.since, WHOLE);
                    let new =
                        events.into_iter().filter(|event| event.position > self.seen && event.position <= since);
                    let access = &self.access;
                    self.ready.extend(new.map(|event| Delivery::Event(access.shown(Arc::new(event)))));
                }
                More::Done => {
                    self.backlog = None;
                    self.seen = Position::new(self.seat.since, WHOLE);
                }
                More::Forgotten => self.give_up(),
            }
        }
    }

    fn begin_after(&mut self, access: &Access, after: Position) -> Result<(), Error> {
        self.seen = after;
        let from = CommitNo(after.commit.0.saturating_sub(u64::from(after.index != WHOLE)));
        let upto = self.seat.since;
        let reaches = self.store.journal_reaches(from, upto)?;
        self.backlog = match the_one_session(&self.filters) {
            // A session's own stream can be told whole from its file, however little the journal has.
            Some(session) if !reaches => self.store.session_backlog(access, &session, from, upto)?,
            _ => None,
        };
        // Of the directory that was backed up, or from before files changed in another way than by commits.
        let is_foreign = from < self.store.log.history_floor() && after != Position::BEGINNING;
        if is_foreign || (self.backlog.is_none() && !reaches && after != Position::BEGINNING) {
            self.give_up();
        } else if self.backlog.is_none() {
            self.backlog = Some(Backlog::journal(from, upto));
        }
        Ok(())
    }

    /// Tells the subscriber to read again, and ends.
    fn give_up(&mut self) {
        self.backlog = None;
        self.over = true;
        self.seat.queue.end();
        self.ready.push_back(Delivery::Resync);
    }

    fn begin_with(&mut self, access: &Arc<Access>, session: &SessionId) -> Result<(), Error> {
        let snapshot = self.store.snapshot(access, session)?.ok_or_else(|| Error::not_found(session))?;
        self.seen = Position::new(snapshot.commit, WHOLE);
        self.snapshot = Some(Box::new(snapshot));
        Ok(())
    }
}

impl Store {
    /// Refuses a position that was never given out.
    fn must_have_existed(&self, access: &Access, position: Position) -> Result<(), Error> {
        let refuse = || Error::invalid_cursor(format!("position {position} was never given out by this store"));
        if position.commit > self.log.head() {
            return Err(refuse());
        }
        if position == Position::BEGINNING || position.index >= FOREIGN.start {
            return Ok(());
        }
        if position.commit.0 == 0 {
            return Err(refuse());
        }
        let told = self.events_in(access, position.commit)?;
        if told.is_some_and(|told| position.index as usize >= told) { Err(refuse()) } else { Ok(()) }
    }

    /// Whether the journal still has what follows a commit.
    fn journal_reaches(&self, after: CommitNo, upto: CommitNo) -> Result<bool, Error> {
        let mut next = None;
        let replayed = self.log.replay(after, upto, &mut |entry| {
            next = Some(entry.commit);
            false
        })?;
        Ok(after == upto || (!matches!(replayed, Replay::Forgotten(_)) && next == Some(after.next())))
    }
}

/// The session that all filters ask for, if they ask for the same one.
fn the_one_session(filters: &[EventFilter]) -> Option<SessionId> {
    let first = filters.first()?.session_id.clone()?;
    filters.iter().all(|filter| filter.session_id.as_ref() == Some(&first)).then_some(first)
}
