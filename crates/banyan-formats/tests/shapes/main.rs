//! Sessions in the shapes of chat front ends: out, in again, and live.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod foreign;
#[path = "../history/given.rs"]
mod given;
mod live;
mod mapping;
mod properties;
mod session;
