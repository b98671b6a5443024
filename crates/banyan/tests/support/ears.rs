//! Hearing events.

use banyan::model::{Event, Position};
use banyan::{Banyan, Delivery, Start, Subscribe, Subscription, block_on};
use serde_json::{Value, json};

use super::door::{Listener, everything};

/// An event as a subscriber sees it: its type and its payload.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    pub position: Position,
    pub event_type: String,
    pub payload: Value,
}

impl Heard {
    pub fn of(event: &Event) -> Self {
        Self {
            position: event.position,
            event_type: event.event_type().as_str().to_owned(),
            payload: json!(event.payload),
        }
    }

    /// The event without its place: `{type, payload}`.
    pub fn said(&self) -> (String, Value) {
        (self.event_type.clone(), self.payload.clone())
    }
}

/// Types and payloads, for whole comparison.
pub fn said(heard: &[Heard]) -> Vec<(String, Value)> {
    heard.iter().map(Heard::said).collect()
}

/// The types alone, without `session::`.
pub fn types(heard: &[Heard]) -> Vec<&str> {
    heard.iter().map(|heard| heard.event_type.trim_start_matches("session::")).collect()
}

/// A subscription that is read by a test.
pub struct Ears(pub Subscription);

impl Ears {
    pub fn of(store: &Banyan, request: Subscribe) -> Self {
        Self(store.subscribe(request).expect("a subscription"))
    }

    /// Everything after a position, unfiltered.
    pub fn after(store: &Banyan, position: Position) -> Self {
        Self::of(store, Subscribe { filters: everything(), start: Start::After(position) })
    }

    /// Everything from now on, unfiltered.
    pub fn open(store: &Banyan) -> Self {
        Self::of(store, Subscribe { filters: everything(), start: Start::Now })
    }

    /// Waits for the next delivery; `None` at the end of the stream.
    pub fn next(&mut self) -> Option<Delivery> {
        block_on(self.0.next()).expect("a delivery")
    }

    /// Waits for so many events.
    pub fn take(&mut self, count: usize) -> Vec<Heard> {
        (0..count)
            .map(|at| match self.next() {
                Some(Delivery::Event(event)) => Heard::of(&event),
                other => panic!("event {at} of {count} should follow, not {other:?}"),
            })
            .collect()
    }

    /// All deliveries that are there without waiting.
    pub fn deliveries(&mut self) -> Vec<Delivery> {
        std::iter::from_fn(|| self.0.try_next().expect("a delivery")).collect()
    }
}

impl Listener for Ears {
    fn heard(&mut self) -> Vec<Heard> {
        let mut heard = Vec::new();
        for delivery in self.deliveries() {
            match delivery {
                Delivery::Event(event) => heard.push(Heard::of(&event)),
                other => panic!("only events should be delivered, not {other:?}"),
            }
        }
        heard
    }
}
