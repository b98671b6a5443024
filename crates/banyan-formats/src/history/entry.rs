//! An entry as the projection takes it, wherever it was read.

use banyan_model::{
    AgentMessage, ContentBlock, CustomPayload, EntryId, MessageAddedEvent, MessageItem, Object, Raw, SessionEntry,
};

use super::message::Speaker;
use super::origin::Mark;
use crate::body::Body;

/// The custom type of messages that hold one part of a history message, in their details.
pub(crate) const PART: &str = "history.part";
/// The custom type of messages that hold nothing but fields of a history message, in their origin.
pub(crate) const MESSAGE: &str = "history.message";

/// An entry of the active path.
#[derive(Clone, Debug)]
pub struct Entry {
    pub(crate) id: EntryId,
    pub(crate) body: Body,
    pub(crate) mark: Option<Mark>,
}

impl Entry {
    /// An entry that holds a message.
    pub fn of_message(id: EntryId, message: AgentMessage, origin: Option<&Object>) -> Self {
        Self { id, body: Body::Message(Box::new(message)), mark: Mark::of(origin) }
    }

    /// An entry that holds an application's own data.
    pub fn of_custom(id: EntryId, custom: CustomPayload, origin: Option<&Object>) -> Self {
        Self { id, body: Body::Custom(custom), mark: Mark::of(origin) }
    }

    /// The entry's id.
    pub fn id(&self) -> &EntryId {
        &self.id
    }

    /// Whether a projector that begins with this entry makes the messages that one makes which saw all entries before. The
    /// entry right before says so, when it is known.
    pub fn is_start(&self, before: Option<&Self>) -> bool {
        if self.begins().is_some() {
            return true;
        }
        let Some((mark, before)) = self.mark.as_ref().zip(before) else { return false };
        let other = before.mark.as_ref().map(|mark| (&mark.interaction_id, before.begins().unwrap_or(mark.role)));
        other.is_some_and(|other| other != (&mark.interaction_id, mark.role))
    }

    fn stored(
        id: &EntryId,
        message: Option<&Raw<AgentMessage>>,
        custom: Option<&CustomPayload>,
        origin: Option<&Object>,
    ) -> Self {
        Self { id: id.clone(), body: Body::stored(message, custom), mark: Mark::of(origin) }
    }

    /// The role that the entry has a message of its own for, when it begins one whatever came before.
    pub(crate) fn begins(&self) -> Option<Speaker> {
        match &self.body {
            Body::Message(message) if matches!(**message, AgentMessage::User(_)) => Some(Speaker::User),
            _ => None,
        }
    }

    /// Whether there is nothing in it to show to people.
    pub(crate) fn is_silent(&self) -> bool {
        match &self.body {
            Body::Custom(custom) => display_of(custom).is_none(),
            Body::Message(message) => match &**message {
                AgentMessage::Custom(custom) if [PART, MESSAGE].contains(&custom.custom_type.as_str()) => false,
                AgentMessage::Custom(custom) => match &custom.display {
                    Some(display) => display.is_empty(),
                    None => custom.content.is_empty(),
                },
                _ => false,
            },
            Body::Unreadable => false,
        }
    }

    /// The message's own time, when the entry holds a message.
    pub(crate) fn time(&self) -> Option<i64> {
        match &self.body {
            Body::Message(message) => Some(message.timestamp()),
            Body::Custom(_) | Body::Unreadable => None,
        }
    }

    /// The text that a block grows by.
    pub(crate) fn growing_text_mut(&mut self, block: usize) -> Option<&mut String> {
        let Body::Message(message) = &mut self.body else { return None };
        match message.content_mut().get_mut(block)? {
            ContentBlock::Text(block) => Some(&mut block.text),
            ContentBlock::Thinking(block) => Some(&mut block.text),
            _ => None,
        }
    }
}

/// What an application wants people to see of its own data.
pub(crate) fn display_of(custom: &CustomPayload) -> Option<String> {
    let data: Object = custom.data.parse().ok()?;
    let display = data.get("display")?.as_str()?;
    if display.is_empty() { None } else { Some(display.to_owned()) }
}

impl From<&MessageItem> for Entry {
    fn from(item: &MessageItem) -> Self {
        Self::stored(&item.entry_id, item.message.as_ref(), item.custom.as_ref(), item.origin.as_ref())
    }
}

impl From<&MessageAddedEvent> for Entry {
    fn from(event: &MessageAddedEvent) -> Self {
        Self::stored(&event.entry_id, event.message.as_ref(), event.custom.as_ref(), event.origin.as_ref())
    }
}

impl From<&SessionEntry> for Entry {
    fn from(entry: &SessionEntry) -> Self {
        let origin = entry.origin().map(|origin| origin.only(&[super::origin::KEY]));
        match entry {
            SessionEntry::Message(entry) => Self::stored(&entry.id, Some(&entry.message), None, origin.as_ref()),
            SessionEntry::Custom(entry) => {
                let custom = CustomPayload { custom_type: entry.custom_type.clone(), data: entry.data.clone() };
                Self::of_custom(entry.id.clone(), custom, origin.as_ref())
            }
        }
    }
}
