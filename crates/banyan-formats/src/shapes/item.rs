//! An entry as the shapes take it: with the entry that it follows, and without anything that only operators see.

use banyan_model::{
    AgentMessage, ContentBlock, CustomPayload, EntryId, MessageAddedEvent, Object, Raw, SessionEntry,
};
use serde_json::Value;

pub use crate::body::Body;
use crate::history::{Standing, without_technical_details};

/// The custom type of messages that hold one part which no content block can hold, as its writer had it.
pub(crate) const PART: &str = "shape.part";
/// The format of a part that every shape has: something for programs, under a name.
pub(crate) const DATA: &str = "data";
/// The custom type of messages that tell a model how to behave.
pub(crate) const SYSTEM: &str = "shape.system";
/// The key of an origin under which a shape keeps what no message holds.
const ORIGIN: &str = "shape";

/// An entry of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    pub(crate) id: EntryId,
    pub(crate) parent: Option<EntryId>,
    pub(crate) body: Body,
    pub(crate) kept: Option<Kept>,
}

/// What a message of some shape said besides its parts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kept {
    pub(crate) format: String,
    pub(crate) fields: Object,
}

/// What is known about the session that entries are of.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    /// The session.
    pub session_id: String,
    /// The active leaf.
    pub leaf: Option<EntryId>,
    /// What is going on with the newest entries of the active path.
    pub standing: Standing,
    /// The address of the session's attachments; an id is added to it.
    pub attachments: String,
}

impl Item {
    /// An entry. Whatever only operators see is left out.
    pub fn new(id: EntryId, parent: Option<EntryId>, body: Body, origin: Option<&Object>) -> Self {
        let body = match body {
            Body::Message(message) => Body::Message(Box::new(public(*message))),
            Body::Custom(CustomPayload { custom_type, data }) => {
                Body::Custom(CustomPayload { custom_type, data: without_technical_details(&data) })
            }
            Body::Unreadable => Body::Unreadable,
        };
        Self { id, parent, body, kept: Kept::of(origin) }
    }

    /// The entry's id.
    pub fn id(&self) -> &EntryId {
        &self.id
    }

    /// The message, when it holds one.
    pub fn message(&self) -> Option<&AgentMessage> {
        match &self.body {
            Body::Message(message) => Some(message),
            Body::Custom(_) | Body::Unreadable => None,
        }
    }

    /// Whether a page can begin with it: no part of it is shown in the message of the entry before.
    pub fn is_start(&self, before: &Self) -> bool {
        use super::turn::Speaker;
        let (speaker, other) = (Speaker::of(self), Speaker::of(before));
        speaker != other || (speaker == Speaker::User && self.part_of().is_none()) || speaker == Speaker::System
    }

    /// The message whose part it is, and the place of the part in it.
    pub(crate) fn part_of(&self) -> Option<Object> {
        match self.message()? {
            AgentMessage::Custom(message) if message.custom_type == PART => message.details.as_ref()?.parse().ok(),
            _ => None,
        }
    }

    fn stored(
        id: &EntryId,
        parent: Option<&EntryId>,
        message: Option<&Raw<AgentMessage>>,
        custom: Option<&CustomPayload>,
        origin: Option<&Object>,
    ) -> Self {
        Self::new(id.clone(), parent.cloned(), Body::stored(message, custom), origin)
    }
}

impl From<&SessionEntry> for Item {
    fn from(entry: &SessionEntry) -> Self {
        let (id, parent) = (entry.id(), entry.parent_id());
        let origin = entry.origin().map(|origin| origin.only(&[ORIGIN]));
        let origin = origin.as_ref();
        match entry {
            SessionEntry::Message(entry) => Self::stored(id, parent, Some(&entry.message), None, origin),
            SessionEntry::Custom(entry) => {
                let custom = CustomPayload { custom_type: entry.custom_type.clone(), data: entry.data.clone() };
                Self::stored(id, parent, None, Some(&custom), origin)
            }
        }
    }
}

impl From<&MessageAddedEvent> for Item {
    fn from(event: &MessageAddedEvent) -> Self {
        let MessageAddedEvent { entry_id, parent_id, message, custom, origin, .. } = event;
        Self::stored(entry_id, parent_id.as_ref(), message.as_ref(), custom.as_ref(), origin.as_ref())
    }
}

impl Kept {
    fn of(origin: Option<&Object>) -> Option<Self> {
        let kept = origin?.get(ORIGIN)?;
        let fields = without_technical_details(&super::json_of(kept.get("fields")?)).parse().ok()?;
        Some(Self { format: kept.get("format")?.as_str()?.to_owned(), fields })
    }

    pub(crate) fn into_origin(self) -> Object {
        let Self { format, fields } = self;
        let kept = serde_json::json!({"format": format, "fields": fields});
        Object::from_iter([(ORIGIN.to_owned(), kept)])
    }

    /// The fields, if they are of this shape.
    pub(crate) fn fields_of(kept: Option<&Self>, format: &str) -> Object {
        kept.filter(|kept| kept.format == format).map(|kept| kept.fields.clone()).unwrap_or_default()
    }
}

/// The same message without what only operators see, and without the bytes that attachments hold.
pub(crate) fn public(mut message: AgentMessage) -> AgentMessage {
    hide(message.content_mut());
    match &mut message {
        AgentMessage::Assistant(message) => message.agent = message.agent.as_ref().map(without_technical_details),
        AgentMessage::FunctionResult(message) => message.details = without_technical_details(&message.details),
        AgentMessage::Custom(message) => message.details = message.details.as_ref().map(without_technical_details),
        AgentMessage::User(_) => {}
    }
    message
}

fn hide(blocks: &mut [ContentBlock]) {
    for block in blocks {
        match block {
            ContentBlock::FunctionCall(call) => call.arguments = without_technical_details(&call.arguments),
            ContentBlock::FunctionResult(result) => hide(&mut result.content),
            // What an attachment holds is not told twice.
            ContentBlock::Image(image) if image.attachment_id.is_some() => image.data.clear(),
            _ => {}
        }
    }
}

/// A message's fields without its content.
pub(crate) fn fields_beside(message: &AgentMessage, content: &[&str]) -> Object {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(message) else { return Object::new() };
    for key in content {
        fields.shift_remove(*key);
    }
    fields
}
