//! The tests of the server, in one program: building a program takes longer than most of these. What needs a process of its
//! own, for its log or its descriptors, is beside this.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "what is shared with other tests is used in part")]

#[path = "support/client.rs"]
mod client;
#[path = "history/front_end.rs"]
mod front_end;
#[path = "support/http_door.rs"]
mod http_door;
#[path = "events/support.rs"]
mod listening;
#[path = "../../banyan-formats/tests/history/normal.rs"]
mod normal;
#[path = "support/outside.rs"]
mod outside;
#[path = "support/server.rs"]
mod server;
#[path = "../../banyan/tests/support/mod.rs"]
mod support;
mod wire;

mod browsers;
#[path = "clients.rs"]
mod clients;
mod config;
#[path = "console.rs"]
mod console;
mod damaged_entries;
mod keys;
mod schemathesis;

/// Live streams over real sockets.
mod events {
    mod asking;
    mod deltas;
    mod ending;
    mod grown;
    mod resuming;
    mod slow;
    mod snapshots;
    mod websocket;
}

/// Histories over HTTP: what goes in, what comes out, and what a front end sees while a session goes on.
mod history {
    mod branches;
    mod defects;
    mod pages;
    mod posting;
    mod samples;
    mod screens;
    mod secrets;
    mod statuses;
    mod streams;
}

/// Tenants over HTTP: every function and every address, with a key whose scope the session is not in.
mod isolation {
    #[path = "../../../banyan/tests/isolation/examples.rs"]
    mod examples;
    mod over_http;
    #[path = "../../../banyan/tests/isolation/tenants.rs"]
    mod tenants;
}

/// Contexts of the Open Context Protocol over HTTP: headers in and out, tenants, hostile values, and the address of
/// its own.
mod ocp {
    mod address;
    mod headers;
    mod hostile;
    mod stage;
    mod tenants;
}

/// The resource API, one scenario an address: what it answers, and what it refuses.
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

/// Sessions in the shapes of chat front ends, over HTTP: what the server says of itself, and what those front ends'
/// own packages say of it.
mod shapes {
    mod events;
    mod judges;
    mod messages;
    mod posting;
    mod sample;
}

// The contract's scenarios, unchanged, over HTTP: calls by POST, events by SSE.

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
