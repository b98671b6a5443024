//! `GET` and `PUT /v1/sessions/{session_id}/ocp-context`: a session as a context, all of it, and a context into a session.

use axum::extract::State;
use axum::response::Response;
use banyan::import::Mode;
use banyan::model::{Error, GetRequest, SessionId};
use banyan_formats::ocp::read_file;

use super::{count, say_ignored};
use crate::app::Shared;
use crate::body::Whole;
use crate::caller::Caller;
use crate::calls;
use crate::path::Captured;
use crate::problem::Problem;

pub(super) async fn get(caller: Caller, Captured(path): Captured) -> Result<Response, Problem> {
    context(&caller, session_id(&path)).await
}

pub(super) async fn put(
    State(app): State<Shared>,
    caller: Caller,
    Captured(path): Captured,
    Whole(body): Whole,
) -> Result<Response, Problem> {
    let id = session_id(&path);
    let received = read_file(&body, banyan::now_ms()).map_err(|why| {
        Problem::invalid(format!("the body is no context, which is an object with a `context_id`: {why}"))
    })?;
    if caller.store.get(GetRequest { session_id: id.clone() }).await?.is_none() {
        return Err(Error::not_found(&id).into());
    }
    let context_id = &received.context.context_id;
    if let Some(other) = caller.store.session_of_context(context_id).await?.filter(|other| *other != id) {
        return Err(Error::conflict(format!("context `{context_id}` is that of session `{other}`")).into());
    }
    caller.store.add_context(&id, &received, Mode::Write).await?;
    let mut response = context(&caller, id).await?;
    count(&app, &received.ignored);
    say_ignored(&received.ignored, response.headers_mut());
    Ok(response)
}

fn session_id(path: &[(String, String)]) -> SessionId {
    SessionId::from(path.first().map_or("", |(_, id)| id.as_str()))
}

async fn context(caller: &Caller, id: SessionId) -> Result<Response, Problem> {
    let store = caller.store.clone();
    let told = tokio::task::spawn_blocking(move || store.context(&id)).await.map_err(|_| Problem::internal())?;
    Ok(calls::json(told?.listed().to_json()))
}
