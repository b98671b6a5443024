//! Sessions in the forms that others read and write, each in a room of its own.
//!
//! Everything here is computed from entries and made into entries. Nothing is stored, nothing is read from a clock or the
//! network; what is read or written as a stream is the caller's.

pub mod audit;
pub mod batch;
mod body;
pub mod document;
pub mod history;
pub mod ocp;
pub mod opa;
pub mod redact;
pub mod session_log;
pub mod shapes;
pub mod turns;
