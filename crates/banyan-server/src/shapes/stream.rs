//! `GET /v1/sessions/{session_id}/events?format=ag-ui`: the messages that there are, and from then on what happens, as AG-UI tells it.

use std::sync::Arc;

use axum::response::Response;
use banyan::LeafWatch;
use banyan::model::{Error, ErrorCode, EventPayload, Position, SessionId, SessionStatus};
use banyan_formats::shapes::{Left, Live, Scene, Told};
use bytes::Bytes;
use tokio::sync::Semaphore;

use super::follow::{Follower, doing};
use super::read::{Path, Reader};
use super::resume::{Mark, Written, tag};
use super::{OF_EVENTS, only};
use crate::app::Shared;
use crate::caller::Caller;
use crate::events::{self, COMMENT, Feed, Frame, News, Pieces, Session, event_stream, read};
use crate::problem::Problem;

const GONE: &str = "The session was deleted.";

/// Opens the stream. The query has a format.
pub(crate) async fn open(
    app: &Shared,
    caller: &Caller,
    id: SessionId,
    query: &[(String, String)],
    last_event_id: Option<&str>,
) -> Result<Response, Problem> {
    match query.iter().filter(|(name, _)| name == "format").map(|(_, format)| format.as_str()).collect::<Vec<_>>()
        [..]
    {
        [OF_EVENTS] => {}
        [format] => {
            return Err(Problem::invalid(format!(
                "there is no format `{format}` for events; the formats are {OF_EVENTS}"
            )));
        }
        _ => return Err(Problem::invalid("`format` is given twice in the query")),
    }
    let [after] = only(query, ["after"])?;
    let mark = last_event_id.or(after).map(Mark::decode).transpose()?;
    // Whoever watches before reading misses nothing.
    let watch = caller.store.watch_leaf(&id);
    let subscription = events::Asked::of_messages(id.clone(), mark.as_ref().map(|mark| mark.position));
    let feed = Feed::open(app, caller, subscription, Session::MustExist).await?;
    let reader = Reader::new(caller.store.clone(), id);
    let stream = Stream {
        feed: Box::new(feed),
        watch,
        reader,
        readers: Arc::clone(&app.readers),
        stage: Stage::Begins(mark),
        written: Written::default(),
    };
    Ok(event_stream(app, caller, stream))
}

/// A stream under way.
struct Stream {
    feed: Box<Feed>,
    watch: LeafWatch,
    reader: Reader,
    readers: Arc<Semaphore>,
    stage: Stage,
    written: Written,
}

enum Stage {
    Begins(Option<Mark>),
    /// The past since a mark is looked through.
    Missed {
        mark: Mark,
        nothing: bool,
    },
    /// All messages are to be told.
    Tells(Left),
    Follows(Box<Follower>),
    Over,
}

impl Pieces for Stream {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let piece = match std::mem::replace(&mut self.stage, Stage::Over) {
                Stage::Begins(mark) => {
                    self.stage = match mark {
                        Some(mark) => {
                            self.written.left = mark.left.clone();
                            Stage::Missed { mark, nothing: true }
                        }
                        None => Stage::Tells(Left::default()),
                    };
                    Ok(Some(COMMENT))
                }
                Stage::Missed { mark, nothing } => self.look_through(mark, nothing).await,
                Stage::Tells(left) => self.tell(left).await,
                Stage::Follows(follower) => self.follow(follower).await,
                Stage::Over => return None,
            };
            match piece {
                Ok(Some(piece)) => return Some(piece),
                Ok(None) => {}
                Err(error) if error.code == ErrorCode::NotFound => {
                    let position = self.feed.caught_up().unwrap_or(Position::BEGINNING);
                    return Some(self.gone(self.written.left.clone(), position));
                }
                Err(error) => {
                    tracing::warn!(%error, "a stream ended because its messages could not be read");
                    return None;
                }
            }
        }
    }
}

