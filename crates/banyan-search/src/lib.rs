//! The words of sessions, found again: a full-text index of entries, which can be thrown away and made anew.
//!
//! It knows nothing of logs and files of sessions: it is told what entries say, and asked. See [`SearchIndex`].

mod background;
mod document;
mod error;
mod files;
mod find;
mod index;
mod query;
mod rank;
mod schema;
mod snippet;
mod tokens;
pub mod words;
mod writer;

pub use document::{Document, SessionNo, SessionRecord, Standing};
pub use error::SearchError;
pub use find::{Ask, Branches, Hit};
pub use index::{Opened, Progress, SearchIndex};
pub use query::{Clause, Ending, Query};
pub use snippet::{Piece, PieceKind};
pub use writer::Writer;
