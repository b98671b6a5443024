//! Histories over HTTP: what goes in, what comes out, and what a front end sees while a session goes on.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "what is shared with other tests is used in part")]

#[path = "../../banyan-formats/tests/history/normal.rs"]
mod normal;
#[path = "events/support.rs"]
mod support;

mod history {
    mod branches;
    mod defects;
    mod front_end;
    mod pages;
    mod posting;
    mod samples;
    mod screens;
    mod secrets;
    mod statuses;
    mod streams;
}
