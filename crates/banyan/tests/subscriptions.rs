//! Subscriptions: history and live are one stream, and a subscriber comes back by position.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

mod subscriptions {
    mod live;
    mod resumed;
    mod snapshot;
}
