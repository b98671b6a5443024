//! Banyan on an iii engine.
//!
//! [`wire`] is what an engine and its workers say to each other, [`link`] a worker's side of that, and [`worker`] the worker
//! `session-manager`. [`bridge`] stores through a main instance elsewhere. [`hub`] is a small bus for when there is no engine.

pub mod bridge;
pub mod hub;
pub mod link;
pub mod wire;
pub mod worker;
