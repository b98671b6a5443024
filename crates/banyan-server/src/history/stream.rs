//! `?stream=1`: the messages that there are, and from then on whatever becomes of them.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Write;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use banyan::model::{EntryId, Error, ErrorCode, EventType, Position};
use banyan::{LeafWatch, PathState};
use banyan_formats::history::Projected;
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::Semaphore;

use super::cursor::Mark;
use super::follow::{Follower, Heard};
use super::get::{first_after, json, newest};
use super::query::{Asked, Streaming};
use super::read::{Ahead, Back, Newest, Reader};
use super::resume::{Changed, Missed, place_of};
use crate::app::Shared;
use crate::caller::Caller;
use crate::events::{self, COMMENT, Feed, Frame, News, Session, event_stream, read};
use crate::problem::Problem;

/// What a history is changed by.
const TYPES: [EventType; 4] =
    [EventType::MessageAdded, EventType::MessageUpdated, EventType::StatusChanged, EventType::Deleted];

pub(super) async fn open(
    app: &Shared,
    caller: &Caller,
    reader: Reader,
    asked: Asked,
    streaming: Streaming,
) -> Result<Response, Problem> {
    // Whoever watches before reading misses nothing.
    let watch = caller.store.watch_leaf(&asked.session_id);
    let after = streaming.left_at.map(|mark| mark.position);
    let subscription = events::Asked::of_session(asked.session_id.clone(), &TYPES, after);
    let feed = Feed::open(app, caller, subscription, Session::MustExist).await?;
    let stream = Stream {
        feed: Box::new(feed),
        watch,
        reader,
        asked,
        streaming,
        readers: Arc::clone(&app.readers),
        stage: Stage::Begins,
    };
    let pieces = stream::unfold(stream, |mut stream| async move {
        let piece = stream.next().await?;
        Some((Ok::<_, Infallible>(piece), stream))
    });
    Ok(event_stream(Body::from_stream(pieces)))
}

/// Adds a frame to what is sent.
pub(super) fn frame(text: &mut String, id: Option<Mark>, event: &str, data: &str) {
    if let Some(id) = id {
        let _ = writeln!(text, "id: {id}");
    }
    let _ = write!(text, "event: {event}\ndata: {data}\n\n");
}

/// A stream under way.
struct Stream {
    feed: Box<Feed>,
    watch: LeafWatch,
    reader: Reader,
    asked: Asked,
    streaming: Streaming,
    readers: Arc<Semaphore>,
    stage: Stage,
}

enum Stage {
    Begins,
    /// The past since a mark is looked through.
    Missed(Missed, Mark),
    /// The messages of the path are told.
    Tells(Box<Telling>),
    Live(Box<Follower>),
    Over,
}

