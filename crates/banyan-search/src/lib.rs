//! The words of sessions, found again: a full-text index of entries, which can be thrown away and made anew.
//!
//! It knows nothing of logs and files of sessions: it is told what entries say, and asked. See [`SearchIndex`].

mod background;
mod document;
mod error;
mod files;
mod find;
mod index;
mod line;
mod merging;
mod query;
mod rank;
mod room;
mod schema;
mod snippet;
mod tokens;
pub mod words;
mod writer;

pub use document::{Base, Document, Labels, SessionNo, SessionRecord, Standing, labels_of};
pub use error::SearchError;
pub use find::{Answer, Ask, Branches, Hit, Ranking};
pub use index::{Opened, Progress, SearchIndex};
pub use query::{Clause, Ending, Query};
pub use room::Room;
pub use snippet::{Piece, PieceKind};
pub use writer::{Expunged, Writer};
