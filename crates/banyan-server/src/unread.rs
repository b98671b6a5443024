//! What a request has that its answer did not wait for. A connection that is closed while more arrives is reset, and the
//! answer may be lost with it. So the rest of a body is read away, if it is not much, and the connection stays; otherwise the
//! answer says that it is the last one.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper::header::{CONNECTION, HeaderValue};
use hyper::{Request, StatusCode};

/// How much of a body is read for nothing.
const MOST: u64 = 1 << 20;

/// How long anything is read for nothing.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// Where the body of a request is left by whoever does not read it to its end. A connection has one: over HTTP/1 its
/// requests come one after another.
#[derive(Clone, Default)]
pub(crate) struct Unread(Arc<Shared>);

#[derive(Default)]
struct Shared {
    rest: Mutex<Rest>,
    cut_short: AtomicBool,
}

#[derive(Default)]
struct Rest {
    /// Whether the request is not answered yet. What is let go of later is not wanted.
    wanted: bool,
    body: Option<Incoming>,
}

impl Unread {
    /// Has a request answered, and sees to it that its body does not stand in the way of the next one.
    pub(crate) async fn answer<E>(
        &self,
        request: Request<Incoming>,
        answer: impl AsyncFnOnce(Request<Body>) -> Result<Response, E>,
    ) -> Result<Response, E> {
        if request.body().is_end_stream() {
            return answer(request.map(Body::new)).await;
        }
        // Whoever asks first whether to send would take reading for a yes.
        let asks = request.headers().contains_key(hyper::header::EXPECT);
        self.rest().wanted = true;
        let lent = |body| Body::new(Lent { body: Some(body), unread: self.clone() });
        let mut response = answer(request.map(lent)).await?;
        let Some(body) = self.take() else { return Ok(response) };
        let late = response.status() == StatusCode::REQUEST_TIMEOUT;
        if asks || late || !read_away(body).await {
            self.0.cut_short.store(true, Ordering::Relaxed);
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(response)
    }

    /// Whether the connection ends though more may arrive.
    pub(crate) fn cut_short(&self) -> bool {
        self.0.cut_short.load(Ordering::Relaxed)
    }

    fn take(&self) -> Option<Incoming> {
        let mut rest = self.rest();
        rest.wanted = false;
        rest.body.take()
    }

    fn rest(&self) -> MutexGuard<'_, Rest> {
        self.0.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the rest of a body was little enough, and quick enough.
async fn read_away(mut body: Incoming) -> bool {
    if body.size_hint().lower() > MOST {
        return false;
    }
    let reading = async {
        let mut left = MOST;
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return false };
            let bytes = frame.data_ref().map_or(0, Bytes::len) as u64;
            let Some(rest) = left.checked_sub(bytes) else { return false };
            left = rest;
        }
        true
    };
    tokio::time::timeout(PATIENCE, reading).await.unwrap_or(false)
}

/// A body that comes back when it is let go of before its end.
struct Lent {
    /// There until it is dropped.
    body: Option<Incoming>,
    unread: Unread,
}

impl hyper::body::Body for Lent {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(hyper::body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(hyper::body::Body::size_hint).unwrap_or_default()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(body) = self.body.take().filter(|body| !body.is_end_stream()) {
            let mut rest = self.unread.rest();
            if rest.wanted {
                rest.body = Some(body);
            }
        }
    }
}
