//! The commands, as people run them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod agents;
mod backups;
mod both;
mod buses;
mod call;
mod changing;
mod common;
mod first_steps;
mod following;
mod full_disk;
mod keys;
mod mcp;
mod opa;
mod portable;
mod private;
mod purge;
mod reading;
mod real_agents;
mod searching;
mod serve;
mod stream;
mod verify;
mod versions;
