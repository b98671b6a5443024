//! Whether the server lives, and whether it can work.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use banyan::SpaceLevel;
use hyper::StatusCode;

use crate::app::Shared;
use crate::problem::Problem;

/// `GET /healthz`: the process answers.
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// `GET /readyz`: the server takes work. Not while it stops, not when writing has failed, and not while the disk is full.
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
        None => match app.store.disk_space().level {
            SpaceLevel::Enough => "ok\n".into_response(),
            SpaceLevel::Short => "ok, but the disk is short\n".into_response(),
            SpaceLevel::Full => {
                let detail = "the disk is full: writes are refused, reading and deleting go on";
                Problem::new(StatusCode::SERVICE_UNAVAILABLE, "session/storage", detail).into_response()
            }
        },
    }
}
