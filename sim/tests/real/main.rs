//! The real binary on real file systems: killed, without power, without room, with flushes that fail.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on says so")]

mod flush_error;
mod kill;
mod power_cut;
mod small_disk;
