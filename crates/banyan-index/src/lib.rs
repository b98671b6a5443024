//! What Banyan can rebuild: the catalogue behind list.
//!
//! The session files are the truth. The [`Catalogue`] remembers of each what a list of sessions needs, in an order that a
//! page can be read from directly, so that a page costs the same among a thousand sessions and among a million.
//! Delete its file, and it is rebuilt.
//!
//! It decodes no cursor and reads no session file; its owner does both.

mod blobs;
mod catalogue;
mod decode;
mod error;
mod list;
mod listing;
mod open;
mod overlay;
mod rebuild;
mod row;
mod schema;
mod seal;
mod store;
mod tags;
mod walk;
mod write;

pub use catalogue::Catalogue;
pub use error::IndexError;
pub use list::{ListPage, ListQuery, sort_key};
pub use listing::Listing;
pub use open::{Opened, RebuildReason};
pub use rebuild::Sink;
pub use row::{FileKey, MetadataTrust, Row, SeenFile, SessionFile, Standing};
