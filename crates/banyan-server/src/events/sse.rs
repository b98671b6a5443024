//! Events as a stream that browsers and every SSE client understand.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use banyan::model::{Position, SessionId};
use bytes::Bytes;
use futures_util::stream;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Uri};

use super::feed::{Feed, News, Session};
use super::frames::{Frame, stream_bytes};
use super::query::Asked;
use crate::app::Shared;
use crate::budget::shared_text;
use crate::caller::Caller;
use crate::problem::Problem;
use crate::resources::pairs;
use crate::response::{EVENT_STREAM, LARGE};
use crate::shapes;

/// `GET /v1/events`: what happens, in all sessions or in those that are asked for.
pub(crate) async fn everything(
    State(app): State<Shared>,
    caller: Caller,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let asked = asked(&uri, &headers)?;
    let feed = Feed::open(&app, &caller, asked, Session::MayCome).await?;
    Ok(response(&app, &caller, feed))
}

/// `GET /v1/sessions/{session_id}/events`: what happens in one session, which has to exist.
pub(crate) async fn of_session(
    State(app): State<Shared>,
    caller: Caller,
    id: Result<Path<String>, PathRejection>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Path(id) = id.map_err(|error| Problem::invalid(error.body_text()))?;
    let id = SessionId::from(id);
    let query = pairs(uri.query())?;
    if query.iter().any(|(name, _)| name == "format") {
        return shapes::open(&app, &caller, id, &query, last_event_id(&headers)?).await;
    }
    let asked = asked(&uri, &headers)?.in_session(id)?;
    let feed = Feed::open(&app, &caller, asked, Session::MustExist).await?;
    Ok(response(&app, &caller, feed))
}

fn asked(uri: &Uri, headers: &HeaderMap) -> Result<Asked, Problem> {
    Asked::in_query(uri.query(), last_event_id(headers)?)
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let last = headers.get("last-event-id").map(HeaderValue::to_str).transpose();
    let last = last.map_err(|_| Problem::invalid("the header Last-Event-ID is not a position"))?;
    Ok(last.filter(|last| !last.is_empty()))
}

/// Starts the response at once, and opens it again through proxies that wait for a first byte.
pub(crate) const COMMENT: Bytes = Bytes::from_static(b":\n\n");

fn response(app: &Shared, caller: &Caller, feed: Feed) -> Response {
    event_stream(app, caller, Stream { feed: Box::new(feed), stage: Stage::Begins, last: Position::BEGINNING })
}

/// What a stream sends, piece by piece.
pub(crate) trait Pieces: Send + 'static {
    /// The next piece to send; none at the end.
    fn next(&mut self) -> impl Future<Output = Option<Bytes>> + Send;
}

/// A response that goes on. A large piece waits for its part of the budget for responses, and the stream ends as if the
/// subscriber had lagged when there is none.
pub(crate) fn event_stream(app: &Shared, caller: &Caller, pieces: impl Pieces) -> Response {
    let (app, holder) = (Arc::clone(app), caller.holder());
    let pieces = stream::unfold(Some(pieces), move |pieces| {
        let (app, holder) = (Arc::clone(&app), holder.clone());
        async move {
            let mut pieces = pieces?;
            let piece = pieces.next().await?;
            if piece.len() < LARGE {
                return Some((Ok::<_, Infallible>(piece), Some(pieces)));
            }
            match shared_text(&app.texts, &app.response_memory, holder, piece).await {
                Ok(piece) => Some((Ok(piece), Some(pieces))),
                Err(_) => {
                    app.metrics.lagged.inc();
                    Some((Ok(stream_bytes(&[Frame::Lagged])), None))
                }
            }
        }
    });
    let mut response = Body::from_stream(pieces).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, EVENT_STREAM);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    // nginx holds answers back unless it is told not to.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// A stream under way.
struct Stream {
    feed: Box<Feed>,
    stage: Stage,
    /// The last position that was sent.
    last: Position,
}

#[derive(PartialEq, Eq)]
enum Stage {
    Begins,
    Past,
    Live,
}

impl Pieces for Stream {
    async fn next(&mut self) -> Option<Bytes> {
        if self.stage == Stage::Begins {
            self.stage = Stage::Past;
            return Some(COMMENT);
        }
        loop {
            // A position alone is no event. It tells a subscriber that the past is over, and where to come back to when
            // nothing has happened yet.
            if self.stage == Stage::Past
                && let Some(position) = self.feed.caught_up()
            {
                self.stage = Stage::Live;
                return Some(format!("id: {}\n\n", position.max(self.last)).into());
            }
            match self.feed.next().await? {
                News::Frames(frames) => {
                    self.last = frames.iter().filter_map(Frame::position).fold(self.last, Position::max);
                    return Some(stream_bytes(&frames));
                }
                News::Quiet => return Some(COMMENT),
                News::PastOver => {}
            }
        }
    }
}
