//! What a bridge does when the main is slow, gone, wrong or busy, and in which order it asks a session-manager.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, dead_code, reason = "each test program uses a part of what they share")]

#[path = "bridge/doors.rs"]
mod doors;
#[path = "bridge/faulty.rs"]
mod faulty;
#[path = "bridge/mains.rs"]
mod mains;
#[path = "../../banyan/tests/support/mod.rs"]
mod support;

#[path = "bridge/scenarios"]
mod scenarios {
    mod busy;
    mod failing;
    mod published;
}
