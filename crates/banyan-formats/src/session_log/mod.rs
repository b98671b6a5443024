//! Session logs: a session as append-only lines of JSON, in the events that `docs/formats/session-log.md` names.
//!
//! Out: a [`Writer`] takes entries in the order of the tree and writes lines. In: a [`Reader`] takes lines and gives entries; a
//! line that cannot be read is set aside with its number and the reason, and the rest goes on. Both hold one turn at a time.

mod events;
mod finish_reason;
mod ids;
mod line;
mod parts;
mod read;
mod record;
mod report;
mod take;
mod write;

pub use read::{Log, Reader, read};
pub use record::recognise;
pub use report::{Note, Report};
pub use write::{Head, Writer};

/// The version that every line says first.
pub const SCHEMA_VERSION: u64 = 1;

/// What a session log is called on the wire.
pub const MEDIA_TYPE: &str = "application/jsonl";

/// The words in a line's `type`.
mod kind {
    pub(super) const SESSION_META: &str = "session_meta";
    pub(super) const CONTEXT: &str = "context";
    pub(super) const USER: &str = "user";
    pub(super) const ASSISTANT_STARTED: &str = "assistant_started";
    pub(super) const ASSISTANT_FINISHED: &str = "assistant_finished";
    pub(super) const REASONING_FINISHED: &str = "reasoning_finished";
    pub(super) const TOOL_STARTED: &str = "tool_started";
    pub(super) const TOOL_FINISHED: &str = "tool_finished";
    pub(super) const CANCELLED: &str = "cancelled";
    pub(super) const FAILED: &str = "failed";
    pub(super) const SESSION_RENAMED: &str = "session_renamed";
    /// An entry that none of the others can tell, whole.
    pub(super) const ENTRY: &str = "banyan_entry";
    /// What was taken out of this log.
    pub(super) const REDACTIONS: &str = "banyan_redactions";

    pub(super) const ALL: [&str; 13] = [
        SESSION_META,
        CONTEXT,
        USER,
        ASSISTANT_STARTED,
        ASSISTANT_FINISHED,
        REASONING_FINISHED,
        TOOL_STARTED,
        TOOL_FINISHED,
        CANCELLED,
        FAILED,
        SESSION_RENAMED,
        ENTRY,
        REDACTIONS,
    ];
}
