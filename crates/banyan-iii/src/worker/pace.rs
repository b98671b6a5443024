//! How fast updates of messages are delivered, to all bindings together.
//!
//! A reply that is streamed to a hundred consumers is a hundred calls a token, and whoever streams it shares the machine
//! with them. So updates go out in rounds: everyone is sent one, and then nobody is sent any for a time that grows with how many
//! and how large they were. Between rounds a token costs no more than it does without consumers. Those who had to wait are
//! then sent the newest.
//!
//! Within a round only a few are under way at a time, so that a token that comes then waits for those few and not for all.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// See the module.
pub(super) struct Pace {
    round: Mutex<Round>,
    places: Arc<Semaphore>,
}

/// A place among the few updates that are under way.
pub(super) type Place = OwnedSemaphorePermit;

/// The round in which a binding last sent an update.
#[derive(Default)]
pub(super) struct Turn(u64);

struct Round {
    number: u64,
    sent: u32,
    ends: Instant,
}

/// A round takes so long for each update that is sent in it, and for each byte of it.
const EACH: Duration = Duration::from_millis(1);
const A_BYTE: Duration = Duration::from_nanos(60);
/// So many are sent in a round before it is asked who has had a turn: a few consumers are sent every token.
const AT_ONCE: u32 = 32;
/// So many updates are under way at a time.
const UNDER_WAY: usize = 4;
/// An update that is not answered after this time gives its place to others.
pub(super) const KEEPS_PLACE: Duration = Duration::from_millis(5);

impl Default for Pace {
    fn default() -> Self {
        let round = Mutex::new(Round { number: 0, sent: 0, ends: Instant::now() });
        Self { round, places: Arc::new(Semaphore::new(UNDER_WAY)) }
    }
}

impl Pace {
    /// Takes a binding's turn to send an update of a size, if it has one now and there is a place. A place that it has is used.
    pub(super) fn take(&self, turn: &mut Turn, size: usize, place: &mut Option<Place>) -> bool {
        if place.is_none() {
            *place = Arc::clone(&self.places).try_acquire_owned().ok();
        }
        place.is_some() && self.round().take(turn, size, Instant::now())
    }

    /// Waits for a place. Who waits longest is the next to have one.
    pub(super) async fn place(&self) -> Option<Place> {
        Arc::clone(&self.places).acquire_owned().await.ok()
    }

    /// Until when a binding has no turn, unless it has one now.
    pub(super) fn waits_until(&self, turn: &Turn) -> Option<Instant> {
        self.round().waits_until(turn, Instant::now())
    }

    fn round(&self) -> MutexGuard<'_, Round> {
        self.round.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Round {
    fn take(&mut self, turn: &mut Turn, size: usize, now: Instant) -> bool {
        if self.waits_until(turn, now).is_some() {
            return false;
        }
        if now >= self.ends {
            *self = Self { number: self.number + 1, sent: 0, ends: now };
        }
        self.sent += 1;
        self.ends += EACH + A_BYTE * u32::try_from(size).unwrap_or(u32::MAX);
        turn.0 = self.number;
        true
    }

    fn waits_until(&self, turn: &Turn, now: Instant) -> Option<Instant> {
        let has_turn = now >= self.ends || self.sent < AT_ONCE || turn.0 != self.number;
        (!has_turn).then_some(self.ends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin() -> (Round, Instant) {
        let now = Instant::now();
        (Round { number: 0, sent: 0, ends: now }, now)
    }

    #[test]
    fn everyone_is_sent_one_and_waits_until_the_round_is_over() {
        let (mut round, now) = begin();
        let mut turns: Vec<Turn> = (0..100).map(|_| Turn::default()).collect();
        assert!(turns.iter_mut().all(|turn| round.take(turn, 0, now)));
        let over = now + EACH * 100;
        assert!(turns.iter().all(|turn| round.waits_until(turn, now) == Some(over)));
        assert!(!round.take(&mut turns[0], 0, over - EACH));
        assert!(turns.iter_mut().all(|turn| round.take(turn, 0, over)));
    }

    #[tokio::test]
    async fn only_a_few_are_under_way_and_who_waits_is_next() {
        let pace = Pace::default();
        let mut places: Vec<Option<Place>> = (0..UNDER_WAY).map(|_| None).collect();
        assert!(places.iter_mut().all(|place| pace.take(&mut Turn::default(), 0, place)));
        assert!(!pace.take(&mut Turn::default(), 0, &mut None));
        let mut waiting = Box::pin(pace.place());
        assert!(futures_util::poll!(&mut waiting).is_pending());
        places.pop();
        // The one that is free by now is for whoever waits.
        assert!(!pace.take(&mut Turn::default(), 0, &mut None));
        let mut place = waiting.await;
        assert!(pace.take(&mut Turn::default(), 0, &mut place));
    }

    #[test]
    fn large_updates_are_waited_for_longer() {
        let (mut round, now) = begin();
        let mut turns: Vec<Turn> = (0..AT_ONCE).map(|_| Turn::default()).collect();
        assert!(turns.iter_mut().all(|turn| round.take(turn, 1 << 20, now)));
        assert_eq!(round.waits_until(&turns[0], now), Some(now + (EACH + A_BYTE * (1 << 20)) * AT_ONCE));
    }

    #[test]
    fn one_that_comes_late_has_its_turn_all_the_same() {
        let (mut round, now) = begin();
        let mut turns: Vec<Turn> = (0..100).map(|_| Turn::default()).collect();
        for turn in &mut turns[1..] {
            round.take(turn, 0, now);
        }
        assert!(round.take(&mut turns[0], 0, now + EACH * 50));
    }

    #[test]
    fn a_few_consumers_are_sent_every_token_of_a_fast_reply() {
        let (mut round, now) = begin();
        let mut turn = Turn::default();
        for token in 0..1000 {
            assert!(round.take(&mut turn, 0, now + EACH * token), "{token}");
        }
        let burst = now + EACH * 2000;
        assert!((0..AT_ONCE).all(|_| round.take(&mut turn, 0, burst)));
        assert!(!round.take(&mut turn, 0, burst));
    }
}
