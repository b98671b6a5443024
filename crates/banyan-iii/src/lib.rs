//! Banyan on an iii engine.
//!
//! [`wire`] is what an engine and its workers say to each other.

pub mod wire;
