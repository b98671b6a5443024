//! The rules of Banyan: decide, apply, events. No I/O, no clock, no randomness.
//!
//! - [`decide`]: what a call writes, or why it is refused.
//! - [`state`]: what a session is after its records, bodies left where they are.
//! - [`event`]: what subscribers are told about a record.
//! - [`record`]: records as lines, and back.
//! - [`page`]: which entries a read answers with.
//!
//! Everything else is a small rule that those share: cursors, filters, names, derived ids, blobs.

pub mod blobs;
pub mod born;
pub mod content;
pub mod cursor;
pub mod decide;
pub mod event;
pub mod filter;
pub mod fork_ids;
mod hex;
pub mod id_key;
pub mod limits;
pub mod names;
pub mod node_kind;
pub mod page;
pub mod record;
mod scan;
pub mod state;
#[cfg(test)]
mod testing;

pub use born::Born;
pub use id_key::IdKey;
pub use limits::Limits;
pub use node_kind::NodeKind;
pub use state::{NodeIx, Place, SessionState};
