//! Session logs and turns: round trips, logs of others, broken ones, and examples to read.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod broken;
mod foreign;
mod given;
mod golden;
mod round_trip;
mod turns;
