//! A session as chat front ends read it: `GET` and `POST /sessions/{session_id}/history`, and the same live.
//!
//! What a history is, `banyan-formats` says. Here it is read page by page (`read.rs`), answered (`get.rs`), taken in
//! (`post.rs`, `plan.rs`), and followed (`stream.rs`, `follow.rs`). `docs/history.md` has the rules.

mod cursor;
mod follow;
mod get;
mod plan;
mod post;
mod query;
mod read;
mod resume;
mod stream;
mod telling;
mod whole;

use axum::Router;
use axum::routing::get;

pub(crate) use cursor::Cursor;
pub(crate) use query::yes_or_no;
pub(crate) use read::{now_ms, standing};

use crate::app::Shared;

/// The address that front ends of other systems know, and the same with the others of this server.
pub(crate) const ADDRESSES: [&str; 2] = ["/v1/sessions/{session_id}/history", "/sessions/{session_id}/history"];

pub(crate) fn routes() -> Router<Shared> {
    ADDRESSES
        .into_iter()
        .fold(Router::new(), |router, address| router.route(address, get(get::history).post(post::history)))
}
