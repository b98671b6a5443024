//! `GET /sessions/{session_id}/history`: a page of messages, or all of them, sent as they are read.

use std::collections::VecDeque;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use banyan::model::{EntryId, Error};
use banyan::{PathState, Whereabouts};
use banyan_formats::history::{Disclosure, HistoryMessage, Projected, Standing, milliseconds};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue, LINK};
use hyper::{HeaderMap, StatusCode, Uri};

use super::cursor::Cursor;
use super::query::{Asked, Since};
use super::read::{Ahead, Back, Reader, standing};
use super::whole::Whole;
use crate::app::Shared;
use crate::caller::Caller;
use crate::path::Captured;
use crate::problem::Problem;
use crate::resources::is_known;

pub(crate) async fn history(
    State(app): State<Shared>,
    caller: Caller,
    Captured(path): Captured,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let session_id = path.first().map_or("", |(_, id)| id);
    let last = headers.get("last-event-id").map(HeaderValue::to_str).transpose();
    let last = last.map_err(|_| Problem::invalid("the header Last-Event-ID is not a position"))?;
    let asked = Asked::read(&caller, session_id, uri.query(), last.filter(|last| !last.is_empty()))?;
    let reader = Reader::new(caller.store.clone(), asked.session_id.clone(), asked.disclosure);
    if let Some(streaming) = asked.stream {
        // Who comes back does so with the query of the first time.
        if streaming.left_at.is_none() {
            must_be_on_path(&reader, &asked)?;
        }
        return super::stream::open(&app, &caller, reader, asked, streaming).await;
    }
    let state = reader.state()?;
    let tag = tag(&state);
    if is_known(&headers, &tag) {
        return Ok(with_headers(StatusCode::NOT_MODIFIED.into_response(), &tag, None));
    }
    must_be_on_path(&reader, &asked)?;
    let (body, link) = match (asked.limit, &asked.following) {
        (Some(limit), None) => {
            let page = page(&reader, &state, &asked, limit)?;
            (array(&page.messages).into(), page.link(uri.path(), &asked))
        }
        (limit, Some(after)) => {
            let page = following(&reader, &state, after, limit)?;
            (array(&page.messages).into(), page.link(uri.path(), &asked))
        }
        (None, None) => (Whole::begin(reader, state, &asked)?.body()?, None),
    };
    Ok(with_headers(body.into_response(), &tag, link))
}

/// Refuses entries that the path does not have: what comes before or after them cannot be told.
fn must_be_on_path(reader: &Reader, asked: &Asked) -> Result<(), Error> {
    let since = match &asked.since {
        Some(Since::Message(entry)) => Some(entry),
        Some(Since::Time(_)) | None => None,
    };
    let named: Vec<EntryId> =
        [asked.before.as_ref(), asked.following.as_ref(), since].into_iter().flatten().cloned().collect();
    let (_, found) = reader.store.whereabouts(&reader.session_id, &named)?;
    match named.iter().zip(found).find(|(_, found)| !matches!(found, Whereabouts::OnPath(_))) {
        Some((entry, _)) => Err(Error::invalid_cursor(format!(
            "entry `{entry}`, which the cursor is of, is not on the active path; read the newest page again"
        ))),
        None => Ok(()),
    }
}

/// Names what a history is made of. Any change to the session gives another name, and so does time that passes in silence.
fn tag(state: &PathState) -> String {
    let silent = standing(state.status, state.updated_at) == Standing::Abandoned;
    format!("\"{}{}\"", state.version, if silent { "-silent" } else { "" })
}

fn with_headers(mut response: Response, tag: &str, link: Option<String>) -> Response {
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // It may be kept, and must be asked about each time.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(ETAG, tag);
    }
    if let Some(link) = link.and_then(|link| HeaderValue::from_str(&link).ok()) {
        headers.insert(LINK, link);
    }
    response
}

fn array(messages: &VecDeque<Projected>) -> Vec<u8> {
    // Most messages need no more, so the text is not moved while it grows.
    let mut text = Vec::with_capacity(messages.len() * 2048 + 2);
    let messages: Vec<&HistoryMessage> = messages.iter().map(|message| &message.message).collect();
    // Messages always have a JSON form, and memory always takes it.
    let _ = serde_json::to_writer(&mut text, &messages);
    text
}

