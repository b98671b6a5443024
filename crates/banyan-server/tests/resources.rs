//! The resource API, one scenario an address: what it answers, and what it refuses.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "support/client.rs"]
mod client;
#[path = "support/server.rs"]
mod server;

mod resources {
    mod addresses;
    mod attachments;
    mod branches;
    mod documents;
    mod messages;
    mod portable;
    mod search;
    mod sessions;
}
