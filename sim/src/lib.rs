//! Crashes, power cuts and full disks, simulated and real.
//!
//! A [`model`] says what a store should hold after each acknowledged call. A workload makes calls, something goes
//! wrong, the store is opened again, and what it holds must be what the model says. One call may have been
//! under way: it may be there whole or not at all.
//!
//! [`driver`] works on a disk in memory that can be crashed at any operation, [`fleet`] on the real binary.

// Only tests use this crate, and a panic is how a test says no.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod binary;
pub mod check;
pub mod dice;
pub mod driver;
pub mod events;
pub mod files;
pub mod fleet;
pub mod frail;
pub mod loop_fs;
pub mod model;
pub mod observe;
pub mod predict;
pub mod reopen;
pub mod seeds;
pub mod workload;
