//! What stands before every handler: the size of the head, and what a browser must not be talked into.
//!
//! A page on another site must not reach a server on loopback. While there is no key, only names of loopback are answered
//! (a foreign name that resolves to loopback is an attack). A request that a browser marks as coming from another origin is refused,
//! key or not, unless configuration lets that origin in. Keys are sent by hand and never by a browser on its own, so
//! credentials in the sense of CORS are never allowed.

use std::panic::AssertUnwindSafe;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HOST, HeaderName,
    HeaderValue, ORIGIN, VARY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::http::uri::Authority;
use hyper::{HeaderMap, Method, StatusCode, Version};

use crate::app::{App, Shared};
use crate::problem::Problem;

const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";
const REQUEST_HEADERS: &str = "authorization, content-type, last-event-id, x-request-id, traceparent, tracestate, \
                               accept, range, if-range, if-match, if-none-match, cache-control, ocp-context-id, \
                               ocp-agent-type, ocp-current-goal, ocp-agent-goal, ocp-session, ocp-user, \
                               ocp-workspace, ocp-version";
const ANSWER_HEADERS: &str = "x-request-id, retry-after, www-authenticate, location, link, etag, content-range, \
                              accept-ranges, content-disposition, ocp-context-id, ocp-agent-type, ocp-current-goal, \
                              ocp-session, ocp-user, ocp-workspace, ocp-version, banyan-ocp-ignored, \
                              banyan-session-id";
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

pub(crate) async fn check(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let (mut response, allowed) = match admit(&app, &request) {
        Err(problem) => (problem.into_response(), None),
        Ok(allowed) => {
            let response = match head_fits(&app, &request) {
                Err(problem) => problem.into_response(),
                Ok(()) if is_preflight(&request) && allowed.is_some() => preflight(),
                // Whatever goes wrong in a handler, the caller is answered.
                Ok(()) => match AssertUnwindSafe(next.run(request)).catch_unwind().await {
                    Ok(response) => response,
                    Err(_) => Problem::internal().into_response(),
                },
            };
            (response, allowed)
        }
    };
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let may_show = if allowed.is_some() { "cross-origin" } else { "same-origin" };
    headers.insert(RESOURCE_POLICY, HeaderValue::from_static(may_show));
    if !app.settings.cors_origins.is_empty() {
        headers.append(VARY, HeaderValue::from_static("origin"));
    }
    if let Some(origin) = allowed {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(ANSWER_HEADERS));
    }
    response
}

/// Lets a request in. When it comes from an origin that was let in by configuration, that is what the answer has to say.
pub(crate) fn admit<B>(app: &App, request: &hyper::Request<B>) -> Result<Option<HeaderValue>, Problem> {
    let headers = request.headers();
    let host = host(request)?;
    if app.open()
        && !is_local(host)
        && !app.settings.hosts.iter().any(|known| known.eq_ignore_ascii_case(name_of(host)))
    {
        return Err(Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            "http/wrong_host",
            "this server has no key and answers only to names of loopback; make a key, or name the host in `hosts`",
        ));
    }
    let all = app.settings.cors_origins.iter().any(|known| known == "*");
    let Some(origin) = headers.get(ORIGIN) else {
        if all {
            return Ok(Some(HeaderValue::from_static("*")));
        }
        if !from_elsewhere(request) {
            return Ok(None);
        }
        return Err(Problem::forbidden("pages from other sites may not load anything from this server"));
    };
    if all {
        return Ok(Some(HeaderValue::from_static("*")));
    }
    let text = origin.to_str().unwrap_or_default();
    if app.settings.cors_origins.iter().any(|known| known == text) {
        return Ok(Some(origin.clone()));
    }
    // The server's own pages.
    if text.split_once("://").is_some_and(|(_, rest)| !rest.is_empty() && rest.eq_ignore_ascii_case(host)) {
        return Ok(None);
    }
    Err(Problem::forbidden("pages from this origin may not call this server; `cors_origins` lets them in"))
}

/// The one name that the server is called by. Two are a trick.
fn host<B>(request: &hyper::Request<B>) -> Result<&str, Problem> {
    let mut named = request.headers().get_all(HOST).iter();
    let (first, second) = (named.next(), named.next());
    let header = first.map(|host| host.to_str().unwrap_or("?"));
    let authority = request.uri().authority().map(|authority| authority.as_str());
    match (header, authority) {
        _ if second.is_some() => Err(Problem::invalid("the request names its host twice")),
        (Some(header), Some(authority)) if !header.eq_ignore_ascii_case(authority) => {
            Err(Problem::invalid("the request names two hosts"))
        }
        (None, None) if request.version() == Version::HTTP_11 => {
            Err(Problem::invalid("the request names no host; HTTP/1.1 asks for the header Host"))
        }
        (Some(header), _) if !is_a_name(header) => Err(Problem::invalid("the header Host is not a host's name")),
        (header, authority) => Ok(header.or(authority).unwrap_or_default()),
    }
}

/// A host, and a port if there is one; it may be empty.
fn is_a_name(host: &str) -> bool {
    let named = |authority: Authority| authority.port().is_some() || authority.as_str() == authority.host();
    let host = host.trim_end_matches(':');
    host.is_empty() || (!host.contains('@') && host.parse().is_ok_and(named))
}

/// Whether a browser says that a page of another origin wants this, as it does for pictures, scripts and frames, which
/// have no `Origin`. Following a link is fine: the page that has the link sees nothing of the answer.
fn from_elsewhere<B>(request: &hyper::Request<B>) -> bool {
    let says = |name: &str, value: &str| request.headers().get(name).is_some_and(|found| found == value);
    let elsewhere = says("sec-fetch-site", "cross-site") || says("sec-fetch-site", "same-site");
    let link = says("sec-fetch-mode", "navigate")
        && says("sec-fetch-dest", "document")
        && matches!(*request.method(), Method::GET | Method::HEAD);
    elsewhere && !link
}

fn head_fits(app: &App, request: &Request) -> Result<(), Problem> {
    let most = app.settings.limits.header_bytes;
    let line = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
    if line + size(request.headers()) <= most {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        "http/head_too_large",
        format!("the request's head has more than {most} bytes, which is the most that this server takes"),
    ))
}

/// Names, values, and what stands between them.
fn size(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum()
}

fn is_preflight(request: &Request) -> bool {
    request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

fn preflight() -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(REQUEST_HEADERS));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}

fn is_local(host: &str) -> bool {
    let name = name_of(host).to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A host without its port and brackets.
fn name_of(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split_once(']').map_or(rest, |(name, _)| name);
    }
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::is_local;

    #[test]
    fn names_of_loopback() {
        for host in
            ["localhost", "LocalHost:7420", "127.0.0.1:1", "127.9.9.9", "[::1]:7420", "[::1]", "app.localhost:1"]
        {
            assert!(is_local(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example:7420",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "evil:127.0.0.1",
        ] {
            assert!(!is_local(host), "{host}");
        }
    }
}
