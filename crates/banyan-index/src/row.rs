//! What the catalogue keeps of one session file.

use std::sync::Arc;

use banyan_model::{CommitNo, Object, SessionId, SessionMeta};

/// One incarnation of a session: an id that is deleted and made again gets another `born`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileKey {
    /// The session's id.
    pub session_id: SessionId,
    /// The identity of this incarnation.
    pub born: String,
}

/// What never changes about a session file, shared by all rows that are noted of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFile {
    /// Which incarnation of which session the file holds.
    pub key: FileKey,
    /// The file's name without its extension.
    pub stem: String,
    /// The incarnation that a fork shares its first entries with.
    pub base: Option<FileKey>,
}

/// Whether people see a session file's session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The session exists and is listed.
    Listed,
    /// The session was deleted; its file stays because forks still need it.
    Retained,
}

/// Whether a session's metadata is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataTrust {
    /// It is as it was last set.
    Known,
    /// Damage may have changed it since: no filter and no scope matches it.
    InDoubt,
}

impl Row {
    /// The metadata that filters and scopes see.
    pub fn known_metadata(&self) -> Option<&Object> {
        match self.trust {
            MetadataTrust::Known => self.meta.metadata.as_ref(),
            MetadataTrust::InDoubt => None,
        }
    }
}

/// A session file as of one commit.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The file.
    pub file: Arc<SessionFile>,
    /// Whether it is listed.
    pub standing: Standing,
    /// The session's metadata record.
    pub meta: Arc<SessionMeta>,
    /// Whether `meta.metadata` is known to be the session's.
    pub trust: MetadataTrust,
    /// The file's length in bytes when it was indexed.
    pub length: u64,
    /// The file's modification time when it was indexed, in the caller's unit.
    pub modified: u64,
    /// The number of the last commit that the row includes.
    pub commit: CommitNo,
    /// Blobs that the file refers to and that earlier rows of it did not name. Rows that are read back leave it empty.
    pub blobs: Vec<blake3::Hash>,
}

/// What the catalogue last saw of a session file, for comparison with the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenFile {
    /// The file's name without its extension.
    pub stem: String,
    /// The incarnation that it holds.
    pub key: FileKey,
    /// Whether it is listed.
    pub standing: Standing,
    /// Its length in bytes.
    pub length: u64,
    /// Its modification time, in the caller's unit.
    pub modified: u64,
    /// The number of the last commit that was indexed.
    pub commit: CommitNo,
}
