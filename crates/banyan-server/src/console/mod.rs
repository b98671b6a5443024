//! The page that shows a session to people: `GET /sessions/{session_id}`, and the files that it is made of.
//!
//! It is written in TypeScript (`console/`), built by `make console` and put into the server by `build.rs`. It is the same
//! for every session and tells nothing about any: it reads the history stream with the key of whoever looks at it.

mod files;
mod policy;

use std::sync::LazyLock;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    HeaderValue, REFERRER_POLICY, VARY,
};
use hyper::{HeaderMap, StatusCode};

use crate::path::Captured;
use crate::problem::Problem;
use crate::resources::is_known;
use files::{File, find};

/// The page of a server that was built without it.
const LEFT_OUT: &str = include_str!("left_out.html");
const INDEX: &str = "index.html";

/// `GET /sessions/{session_id}`.
pub(crate) async fn page(request: Request) -> Result<Response, Problem> {
    let headers = request.headers();
    if !takes(headers, "text/html") {
        return Err(Problem::new(
            StatusCode::NOT_ACCEPTABLE,
            "http/not_acceptable",
            "this is a page for browsers; programs read the same with /history at the end of the address",
        ));
    }
    let Some(index) = find(INDEX) else {
        let mut response = (StatusCode::NOT_IMPLEMENTED, LEFT_OUT).into_response();
        described(&mut response, "text/html; charset=utf-8", "no-cache", policy::NOTHING);
        return Ok(response);
    };
    let tag: &str = &INDEX_TAG;
    let mut response = match is_known(headers, tag) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => Bytes::from_static(index.bytes).into_response(),
    };
    described(&mut response, "text/html; charset=utf-8", "no-cache", policy::PAGE);
    set(response.headers_mut(), ETAG, tag);
    Ok(response)
}

/// `GET /console/{file}`. A file never changes: one with other content has another name.
pub(crate) async fn file(Captured(path): Captured, headers: HeaderMap) -> Result<Response, Problem> {
    let name = path.first().map_or("", |(_, name)| name);
    let found = find(name).filter(|file| file.name != INDEX);
    let file = found.ok_or_else(|| Problem::no_such_address(format!("the console has no file {name}")))?;
    let tag = format!("\"{}\"", file.name);
    let mut response =
        if is_known(&headers, &tag) { StatusCode::NOT_MODIFIED.into_response() } else { bytes(file, &headers) };
    let policy = if file.is_page() { policy::diagrams() } else { policy::NOTHING };
    described(&mut response, file.content_type(), "public, max-age=31536000, immutable", policy);
    set(response.headers_mut(), ETAG, &tag);
    response.headers_mut().append(VARY, HeaderValue::from_static("accept-encoding"));
    Ok(response)
}

static INDEX_TAG: LazyLock<String> = LazyLock::new(|| {
    let bytes = find(INDEX).map_or(&[] as &[u8], |index| index.bytes);
    format!("\"{}\"", blake3::hash(bytes).to_hex())
});

fn bytes(file: &File, headers: &HeaderMap) -> Response {
    let Some(packed) = file.packed.filter(|_| lists(headers, ACCEPT_ENCODING, &["gzip", "*"])) else {
        return Bytes::from_static(file.bytes).into_response();
    };
    let mut response = Bytes::from_static(packed).into_response();
    response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    response
}

/// Whether an answer of this kind is taken. Who says nothing takes anything.
fn takes(headers: &HeaderMap, kind: &str) -> bool {
    let any_of_its_kind = kind.split_once('/').map_or_else(String::new, |(first, _)| format!("{first}/*"));
    !headers.contains_key(ACCEPT) || lists(headers, ACCEPT, &[kind, &any_of_its_kind, "*/*"])
}

/// Whether a header names one of these and does not say `q=0` with it.
fn lists(headers: &HeaderMap, header: hyper::header::HeaderName, wanted: &[&str]) -> bool {
    let given = headers.get_all(header).iter().filter_map(|value| value.to_str().ok());
    given.flat_map(|value| value.split(',')).any(|one| {
        let mut words = one.split(';').map(str::trim);
        let named = words.next().is_some_and(|name| wanted.iter().any(|known| name.eq_ignore_ascii_case(known)));
        named && !words.any(|word| matches!(word, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

fn described(response: &mut Response, kind: &'static str, cache: &'static str, policy: &str) {
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    set(headers, CONTENT_SECURITY_POLICY, policy);
}

fn set(headers: &mut HeaderMap, name: hyper::header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::{ACCEPT, HeaderMap, HeaderValue, takes};

    #[test]
    fn who_takes_a_page() {
        let asks = |accept: &'static str| {
            let headers: HeaderMap = [(ACCEPT, HeaderValue::from_static(accept))].into_iter().collect();
            takes(&headers, "text/html")
        };
        assert!(takes(&HeaderMap::new(), "text/html"));
        for yes in
            ["text/html", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", "*/*", "text/*", "Text/HTML;q=0.1"]
        {
            assert!(asks(yes), "{yes}");
        }
        for no in ["application/json", "text/event-stream", "text/html;q=0", ""] {
            assert!(!asks(no), "{no}");
        }
    }
}
