//! `/v1/keys`: an operator lists, makes and removes keys.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use banyan::model::Object;
use hyper::StatusCode;
use hyper::header::{CACHE_CONTROL, HeaderValue};
use serde::Serialize;

use crate::app::Shared;
use crate::body::Whole;
use crate::caller::Caller;
use crate::calls::json;
use crate::keys::{Key, KeyError, NewKey, RefusedKey};
use crate::path::Captured;
use crate::problem::Problem;

/// A key as it is shown: neither its text nor its hash.
#[derive(Serialize)]
struct Shown<'a> {
    id: &'a str,
    name: &'a str,
    scope: &'a Object,
    read_only: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests_per_second: Option<u32>,
    created_at: i64,
    /// The text to call with, once, when the key is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
}

#[derive(Serialize)]
struct Listed<'a> {
    keys: Vec<Shown<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refused: Vec<Refused>,
}

/// A key that is not accepted.
#[derive(Serialize)]
struct Refused {
    id: String,
    reason: String,
}

impl<'a> Shown<'a> {
    fn new(key: &'a Key, text: Option<&'a str>) -> Self {
        Self {
            id: &key.id,
            name: &key.name,
            scope: &key.scope,
            read_only: key.read_only,
            requests_per_second: key.requests_per_second,
            created_at: key.created_at,
            key: text,
        }
    }
}

/// `GET /v1/keys`
pub(crate) async fn list(State(app): State<Shared>, caller: Caller) -> Result<Response, Problem> {
    operator(&caller)?;
    let keys = app.keys.all();
    let refused = app.keys.refused().into_iter().map(|RefusedKey { id, reason }| Refused { id, reason }).collect();
    answer(StatusCode::OK, &Listed { keys: keys.iter().map(|key| Shown::new(key, None)).collect(), refused })
}

/// `POST /v1/keys`
pub(crate) async fn create(
    State(app): State<Shared>,
    caller: Caller,
    Whole(body): Whole,
) -> Result<Response, Problem> {
    operator(&caller)?;
    // An array would be read as the fields in their order.
    if body.trim_ascii_start().first() == Some(&b'[') {
        return Err(Problem::invalid("the body is an array; send an object with the key's fields"));
    }
    let new: NewKey = serde_json::from_slice(&body).map_err(|error| Problem::invalid(error.to_string()))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    let (key, text) = aside(move || app.keys.create(new, now)).await?;
    tracing::info!(key = key.id, by = made_by(&caller), "a key was made");
    answer(StatusCode::CREATED, &Shown::new(&key, Some(&text)))
}

/// `DELETE /v1/keys/{key_id}`
pub(crate) async fn remove(
    State(app): State<Shared>,
    caller: Caller,
    Captured(path): Captured,
) -> Result<Response, Problem> {
    operator(&caller)?;
    let id = path.first().map_or("", |(_, id)| id).to_owned();
    if !app.keys.all().iter().any(|key| key.id == id) && !app.keys.refused().iter().any(|key| key.id == id) {
        return Err(Problem::new(StatusCode::NOT_FOUND, "auth/key_not_found", "there is no key with this id"));
    }
    let removed = id.clone();
    aside(move || app.keys.remove(&removed)).await?;
    tracing::info!(key = id, by = made_by(&caller), "a key was removed");
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn operator(caller: &Caller) -> Result<(), Problem> {
    if caller.is_operator() {
        return Ok(());
    }
    Err(Problem::forbidden("keys are managed with a key that has no scope and may also write"))
}

fn made_by(caller: &Caller) -> &str {
    caller.key.as_ref().map_or("-", |key| &key.id)
}

/// Changing the file waits for the disk and for other processes.
async fn aside<T: Send + 'static>(
    change: impl FnOnce() -> Result<T, KeyError> + Send + 'static,
) -> Result<T, Problem> {
    let changed = tokio::task::spawn_blocking(change).await.map_err(|_| Problem::internal())?;
    changed.map_err(|error| match error {
        KeyError::Refused(reason) => Problem::invalid(reason),
        KeyError::Io { .. } | KeyError::Unreadable { .. } => {
            tracing::warn!(%error, "the keys could not be changed");
            Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "session/storage",
                "the keys could not be changed; the log says why",
            )
        }
    })
}

fn answer(status: StatusCode, value: &impl Serialize) -> Result<Response, Problem> {
    let mut response = json(serde_json::to_string(value).map_err(|_| Problem::internal())?);
    *response.status_mut() = status;
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
