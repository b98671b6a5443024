//! Entries in the order of the path become messages, page by page and live.

use banyan_model::{AgentMessage, ContentBlock, EntryId};
use serde::Serialize;

use super::assemble::{Opening, Projected, Standing, assemble, last_text_at};
use super::entry::Entry;
use super::identity;
use super::message::{HistoryMessage, Speaker, Status};
use super::parts::{Options, Texts};
use crate::body::Body;

/// Makes messages of entries. Holds the newest message only, which the next entry may continue.
#[derive(Debug, Default)]
pub struct Projector {
    options: Options,
    standing: Standing,
    open: Option<Open>,
    /// When the newest question was asked.
    asked_at: Option<i64>,
    /// The time of the newest entry.
    time: i64,
}

#[derive(Debug)]
struct Open {
    opening: Opening,
    entries: Vec<Entry>,
    projected: Option<Projected>,
}

/// What a change of an entry did to the newest message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing that anybody sees.
    Nothing,
    /// Text was added to the end of a part.
    Grew(Delta),
    /// More than that: take the message from [`Projector::open`].
    Whole,
    /// The entry is not in the newest message. The message that it is in has to be read again.
    Elsewhere,
}

/// Text that was added to the end of a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Delta {
    /// The message's interaction.
    pub interaction_id: String,
    /// The message's role.
    pub role: Speaker,
    /// The part, counted from 0.
    pub part: usize,
    /// What is added to the part's `text`, or to its `content` when it is an activity.
    pub text: String,
    /// Whether the same is added to `response_text_main`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub main: bool,
}

impl Projector {
    /// A projector at the beginning of a path, or at the beginning of a message in it.
    pub fn new(options: Options) -> Self {
        Self { options, ..Self::default() }
    }

    /// Says what is going on with the newest message.
    pub fn set_standing(&mut self, standing: Standing) {
        if self.standing != standing {
            self.standing = standing;
            self.forget_projection();
        }
    }

    /// Takes the next entry of the path. Gives the message that is finished by it, if one is.
    pub fn push(&mut self, entry: Entry) -> Option<Projected> {
        if entry.is_silent() && entry.mark.is_none() {
            return None;
        }
        let finished = match self.opening_of(&entry) {
            Some(opening) => {
                let open = Open { opening, entries: Vec::new(), projected: None };
                self.open.replace(open).map(|open| self.finished(open))
            }
            None => None,
        };
        if entry.begins() == Some(Speaker::User) {
            self.asked_at = entry.time();
        }
        self.time = entry.time().unwrap_or(self.time);
        if let Some(open) = &mut self.open {
            open.entries.push(entry);
            open.projected = None;
        }
        finished
    }

    /// The newest message, as it is now.
    pub fn open(&mut self) -> Option<&Projected> {
        let open = self.open.as_mut()?;
        if open.projected.is_none() {
            let Open { opening, entries, .. } = &mut *open;
            open.projected = Some(assemble(opening, entries, &self.options, self.standing, Texts::Copied));
        }
        open.projected.as_ref()
    }

    /// The newest message, at the end of the path.
    pub fn finish(mut self) -> Option<Projected> {
        self.open()?;
        self.open?.projected
    }

    /// The newest message, when something else follows that it is not told of.
    pub fn close(mut self) -> Option<Projected> {
        self.open.take().map(|open| self.finished(open))
    }

    /// A message was replaced. Says how little of it has to be told again.
    pub fn update(&mut self, entry_id: &EntryId, message: AgentMessage) -> Change {
        // What is told now is what the change is measured by.
        self.open();
        let Some(open) = &mut self.open else { return Change::Elsewhere };
        let Some(entry) = open.entries.iter_mut().rfind(|entry| entry.id == *entry_id) else {
            return Change::Elsewhere;
        };
        let grown = match &entry.body {
            Body::Message(old) => only_growth(old, &message),
            _ => None,
        };
        if let Some((block, text)) = grown {
            return self.grow(entry_id, block, &text);
        }
        entry.body = Body::Message(Box::new(message));
        let before = open.projected.take();
        if self.open() == before.as_ref() { Change::Nothing } else { Change::Whole }
    }