impl Stream {
    /// The next piece to send; none at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let piece = match std::mem::replace(&mut self.stage, Stage::Over) {
                Stage::Begins => {
                    self.stage = match self.streaming.left_at {
                        Some(mark) => Stage::Missed(Missed::default(), mark),
                        None => Stage::Tells(Box::default()),
                    };
                    Ok(Some(COMMENT))
                }
                Stage::Missed(missed, mark) => self.look_through(missed, mark).await,
                Stage::Tells(telling) => self.tell(telling).await,
                Stage::Live(follower) => self.follow(follower).await,
                Stage::Over => return None,
            };
            match piece {
                Ok(Some(piece)) => return Some(piece),
                Ok(None) => {}
                Err(error) if error.code == ErrorCode::NotFound => {
                    self.stage = Stage::Over;
                    return Some(gone(self.feed.caught_up().unwrap_or(Position::BEGINNING)));
                }
                Err(error) => {
                    tracing::warn!(%error, "a stream ended because its history could not be read");
                    return None;
                }
            }
        }
    }

    /// Takes in what happened since a mark, and then tells what has changed.
    async fn look_through(&mut self, mut missed: Missed, mark: Mark) -> Result<Option<Bytes>, Error> {
        let Some(position) = self.feed.caught_up() else {
            let Some(news) = self.feed.next().await else { return Ok(None) };
            let frames = match news {
                News::Frames(frames) => frames,
                News::PastOver => Vec::new(),
                News::Quiet => {
                    self.stage = Stage::Missed(missed, mark);
                    return Ok(Some(COMMENT));
                }
            };
            for frame in &frames {
                match frame {
                    Frame::Event(event) => missed.note(event),
                    other => return Ok(end_of(other)),
                }
            }
            self.stage = Stage::Missed(missed, mark);
            return Ok(None);
        };
        let reader = self.reader.clone();
        let changed = self.reading(move || missed.changed(&reader, mark)).await?;
        let Some(Changed { messages, newest, state, window }) = changed else {
            self.stage = Stage::Tells(Box::new(Telling::again()));
            return Ok(None);
        };
        let mut text = String::new();
        for message in &messages {
            frame(&mut text, None, "history::message", &json(message));
        }
        text.push_str(&self.go_live(newest, &state, window, position));
        Ok(Some(text.into()))
    }

    /// Tells some more messages of the path.
    async fn tell(&mut self, telling: Box<Telling>) -> Result<Option<Bytes>, Error> {
        let (reader, asked) = (self.reader.clone(), self.asked.clone());
        let (telling, told) = self
            .reading(move || {
                let mut telling = telling;
                let told = telling.next(&reader, &asked)?;
                Ok((telling, told))
            })
            .await?;
        let mut text = String::new();
        if telling.is_again_and_begins() {
            frame(&mut text, None, "history::reset", "{}");
        }
        for message in &told {
            frame(&mut text, None, "history::message", &json(message));
        }
        match telling.into_end() {
            Ok(Told { newest, state, window }) => {
                let position = self.feed.caught_up().unwrap_or(Position::BEGINNING);
                text.push_str(&self.go_live(newest, &state, window, position));
            }
            Err(telling) => self.stage = Stage::Tells(telling),
        }
        Ok(if text.is_empty() { None } else { Some(text.into()) })
    }

    /// Says that the front end has everything, and follows from there.
    fn go_live(&mut self, newest: Newest, state: &PathState, window: usize, position: Position) -> String {
        let mut follower = Follower::new(self.reader.clone(), self.streaming.deltas, newest, state, window);
        follower.caught_up(position);
        let mut text = String::new();
        frame(&mut text, Some(follower.mark()), "history::ready", "{}");
        self.stage = Stage::Live(Box::new(follower));
        text
    }

    async fn follow(&mut self, mut follower: Box<Follower>) -> Result<Option<Bytes>, Error> {
        let news = tokio::select! {
            biased;
            () = self.watch.moved() => {
                self.stage = match self.reader.state()?.leaf == follower.leaf {
                    true => Stage::Live(follower),
                    false => Stage::Tells(Box::new(Telling::again())),
                };
                return Ok(None);
            }
            news = self.feed.next() => news,
        };
        let Some(news) = news else { return Ok(None) };
        let frames = match news {
            News::Frames(frames) => frames,
            News::PastOver => Vec::new(),
            News::Quiet => {
                follower.look_around();
                let text = follower.take_frames();
                self.stage = Stage::Live(follower);
                return Ok(Some(if text.is_empty() { COMMENT } else { text.into() }));
            }
        };
        for frame in &frames {
            let heard = match frame {
                Frame::Event(event) => follower.hear(event)?,
                other => return Ok(ended_by(&mut follower, other)),
            };
            match heard {
                Heard::Fine => {}
                Heard::OtherPath => {
                    // Whatever is not sent yet comes with the rest.
                    self.stage = Stage::Tells(Box::new(Telling::again()));
                    return Ok(None);
                }
                Heard::Deleted => {
                    let mut text = follower.take_frames();
                    self::frame(&mut text, Some(follower.mark()), "history::deleted", "{}");
                    return Ok(Some(text.into()));
                }
            }
        }
        let text = follower.take_frames();
        self.stage = Stage::Live(follower);
        Ok(if text.is_empty() { None } else { Some(text.into()) })
    }

    /// Does what reads from disk where that holds up nobody.
    async fn reading<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let done = read(Arc::clone(&self.readers), work).await;
        done.unwrap_or_else(|problem| Err(Error::storage(problem.detail)))
    }
}

/// The frame of a session that is gone.
fn gone(position: Position) -> Bytes {
    let mut text = String::new();
    frame(&mut text, Some(Mark::of(position, None, 0)), "history::deleted", "{}");
    text.into()
}

