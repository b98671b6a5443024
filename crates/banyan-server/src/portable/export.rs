//! `GET /v1/sessions/{session_id}/export?to=…`: sent as it is written, at the pace of whoever reads it.

use std::io;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use banyan::export::{Export, ExportRequest, Redaction, Target};
use banyan::model::SessionId;
use bytes::Bytes;
use futures_util::stream;
use hyper::Uri;
use hyper::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS,
};

use crate::caller::Caller;
use crate::history::yes_or_no;
use crate::path::{Captured, segment};
use crate::problem::Problem;
use crate::resources::pairs;

/// What a browser may do with a file that it shows in place of saving it: the same as the file itself allows.
const POLICY: &str = "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'";

pub(super) async fn export(caller: Caller, Captured(path): Captured, uri: Uri) -> Result<Response, Problem> {
    let session_id = SessionId::from(path.first().map_or("", |(_, id)| id.as_str()));
    let request = asked(session_id, &uri)?;
    let (store, asked) = (caller.store.clone(), request.clone());
    let export = blocking(move || store.export(&asked)).await??;
    let mut response = Body::from_stream(stream::try_unfold(export, next_piece)).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(request.target.media_type()));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    let name = format!("{}.{}", segment(request.session_id.as_str()), request.target.extension());
    // Every byte of the name is percent-encoded, so it always fits a header.
    if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename*=UTF-8''{name}")) {
        headers.insert(CONTENT_DISPOSITION, value);
    }
    Ok(response)
}

async fn next_piece(mut export: Export) -> io::Result<Option<(Bytes, Export)>> {
    let read = blocking(move || (export.next_piece(), export)).await;
    let (piece, export) = read.map_err(|_| io::Error::other("the server is stopping"))?;
    // The headers are gone by now, so all that can be done is to break off.
    let piece = piece.map_err(|error| io::Error::other(error.message))?;
    Ok(piece.map(|piece| (Bytes::from(piece), export)))
}

/// Does what reads from disk where it keeps nobody waiting.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| Problem::from(banyan::model::Error::storage("the export was broken off")))
}

fn asked(session_id: SessionId, uri: &Uri) -> Result<ExportRequest, Problem> {
    let (mut target, mut redact) = (None, None);
    for (name, value) in pairs(uri.query())? {
        match name.as_str() {
            "to" if target.is_none() => target = Some(value.parse::<Target>()?),
            "redact" if redact.is_none() => redact = Some(yes_or_no(&name, &value)?),
            _ => {
                return Err(Problem::invalid(format!(
                    "`{name}` is not known in the query, or given twice; there is to, redact"
                )));
            }
        }
    }
    let names = Target::ALL.map(Target::as_str).join(", ");
    let target =
        target.ok_or_else(|| Problem::invalid(format!("`to` is missing in the query; there is {names}")))?;
    let redaction = if redact == Some(true) { Redaction::Secrets } else { Redaction::Off };
    Ok(ExportRequest { session_id, target, redaction })
}
