//! The catalogue seen from outside, one subject a file.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod bookkeeping;
mod concurrency;
mod files;
mod list;
mod listing;
mod model;
mod support;
