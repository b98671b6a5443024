//! Live streams: what a subscriber asks for (`query.rs`), what it is sent (`feed.rs`, `deltas.rs`, `frames.rs`), and the
//! door that most use (`sse.rs`). The other door is `ws`.

mod deltas;
mod feed;
mod frames;
mod places;
mod query;
mod sse;

pub(crate) use feed::{Feed, News, Session, read};
pub(crate) use frames::{Frame, stream_bytes};
pub(crate) use places::Places;
pub(crate) use query::Asked;
pub(crate) use sse::{COMMENT, Pieces, event_stream};

use axum::Router;
use axum::routing::get;

use crate::app::Shared;
use crate::ws;

pub(crate) fn routes() -> Router<Shared> {
    Router::new()
        .route("/v1/events", get(sse::everything))
        .route("/v1/sessions/{session_id}/events", get(sse::of_session))
        .route("/v1/ws", get(ws::connect))
}
