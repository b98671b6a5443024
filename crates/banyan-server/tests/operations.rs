//! What an operator relies on: limits, rates, metrics, logs, spans, certificates, draining.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod operations {
    mod drain;
    mod log;
    mod metrics;
    mod rates;
    mod tls;
    mod traces;
}
mod wire;
