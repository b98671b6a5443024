//! `POST /v1/backup` and `GET /v1/verify`: everything that there is, for those who run the server.

use std::io;
use std::sync::Mutex;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use banyan::Progress;
use banyan::backup::Backup;
use bytes::Bytes;
use futures_util::stream;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use serde_json::json;
use tokio::sync::mpsc;

use crate::app::Shared;
use crate::caller::Caller;
use crate::problem::Problem;
use crate::spool::Spooled;

/// Where a backup is sent from.
pub(crate) const BACKUP: &str = "/v1/backup";
/// Where everything is read.
pub(crate) const VERIFY: &str = "/v1/verify";

pub(crate) fn routes() -> Router<Shared> {
    Router::new().route(BACKUP, post(backup)).route(VERIFY, get(verify))
}

/// `POST /v1/backup`: the body says what the destination has, the answer is a stream of what it has not.
async fn backup(State(app): State<Shared>, caller: Caller, file: Spooled) -> Result<Response, Problem> {
    operator(&caller)?;
    let store = caller.store.clone();
    let begin = move || {
        let keys = match std::fs::read(&app.key_file) {
            Ok(keys) => Some(keys),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(banyan::model::Error::storage(format!("the keys cannot be read: {error}"))),
        };
        let mut file = file;
        store.backup(&mut file.input, keys)
    };
    let begun = tokio::task::spawn_blocking(begin).await.map_err(|_| Problem::internal())??;
    Ok(streamed(Body::from_stream(stream::try_unfold(begun, next_piece)), "application/octet-stream"))
}

async fn next_piece(mut backup: Backup) -> io::Result<Option<(Bytes, Backup)>> {
    let read = tokio::task::spawn_blocking(move || (backup.next_piece(), backup)).await;
    let (piece, backup) = read.map_err(|_| io::Error::other("the server is stopping"))?;
    // A stream without its end is no backup, so it is enough to break off.
    let piece = piece.map_err(|error| {
        tracing::warn!(error = error.message, "a backup was broken off");
        io::Error::other(error.message)
    })?;
    Ok(piece.map(|piece| (Bytes::from(piece), backup)))
}

/// `GET /v1/verify`: lines of JSON, first the progress, at last the report.
async fn verify(caller: Caller) -> Result<Response, Problem> {
    operator(&caller)?;
    let (lines, received) = mpsc::channel::<Bytes>(64);
    let store = caller.store.clone();
    tokio::task::spawn_blocking(move || {
        let progress = Lines { lines, of: Mutex::new(0) };
        let line = match store.verify(&progress) {
            Ok(report) => json!({"report": report}),
            Err(error) => json!({"error": error.to_string()}),
        };
        // A caller that is gone needs no report.
        let _ = progress.lines.blocking_send(line_of(&line));
    });
    let next = |mut received: mpsc::Receiver<Bytes>| async move {
        received.recv().await.map(|line| (Ok::<_, io::Error>(line), received))
    };
    Ok(streamed(Body::from_stream(stream::unfold(received, next)), "application/x-ndjson"))
}

/// Sends progress as lines. A line that finds no room is left out.
struct Lines {
    lines: mpsc::Sender<Bytes>,
    of: Mutex<u64>,
}

impl Progress for Lines {
    fn begin(&self, what: &str, steps: u64) {
        *self.of.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = steps;
        let _ = self.lines.try_send(line_of(&json!({"begin": what, "steps": steps})));
    }

    fn step(&self, done: u64) {
        let steps = *self.of.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if done.is_multiple_of((steps / 100).max(1)) {
            let _ = self.lines.try_send(line_of(&json!({"done": done})));
        }
    }
}

fn line_of(value: &serde_json::Value) -> Bytes {
    Bytes::from(format!("{value}\n"))
}

fn streamed(body: Body, kind: &'static str) -> Response {
    let mut response = body.into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    response
}

fn operator(caller: &Caller) -> Result<(), Problem> {
    if caller.is_operator() {
        return Ok(());
    }
    Err(Problem::forbidden("this needs a key that has no scope and may also write"))
}
