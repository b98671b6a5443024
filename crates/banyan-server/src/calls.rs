//! `POST /v1/call/{function_id}`: every function of the table, by its id.

use axum::response::{IntoResponse, Response};
use hyper::header::{CONTENT_TYPE, HeaderValue};

use crate::body::Whole;
use crate::caller::Caller;
use crate::path::Captured;
use crate::problem::Problem;

pub(crate) async fn call(
    caller: Caller,
    Captured(path): Captured,
    Whole(body): Whole,
) -> Result<Response, Problem> {
    let id = path.first().map_or("", |(_, id)| id);
    Ok(json(caller.store.call(id, &body).await?))
}

/// An answer that is JSON already.
pub(crate) fn json(text: String) -> Response {
    let mut response = text.into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
