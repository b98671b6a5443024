//! What a browser must not be talked into: a page on another site that reaches a server on loopback.
//!
//! While there is no key, only names of loopback are answered (a foreign name that resolves to loopback is an attack), and a
//! request that a browser marks as coming from another site is refused. Origins are let in by configuration.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::header::{HOST, ORIGIN};
use hyper::{HeaderMap, StatusCode};

use crate::app::{App, Shared};
use crate::problem::Problem;

pub(crate) async fn check(State(app): State<Shared>, request: Request, next: Next) -> Response {
    match admit(&app, request.headers(), request.uri().authority().map(|authority| authority.as_str())) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

fn admit(app: &App, headers: &HeaderMap, authority: Option<&str>) -> Result<(), Problem> {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).or(authority).unwrap_or_default();
    if app.open() && !is_local(host) && !app.settings.hosts.iter().any(|known| known == name_of(host)) {
        return Err(Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            "http/wrong_host",
            format!(
                "this server has no key and answers only to names of loopback, not to `{host}`; make a key, or name the host in `hosts`"
            ),
        ));
    }
    let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    let own = origin.split_once("://").is_some_and(|(_, rest)| rest == host);
    let allowed = app.settings.cors_origins.iter().any(|known| known == "*" || known == origin);
    if own || allowed {
        return Ok(());
    }
    Err(Problem::forbidden(format!("pages from {origin} may not call this server; `cors_origins` lets them in")))
}

fn is_local(host: &str) -> bool {
    let name = name_of(host);
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
