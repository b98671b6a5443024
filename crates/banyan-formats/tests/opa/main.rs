//! OPA archives, both ways: real ones, hostile ones, what holds for all of them, and what others say of ours.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of a test fail it by panicking"
)]

mod defects;
mod given;
mod hostile;
mod mapping;
mod peers;
mod properties;
mod samples;
mod signatures;
mod streams;
mod writing;
