//! Banyan on an iii engine.
//!
//! [`wire`] is what an engine and its workers say to each other. [`hub`] is a small bus for when there is no engine.

pub mod hub;
pub mod wire;
