//! How often functions are called, and so how their schemas are told to the engine.
//!
//! Engines copy a function's schemas with every call, each object and each word of them, so whoever calls it pays for how they
//! are told. While a function is called often, each is one piece of text.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use super::offers::Told;
use crate::link::{Connection, Link};

/// How often it is looked.
const EVERY: Duration = Duration::from_millis(250);
/// So many calls between two looks are often: 500 a second. Below that, copies take less than a tenth of a core, and a reply
/// that is streamed token by token does not get there.
const OFTEN: u32 = 125;
/// After so many looks without as many, a function is told plainly again: ten seconds.
const CALM: u32 = 40;

/// Counts calls.
pub(super) struct Demand(HashMap<&'static str, AtomicU32>);

impl Demand {
    pub(super) fn new() -> Self {
        let functions = banyan::functions().iter().chain(banyan::store_functions());
        Self(functions.map(|function| (function.id, AtomicU32::new(0))).collect())
    }

    /// A function was called; ids that nobody has are none.
    pub(super) fn called(&self, function_id: &str) {
        if let Some(calls) = self.0.get(function_id) {
            calls.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How often each was called since this was asked last.
    fn take(&self) -> impl Iterator<Item = (&'static str, u32)> {
        self.0.iter().map(|(id, calls)| (*id, calls.swap(0, Ordering::Relaxed)))
    }

    /// Keeps the engine told, for as long as it is polled.
    pub(super) async fn follow(&self, link: &Link) {
        let mut looks = tokio::time::interval(EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut told: Weak<Connection> = Weak::new();
        let mut busy = Busy::default();
        loop {
            looks.tick().await;
            let Some(connection) = link.connection() else { continue };
            if !Weak::ptr_eq(&told, &Arc::downgrade(&connection)) {
                // A connection begins with everything told plainly.
                told = Arc::downgrade(&connection);
                busy = Busy::default();
            }
            for (id, how) in busy.look(self.take()) {
                if let Some(frame) = super::offers::function(id, how) {
                    connection.say(frame).await;
                }
            }
        }
    }
}

/// The functions that are called often, with how many looks they have been calm for.
#[derive(Default)]
struct Busy(HashMap<&'static str, u32>);

impl Busy {
    /// What has to be told anew, now that each was called so often.
    fn look(&mut self, calls: impl Iterator<Item = (&'static str, u32)>) -> Vec<(&'static str, Told)> {
        let mut changed = Vec::new();
        for (id, calls) in calls {
            if calls >= OFTEN {
                if self.0.insert(id, 0).is_none() {
                    changed.push((id, Told::AsText));
                }
            } else if let Some(calm) = self.0.get_mut(id) {
                *calm += 1;
                if *calm >= CALM {
                    self.0.remove(id);
                    changed.push((id, Told::Plainly));
                }
            }
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_told_as_text_while_it_is_called_often() {
        let mut busy = Busy::default();
        let mut look = |calls| busy.look([("session::append", calls)].into_iter());
        assert_eq!(look(OFTEN - 1), []);
        assert_eq!(look(OFTEN), [("session::append", Told::AsText)]);
        assert_eq!(look(9 * OFTEN), []);
        for _ in 1..CALM {
            assert_eq!(look(OFTEN - 1), []);
        }
        assert_eq!(look(OFTEN), [], "it was called often again before it was calm for long enough");
        for _ in 1..CALM {
            assert_eq!(look(0), []);
        }
        assert_eq!(look(0), [("session::append", Told::Plainly)]);
        assert_eq!(look(0), []);
    }

    #[test]
    fn functions_are_counted_each_by_itself_and_from_one_look_to_the_next() {
        let demand = Demand::new();
        for id in ["session::append", "session::append", "session::store::look", "session::no-such"] {
            demand.called(id);
        }
        let mut taken: Vec<_> = demand.take().filter(|(_, calls)| *calls > 0).collect();
        taken.sort_unstable();
        assert_eq!(taken, [("session::append", 2), ("session::store::look", 1)]);
        assert!(demand.take().all(|(_, calls)| calls == 0));
    }
}
