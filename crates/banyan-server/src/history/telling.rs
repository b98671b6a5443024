//! The messages that a stream begins with, or begins again with.

use std::collections::VecDeque;

use banyan::PathState;
use banyan::model::{EntryId, Error};
use banyan_formats::history::Projected;

use super::get::newest;
use super::query::Asked;
use super::read::{Ahead, Back, Newest, Reader};
use super::resume::place_of;
use super::whole::first_after;

/// The messages of a path on their way to a front end.
#[derive(Default)]
pub(super) struct Telling {
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
pub(super) struct Told {
    pub(super) newest: Newest,
    pub(super) state: PathState,
    pub(super) window: usize,
}

impl Telling {
    pub(super) fn again() -> Self {
        Self { again: true, ..Self::default() }
    }

    /// The next messages.
    pub(super) fn next(&mut self, reader: &Reader, asked: &Asked) -> Result<VecDeque<Projected>, Error> {
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

    pub(super) fn is_again_and_begins(&self) -> bool {
        self.again && self.pieces == 1
    }

    /// What to follow from, once everything is told.
    pub(super) fn into_end(mut self: Box<Self>) -> Result<Told, Box<Self>> {
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
