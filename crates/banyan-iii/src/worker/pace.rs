//! How fast updates of messages are delivered, to all bindings together.
//!
//! A reply that is streamed to a hundred consumers is a hundred calls a token, and whoever streams it shares the machine
//! with them. Only so many go out a second; a consumer that has to wait is then sent the newest.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

/// See the module.
pub(super) struct Pace(DefaultDirectRateLimiter);

/// So many updates a second, and so many at once after a while without any.
const A_SECOND: NonZeroU32 = NonZeroU32::new(1000).unwrap();
const AT_ONCE: NonZeroU32 = NonZeroU32::new(32).unwrap();

impl Default for Pace {
    fn default() -> Self {
        Self(RateLimiter::direct(Quota::per_second(A_SECOND).allow_burst(AT_ONCE)))
    }
}

impl Pace {
    /// Whether another update may go out now.
    pub(super) fn may_update(&self) -> bool {
        self.0.check().is_ok()
    }

    /// Waits for about as long as it takes until more may. Who waits does not take anybody's place.
    pub(super) async fn wait(&self) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
