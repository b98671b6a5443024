//! What is noted of every request: a count, a line in the log, a span. Never a body, a query or a key.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Body as _, Frame, SizeHint};
use hyper::{Method, StatusCode};

use crate::app::Shared;
use crate::calls::CALLS;
use crate::metrics::Asked;
use crate::request_id::RequestId;
use crate::traces::Span;

/// The id of the key that a request was made with, left on its answer for the log.
#[derive(Clone)]
pub(crate) struct MadeWith(pub(crate) String);

pub(crate) async fn observe(State(app): State<Shared>, mut request: Request, next: Next) -> Response {
    let id = RequestId::of(request.headers());
    let asked = asked(&request);
    let span = app.traces.as_ref().and_then(|traces| traces.begin(&asked, request.headers()));
    let received = request.body().size_hint().exact().unwrap_or(0);
    app.metrics.in_flight.inc();
    app.metrics.received.inc_by(received);
    let mut seen =
        Seen { app, asked, id, span, began: Instant::now(), received, sent: 0, outcome: None, key: None };
    request.extensions_mut().insert(seen.id.clone());
    let mut response = next.run(request).await;
    seen.answered(&mut response);
    // Most answers are whole by now. Of the others the end is waited for.
    match response.body().size_hint().exact() {
        Some(bytes) => {
            seen.sent = bytes;
            response
        }
        None => response.map(|body| Body::new(Counted { body, seen })),
    }
}

fn asked(request: &Request) -> Asked {
    let route = request.extensions().get::<MatchedPath>().map_or("(none)", MatchedPath::as_str);
    let (route, function) = match route.strip_prefix("/v1/call/") {
        Some(_) => (CALLS, function(request.uri().path())),
        None => (route, ""),
    };
    Asked { method: method(request.method()), route: route.to_owned(), function }
}

/// The function that a path calls, if there is one of that name.
fn function(path: &str) -> &'static str {
    let id = path.rsplit('/').next().unwrap_or_default();
    let decoded = id.contains('%').then(|| id.replace("%3A", ":").replace("%3a", ":"));
    let id = decoded.as_deref().unwrap_or(id);
    banyan::functions().iter().find(|function| function.id == id).map_or("(unknown)", |function| function.id)
}

fn method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// A request that is being answered. What is known of it is noted when it is dropped, however it ends.
struct Seen {
    app: Shared,
    asked: Asked,
    id: RequestId,
    span: Option<Span>,
    began: Instant,
    received: u64,
    sent: u64,
    outcome: Option<StatusCode>,
    key: Option<String>,
}

impl Seen {
    fn answered(&mut self, response: &mut Response) {
        self.outcome = Some(response.status());
        self.app.metrics.answered(&self.asked, response.status(), self.began.elapsed().as_secs_f64());
        self.key = response.extensions_mut().remove::<MadeWith>().map(|MadeWith(id)| id);
        self.id.put_on(response.headers_mut());
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        let Asked { method, route, function } = &self.asked;
        let (request_id, key) = (self.id.as_str(), self.key.as_deref().unwrap_or("-"));
        let (received, sent) = (self.received, self.sent);
        let ms = self.began.elapsed().as_secs_f64() * 1e3;
        let trace = self.span.as_ref().map(Span::trace_id);
        macro_rules! note {
            ($level:ident, $status:expr) => {
                tracing::$level!(target: "banyan::requests", request_id, method, route, function, status = $status, ms, key, received, sent, trace)
            };
        }
        match self.outcome {
            Some(status) if status.is_server_error() => note!(warn, status.as_u16()),
            Some(status) => note!(debug, status.as_u16()),
            // The caller went away before there was an answer.
            None => note!(debug, 0),
        }
        self.app.metrics.in_flight.dec();
        self.app.metrics.sent.inc_by(sent);
        if let (Some(span), Some(traces)) = (self.span.take(), &self.app.traces) {
            traces.end(span, &self.asked, self.outcome, self.id.as_str(), self.key.take());
        }
    }
}

/// A body whose bytes are counted as they leave.
struct Counted {
    body: Body,
    seen: Seen,
}

impl hyper::body::Body for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            self.seen.sent += data.len() as u64;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
