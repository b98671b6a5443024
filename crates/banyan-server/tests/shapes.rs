//! Sessions in the shapes of chat front ends, over HTTP: what the server says of itself, and what those front ends' own packages
//! say of it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "what is shared with other tests is used in part")]

#[path = "history/front_end.rs"]
mod front_end;
#[path = "events/support.rs"]
mod support;

mod shapes {
    mod events;
    mod judges;
    mod messages;
    mod posting;
    mod sample;
}
