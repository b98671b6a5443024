//! `POST /v1/call/{function_id}`: every function of the table, by its id.

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use hyper::header::{CONTENT_TYPE, HeaderValue};

use crate::body::Whole;
use crate::caller::Caller;
use crate::problem::Problem;

pub(crate) async fn call(caller: Caller, Path(id): Path<String>, Whole(body): Whole) -> Result<Response, Problem> {
    Ok(json(caller.store.call(&id, &body).await?))
}

/// An answer that is JSON already.
pub(crate) fn json(text: String) -> Response {
    let mut response = text.into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