pub(crate) fn json(message: &Projected) -> String {
    // A message always has a JSON form.
    serde_json::to_string(&message.message).unwrap_or_default()
}

/// Some messages, oldest first, and whether there are others around them.
pub(crate) struct Page {
    pub(crate) messages: VecDeque<Projected>,
    older: bool,
    newer: bool,
}

impl Page {
    /// Where the pages before and after this one are.
    fn link(&self, path: &str, asked: &Asked) -> Option<String> {
        let details = match asked.disclosure {
            Disclosure::Operator => "&technical_details=1",
            Disclosure::Public => "",
        };
        let limit = asked.limit.map_or(String::new(), |limit| format!("limit={limit}&"));
        let link = |cursor: Cursor, rel: &str| {
            format!("<{path}?{limit}cursor={}{details}>; rel=\"{rel}\"", cursor.encode())
        };
        let first = |message: Option<&Projected>| message.and_then(|message| message.entries.first().cloned());
        let older = first(self.messages.front()).filter(|_| self.older);
        let newer = first(self.messages.back()).filter(|_| self.newer);
        let links = [
            older.map(|entry| link(Cursor::Before(entry), "prev")),
            newer.map(|entry| link(Cursor::After(entry), "next")),
        ];
        let links: Vec<String> = links.into_iter().flatten().collect();
        if links.is_empty() { None } else { Some(links.join(", ")) }
    }
}

/// The newest messages of those asked for.
fn page(reader: &Reader, state: &PathState, asked: &Asked, limit: usize) -> Result<Page, Error> {
    let mut back = match &asked.before {
        Some(entry) => Back::from_before(reader, state, entry.clone()),
        None => Back::from_end(reader, state),
    }
    .expecting(limit);
    let (messages, older) = newest(&mut back, asked.since.as_ref(), limit)?;
    Ok(Page { messages, older, newer: asked.before.is_some() })
}

/// The last messages on the way back that come after something, and whether there are more of those.
pub(crate) fn newest(
    back: &mut Back<'_>,
    since: Option<&Since>,
    limit: usize,
) -> Result<(VecDeque<Projected>, bool), Error> {
    let mut messages = VecDeque::new();
    while messages.len() < limit
        && let Some(segment) = back.next()?
    {
        messages.reserve(segment.messages.len().min(limit - messages.len()));
        for message in segment.messages.into_iter().rev() {
            if since.is_some_and(|since| since.is_reached_by(&message)) {
                return Ok((messages, false));
            }
            if messages.len() == limit {
                return Ok((messages, true));
            }
            messages.push_front(message);
        }
    }
    Ok((messages, back.has_more()))
}

impl Since {
    /// Whether only what comes after this message was asked for.
    pub(crate) fn is_reached_by(&self, message: &Projected) -> bool {
        match self {
            // A time that cannot be read is not known to be newer than anything.
            Self::Time(time) => milliseconds(&message.message.timestamp).is_some_and(|at| at <= *time),
            Self::Message(entry) => message.entries.contains(entry),
        }
    }
}

/// The messages that follow one.
fn following(reader: &Reader, state: &PathState, after: &EntryId, limit: Option<usize>) -> Result<Page, Error> {
    let limit = limit.unwrap_or(super::query::MOST);
    let mut ahead = Ahead::from_message_of(reader, state.leaf.clone(), after.clone())?;
    let mut messages = VecDeque::new();
    let mut reached = false;
    let mut take = |message: Projected, messages: &mut VecDeque<Projected>| {
        if reached {
            messages.push_back(message);
        } else {
            reached = message.entries.contains(after);
        }
    };
    while messages.len() <= limit
        && let Some(more) = ahead.next()?
    {
        more.into_iter().for_each(|message| take(message, &mut messages));
    }
    if messages.len() <= limit
        && let Some(newest) = ahead.finish(state)
    {
        take(newest, &mut messages);
    }
    let newer = messages.len() > limit;
    messages.truncate(limit);
    Ok(Page { messages, older: true, newer })
}
