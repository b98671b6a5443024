//! A whole store on a disk in memory that crashes, fails and fills up.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on says so")]

mod crashes;
mod failing_flush;
mod fork_chain;
mod full_disk;
mod kill_then_cut;

/// As the command has; opening stores again and again is mostly memory that comes and goes.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
