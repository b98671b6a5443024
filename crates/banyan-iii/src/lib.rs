//! Banyan on an iii engine.
//!
//! [`wire`] is what an engine and its workers say to each other. [`bridge`] stores through another instance.

pub mod bridge;
pub mod wire;
