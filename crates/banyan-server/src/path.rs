//! What an address holds in its placeholders.

use axum::extract::{FromRequestParts, Path};
use hyper::http::request::Parts;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::problem::Problem;

/// The names and values of an address's placeholders, decoded.
pub(crate) struct Captured(pub(crate) Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Captured {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Path::from_request_parts(parts, state)
            .await
            .map(|Path(captured)| Self(captured))
            .map_err(|rejection| Problem::invalid(format!("the address cannot be read: {rejection}")))
    }
}

const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// An id as one segment of an address.
pub(crate) fn segment(id: &str) -> String {
    // A segment of dots alone would be taken for a step within the path.
    if matches!(id, "." | "..") {
        return id.replace('.', "%2E");
    }
    // These would be taken for an address of their own, beside the entries. Encoded they are no more than names.
    if matches!(id, "tail" | "range") {
        let (first, rest) = id.split_at(1);
        return format!("%{:X}{rest}", first.as_bytes()[0]);
    }
    utf8_percent_encode(id, KEPT).to_string()
}
