//! Reading a request's body: not more than the limit, not slower than the rate, and within the server's budget.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::FromRequest;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use hyper::http::Extensions;
use hyper::{Request, StatusCode};
use tokio::sync::Notify;
use tokio::time::{Duration, Instant};

use crate::app::Shared;
use crate::budget::{Budget, Holder, Lease, charged};
use crate::problem::Problem;
use crate::settings::Limits;

/// Bytes of each body that are not accounted, so that a small body takes no lock.
pub(crate) const ALLOWANCE: u64 = 16 << 10;

/// Accounted bytes are taken in steps of this size.
pub(crate) const STEP: u64 = 64 << 10;

/// A body is kept in segments of this size until it is complete. What one body gives back, the next one uses again; one
/// allocation for each body would stay resident for a while after it, beside the next one's.
const SEGMENT: usize = 256 << 10;

/// A request's whole body.
pub(crate) struct Whole(pub(crate) Bytes);

impl FromRequest<Shared> for Whole {
    type Rejection = Problem;

    async fn from_request(request: Request<Body>, app: &Shared) -> Result<Self, Problem> {
        let limits = &app.settings.limits;
        let (parts, body) = request.into_parts();
        let mut pieces = Pieces::of(body, limits.body_bytes as u64, limits)?;
        // Most bodies arrive in one piece, which need not be copied.
        let Some(first) = pieces.next(None).await? else { return Ok(Self(Bytes::new())) };
        if pieces.is_over() {
            return Ok(Self(first));
        }
        let mut room = Room::new(&app.request_memory, &parts.extensions);
        room.cover(first.len() as u64).await?;
        let Some(second) = pieces.next(room.revoked()).await? else { return Ok(Self(first)) };
        let mut whole = Segments::default();
        whole.push(&first);
        drop(first);
        let mut next = Some(second);
        while let Some(piece) = next {
            let waited = room.cover((whole.len() + piece.len()) as u64).await?;
            pieces.excuse(waited);
            whole.push(&piece);
            drop(piece);
            next = pieces.next(room.revoked()).await?;
        }
        Ok(Self(room.keep(whole.join())))
    }
}

/// A body that is not complete.
#[derive(Default)]
struct Segments {
    full: Vec<BytesMut>,
    last: BytesMut,
}

impl Segments {
    fn len(&self) -> usize {
        self.full.len() * SEGMENT + self.last.len()
    }

    fn push(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            if self.last.len() == SEGMENT {
                self.full.push(std::mem::take(&mut self.last));
            }
            let (now, later) = piece.split_at(piece.len().min(SEGMENT - self.last.len()));
            self.last.extend_from_slice(now);
            piece = later;
        }
    }

    /// All of it. Each segment is given back as soon as it is copied.
    fn join(mut self) -> Bytes {
        if self.full.is_empty() {
            return self.last.freeze();
        }
        let mut whole = BytesMut::with_capacity(self.len());
        for segment in self.full.drain(..) {
            whole.extend_from_slice(&segment);
        }
        whole.extend_from_slice(&self.last);
        whole.freeze()
    }
}

/// The part of the budget for bodies that one body has.
pub(crate) struct Room<'a> {
    budget: &'a Arc<Budget>,
    extensions: &'a Extensions,
    lease: Option<Lease>,
    revoked: Option<Arc<Notify>>,
}

impl<'a> Room<'a> {
    pub(crate) fn new(budget: &'a Arc<Budget>, extensions: &'a Extensions) -> Self {
        Self { budget, extensions, lease: None, revoked: None }
    }

    /// Makes room for this many bytes in all, and returns how long that took. Fails when there is none after a short wait.
    pub(crate) async fn cover(&mut self, bytes: u64) -> Result<Duration, Problem> {
        let covered = self.lease.as_ref().map_or(ALLOWANCE, Lease::amount);
        if bytes <= covered {
            return Ok(Duration::ZERO);
        }
        let began = Instant::now();
        match &mut self.lease {
            Some(lease) => lease.grow((bytes - lease.amount()).next_multiple_of(STEP)).await?,
            None => {
                let holder = Holder::of(self.extensions);
                let lease = self.lease.insert(self.budget.take(holder, bytes.next_multiple_of(STEP)).await?);
                self.revoked = Some(lease.allow_revoking());
            }
        }
        Ok(began.elapsed())
    }

