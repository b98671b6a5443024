//! Bad input over real sockets. The server answers, closes or limits, and keeps serving others.
//!
//! After each attack the server serves a call, and after all of them its connections and descriptors are free again.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod hostile {
    mod bodies;
    mod budgets;
    mod crowds;
    mod heads;
    mod slow;
}
mod wire;
