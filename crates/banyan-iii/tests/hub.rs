//! The bus, as workers see it that speak its protocol by hand.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may fail loudly")]

#[path = "hub/calls.rs"]
mod calls;
#[path = "hub/configuration.rs"]
mod configuration;
#[path = "hub/deliveries.rs"]
mod deliveries;
#[path = "hub/directory.rs"]
mod directory;
#[path = "hub/joining.rs"]
mod joining;
#[path = "hub/limits.rs"]
mod limits;
#[path = "hub/stopping.rs"]
mod stopping;
#[path = "hub/support.rs"]
mod support;
#[path = "hub/triggers.rs"]
mod triggers;
