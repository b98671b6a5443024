//! Messages that were read lately, as they were read.
//!
//! A line that is in a session's file never changes, and an incarnation is never born again, so nothing here goes stale: what
//! is not asked for any more is let go when there is no room.

use banyan_core::Born;
use banyan_core::state::{Place, Source};
use banyan_model::{AgentMessage, Raw};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// See the module.
pub(crate) struct Recent(Cache<Line, Raw<AgentMessage>, Weight>);

/// A line of a session's file.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Line {
    born: Born,
    offset: u64,
}

/// What a message takes beside its text, about.
const BESIDES_TEXT: usize = 96;

/// About how long a message is, to begin with a table of the right size.
const TYPICAL: usize = 1 << 10;

/// A message that takes more than this part of the room is not kept: it would push out too many others.
const PART: usize = 64;

#[derive(Clone)]
struct Weight;

impl Weighter<Line, Raw<AgentMessage>> for Weight {
    fn weight(&self, _: &Line, message: &Raw<AgentMessage>) -> u64 {
        weight(message) as u64
    }
}

fn weight(message: &Raw<AgentMessage>) -> usize {
    message.get().len() + BESIDES_TEXT
}

impl Recent {
    /// Room for about so many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Cache::with_weighter(bytes / TYPICAL, bytes as u64, Weight))
    }

    /// The message on a line, if it was read lately.
    pub(crate) fn get(&self, sources: &[Source], place: Place) -> Option<Raw<AgentMessage>> {
        self.0.get(&line(sources, place)?)
    }

    /// Keeps the message on a line, as long as there is room.
    pub(crate) fn keep(&self, sources: &[Source], place: Place, message: &Raw<AgentMessage>) {
        if weight(message) as u64 <= self.0.capacity() / PART as u64
            && let Some(line) = line(sources, place)
        {
            self.0.insert(line, message.clone());
        }
    }
}

fn line(sources: &[Source], place: Place) -> Option<Line> {
    let source = sources.get(usize::from(place.source.0))?;
    Some(Line { born: source.born, offset: place.offset })
}
