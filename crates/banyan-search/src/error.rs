//! What can go wrong with the index.

use std::path::PathBuf;

/// What can go wrong with the index. Nothing of it is lost for good: the index is made of the session files.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The index cannot be read as it is, and must be made anew.
    #[error("the search index is damaged: {0}")]
    Damaged(String),
    /// There is no room for what is to be written. What is there stays as it is.
    #[error("there is no room for the search index: {0}")]
    Full(String),
    /// A file could not be read or written.
    #[error("{doing} {}: {cause}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
}

impl SearchError {
    pub(crate) fn io(doing: &'static str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Io { doing, path, cause }
    }
}

impl From<tantivy::TantivyError> for SearchError {
    fn from(error: tantivy::TantivyError) -> Self {
        Self::Damaged(error.to_string())
    }
}
