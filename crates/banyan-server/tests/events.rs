//! Live streams over real sockets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may fail loudly")]

#[path = "events/asking.rs"]
mod asking;
#[path = "events/deltas.rs"]
mod deltas;
#[path = "events/ending.rs"]
mod ending;
#[path = "events/resuming.rs"]
mod resuming;
#[path = "events/slow.rs"]
mod slow;
#[path = "events/snapshots.rs"]
mod snapshots;
#[path = "events/support.rs"]
mod support;
#[path = "events/websocket.rs"]
mod websocket;
