//! The start of a connection: who may connect, and what the connection is for.
//!
//! A browser says in `Origin` which page it acts for, and no page can leave that out or choose it. Pages on this machine may connect,
//! others may not, unless an [`Admission`](super::Admission) decides. Programs that are no browser send no `Origin`.

use std::net::IpAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::tungstenite::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderValue, ORIGIN};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, accept_hdr_async_with_config};

use super::Door;
use super::admission::{Refusal, Withdrawal};

/// How long a client may take to ask for a WebSocket.
const PATIENCE: Duration = Duration::from_secs(10);

/// Frames are read into buffers of this size. A small one keeps little memory busy when a message waits for a slow reader.
const READ_BUFFER: usize = 32 << 10;

/// What a client connected for, which is in the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To be a worker.
    Worker,
    /// To leave traces, metrics and logs, which SDKs do on a connection of its own. Nobody keeps them here.
    Telemetry,
}

/// A client that joined.
pub(super) struct Accepted<S> {
    pub(super) socket: WebSocketStream<S>,
    pub(super) purpose: Purpose,
    /// Resolves when the client may not stay.
    pub(super) withdrawal: Withdrawal,
}

/// Answers the request for a WebSocket. `None` when there will be none; the client was told why, if it could be.
pub(super) async fn accept<S>(stream: S, frame_bytes: usize, door: &Door) -> Option<Accepted<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut admitted = None;
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .max_message_size(Some(frame_bytes))
        .max_frame_size(Some(frame_bytes));
    #[allow(clippy::result_large_err, reason = "the type of the answer is not ours to choose")]
    let check = |request: &Request, response: Response| match admit(request, door) {
        Ok(found) => {
            admitted = Some(found);
            Ok(response)
        }
        Err(Refusal { status, reason }) => {
            tracing::warn!(%status, reason, "the bus refused a connection");
            Err(refusal(status, &reason))
        }
    };
    match tokio::time::timeout(PATIENCE, accept_hdr_async_with_config(stream, check, Some(config))).await {
        Ok(Ok(socket)) => admitted.map(|(purpose, withdrawal)| Accepted { socket, purpose, withdrawal }),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a client did not become a WebSocket");
            None
        }
        Err(_) => {
            tracing::debug!("a client took too long to ask for a WebSocket");
            None
        }
    }
}

fn admit(request: &Request, door: &Door) -> Result<(Purpose, Withdrawal), Refusal> {
    let refused = |status, reason: &str| Err(Refusal { status, reason: reason.to_owned() });
    let withdrawal: Withdrawal = match &door.admission {
        Some(admission) => admission.admit(request)?,
        None => {
            from_this_machine(request)?;
            Box::pin(std::future::pending())
        }
    };
    if door.full {
        return refused(StatusCode::SERVICE_UNAVAILABLE, "This bus has as many connections as it may have.\n");
    }
    let path = request.uri().path();
    if path.starts_with("/ws/channels/") {
        let reason = "This is Banyan's own bus, which has no channels. A full engine (`iii`) has.\n";
        return refused(StatusCode::NOT_FOUND, reason);
    }
    let telemetry = path.trim_end_matches('/').ends_with("/otel");
    Ok((if telemetry { Purpose::Telemetry } else { Purpose::Worker }, withdrawal))
}

/// Refuses what a browser does for a page of another machine.
fn from_this_machine(request: &Request) -> Result<(), Refusal> {
    let refused = |reason: &str| Err(Refusal { status: StatusCode::FORBIDDEN, reason: reason.to_owned() });
    for origin in request.headers().get_all(ORIGIN) {
        if !origin.to_str().is_ok_and(is_local_origin) {
            return refused("Pages on other sites may not connect to this bus: only pages from localhost may.\n");
        }
    }
    // A browser that was led here by a foreign name has an origin that says so. This is for what a page may do without one.
    let led = request.headers().contains_key("sec-fetch-site");
    if led && !request.headers().get(HOST).and_then(|host| host.to_str().ok()).is_some_and(is_local) {
        return refused("A browser reaches this bus by the names of this machine only, such as localhost.\n");
    }
    Ok(())
}

fn refusal(status: StatusCode, why: &str) -> ErrorResponse {
    let mut response = ErrorResponse::new(Some(why.to_owned()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(why.len()));
    response
}

fn is_local_origin(origin: &str) -> bool {
    origin.split_once("://").is_some_and(|(scheme, host)| matches!(scheme, "http" | "https") && is_local(host))
}

fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or(rest, |(name, _)| name),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let name = name.to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::is_local_origin;

    #[test]
    fn origins_of_this_machine() {
        for origin in ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:8080", "http://app.localhost"] {
            assert!(is_local_origin(origin), "{origin}");
        }
        for origin in [
            "null",
            "",
            "https://evil.example",
            "http://localhost.evil.example",
            "http://127.0.0.1.evil.example",
            "file://",
        ] {
            assert!(!is_local_origin(origin), "{origin}");
        }
    }
}
