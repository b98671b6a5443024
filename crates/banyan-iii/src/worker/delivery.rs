//! Delivering a binding's events: each is a call of the bound function, in order, until it is answered or given up.
//!
//! The next event of a session goes out when the one before was answered. A function that takes longer does not hold up
//! those after it for more than [`IN_ORDER`]; one that never answers costs its own binding that much, and nobody else anything.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use banyan::model::{Event, Position, SessionId};
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::watch;
use tokio::time::Instant;

use super::lanes::{Item, Lanes, Next, entry, of_one_message, size};
use super::pace::{KEEPS_PLACE, Pace, Place, Turn};
use super::source::Source;
use crate::link::{CallFailed, Connection, Invocation};

/// Who is called, and how.
#[derive(PartialEq, Eq)]
pub(super) struct Consumer {
    pub(super) id: String,
    pub(super) function_id: String,
    /// JSON that goes along with every call.
    pub(super) metadata: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) form: Form,
}

/// What a consumer is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The event's payload.
    Payload,
    /// The payload with its type and the session's metadata: what other instances need to tell it on.
    Envelope,
}

/// Whether a binding can deliver, and how often that was said.
#[derive(Clone)]
pub(super) struct Standing {
    pub(super) mode: Mode,
    /// Who comes back at once may never be seen to have been away, and what was under way is lost all the same.
    pub(super) epoch: u64,
}

/// Whether a binding can deliver.
#[derive(Clone)]
pub(super) enum Mode {
    /// Over this connection.
    Active(Arc<Connection>),
    /// Its consumer or the engine is away, and may come back.
    Paused,
}

/// How far a binding has come, for whoever wants to know.
pub(super) struct Progress(Mutex<Position>);

impl Progress {
    pub(super) fn at(position: Position) -> Self {
        Self(Mutex::new(position))
    }

    pub(super) fn get(&self) -> Position {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, position: Position) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = position;
    }
}

/// How long the next event of a session waits for an answer to the one before.
const IN_ORDER: Duration = Duration::from_millis(100);
/// How long an event without an answer counts as not delivered: it is sent again if the connection is lost within that time.
const UNSURE: Duration = Duration::from_secs(5);
/// How long a binding that waits for its turn leaves events in its subscription, which holds only so many.
const LISTENS: Duration = Duration::from_millis(100);
/// How long a binding is kept for a consumer that is away.
pub(super) const AWAY: Duration = Duration::from_secs(600);

/// What an engine, or the bus in this crate, says when a call does not get to its function.
const NOT_PASSED_ON: [&str; 5] =
    ["function_not_found", "invocation_stopped", "invocation_error", "channel_send_failed", "worker_busy"];

type UnderWay = FuturesUnordered<BoxFuture<'static, Outcome>>;

/// What came of a call.
enum Outcome {
    /// The function answered; whether with an error is its own matter.
    Answered(Item),
    /// It takes longer than others should wait.
    Slow(Item, Invocation),
    /// The call did not get there.
    Failed(Item),
    /// Nothing was heard for long enough.
    GivenUp(u64),
}

/// Delivers until the binding is gone for good.
pub(super) async fn deliver(
    consumer: Arc<Consumer>,
    mut source: Source,
    begin: Position,
    mut standing: watch::Receiver<Standing>,
    progress: Arc<Progress>,
    pace: Arc<Pace>,
) {
    let mut lanes = Lanes::after(begin);
    let mut under_way: UnderWay = UnderWay::new();
    let mut turn = Turn::default();
    let mut place: Option<Place> = None;
    let mut epoch = standing.borrow().epoch;
    loop {
        progress.set(lanes.settled());
        let now = standing.borrow_and_update().clone();
        if now.epoch != epoch {
            epoch = now.epoch;
            put_back(&consumer, &mut lanes, &mut under_way);
        }
        let sent = match now.mode {
            Mode::Active(connection) => {
                let may_update = |size: usize, place: &mut Option<Place>| pace.take(&mut turn, size, place);
                send(&consumer, &connection, &mut lanes, &mut under_way, &mut place, may_update).await
            }
            Mode::Paused => Sent::Lost,
        };
        // Nobody waits for somebody who does not send.
        let had_place = place.take().is_some();
        if sent == Sent::Lost {
            put_back(&consumer, &mut lanes, &mut under_way);
            source.rest();
            match tokio::time::timeout(AWAY, standing.changed()).await {
                Ok(Ok(())) => continue,
                Ok(Err(_)) => return,
                Err(_) => {
                    tracing::info!(binding = %consumer.id, "a consumer has been away for long, and is forgotten");
                    return;
                }
            }
        }
        let taken = lanes.taken();
        let waits = pace.waits_until(&turn).filter(|_| sent == Sent::Some || source.can_wait());
        let lacks_place = sent == Sent::Some && waits.is_none();
        // Its turn came while it was told to wait for one.
        if lacks_place && had_place {
            continue;
        }
        // Whoever waits for a turn or a place and hears of nothing else is not woken by each token.
        let listens = lanes.has_room() && !((waits.is_some() || lacks_place) && source.can_wait());
        tokio::select! {
            changed = standing.changed() => if changed.is_err() { return },
            Some(outcome) = under_way.next() => settle(&consumer, &mut lanes, &mut under_way, outcome),
            event = source.next(taken), if listens => lanes.take(event),
            () = until(waits), if waits.is_some() => if source.can_wait() { catch_up(&mut source, &mut lanes) },
            free = pace.place(), if lacks_place => {
                place = free;
                if source.can_wait() {
                    catch_up(&mut source, &mut lanes);
                }
            }
        }
    }
}

