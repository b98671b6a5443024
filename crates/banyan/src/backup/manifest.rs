//! The manifest of one generation: every session with the parts that its records are in. JSON lines; the last one has the
//! checksum of those before it.

use banyan_core::Born;
use banyan_model::{CommitNo, SessionId};
use serde::{Deserialize, Serialize};

/// The version of the format.
pub(crate) const FORMAT: u32 = 1;

/// One generation of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Its number in the repository.
    pub generation: u64,
    /// What it is a backup of.
    pub head: ManifestHead,
    /// The sessions, by name.
    pub sessions: Vec<SessionCopy>,
}

/// What a generation is a backup of. The first line of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestHead {
    /// The version of the format.
    pub banyan_backup: u32,
    /// The id of the directory that was backed up.
    pub store: String,
    /// The commit that the backup is consistent at.
    pub commit: CommitNo,
    /// When it was begun, in milliseconds since 1970.
    pub time_ms: i64,
    /// The version of Banyan that made it.
    pub banyan: String,
    /// Hash of the file of keys, if it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<String>,
    /// What was wrong with the directory apart from its sessions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<SourceDamage>,
}

/// Whether a session's records are those of a session or only of use to forks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionKind {
    /// A session.
    Live,
    /// A deleted session that forks read.
    Base,
}

/// One session of a generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCopy {
    /// The name of its file in a data directory, without suffix.
    pub name: String,
    /// Whether it is a session or a base.
    pub kind: SessionKind,
    /// The session's id.
    pub id: SessionId,
    /// Which incarnation.
    pub born: Born,
    /// The incarnation that it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Born>,
    /// How many bytes of its file the parts have, not counting a provisional one.
    pub length: u64,
    /// Its last commit.
    pub commit: CommitNo,
    /// Digest of its first line.
    pub first: String,
    /// Where its last line begins, and its digest.
    pub tail: (u64, String),
    /// Its records, in order.
    pub parts: Vec<Part>,
    /// What was wrong with it when it was backed up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<SourceDamage>,
}

/// Some of a session's records, as a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// BLAKE3 of the file, which is also its name.
    pub hash: String,
    /// Its length.
    pub length: u64,
    /// Content that the records refer to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blobs: Vec<String>,
    /// A line that was growing: it has what belongs to the commit, and the next backup replaces it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub provisional: bool,
}

/// Something that was wrong in the directory that was backed up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceDamage {
    /// The file, relative to the data directory.
    pub file: String,
    /// Where in the file, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// What is wrong.
    pub reason: String,
    /// Whether the damaged bytes are in the backup, because there was nothing better.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub copied: bool,
}

#[derive(Serialize, Deserialize)]
struct Foot {
    sessions: u64,
    checksum: String,
}

impl Manifest {
    /// Everything that was wrong in the directory.
    pub fn damage(&self) -> impl Iterator<Item = &SourceDamage> {
        self.head.damage.iter().chain(self.sessions.iter().flat_map(|session| &session.damage))
    }

    /// Hashes of all parts.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &Part> {
        self.sessions.iter().flat_map(|session| &session.parts)
    }

    /// The file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut text = Vec::new();
        push_line(&self.head, &mut text);
        for session in &self.sessions {
            push_line(session, &mut text);
        }
        let checksum = blake3::hash(&text).to_hex().to_string();
        push_line(&Foot { sessions: self.sessions.len() as u64, checksum }, &mut text);
        text
    }

    /// Reads the file. Fails with what is wrong.
    pub(crate) fn decode(generation: u64, text: &[u8]) -> Result<Self, String> {
        let damaged = || "is damaged".to_owned();
        let body = text.strip_suffix(b"\n").ok_or_else(damaged)?;
        let foot_at = memchr::memrchr(b'\n', body).ok_or_else(damaged)? + 1;
        let (lines, foot) = body.split_at(foot_at);
        let foot: Foot = serde_json::from_slice(foot).map_err(|_| damaged())?;
        if blake3::hash(lines).to_hex().as_str() != foot.checksum {
            return Err(damaged());
        }
        let mut lines = lines.split_inclusive(|byte| *byte == b'\n');
        let first = lines.next().ok_or_else(damaged)?;
        #[derive(Deserialize)]
        struct Version {
            banyan_backup: u32,
            banyan: String,
        }
        let version: Version = serde_json::from_slice(first).map_err(|_| damaged())?;
        if version.banyan_backup > FORMAT {
            return Err(format!(
                "has format {}, written by Banyan {}; this Banyan knows format {FORMAT}; use Banyan {} or newer",
                version.banyan_backup, version.banyan, version.banyan
            ));
        }
        let head = serde_json::from_slice(first).map_err(|error| format!("is damaged: {error}"))?;
        let sessions: Result<Vec<SessionCopy>, _> = lines.map(serde_json::from_slice).collect();
        let sessions = sessions.map_err(|error| format!("is damaged: {error}"))?;
        if sessions.len() as u64 != foot.sessions {
            return Err(damaged());
        }
        Ok(Self { generation, head, sessions })
    }
}

fn push_line(value: &impl Serialize, text: &mut Vec<u8>) {
    // Values of these types are always JSON.
    text.extend_from_slice(&serde_json::to_vec(value).unwrap_or_default());
    text.push(b'\n');
}
