//! Histories, both ways: real ones, the defects of others, and what holds for all of them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of a test fail it by panicking"
)]

mod defects;
mod dialects;
mod given;
mod identity;
mod live;
mod normal;
mod properties;
mod samples;
mod store;