    /// Gives back all.
    pub(crate) fn clear(&mut self) {
        self.lease = None;
        self.revoked = None;
    }

    /// The signal that the room is taken away, and the refusal that says so.
    pub(crate) fn revoked(&self) -> Option<(&Notify, &Lease)> {
        Some((self.revoked.as_deref()?, self.lease.as_ref()?))
    }

    /// The bytes, which keep their room until they are dropped.
    pub(crate) fn keep(self, bytes: Bytes) -> Bytes {
        match self.lease {
            None => bytes,
            Some(mut lease) => {
                lease.forbid_revoking();
                charged(bytes, lease)
            }
        }
    }
}

/// A body, piece by piece as it arrives.
pub(crate) struct Pieces {
    body: Body,
    pace: Pace,
    received: u64,
    most: u64,
}

impl Pieces {
    /// A body that may have at most this many bytes, at the rate of the limits.
    pub(crate) fn of(body: Body, most: u64, limits: &Limits) -> Result<Self, Problem> {
        let announced = body.size_hint().lower();
        let pace = Pace::new(limits.body_timeout, limits.body_rate);
        let pieces = Self { body, pace, received: 0, most };
        if announced > most { Err(pieces.too_large()) } else { Ok(pieces) }
    }

    /// The next piece; `None` at the end. Fails when the sender is too slow, or when the signal comes first.
    pub(crate) async fn next(&mut self, revoked: Option<(&Notify, &Lease)>) -> Result<Option<Bytes>, Problem> {
        loop {
            let frame = tokio::time::timeout_at(self.pace.deadline, self.body.frame());
            let frame = match revoked {
                None => frame.await,
                Some((revoked, lease)) => tokio::select! {
                    frame = frame => frame,
                    () = revoked.notified() => return Err(lease.revocation().into()),
                },
            };
            let frame = frame.map_err(|_| self.pace.too_slow())?;
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

    /// Whether nothing follows, as far as that is known.
    fn is_over(&self) -> bool {
        self.body.is_end_stream()
    }

    /// Leaves out of account what was spent waiting here.
    pub(crate) fn excuse(&mut self, waited: Duration) {
        self.pace.deadline += waited;
    }

    fn too_large(&self) -> Problem {
        Problem::too_large(format!(
            "the body has more than {} bytes, which is the most that this server takes",
            self.most
        ))
    }
}

/// The least rate of a body, measured over windows: each must bring its share before it ends, and the next one begins when it
/// has. A sender that was fast has no credit, because what it sent is in memory.
struct Pace {
    window: Duration,
    rate: u64,
    deadline: Instant,
    missing: u64,
}

impl Pace {
    fn new(window: Duration, rate: usize) -> Self {
        let mut pace = Self { window, rate: rate as u64, deadline: Instant::now(), missing: 0 };
        pace.restart();
        pace
    }

    fn restart(&mut self) {
        self.deadline = Instant::now() + self.window;
        self.missing = share(self.rate, self.window);
    }

    fn received(&mut self, bytes: usize) {
        self.missing = self.missing.saturating_sub(bytes as u64);
        if self.missing == 0 {
            self.restart();
        }
    }

    fn too_slow(&self) -> Problem {
        Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "http/timeout",
            format!(
                "the body arrives too slowly: at least {} bytes a second are needed, on average over {:?} (`limits.body_rate`, `limits.body_timeout`)",
                self.rate, self.window
            ),
        )
    }
}

/// How many bytes a window must bring.
pub(crate) fn share(rate: u64, window: Duration) -> u64 {
    u64::try_from(u128::from(rate) * window.as_millis() / 1000).unwrap_or(u64::MAX).max(1)
}
