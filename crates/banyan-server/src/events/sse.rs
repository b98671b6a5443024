//! Events as a stream that browsers and every SSE client understand.

use std::convert::Infallible;

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
use crate::caller::Caller;
use crate::problem::Problem;
use crate::resources::pairs;
use crate::shapes;

/// `GET /v1/events`: what happens, in all sessions or in those that are asked for.
pub(crate) async fn everything(
    State(app): State<Shared>,
    caller: Caller,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let asked = asked(&uri, &headers)?;
    Ok(response(Feed::open(&app, &caller, asked, Session::MayCome).await?))
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
    Ok(response(Feed::open(&app, &caller, asked, Session::MustExist).await?))
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

fn response(feed: Feed) -> Response {
    event_stream(Stream { feed: Box::new(feed), stage: Stage::Begins, last: Position::BEGINNING })
}

/// What a stream sends, piece by piece.
pub(crate) trait Pieces: Send + 'static {
    /// The next piece to send; none at the end.
    fn next(&mut self) -> impl Future<Output = Option<Bytes>> + Send;
}

/// An answer that goes on.
pub(crate) fn event_stream(pieces: impl Pieces) -> Response {
    let pieces = stream::unfold(pieces, |mut pieces| async move {
        let piece = pieces.next().await?;
        Some((Ok::<_, Infallible>(piece), pieces))
    });
    let mut response = Body::from_stream(pieces).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
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
