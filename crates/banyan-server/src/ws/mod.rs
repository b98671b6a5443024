//! `GET /v1/ws`: calls and subscriptions on one connection, as JSON in text frames. `protocol.rs` has the frames, `socket.rs`
//! the life of a connection.

mod protocol;
mod socket;

use std::sync::Arc;

use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::response::Response;
use hyper::StatusCode;

use crate::app::Shared;
use crate::caller::Caller;
use crate::problem::Problem;
use socket::Socket;

pub(crate) async fn connect(
    State(app): State<Shared>,
    caller: Caller,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let upgrade = upgrade
        .map_err(|error| Problem::new(StatusCode::UPGRADE_REQUIRED, "http/not_a_websocket", error.body_text()))?;
    if app.stopping() {
        return Err(Problem::busy("http/stopping", "the server is stopping"));
    }
    if let Some(peer) = &caller.peer {
        peer.intake().begin(Arc::clone(&app.request_memory), caller.holder());
    }
    let most = app.settings.limits.body_bytes;
    Ok(upgrade.max_message_size(most).max_frame_size(most).on_upgrade(move |socket| async move {
        Socket::new(app, caller, socket).run().await;
    }))
}
