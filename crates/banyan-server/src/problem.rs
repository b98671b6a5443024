//! What a refused request is answered with: a problem document (RFC 9457) with the contract's code.

use axum::response::{IntoResponse, Response};
use banyan::CallError;
use banyan::model::{Error, ErrorCode};
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use serde::Serialize;

/// A refused request.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) detail: String,
    retry_after: Option<u64>,
}

/// The document as it is sent.
#[derive(Serialize)]
pub(crate) struct Document<'a> {
    r#type: String,
    title: &'static str,
    status: u16,
    detail: &'a str,
    code: &'a str,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), retry_after: None }
    }

    /// The request itself is not right.
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ErrorCode::InvalidRequest.as_str(), detail)
    }

    /// Nothing is served under this address.
    pub(crate) fn no_such_address(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "http/not_found", detail)
    }

    pub(crate) fn unauthenticated(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "auth/unauthenticated", detail)
    }

    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "auth/forbidden", detail)
    }

    pub(crate) fn too_large(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, ErrorCode::TooLarge.as_str(), detail)
    }

    /// The key asks too often.
    pub(crate) fn rate_limited(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "rate/limited", detail)
    }

    /// The server has as much to do as it takes on.
    pub(crate) fn busy(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, detail).retry_after(1)
    }

    /// The server itself has failed.
    pub(crate) fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "http/internal", "the server failed; its log says more")
    }

    /// Says after how many seconds the same request can succeed.
    #[must_use]
    pub(crate) fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    pub(crate) fn document(&self) -> Document<'_> {
        Document {
            r#type: format!("urn:banyan:problem:{}", self.code),
            title: title(self.code, self.status),
            status: self.status.as_u16(),
            detail: &self.detail,
            code: self.code,
        }
    }
}

/// A short name for a kind of problem, the same each time it occurs.
fn title(code: &str, status: StatusCode) -> &'static str {
    match code {
        "session/not_found" => "No such session",
        "session/entry_not_found" => "No such entry",
        "session/attachment_not_found" => "No such attachment",
        "session/parent_not_found" => "No such parent entry",
        "session/invalid_entry_kind" => "Wrong kind of entry",
        "session/details_not_supported" => "This message has no details",
        "session/empty_batch" => "Empty batch",
        "session/invalid_cursor" => "Invalid cursor",
        "session/invalid_request" => "Invalid request",
        "session/conflict" => "Conflict",
        "session/too_large" | "session/attachment_too_large" => "Too large",
        "session/attachment_in_use" => "Attachment in use",
        "session/storage" => "Storage failure",
        "auth/unauthenticated" => "A key is needed",
        "auth/forbidden" => "Not allowed",
        "rate/limited" => "Too many requests",
        _ => status.canonical_reason().unwrap_or("Error"),
    }
}

/// The status that a code is sent with.
fn status_of(error: &Error) -> StatusCode {
    use ErrorCode as E;
    match error.code {
        E::NotFound | E::EntryNotFound | E::ParentNotFound => StatusCode::NOT_FOUND,
        E::InvalidEntryKind | E::DetailsNotSupported | E::EmptyBatch | E::InvalidCursor | E::InvalidRequest => {
            StatusCode::BAD_REQUEST
        }
        E::Conflict | E::AttachmentInUse => StatusCode::CONFLICT,
        E::TooLarge | E::AttachmentTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        E::Forbidden => StatusCode::FORBIDDEN,
        E::Storage if error.retryable => StatusCode::SERVICE_UNAVAILABLE,
        E::Storage => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let problem = Self::new(status_of(&error), error.code.as_str(), error.message);
        if error.retryable { problem.retry_after(1) } else { problem }
    }
}

impl From<CallError> for Problem {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Refused(error) => error.into(),
            unknown @ CallError::UnknownFunction { .. } => {
                Self::new(StatusCode::NOT_FOUND, "call/unknown_function", unknown.to_string())
            }
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let text = serde_json::to_vec(&self.document()).unwrap_or_default();
        let mut response = (self.status, text).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"banyan\""));
        }
        response
    }
}
