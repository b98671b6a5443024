//! Where a reading goes, piece by piece.

use banyan_model::{EntryId, Error, Json, Object, SessionEntry, SessionId, SessionStatus};
use serde::{Deserialize, Serialize};

/// Takes what is read. Entries of one session come with the entry that they follow before them.
pub trait Sink {
    /// A session begins, or more has become known of it. It is told before the session's entries, and again whenever it changes.
    fn head(&mut self, head: &Head) -> Result<(), Error>;

    /// An entry. One that was told before with a lower revision is replaced.
    fn entry(&mut self, session: &SessionId, entry: SessionEntry) -> Result<(), Error>;

    /// The entry that the active path ends in now. The last one told counts; without one it is the last entry.
    fn leaf(&mut self, session: &SessionId, entry: &EntryId) -> Result<(), Error>;

    /// Whether an entry was told before, in this reading or an earlier one.
    fn knows(&mut self, session: &SessionId, entry: &EntryId) -> Result<bool, Error>;

    /// Something that the user should know about the source: what could not be read, what had to be made up.
    fn note(&mut self, note: Note);

    /// So many bytes of the source were read, for those who show progress.
    fn progress(&mut self, bytes: u64);
}

/// What is known of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The session's id here.
    pub session: SessionId,
    /// What people call it. Without a name of its own: the beginning of what the user said first.
    pub title: String,
    /// When it began, in milliseconds since 1970.
    pub created_at: i64,
    /// When it last changed, in milliseconds since 1970.
    pub updated_at: i64,
    /// What it is doing; `idle` when nobody knows.
    pub status: SessionStatus,
    /// `agent`, `native_id`, `cwd`, `model`, `version` and whatever else the agent knows of it.
    pub metadata: Object,
    /// The session that it was forked from.
    pub forked_from: Option<SessionId>,
}

/// Where a reading was left off, in the agent's own form. Small: it is kept for every source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Mark(pub Json);

/// Something that the user should know about a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Where, for example `line 7`; empty when it is about all of it.
    pub place: String,
    /// What it is.
    pub what: String,
    /// Whether something of the source is not in the session now.
    pub lost: bool,
}
