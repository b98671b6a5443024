//! `POST /v1/purge`: an operator has the bytes of deleted sessions removed now.

use axum::extract::State;
use axum::response::Response;

use crate::app::Shared;
use crate::caller::Caller;
use crate::calls::json;
use crate::problem::Problem;

/// Answers when it is done, with what was removed and what could not be.
pub(crate) async fn purge(State(app): State<Shared>, caller: Caller) -> Result<Response, Problem> {
    if !caller.is_operator() {
        return Err(Problem::forbidden(
            "deleted content is purged with a key that has no scope and may also write",
        ));
    }
    let store = app.store.clone();
    // It waits for the disk.
    let purged = tokio::task::spawn_blocking(move || store.purge()).await.map_err(|_| Problem::internal())??;
    tracing::info!(
        by = caller.key.as_ref().map_or("-", |key| &key.id),
        not_reached = purged.not_reached.len(),
        "deleted content was purged"
    );
    Ok(json(serde_json::to_string(&purged).map_err(|_| Problem::internal())?))
}
