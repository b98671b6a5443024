//! How often a key may ask.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, PoisonError, RwLock};

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

use crate::keys::Key;
use crate::problem::Problem;

/// Counts each key's requests. Those without a key, while there is none, share one count.
pub(crate) struct Rates {
    usual: Option<u32>,
    clock: DefaultClock,
    by_key: RwLock<HashMap<String, Rate>>,
}

#[derive(Clone)]
struct Rate {
    a_second: u32,
    limiter: Arc<DefaultDirectRateLimiter>,
}

impl Rates {
    /// `usual` is the limit of keys that have none of their own.
    pub(crate) fn new(usual: Option<u32>) -> Self {
        Self { usual, clock: DefaultClock::default(), by_key: RwLock::default() }
    }

    /// Counts a request, or says when the next one may come.
    pub(crate) fn check(&self, key: Option<&Key>) -> Result<(), Problem> {
        let Some(a_second) = key.and_then(|key| key.requests_per_second).or(self.usual) else { return Ok(()) };
        let rate = self.rate(key.map_or("", |key| &key.id), a_second);
        rate.check().map_err(|early| {
            let wait = early.wait_time_from(self.clock.now());
            let seconds = (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1);
            Problem::rate_limited(format!("this key may ask {a_second} times a second")).retry_after(seconds)
        })
    }

    fn rate(&self, id: &str, a_second: u32) -> Arc<DefaultDirectRateLimiter> {
        let known = self.by_key.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        if let Some(rate) = known.filter(|rate| rate.a_second == a_second) {
            return rate.limiter;
        }
        let mut by_key = self.by_key.write().unwrap_or_else(PoisonError::into_inner);
        // Keys that were removed are forgotten when many have gathered.
        if by_key.len() >= MANY {
            by_key.clear();
        }
        let rate = by_key.entry(id.to_owned()).or_insert_with(|| Rate::new(a_second));
        if rate.a_second != a_second {
            *rate = Rate::new(a_second);
        }
        Arc::clone(&rate.limiter)
    }
}

const MANY: usize = 100_000;

impl Rate {
    fn new(a_second: u32) -> Self {
        let quota = Quota::per_second(NonZeroU32::new(a_second).unwrap_or(NonZeroU32::MIN));
        Self { a_second, limiter: Arc::new(RateLimiter::direct(quota)) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
mod tests {
    use hyper::StatusCode;

    use super::*;

    #[test]
    fn without_a_limit_nothing_is_counted() {
        let rates = Rates::new(None);
        for _ in 0..1_000 {
            rates.check(None).unwrap();
        }
        assert!(rates.by_key.read().unwrap().is_empty());
    }

    #[test]
    fn a_second_is_worth_as_many_requests_as_the_limit_and_no_more() {
        let rates = Rates::new(Some(3));
        // However slow this machine is, refusals come while fewer than three a second are given back.
        let refused = (0..1_000).filter_map(|_| rates.check(None).err()).next().unwrap();
        assert_eq!((refused.status, refused.code), (StatusCode::TOO_MANY_REQUESTS, "rate/limited"));
    }
}
