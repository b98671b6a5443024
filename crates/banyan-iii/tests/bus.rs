//! Banyan on a bus, as those on it see it: real SDK clients, and either Banyan's own bus or, when `III_ENGINE` names its
//! binary, a real iii engine.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "what the scenarios share is written as for others")]

#[path = "../../banyan-model/tests/contract/mod.rs"]
mod contract;
#[path = "bus/support/mod.rs"]
mod support;

#[path = "bus/bridges.rs"]
mod bridges;
#[path = "bus/chaos.rs"]
mod chaos;
#[path = "bus/reactivity.rs"]
mod reactivity;
#[path = "bus/reload.rs"]
mod reload;
#[path = "bus/surface.rs"]
mod surface;
