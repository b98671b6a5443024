//! Entries, times and titles, made of what agents write.

use banyan_model::{
    AgentMessage, CustomEntry, EntryId, Error, Json, MessageEntry, Object, Raw, Revision, SessionEntry,
};
use jiff::Timestamp;

/// A title is at most so many characters of what the user said.
const TITLE: usize = 80;

/// What every entry has.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) id: EntryId,
    pub(crate) parent: Option<EntryId>,
    /// Milliseconds since 1970.
    pub(crate) at: i64,
    /// Grows when more of the same message was read.
    pub(crate) revision: u64,
    pub(crate) origin: Option<Object>,
}

impl Place {
    /// An entry that holds a message.
    pub(crate) fn message(self, message: &AgentMessage) -> Result<SessionEntry, Error> {
        let Self { id, parent, at, revision, origin } = self;
        let message = Raw::of(message)?;
        let revision = Revision::from(revision);
        Ok(SessionEntry::Message(MessageEntry { id, parent_id: parent, timestamp: at, revision, origin, message }))
    }

    /// An entry that holds an agent's own record as it is.
    pub(crate) fn custom(self, custom_type: impl Into<String>, data: Json) -> SessionEntry {
        let Self { id, parent, at, origin, .. } = self;
        let custom_type = custom_type.into();
        let revision = Revision::default();
        SessionEntry::Custom(CustomEntry {
            id,
            parent_id: parent,
            timestamp: at,
            revision,
            origin,
            custom_type,
            data,
        })
    }
}

/// A time as agents write it in text, in milliseconds since 1970.
pub(crate) fn millis(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

/// A time as most agents write it: UTC with milliseconds.
pub(crate) fn iso(at: i64) -> String {
    let at = Timestamp::from_millisecond(at).unwrap_or_default();
    format!("{at:.3}")
}

/// A title out of what the user said first.
pub(crate) fn title_of(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().nth(TITLE) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line.to_owned(),
    }
}