/// What a subscription says when it ends, as every stream says it.
fn end_of(last: &Frame) -> Option<Bytes> {
    Some(events::stream_bytes(std::slice::from_ref(last)))
}

fn ended_by(follower: &mut Follower, last: &Frame) -> Option<Bytes> {
    let mut text = follower.take_frames().into_bytes();
    text.extend_from_slice(&end_of(last)?);
    Some(text.into())
}

/// The messages of a path on their way to a front end.
#[derive(Default)]
struct Telling {
    /// Whether the front end was told of another path before.
    again: bool,
    begun: Option<Begun>,
    pieces: usize,
}

struct Begun {
    state: PathState,
    window: usize,
    /// The first entry of the first message to tell, until that was reached.
    from: Option<EntryId>,
    source: Source,
}

enum Source {
    /// All of them, page by page.
    Ahead(Box<Ahead>),
    /// All that were asked for are told.
    End(Box<Newest>),
}

/// All was told.
struct Told {
    newest: Newest,
    state: PathState,
    window: usize,
}

impl Telling {
    fn again() -> Self {
        Self { again: true, ..Self::default() }
    }

    /// The next messages.
    fn next(&mut self, reader: &Reader, asked: &Asked) -> Result<VecDeque<Projected>, Error> {
        self.pieces += 1;
        let Some(begun) = self.begun.take() else { return self.begin(reader, asked) };
        let Begun { state, window, mut from, source } = begun;
        let Source::Ahead(mut ahead) = source else { return Ok(VecDeque::new()) };
        let (mut messages, source): (VecDeque<Projected>, Source) = match ahead.next()? {
            Some(messages) => (messages.into(), Source::Ahead(ahead)),
            None => {
                let mut newest = ahead.into_newest(&state);
                (newest.projector.open().cloned().into_iter().collect(), Source::End(Box::new(newest)))
            }
        };
        if let Some(first) = &from {
            match messages.iter().position(|message| message.entries.first() == Some(first)) {
                Some(at) => {
                    messages.drain(..at);
                    from = None;
                }
                None => messages.clear(),
            }
        }
        self.begun = Some(Begun { state, window, from, source });
        Ok(messages)
    }

    fn begin(&mut self, reader: &Reader, asked: &Asked) -> Result<VecDeque<Projected>, Error> {
        let state = reader.state()?;
        let ahead = match (asked.limit, &asked.since) {
            (Some(_), _) => None,
            (None, None) => Some((Ahead::from_beginning(reader, state.leaf.clone()), None)),
            (None, Some(since)) => match first_after(reader, &state, since, None)? {
                Some(first) => {
                    let ahead = Ahead::from_message_of(reader, state.leaf.clone(), first.clone())?;
                    Some((ahead, Some(first)))
                }
                None => None,
            },
        };
        if let Some((ahead, from)) = ahead {
            let window = match &from {
                Some(first) => place_of(reader, first)?,
                None => 0,
            };
            let source = Source::Ahead(Box::new(ahead));
            self.begun = Some(Begun { state, window, from, source });
            return Ok(VecDeque::new());
        }
        let mut back = Back::from_end(reader, &state).expecting(asked.limit.unwrap_or_default());
        let (messages, _) = newest(&mut back, asked.since.as_ref(), asked.limit.unwrap_or(1))?;
        let mut end = back.newest.take().unwrap_or_else(|| Newest::none(reader));
        // The newest message is told when it changes, whether it was asked for or not.
        let first = messages.front().or_else(|| end.projector.open()).and_then(|message| message.entries.first());
        let window = match first {
            Some(first) => place_of(reader, first)?,
            None => 0,
        };
        self.begun = Some(Begun { state, window, from: None, source: Source::End(Box::new(end)) });
        Ok(messages)
    }

    fn is_again_and_begins(&self) -> bool {
        self.again && self.pieces == 1
    }

    /// What to follow from, once everything is told.
    fn into_end(mut self: Box<Self>) -> Result<Told, Box<Self>> {
        match self.begun.take() {
            Some(Begun { state, window, source: Source::End(newest), .. }) => {
                Ok(Told { newest: *newest, state, window })
            }
            begun => {
                self.begun = begun;
                Err(self)
            }
        }
    }
}