/// Nothing is under way any more, and has to be sent again.
fn put_back(consumer: &Consumer, lanes: &mut Lanes, under_way: &mut UnderWay) {
    under_way.clear();
    if let Some(item) = lanes.put_back() {
        let (session, bytes) = (item.event.session_id(), size(&item.event));
        tracing::error!(
            binding = %consumer.id, %session, entry = ?entry(&item.event), bytes,
            "the connection was lost each time that this event was sent, so it is not sent again"
        );
    }
}

/// Waits for a turn, and no longer than what happens meanwhile can be kept for.
async fn until(turn: Option<Instant>) {
    let latest = Instant::now() + LISTENS;
    tokio::time::sleep_until(turn.map_or(latest, |turn| turn.min(latest))).await;
}

/// Takes what happened while a turn was waited for. Of the updates of a message that follow each other the newest stays.
fn catch_up(source: &mut Source, lanes: &mut Lanes) {
    lanes.keep_the_newest();
    let mut held: Option<Arc<Event>> = None;
    while lanes.has_room() {
        let taken = held.as_ref().map_or(lanes.taken(), |held| lanes.taken().max(held.position));
        let Some(event) = source.next(taken).now_or_never() else { break };
        if let Some(before) = held.replace(Arc::clone(&event))
            && !of_one_message(&before, &event)
        {
            lanes.take(before);
        }
    }
    if let Some(event) = held {
        lanes.take(event);
    }
}

/// What was sent of what is to be sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sent {
    All,
    /// Updates have to wait for a moment.
    Some,
    /// The connection is lost.
    Lost,
}

/// Sends what need not wait.
async fn send(
    consumer: &Consumer,
    connection: &Arc<Connection>,
    lanes: &mut Lanes,
    under_way: &mut UnderWay,
    place: &mut Option<Place>,
    mut may_update: impl FnMut(usize, &mut Option<Place>) -> bool,
) -> Sent {
    loop {
        let item = match lanes.next(|size| may_update(size, place)) {
            Next::Item(item) => item,
            Next::Later => return Sent::Some,
            Next::Nothing => return Sent::All,
        };
        let envelope;
        let data = match consumer.form {
            Form::Payload => item.event.json(),
            Form::Envelope => {
                envelope = item.event.envelope();
                &envelope
            }
        };
        let (metadata, namespace) = (consumer.metadata.as_deref(), consumer.namespace.as_deref());
        match connection.invoke(&consumer.function_id, data, metadata, namespace).await {
            Ok(invocation) => under_way.push(Box::pin(in_order(item, invocation, place.take()))),
            // No consumer can be sent it. What follows can.
            Err(CallFailed::TooLarge { bytes }) => {
                let session = item.event.session_id();
                tracing::error!(
                    binding = %consumer.id, %session, entry = ?entry(&item.event), bytes,
                    "an event is larger than the bus carries, and is not sent"
                );
                lanes.settle(item.number);
                lanes.free(session);
            }
            Err(_) => return Sent::Lost,
        }
    }
}

async fn in_order(item: Item, mut invocation: Invocation, place: Option<Place>) -> Outcome {
    if let Some(place) = place {
        let answer = tokio::time::timeout(KEEPS_PLACE, &mut invocation).await;
        drop(place);
        if let Ok(answer) = answer {
            return outcome(item, answer.err());
        }
    }
    match tokio::time::timeout(IN_ORDER, &mut invocation).await {
        Ok(answer) => outcome(item, answer.err()),
        Err(_) => Outcome::Slow(item, invocation),
    }
}

async fn late(item: Item, invocation: Invocation) -> Outcome {
    match tokio::time::timeout(UNSURE, invocation).await {
        Ok(answer) => outcome(item, answer.err()),
        Err(_) => Outcome::GivenUp(item.number),
    }
}

async fn unsure(number: u64) -> Outcome {
    tokio::time::sleep(UNSURE).await;
    Outcome::GivenUp(number)
}

fn outcome(item: Item, failed: Option<CallFailed>) -> Outcome {
    match failed {
        None => Outcome::Answered(item),
        Some(CallFailed::Refused(error)) if is_of_the_bus(&error.code) => Outcome::Failed(item),
        // The function ran, and said no.
        Some(CallFailed::Refused(_)) => Outcome::Answered(item),
        Some(_) => Outcome::Failed(item),
    }
}

/// Whether an error is of the bus itself, which could not pass the call on. Any other is the function's own.
fn is_of_the_bus(code: &str) -> bool {
    NOT_PASSED_ON.iter().any(|of_the_bus| code.eq_ignore_ascii_case(of_the_bus))
}

fn settle(consumer: &Consumer, lanes: &mut Lanes, under_way: &mut UnderWay, outcome: Outcome) {
    let session = |item: &Item| -> SessionId { item.event.session_id().clone() };
    match outcome {
        Outcome::Answered(item) => {
            lanes.settle(item.number);
            lanes.free(&session(&item));
        }
        Outcome::Slow(item, invocation) => {
            lanes.free(&session(&item));
            under_way.push(Box::pin(late(item, invocation)));
        }
        // Its consumer may just have gone, and come back.
        Outcome::Failed(item) => {
            tracing::debug!(binding = %consumer.id, function = %consumer.function_id, "an event was not taken");
            lanes.free(&session(&item));
            under_way.push(Box::pin(unsure(item.number)));
        }
        Outcome::GivenUp(number) => lanes.settle(number),
    }
}
