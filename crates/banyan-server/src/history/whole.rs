//! A history that is sent while it is read.

use axum::body::Body;
use banyan::PathState;
use banyan::model::{EntryId, Error};
use banyan_formats::history::Projected;
use bytes::Bytes;
use futures_util::{StreamExt, stream};

use super::get::json;
use super::query::{Asked, Since};
use super::read::{Ahead, Back, Reader};

/// All messages that were asked for, sent while they are read, so that no more than a page of them is held.
pub(super) struct Whole {
    ahead: Option<Ahead>,
    state: PathState,
    /// The first entry of the first message to send, when that is not the first of all.
    from: Option<EntryId>,
    /// The first entry of the first message that is not sent any more.
    until: Option<EntryId>,
    /// Whether the array has begun, and whether anything is in it.
    begun: bool,
    sent: bool,
}

impl Whole {
    pub(super) fn begin(reader: Reader, state: PathState, asked: &Asked) -> Result<Self, Error> {
        let from = match &asked.since {
            None => None,
            Some(since) => Some(first_after(&reader, &state, since, asked.before.as_ref())?),
        };
        let leaf = state.leaf.clone();
        let ahead = match &from {
            None => Some(Ahead::from_beginning(&reader, leaf)),
            Some(Some(entry)) => Some(Ahead::from_message_of(&reader, leaf, entry.clone())?),
            // There is nothing after it.
            Some(None) => None,
        };
        Ok(Self { ahead, state, from: from.flatten(), until: asked.before.clone(), begun: false, sent: false })
    }

    /// The next piece. After the last there is nothing ahead.
    fn next(&mut self) -> Result<String, Error> {
        let mut text = String::from(if self.begun { "" } else { "[" });
        self.begun = true;
        let mut messages = Vec::new();
        if let Some(ahead) = &mut self.ahead {
            let more = ahead.next()?;
            let over = more.is_none();
            messages.extend(more.into_iter().flatten());
            if over {
                messages.extend(self.ahead.take().and_then(|ahead| ahead.finish(&self.state)));
            }
            let is_end =
                |message: &Projected| self.until.is_some() && message.entries.first() == self.until.as_ref();
            if let Some(end) = messages.iter().position(is_end) {
                messages.truncate(end);
                self.ahead = None;
            }
        }
        for message in messages {
            if self.from.as_ref().is_some_and(|from| message.entries.first() != Some(from)) {
                continue;
            }
            self.from = None;
            if self.sent {
                text.push(',');
            }
            text.push_str(&json(&message));
            self.sent = true;
        }
        if self.ahead.is_none() {
            text.push(']');
        }
        Ok(text)
    }

    /// The answer's body.
    pub(super) fn body(mut self) -> Result<Body, Error> {
        // What can be refused is refused before the answer begins, and what is short is sent whole.
        let mut first = self.next()?;
        while self.ahead.is_some() && first.len() < 64 << 10 {
            first.push_str(&self.next()?);
        }
        if self.ahead.is_none() {
            return Ok(first.into());
        }
        let begun = stream::once(async { Ok::<_, Error>(Bytes::from(first)) });
        let rest = stream::unfold(Some(self), |whole| async move {
            let mut whole = whole.filter(|whole| whole.ahead.is_some())?;
            match whole.next() {
                Ok(text) => Some((Ok(Bytes::from(text)), Some(whole))),
                // The connection breaks off, so that nobody takes what came for all there is.
                Err(error) => Some((Err(error), None)),
            }
        });
        Ok(Body::from_stream(begun.chain(rest)))
    }
}

/// The first entry of the first message after something, if there is one.
pub(super) fn first_after(
    reader: &Reader,
    state: &PathState,
    since: &Since,
    before: Option<&EntryId>,
) -> Result<Option<EntryId>, Error> {
    let mut back = match before {
        Some(entry) => Back::from_before(reader, state, entry.clone()),
        None => Back::from_end(reader, state),
    };
    let mut first = None;
    while let Some(segment) = back.next()? {
        for message in segment.messages.iter().rev() {
            if since.is_reached_by(message) {
                return Ok(first);
            }
            first = message.entries.first().cloned();
        }
    }
    Ok(first)
}
