//! The tests of the store, in one program: building a program takes longer than most of these.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::module_inception, reason = "the file and the folder of a subject have one name")]

mod support;

#[path = "concurrent.rs"]
mod concurrent;
#[path = "contract.rs"]
mod contract;
#[path = "damage.rs"]
mod damage;
#[path = "erased.rs"]
mod erased;
#[path = "erasure.rs"]
mod erasure;
#[path = "formats.rs"]
mod formats;
#[path = "full_disk.rs"]
mod full_disk;
#[path = "isolation.rs"]
mod isolation;
#[path = "model.rs"]
mod model;
#[path = "newer.rs"]
mod newer;
#[path = "path.rs"]
mod path;
#[path = "restart.rs"]
mod restart;
#[path = "search.rs"]
mod search;
#[path = "session_manager.rs"]
mod session_manager;
#[path = "smoke.rs"]
mod smoke;
#[path = "store_protocol.rs"]
mod store_protocol;
#[path = "subscriptions.rs"]
mod subscriptions;
