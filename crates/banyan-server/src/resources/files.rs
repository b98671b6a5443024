//! A stored file as an answer: its tag, the range of it that was asked for, and headers that keep a browser from running it.

use axum::response::{IntoResponse, Response};
use banyan::model::AttachmentMeta;
use hyper::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_RANGE, RANGE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{HeaderMap, StatusCode};

use super::conditions::{is_known, must_match};
use crate::path::segment;
use crate::problem::Problem;

/// What is known of a file before its bytes are read.
pub(crate) struct File {
    meta: AttachmentMeta,
    /// Its content's hash, in quotes: equal bytes have equal tags.
    tag: String,
}

impl File {
    pub(crate) fn of(meta: AttachmentMeta) -> Self {
        Self { tag: format!("\"{}\"", meta.sha256), meta }
    }

    /// Refuses when `If-Match` asks for another file.
    pub(super) fn must_match(&self, headers: &HeaderMap) -> Result<(), Problem> {
        must_match(headers, &self.tag)
    }

    /// The answer when the bytes are not needed for it: they have not changed, only the head was asked for, or there are
    /// not that many.
    pub(crate) fn without_bytes(&self, headers: &HeaderMap, head_only: bool) -> Result<Option<Response>, Problem> {
        must_match(headers, &self.tag)?;
        if is_known(headers, &self.tag) {
            return Ok(Some(self.described(StatusCode::NOT_MODIFIED.into_response())));
        }
        if head_only {
            let mut response = self.described(StatusCode::OK.into_response());
            response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(self.meta.size));
            return Ok(Some(response));
        }
        if matches!(self.asked_range(headers), Asked::Beyond) {
            let problem = Problem::new(
                StatusCode::RANGE_NOT_SATISFIABLE,
                "http/range_not_satisfiable",
                format!("the file has {} bytes, and the range lies outside of them", self.meta.size),
            );
            let mut response = problem.into_response();
            set(response.headers_mut(), CONTENT_RANGE, &format!("bytes */{}", self.meta.size));
            return Ok(Some(response));
        }
        Ok(None)
    }

    /// The part that was asked for. `If-Range` with another tag asks for all.
    fn asked_range(&self, headers: &HeaderMap) -> Asked {
        let outdated = headers.get(IF_RANGE).is_some_and(|tag| tag.as_bytes() != self.tag.as_bytes());
        match headers.get(RANGE).and_then(|range| range.to_str().ok()) {
            Some(range) if !outdated => parse(range, self.meta.size),
            _ => Asked::All,
        }
    }

    /// Adds what is said about the file with every answer.
    fn described(&self, mut response: Response) -> Response {
        let headers = response.headers_mut();
        set(headers, ETAG, &self.tag);
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox"));
        headers.insert(CONTENT_TYPE, content_type(&self.meta.mime));
        set(headers, CONTENT_DISPOSITION, &disposition(&self.meta));
        response
    }
}

