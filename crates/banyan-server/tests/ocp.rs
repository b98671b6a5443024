//! Contexts of the Open Context Protocol over HTTP: headers in and out, tenants, hostile values, and the address of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod ocp {
    mod address;
    mod headers;
    mod hostile;
    mod stage;
    mod tenants;
}
mod wire;
