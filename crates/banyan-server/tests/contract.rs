//! The contract's scenarios, unchanged, over HTTP: calls by POST, events by SSE.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "support/http_door.rs"]
mod http_door;
#[path = "support/server.rs"]
mod server;
#[path = "../../banyan/tests/support/mod.rs"]
mod support;

/// Makes each scenario a test on a server of its own.
macro_rules! scenarios {
    ($($name:ident)*) => {
        mod over_http {
            $(#[test] fn $name() {
                super::$name(&crate::http_door::HttpDoor::new(crate::server::Server::start()));
            })*
        }
    };
}

#[path = "../../banyan/tests/contract"]
mod contract {
    mod append;
    mod attachments;
    mod beyond;
    mod branching;
    mod errors;
    mod events;
    mod filters;
    mod lifecycle;
    mod list;
    mod messages;
    mod tail;
    mod update;
}
