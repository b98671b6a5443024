//! Contexts of the Open Context Protocol: samples of others' libraries, properties, and values that are made to hurt.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod budget;
mod hostile;
mod properties;
mod samples;
mod schema;
mod session;