/// The file's bytes, or the range of them that was asked for.
pub(crate) fn answer(file: &File, headers: &HeaderMap, bytes: Vec<u8>) -> Response {
    let size = bytes.len() as u64;
    match file.asked_range(headers) {
        Asked::Part { first, last } if last < size => {
            let part = bytes[first as usize..=last as usize].to_vec();
            let mut response = file.described((StatusCode::PARTIAL_CONTENT, part).into_response());
            set(response.headers_mut(), CONTENT_RANGE, &format!("bytes {first}-{last}/{size}"));
            response
        }
        _ => file.described(bytes.into_response()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    All,
    Part { first: u64, last: u64 },
    Beyond,
}

/// Reads a `Range`. What is not a single range of bytes is ignored, as HTTP allows.
fn parse(range: &str, size: u64) -> Asked {
    let single = range.trim().strip_prefix("bytes=").filter(|ranges| !ranges.contains(','));
    let Some((first, last)) = single.and_then(|range| range.trim().split_once('-')) else { return Asked::All };
    let number =
        |text: &str| Some(text).filter(|text| text.bytes().all(|b| b.is_ascii_digit()))?.parse::<u64>().ok();
    match (first, last) {
        ("", suffix) => match number(suffix) {
            None => Asked::All,
            Some(0) => Asked::Beyond,
            Some(_) if size == 0 => Asked::Beyond,
            Some(length) => Asked::Part { first: size.saturating_sub(length), last: size - 1 },
        },
        (first, last) => {
            let open = last.is_empty();
            let (Some(first), Some(last)) = (number(first), if open { Some(u64::MAX) } else { number(last) })
            else {
                return Asked::All;
            };
            match () {
                () if last < first => Asked::All,
                () if first >= size => Asked::Beyond,
                () => Asked::Part { first, last: last.min(size - 1) },
            }
        }
    }
}

/// The type that the file was stored with, when it is one.
fn content_type(mime: &str) -> HeaderValue {
    let token = |part: &str| {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b);
        !part.is_empty() && part.bytes().all(allowed)
    };
    let essence = mime.split(';').next().unwrap_or_default().trim();
    let valid = essence.split_once('/').is_some_and(|(kind, subtype)| token(kind) && token(subtype));
    let value = if valid { HeaderValue::from_str(mime).ok() } else { None };
    value.filter(|value| value.to_str().is_ok()).unwrap_or(HeaderValue::from_static("application/octet-stream"))
}

/// Pictures, sound, film and plain text are shown; everything else is saved.
fn disposition(meta: &AttachmentMeta) -> String {
    let mime = meta.mime.to_ascii_lowercase();
    let essence = mime.split(';').next().unwrap_or_default().trim();
    let shown =
        ["image/", "audio/", "video/"].iter().any(|kind| essence.starts_with(kind)) || essence == "text/plain";
    let how = if shown && essence != "image/svg+xml" { "inline" } else { "attachment" };
    let plain: String = meta
        .name
        .chars()
        .map(|c| if c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '%') || c == ' ' { c } else { '_' })
        .collect();
    if plain == meta.name {
        return format!("{how}; filename=\"{plain}\"");
    }
    format!("{how}; filename=\"{plain}\"; filename*=UTF-8''{}", segment(&meta.name))
}

/// Sets a header whose text is known to be plain.
fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::Asked::{All, Beyond, Part};
    use super::*;

    #[test]
    fn a_range_is_cut_to_what_there_is() {
        for (range, size, asked) in [
            ("bytes=0-0", 10, Part { first: 0, last: 0 }),
            ("bytes=2-", 10, Part { first: 2, last: 9 }),
            ("bytes=2-99", 10, Part { first: 2, last: 9 }),
            ("bytes=-3", 10, Part { first: 7, last: 9 }),
            ("bytes=-99", 10, Part { first: 0, last: 9 }),
            ("bytes=10-", 10, Beyond),
            ("bytes=-0", 10, Beyond),
            ("bytes=0-", 0, Beyond),
            ("bytes=-1", 0, Beyond),
        ] {
            assert_eq!(parse(range, size), asked, "{range} of {size}");
        }
    }

    #[test]
    fn what_is_no_single_range_asks_for_all() {
        for range in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=3-2",
            "bytes=a-b",
            "bytes=0-1,3-4",
            "lines=1-2",
            "bytes=+1-2",
        ] {
            assert_eq!(parse(range, 10), All, "{range}");
        }
    }

    #[test]
    fn a_type_that_is_none_is_bytes() {
        for (mime, sent) in [
            ("text/plain; charset=utf-8", "text/plain; charset=utf-8"),
            ("image/png", "image/png"),
            ("nonsense", "application/octet-stream"),
            ("a b/c", "application/octet-stream"),
            ("text/\u{e9}", "application/octet-stream"),
            ("text/plain\r\nx: y", "application/octet-stream"),
        ] {
            assert_eq!(content_type(mime), sent, "{mime:?}");
        }
    }
}
