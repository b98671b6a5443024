//! Taking in a request's body: not too much, and not for ever.

use axum::body::Body;
use axum::extract::FromRequest;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use hyper::{Request, StatusCode};
use tokio::time::{Duration, Instant};

use crate::app::Shared;
use crate::problem::Problem;

/// A request's whole body.
pub(crate) struct Whole(pub(crate) Bytes);

impl FromRequest<Shared> for Whole {
    type Rejection = Problem;

    async fn from_request(request: Request<Body>, app: &Shared) -> Result<Self, Problem> {
        let limits = &app.settings.limits;
        let too_large = || {
            Problem::too_large(format!(
                "the body has more than {} bytes, which is the most that this server takes",
                limits.body_bytes
            ))
        };
        let mut body = request.into_body();
        let announced = body.size_hint().lower();
        if announced > limits.body_bytes as u64 {
            return Err(too_large());
        }
        let mut first: Option<Bytes> = None;
        let mut whole = BytesMut::new();
        let mut pace = Pace::new(limits.body_timeout);
        loop {
            let frame = tokio::time::timeout_at(pace.deadline, body.frame()).await.map_err(|_| {
                Problem::new(StatusCode::REQUEST_TIMEOUT, "http/timeout", "the body arrives too slowly")
            })?;
            let Some(frame) = frame else { break };
            let frame = frame.map_err(|error| Problem::invalid(format!("the body ended too early: {error}")))?;
            let Ok(data) = frame.into_data() else { continue };
            if first.as_ref().map_or(whole.len(), Bytes::len) + data.len() > limits.body_bytes {
                return Err(too_large());
            }
            pace.received(data.len());
            // Most bodies arrive in one piece, which need not be copied.
            if first.is_none() && whole.is_empty() {
                first = Some(data);
                continue;
            }
            if let Some(first) = first.take() {
                whole.reserve(usize::try_from(announced).unwrap_or(0).max(first.len() + data.len()));
                whole.extend_from_slice(&first);
            }
            whole.extend_from_slice(&data);
        }
        Ok(Self(first.unwrap_or_else(|| whole.freeze())))
    }
}

/// When a body is given up. A byte now and then is not progress: it would hold a connection for as long as the sender likes.
struct Pace {
    limit: Duration,
    deadline: Instant,
    towards: usize,
}

const PROGRESS: usize = 4 << 10;

impl Pace {
    fn new(limit: Duration) -> Self {
        Self { limit, deadline: Instant::now() + limit, towards: 0 }
    }

    fn received(&mut self, bytes: usize) {
        self.towards += bytes;
        if self.towards >= PROGRESS {
            self.towards = 0;
            self.deadline = Instant::now() + self.limit;
        }
    }
}