    /// Text was added to the end of a block.
    pub fn grow(&mut self, entry_id: &EntryId, block: usize, text: &str) -> Change {
        // What is told now is what the delta is added to.
        self.open();
        let Some(open) = &mut self.open else { return Change::Elsewhere };
        let Some(at) = open.entries.iter().rposition(|entry| entry.id == *entry_id) else {
            return Change::Elsewhere;
        };
        let Some(old) = open.entries[at].growing_text_mut(block) else { return Change::Elsewhere };
        if text.is_empty() {
            return Change::Nothing;
        }
        old.push_str(text);
        let delta = open.projected.as_mut().and_then(|projected| projected.grow(at, block, text));
        delta.map_or_else(
            || {
                self.forget_projection();
                Change::Whole
            },
            Change::Grew,
        )
    }

    /// What a message is called that this entry begins; none when it continues the newest one.
    fn opening_of(&self, entry: &Entry) -> Option<Opening> {
        let open = self.open.as_ref().map(|open| &open.opening);
        let (interaction_id, role) = match (entry.begins(), &entry.mark, open) {
            (Some(role), Some(mark), _) => (mark.interaction_id.clone(), role),
            (Some(role), None, _) => (identity::interaction_id(&entry.id), role),
            (None, Some(mark), Some(open)) if open.is_of(&mark.interaction_id, mark.role) => return None,
            (None, Some(mark), _) => (mark.interaction_id.clone(), mark.role),
            (None, None, Some(open)) if open.role == Speaker::Assistant => return None,
            (None, None, Some(open)) => (open.interaction_id.clone(), Speaker::Assistant),
            (None, None, None) => (identity::interaction_id(&entry.id), Speaker::Assistant),
        };
        Some(Opening { interaction_id, role, asked_at: self.asked_at, time: self.time })
    }

    fn finished(&self, mut open: Open) -> Projected {
        let mut projected = match open.projected {
            Some(projected) if self.standing == Standing::Over => projected,
            _ => assemble(&open.opening, &mut open.entries, &self.options, Standing::Over, Texts::Moved),
        };
        // Whoever was writing it has not said that it is complete, and now something else follows.
        if projected.message.status == Some(Status::Streaming) {
            projected.message.status = Some(Status::Interrupted);
        }
        projected
    }

    fn forget_projection(&mut self) {
        if let Some(open) = &mut self.open {
            open.projected = None;
        }
    }
}

impl Opening {
    fn is_of(&self, interaction_id: &str, role: Speaker) -> bool {
        self.interaction_id == interaction_id && self.role == role
    }
}

impl Projected {
    /// Adds to the part that shows a block; none when no part shows that block's text and nothing else.
    fn grow(&mut self, entry: usize, block: usize, text: &str) -> Option<Delta> {
        if self.message.role == Speaker::User {
            // Its text is told twice.
            return None;
        }
        let shows = |place: &super::parts::Place| place.entry == entry && place.block == Some(block);
        let part = self.places.iter().rposition(shows)?;
        self.message.parts[part].growing_text_mut()?.push_str(text);
        let main = self.main_is_last_text && last_text_at(&self.message.parts) == Some(part);
        if let (true, Some(all)) = (main, &mut self.message.response_text_main) {
            all.push_str(text);
        }
        let HistoryMessage { interaction_id, role, .. } = &self.message;
        Some(Delta { interaction_id: interaction_id.clone(), role: *role, part, text: text.to_owned(), main })
    }
}

/// The block and the text, when one message is the other with a text added to the end of one block.
fn only_growth(old: &AgentMessage, new: &AgentMessage) -> Option<(usize, String)> {
    let (before, after) = (old.content(), new.content());
    let mut differing = before.iter().zip(after).enumerate().filter(|(_, (one, other))| one != other);
    let (block, (one, other)) = differing.next()?;
    let added = match (one, other) {
        (ContentBlock::Text(one), ContentBlock::Text(other)) => other.text.strip_prefix(one.text.as_str())?,
        (ContentBlock::Thinking(one), ContentBlock::Thinking(other)) if one.signature == other.signature => {
            other.text.strip_prefix(one.text.as_str())?
        }
        _ => return None,
    };
    let mut grown = old.clone();
    match grown.content_mut().get_mut(block)? {
        ContentBlock::Text(text) => text.text.push_str(added),
        ContentBlock::Thinking(thought) => thought.text.push_str(added),
        _ => return None,
    }
    // What a turn consumed is not shown, and may have changed meanwhile.
    if let (AgentMessage::Assistant(grown), AgentMessage::Assistant(new)) = (&mut grown, new) {
        grown.usage.clone_from(&new.usage);
    }
    if grown == *new { Some((block, added.to_owned())) } else { None }
}
