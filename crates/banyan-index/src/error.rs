//! What can go wrong with the catalogue, and what its owner can do about it.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// Why the catalogue could not do what was asked. None of these endangers a session: all it holds can be rebuilt.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The file's content is not what was written; rebuild the catalogue.
    #[error("the catalogue is damaged ({detail}); it must be rebuilt from the session files")]
    Damaged {
        /// What was found.
        detail: String,
    },
    /// There is nothing to read from yet, or no longer; rebuild the catalogue.
    #[error("the catalogue is not built; rebuild it from the session files, or wait until that is done")]
    Unbuilt,
    /// The disk has no room; what was noted is kept in memory and written by a later flush.
    #[error("the disk is full, so the catalogue cannot grow; free some space and try again ({detail})")]
    Full {
        /// The database's words.
        detail: String,
    },
    /// Two files were given to one rebuild as the same listed session.
    #[error("session {session_id} was found in two files; only one of them can be listed")]
    Twice {
        /// The session's id.
        session_id: String,
    },
    /// A file of the catalogue could not be read, made, moved or removed.
    #[error("could not {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's answer.
        source: std::io::Error,
    },
    /// The database refused for another reason.
    #[error("the catalogue's database failed: {0}")]
    Database(#[source] rusqlite::Error),
}

impl IndexError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }

    pub(crate) fn damaged(detail: impl Into<String>) -> Self {
        Self::Damaged { detail: detail.into() }
    }
}

impl From<rusqlite::Error> for IndexError {
    fn from(error: rusqlite::Error) -> Self {
        match &error {
            rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
                ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Self::damaged(error.to_string()),
                ErrorCode::DiskFull => Self::Full { detail: error.to_string() },
                _ => Self::Database(error),
            },
            // A value of another type or shape than this crate writes.
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..) => Self::damaged(error.to_string()),
            _ => Self::Database(error),
        }
    }
}

impl From<IndexError> for banyan_model::Error {
    fn from(error: IndexError) -> Self {
        let told = Self::storage(error.to_string());
        if matches!(error, IndexError::Full { .. }) { told.retryable() } else { told }
    }
}

impl From<rusqlite::types::FromSqlError> for IndexError {
    fn from(error: rusqlite::types::FromSqlError) -> Self {
        Self::damaged(error.to_string())
    }
}
