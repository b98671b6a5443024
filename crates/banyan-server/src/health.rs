//! Whether the server lives, and whether it can work.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hyper::StatusCode;

use crate::app::Shared;
use crate::problem::Problem;

/// `GET /healthz`: the process answers.
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// `GET /readyz`: it takes work. Not while it stops, and not when writing has failed.
pub(crate) async fn readyz(State(app): State<Shared>) -> Response {
    if app.stopping() {
        return Problem::busy("http/stopping", "the server is stopping").into_response();
    }
    match app.store.poisoned() {
        Some(reason) => Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "session/storage",
            format!("writing has stopped until the server is started again: {reason}"),
        )
        .into_response(),
        None => "ok\n".into_response(),
    }
}
