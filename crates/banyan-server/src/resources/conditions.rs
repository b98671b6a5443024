//! What a request asks to hold first: `If-Match` and `If-None-Match`, on one line or on several (RFC 9110, 13.1).

use hyper::header::{HeaderName, IF_MATCH, IF_NONE_MATCH};
use hyper::{HeaderMap, StatusCode};

use crate::problem::Problem;

/// Whether `If-None-Match` names this tag, or all: the caller has it already.
pub(crate) fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let same = |known: &[u8]| known == b"*" || known.strip_prefix(b"W/").unwrap_or(known) == tag.as_bytes();
    tags(headers, IF_NONE_MATCH).any(same)
}

/// The tags of `If-Match`, of which one is enough, when it does not take any. A weak one never is enough.
pub(super) fn wanted(headers: &HeaderMap) -> Option<Vec<&[u8]>> {
    let tags: Vec<&[u8]> = tags(headers, IF_MATCH).collect();
    (!tags.is_empty() && !tags.contains(&&b"*"[..])).then_some(tags)
}

/// Refuses when `If-Match` asks for something else than what has this tag.
pub(super) fn must_match(headers: &HeaderMap, tag: &str) -> Result<(), Problem> {
    match wanted(headers) {
        Some(tags) if !tags.contains(&tag.as_bytes()) => Err(failed("this is not what `If-Match` names")),
        _ => Ok(()),
    }
}

/// What was asked to hold does not.
pub(super) fn failed(why: &str) -> Problem {
    Problem::new(StatusCode::PRECONDITION_FAILED, "http/precondition_failed", format!("{why}; read it again"))
}

fn tags(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &[u8]> {
    let lines = headers.get_all(name).into_iter();
    lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b',')).map(<[u8]>::trim_ascii)
}