impl Stream {
    /// Looks whether anything happened since a mark. If so, all is told again: a front end that was away is not told what it has
    /// event by event.
    async fn look_through(&mut self, mark: Mark, mut nothing: bool) -> Result<Option<Bytes>, Error> {
        if self.feed.caught_up().is_none() {
            let Some(news) = self.feed.next().await else { return Ok(None) };
            if let News::Frames(frames) = &news {
                nothing = false;
                if frames.iter().any(|frame| matches!(frame, Frame::Lagged)) {
                    return Ok(None);
                }
                if let Some(deleted) = deleted(frames) {
                    return Ok(Some(self.gone(mark.left, deleted)));
                }
            }
            let quiet = matches!(news, News::Quiet);
            self.stage = Stage::Missed { mark, nothing };
            return Ok(if quiet { Some(COMMENT) } else { None });
        }
        let state = self.reader.state()?;
        let same = mark.leaf == Some(tag(state.leaf.as_ref())) && state.position.commit <= mark.position.commit;
        if !nothing || !same {
            self.stage = Stage::Tells(mark.left);
            return Ok(None);
        }
        let (reader, leaf) = (self.reader.clone(), state.leaf.clone());
        let Path { items, revision } = self.reading(move || reader.path(leaf.as_ref())).await?;
        // Whatever was written while this was read, the front end does not have.
        if self.reader.state()?.version != state.version {
            self.stage = Stage::Tells(mark.left);
            return Ok(None);
        }
        let mut live = Live::new(self.reader.scene(&state)).resumed(&mark.left);
        live.goes_on(&items, doing(&state));
        let events = live.settle();
        let mut follower = Follower::new(live, &items, revision, &state);
        follower.seen = follower.seen.max(mark.position);
        let text = match events.as_slice() {
            // An id alone is no event. It tells that the past is over, and nothing was missed.
            [] => format!("id: {}\n\n", mark.encode()).into(),
            events => self.written.frames(events, &follower),
        };
        self.stage = Stage::Follows(Box::new(follower));
        Ok(Some(text))
    }

    /// Tells all messages.
    async fn tell(&mut self, left: Left) -> Result<Option<Bytes>, Error> {
        let reader = self.reader.clone();
        let (state, path) = self
            .reading(move || {
                let state = reader.state()?;
                let path = reader.path(state.leaf.as_ref())?;
                Ok((state, path))
            })
            .await?;
        let mut live = Live::new(self.reader.scene(&state)).resumed(&left);
        let events = live.snapshot(&path.items, doing(&state), &state.position.to_string());
        let mut follower = Follower::new(live, &path.items, path.revision, &state);
        follower.seen = follower.seen.max(self.feed.caught_up().unwrap_or(Position::BEGINNING));
        let text = self.written.frames(&events, &follower);
        self.stage = Stage::Follows(Box::new(follower));
        Ok(Some(text))
    }

    async fn follow(&mut self, mut follower: Box<Follower>) -> Result<Option<Bytes>, Error> {
        let news = tokio::select! {
            biased;
            () = self.watch.moved() => {
                self.stage = match self.reader.state()?.leaf == follower.leaf {
                    true => Stage::Follows(follower),
                    false => Stage::Tells(self.written.left.clone()),
                };
                return Ok(None);
            }
            news = self.feed.next() => news,
        };
        let frames = match news {
            Some(News::Frames(frames)) => frames,
            Some(News::PastOver) => Vec::new(),
            Some(News::Quiet) => {
                let events = follower.look_around();
                let text = self.written.frames(&events, &follower);
                self.stage = Stage::Follows(follower);
                return Ok(Some(if text.is_empty() { COMMENT } else { text }));
            }
            None => return Ok(None),
        };
        let mut events = Vec::new();
        for frame in &frames {
            let Frame::Event(event) = frame else {
                // Whoever comes back is told everything.
                return Ok(Some(self.written.frames(&events, &follower)));
            };
            if let EventPayload::Deleted(_) = event.payload {
                let mut text = self.written.frames(&events, &follower).to_vec();
                text.extend_from_slice(&self.gone(self.written.left.clone(), event.position));
                return Ok(Some(text.into()));
            }
            match follower.hear(event, &self.reader)? {
                Told::Events(more) => events.extend(more),
                Told::Snapshot => {
                    let text = self.written.unfinished(&events, &follower);
                    self.stage = Stage::Tells(self.written.left.clone());
                    return Ok(if text.is_empty() { None } else { Some(text) });
                }
            }
        }
        events.extend(follower.live.settle());
        let text = self.written.frames(&events, &follower);
        self.stage = Stage::Follows(follower);
        Ok(if text.is_empty() { None } else { Some(text) })
    }

    /// The last frames of a session that is gone.
    fn gone(&mut self, left: Left, position: Position) -> Bytes {
        let scene = Scene { session_id: self.reader.session_id.to_string(), ..Scene::default() };
        let mut live = Live::new(scene).resumed(&left);
        let events = live.status_changed(SessionStatus::Error, Some(GONE), &position.to_string());
        let (leaf, seen) = (None, position);
        self.written.write(&events, seen, leaf)
    }

    /// Does what reads from disk where that holds up nobody.
    async fn reading<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        read(Arc::clone(&self.readers), work).await?
    }
}

fn deleted(frames: &[Frame]) -> Option<Position> {
    frames.iter().rev().find_map(|frame| match frame {
        Frame::Event(event) if matches!(event.payload, EventPayload::Deleted(_)) => Some(event.position),
        _ => None,
    })
}
