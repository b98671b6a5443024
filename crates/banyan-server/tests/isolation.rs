//! Tenants over HTTP: every function and every address, with a key whose scope the session is not in.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "what is shared with the library's tests is used in part")]

#[path = "../../banyan/tests/support/mod.rs"]
mod support;
mod wire;

mod isolation {
    #[path = "../../../banyan/tests/isolation/examples.rs"]
    mod examples;
    mod over_http;
    #[path = "../../../banyan/tests/isolation/tenants.rs"]
    mod tenants;
}
