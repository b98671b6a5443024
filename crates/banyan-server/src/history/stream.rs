//! `?stream=1`: the messages that there are, and from then on whatever becomes of them.

use std::fmt::Write;
use std::sync::Arc;

use axum::response::Response;
use banyan::model::{Error, ErrorCode, Position};
use banyan::{LeafWatch, PathState};
use bytes::Bytes;
use tokio::sync::Semaphore;

use super::cursor::Mark;
use super::follow::{Follower, Heard};
use super::get::json;
use super::query::{Asked, Streaming};
use super::read::{Newest, Reader};
use super::resume::{Changed, Missed};
use super::telling::{Telling, Told};
use crate::app::Shared;
use crate::caller::Caller;
use crate::events::{self, COMMENT, Feed, Frame, News, Pieces, Session, event_stream, read};
use crate::problem::Problem;

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
    let subscription = events::Asked::of_messages(asked.session_id.clone(), after);
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
    Ok(event_stream(app, caller, stream))
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

impl Pieces for Stream {
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
}

impl Stream {
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
        read(Arc::clone(&self.readers), work).await?
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
