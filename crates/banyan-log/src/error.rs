//! Why the log refused.

use std::io;

use banyan_model::{ErrorCode, Seq};

/// Why the log could not do what was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LogError {
    /// No room on the disk. Nothing was written; it works again when there is room.
    #[error("the disk is full, so nothing was written; free some space and try again ({0})")]
    Full(String),
    /// An earlier write or flush failed, so what is on the disk is uncertain until the log is opened again.
    #[error("writing stopped after a failed flush; restart to recover from the log ({0})")]
    Poisoned(String),
    /// The log was closed.
    #[error("the store is shutting down; nothing was written")]
    Closed,
    /// A session's file is damaged, so nothing is written to it. Reading goes on as far as it can.
    #[error("{path} {reason}, so the session is read-only; {advice}")]
    ReadOnly {
        /// The session's file.
        path: String,
        /// What is wrong with it.
        reason: String,
        /// What to do.
        advice: String,
    },
    /// The session has moved on since the caller looked.
    #[error("the session is at record {} by now", actual.0)]
    Conflict {
        /// The sequence number that comes next.
        actual: Seq,
    },
    /// Another process owns the directory.
    #[error("the data directory is in use by another process ({owner}); stop it, or talk to it with --url")]
    Locked {
        /// What the owner wrote about itself.
        owner: String,
    },
    /// A newer Banyan wrote something that this build does not understand. Nothing was changed.
    #[error(
        "{what} has format {format}, written by Banyan {written_by}; this Banyan ({}) knows format {supported} and changed \
         nothing; use Banyan {written_by} or newer",
        env!("CARGO_PKG_VERSION")
    )]
    Newer {
        /// What is newer.
        what: String,
        /// The version that wrote it.
        written_by: String,
        /// Its format.
        format: u32,
        /// The newest format that this build knows.
        supported: u32,
    },
    /// A file without which nothing else can be trusted is damaged. Nothing was changed.
    #[error("{path}: {reason}")]
    Damaged {
        /// The file.
        path: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The disk refused an operation.
    #[error("{doing}: {cause}")]
    Io {
        /// What was being done.
        doing: String,
        /// What the disk said.
        cause: String,
    },
}

impl LogError {
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> LogError {
        move |error| {
            let doing = doing.into();
            if is_full(&error) {
                LogError::Full(format!("{doing}: {error}"))
            } else {
                LogError::Io { doing, cause: error.to_string() }
            }
        }
    }
}

/// True for the errors that more room would cure.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}

impl From<LogError> for banyan_model::Error {
    fn from(error: LogError) -> Self {
        let retryable = matches!(error, LogError::Full(_) | LogError::Closed);
        let code = match error {
            LogError::Conflict { .. } => ErrorCode::Conflict,
            _ => ErrorCode::Storage,
        };
        let mut out = banyan_model::Error::new(code, error.to_string());
        out.retryable = retryable;
        out
    }
}
