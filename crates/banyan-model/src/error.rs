//! The one error of the API: a code that programs match on and a sentence for the person who reads it.

use std::fmt;

use crate::{EntryId, SessionId};

/// What went wrong, as the contract's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// The session does not exist.
    NotFound,
    /// The entry does not exist in the session.
    EntryNotFound,
    /// The parent named by an append does not exist in the session.
    ParentNotFound,
    /// The operation does not apply to this kind of entry.
    InvalidEntryKind,
    /// `details` was given for a message that has none.
    DetailsNotSupported,
    /// A batch without any message.
    EmptyBatch,
    /// A cursor, or an anchor entry, that does not continue the list being read.
    InvalidCursor,
    /// The request itself is malformed or contradicts itself.
    InvalidRequest,
    /// What the caller expected is no longer so.
    Conflict,
    /// The request is larger than the store accepts.
    TooLarge,
    /// The store could not read or write its data.
    Storage,
    /// An attachment is larger than the store accepts.
    AttachmentTooLarge,
    /// An attachment cannot be deleted because a message refers to it.
    AttachmentInUse,
    /// The caller may not do this, whatever the session.
    Forbidden,
}

impl ErrorCode {
    /// Every code, in the order of the documentation.
    pub const ALL: [Self; 14] = [
        Self::NotFound,
        Self::EntryNotFound,
        Self::ParentNotFound,
        Self::InvalidEntryKind,
        Self::DetailsNotSupported,
        Self::EmptyBatch,
        Self::InvalidCursor,
        Self::InvalidRequest,
        Self::Conflict,
        Self::TooLarge,
        Self::Storage,
        Self::AttachmentTooLarge,
        Self::AttachmentInUse,
        Self::Forbidden,
    ];

    /// The code as it stands on the wire, for example `session/not_found`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "session/not_found",
            Self::EntryNotFound => "session/entry_not_found",
            Self::ParentNotFound => "session/parent_not_found",
            Self::InvalidEntryKind => "session/invalid_entry_kind",
            Self::DetailsNotSupported => "session/details_not_supported",
            Self::EmptyBatch => "session/empty_batch",
            Self::InvalidCursor => "session/invalid_cursor",
            Self::InvalidRequest => "session/invalid_request",
            Self::Conflict => "session/conflict",
            Self::TooLarge => "session/too_large",
            Self::Storage => "session/storage",
            Self::AttachmentTooLarge => "session/attachment_too_large",
            Self::AttachmentInUse => "session/attachment_in_use",
            Self::Forbidden => "auth/forbidden",
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A refused or failed call. Displays as `<code>: <message>`, which clients of the contract search for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Error {
    /// What went wrong, for programs.
    pub code: ErrorCode,
    /// What was asked, what is wrong and what to do, for people.
    pub message: String,
    /// Whether the same call can succeed later without being changed.
    pub retryable: bool,
}

impl Error {
    /// An error that repeating the call will not cure.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retryable: false }
    }

    /// The same error, marked as one that a later retry can cure (disk full, shutting down).
    #[must_use]
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    /// No session has this id.
    pub fn not_found(session_id: &SessionId) -> Self {
        Self::new(ErrorCode::NotFound, format!("there is no session `{session_id}`; create or ensure it first"))
    }

    /// The session has no entry of this id.
    pub fn entry_not_found(session_id: &SessionId, entry_id: &EntryId) -> Self {
        Self::new(ErrorCode::EntryNotFound, format!("session `{session_id}` has no entry `{entry_id}`"))
    }

    /// The session has no entry of this id to append to.
    pub fn parent_not_found(session_id: &SessionId, parent_id: &EntryId) -> Self {
        Self::new(
            ErrorCode::ParentNotFound,
            format!(
                "session `{session_id}` has no entry `{parent_id}` to append to; omit `parent_id` to append to the active leaf"
            ),
        )
    }

    /// The request is malformed or contradicts itself.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidRequest, message)
    }

    /// The cursor or anchor does not continue the list being read.
    pub fn invalid_cursor(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidCursor, message)
    }

    /// What the caller expected is no longer so.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Conflict, message)
    }

    /// The request is larger than the store accepts.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::TooLarge, message)
    }

    /// The caller may not do this.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Forbidden, message)
    }

    /// The store could not read or write its data.
    pub fn storage(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Storage, message)
    }
}
