//! The words of Banyan: sessions, entries, messages, events, requests and responses.
//!
//! Every type here is plain data with its JSON form and its JSON Schema. Nothing in this crate reads a
//! file, a clock or a source of randomness, and no rule of the store lives here: rules are in `banyan-core`.

mod block;
mod entry;
mod error;
mod event;
mod event_filter;
mod event_text;
pub mod functions;
mod ids;
mod json;
mod json_text;
mod message;
mod origin;
mod schema;
mod session;
pub mod store;
mod tagged;
pub mod whole;

pub use block::{
    ContentBlock, FileBlock, FunctionCallBlock, FunctionResultBlock, ImageBlock, TextBlock, ThinkingBlock,
};
pub use entry::{AttachmentMeta, CustomEntry, CustomPayload, EntryKind, MessageEntry, SessionEntry};
pub use error::{Error, ErrorCode};
pub use event::{
    AddedText, CreatedEvent, DeletedEvent, Event, EventPayload, EventType, MessageAddedEvent, MessageUpdatedEvent,
    MetaUpdatedEvent, StatusChangedEvent,
};
pub use event_filter::{CreatedConfig, EventFilter, MessageConfig, SessionConfig};
pub use functions::*;
pub use ids::{AttachmentId, CommitNo, EntryId, Position, Revision, Seq, SessionId};
pub use json::{Json, LongText, Object, Raw, null_as_default};
pub use json_text::quote_or_escape;
pub use message::{
    AgentMessage, AssistantMessage, CustomMessage, ErrorKind, FunctionResultMessage, Role, StopReason, Usage,
    UserMessage,
};
pub use origin::Origin;
pub use schema::schema_of;
pub use session::{ListOrder, SessionMeta, SessionStatus};
