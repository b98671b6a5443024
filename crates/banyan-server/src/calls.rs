//! `POST /v1/call/{function_id}`: every function of the table, by its id.

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};

use crate::app::Shared;
use crate::body::Whole;
use crate::caller::Caller;
use crate::path::Captured;
use crate::problem::Problem;

/// What calls are counted as, whichever function they ask for.
pub(crate) const CALLS: &str = "/v1/call/{function_id}";

/// Every function has an address of its own, because a placeholder takes longer to read. Ids that are written another way, and
/// those that nothing has, are taken by the placeholder.
pub(crate) fn routes() -> Router<Shared> {
    let any = |caller: Caller, Captured(path): Captured, Whole(body): Whole| async move {
        call(&caller, path.first().map_or("", |(_, id)| id), &body).await
    };
    banyan::functions().iter().fold(Router::new().route(CALLS, post(any)), |router, function| {
        let this =
            move |caller: Caller, Whole(body): Whole| async move { call(&caller, function.id, &body).await };
        router.route(&format!("/v1/call/{}", function.id), post(this))
    })
}

async fn call(caller: &Caller, id: &str, body: &Bytes) -> Result<Response, Problem> {
    Ok(json(caller.store.call(id, body).await?))
}

/// An answer that is JSON already.
pub(crate) fn json(text: String) -> Response {
    let mut response = text.into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
