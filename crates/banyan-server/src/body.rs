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
        let mut pieces = Pieces::of(request.into_body(), limits.body_bytes as u64, limits.body_timeout)?;
        // Most bodies arrive in one piece, which need not be copied.
        let Some(first) = pieces.next().await? else { return Ok(Self(Bytes::new())) };
        let Some(second) = pieces.next().await? else { return Ok(Self(first)) };
        let announced = usize::try_from(pieces.announced).unwrap_or(0);
        let mut whole = BytesMut::with_capacity(announced.max(first.len() + second.len()));
        whole.extend_from_slice(&first);
        whole.extend_from_slice(&second);
        while let Some(piece) = pieces.next().await? {
            whole.extend_from_slice(&piece);
        }
        Ok(Self(whole.freeze()))
    }
}

/// A body, piece by piece as it arrives.
pub(crate) struct Pieces {
    body: Body,
    pace: Pace,
    /// How many bytes the sender says there are, at least.
    announced: u64,
    received: u64,
    most: u64,
}

impl Pieces {
    /// A body that may have so many bytes, and may take so long for the next few of them.
    pub(crate) fn of(body: Body, most: u64, limit: Duration) -> Result<Self, Problem> {
        let announced = body.size_hint().lower();
        let pieces = Self { body, pace: Pace::new(limit), announced, received: 0, most };
        if announced > most { Err(pieces.too_large()) } else { Ok(pieces) }
    }

    /// The next piece; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        loop {
            let frame = tokio::time::timeout_at(self.pace.deadline, self.body.frame()).await.map_err(|_| {
                Problem::new(StatusCode::REQUEST_TIMEOUT, "http/timeout", "the body arrives too slowly")
            })?;
            let Some(frame) = frame else { return Ok(None) };
            let frame = frame.map_err(|error| Problem::invalid(format!("the body ended too early: {error}")))?;
            let Ok(piece) = frame.into_data() else { continue };
            self.received += piece.len() as u64;
            if self.received > self.most {
                return Err(self.too_large());
            }
            self.pace.received(piece.len());
            return Ok(Some(piece));
        }
    }

    /// The sender has all its time again.
    pub(crate) fn begin_waiting(&mut self) {
        self.pace = Pace::new(self.pace.limit);
    }

    fn too_large(&self) -> Problem {
        Problem::too_large(format!(
            "the body has more than {} bytes, which is the most that this server takes",
            self.most
        ))
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
