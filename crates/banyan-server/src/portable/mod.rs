//! Sessions as files: `GET /v1/sessions/{session_id}/export` and `POST /v1/import`. Which forms there are, `banyan` says.

mod export;
mod import;

use axum::Router;
use axum::routing::{get, post};

use crate::app::Shared;

/// Where a session leaves as a file.
pub(crate) const EXPORT: &str = "/v1/sessions/{session_id}/export";
/// Where a file comes in.
pub(crate) const IMPORT: &str = "/v1/import";

pub(crate) fn routes() -> Router<Shared> {
    Router::new().route(EXPORT, get(export::export)).route(IMPORT, post(import::import))
}
