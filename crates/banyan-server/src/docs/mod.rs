//! `/docs`: one page that shows `/openapi.json` to people, with a form to try each call. It loads nothing from elsewhere.

use std::sync::LazyLock;

use axum::response::{IntoResponse, Redirect, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use sha2::{Digest, Sha256};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

struct Page {
    html: Bytes,
    /// Only the page's own style and script run, and only this server is asked.
    policy: String,
}

static PAGE: LazyLock<Page> = LazyLock::new(|| {
    let html = include_str!("page.html").replace("/*style*/", STYLE).replace("/*script*/", SCRIPT);
    let policy = format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        hash(STYLE),
        hash(SCRIPT)
    );
    Page { html: html.into(), policy }
});

/// `GET /docs`.
pub(crate) async fn page() -> Response {
    let mut response = PAGE.html.clone().into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    if let Ok(policy) = HeaderValue::from_str(&PAGE.policy) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// `GET /`: whoever opens the server in a browser gets to see what there is.
pub(crate) async fn index() -> Redirect {
    Redirect::temporary("/docs")
}

/// The name that a policy knows a text by.
fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}
