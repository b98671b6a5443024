//! The budget for responses: bytes that were made and wait for their reader.
//!
//! A response that is made is never thrown away, because what it reports may have changed the store. It is accounted
//! regardless of the limit, and while the budget is exhausted new reads wait before they begin.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use banyan::Effect;
use bytes::Bytes;
use hyper::Method;
use hyper::body::{Body as _, Frame, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderValue};

use crate::app::App;
use crate::budget::{Budget, Holder, Lease, Refusal, charged};

/// From this size on a piece of a response is accounted, so that a small one takes no lock.
pub(crate) const LARGE: usize = 64 << 10;

/// What a read is accounted with until its response is there, while the budget is nearly exhausted.
const EXPECTED: u64 = 1 << 20;

/// Whether a request has to wait for room before it begins: it only reads, and the budget is nearly exhausted.
pub(crate) fn must_wait(app: &App, method: &Method, path: &str) -> bool {
    app.response_memory.is_pressed() && is_read(method, path)
}

/// The same for a call by function.
pub(crate) fn call_must_wait(app: &App, function: &str) -> bool {
    app.response_memory.is_pressed() && reads(function)
}

/// Waits for room for a read. The lease stands for its response until that is there.
pub(crate) async fn room(app: &App, holder: Holder) -> Result<Lease, Refusal> {
    let budget = &app.response_memory;
    budget.take(holder, EXPECTED.min(budget.limit() / 8)).await
}

/// Whether a request only reads, and its response may be large.
fn is_read(method: &Method, path: &str) -> bool {
    if let Some(function) = path.strip_prefix("/v1/call/") {
        return reads(&function.replace("%3A", ":").replace("%3a", ":"));
    }
    // Streams of events are accounted piece by piece.
    *method == Method::GET
        && (path.starts_with("/v1/sessions") || path.starts_with("/v1/search"))
        && !path.ends_with("/events")
}

fn reads(function: &str) -> bool {
    banyan::functions().iter().any(|known| known.id == function && known.effect == Effect::Reads)
}

/// Accounts the large pieces of a response until they are sent. Event streams account their own.
pub(crate) fn account(app: &App, response: Response, holder: impl FnOnce() -> Holder) -> Response {
    let is_small = response.body().size_hint().exact().is_some_and(|bytes| bytes <= LARGE as u64);
    if is_small || response.headers().get(CONTENT_TYPE) == Some(&EVENT_STREAM) {
        return response;
    }
    let (budget, holder) = (Arc::clone(&app.response_memory), holder());
    response.map(|body| Body::new(Accounted { body, budget, holder }))
}

/// The media type of a stream of events.
pub(crate) const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

/// A body whose large pieces are accounted.
struct Accounted {
    body: Body,
    budget: Arc<Budget>,
    holder: Holder,
}

impl hyper::body::Body for Accounted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        polled.map_ok(|frame| {
            frame.map_data(|bytes| match bytes.len() {
                ..LARGE => bytes,
                large => {
                    let lease = self.budget.take_regardless(self.holder.clone(), large as u64);
                    charged(bytes, lease)
                }
            })
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
