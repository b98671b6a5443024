//! The stream between a store and a destination: frames, each a kind, a length and its bytes.
//!
//! ```text
//! frame = kind u8 · length u32 (little-endian) · bytes
//! ```
//! A stream that does not end with [`Kind::End`] was broken off, and nothing of it counts.

use std::io::{self, Read};

use banyan_core::Born;
use banyan_model::{CommitNo, SessionId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::manifest::{SessionKind, SourceDamage};

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// [`Begin`].
    Begin = 1,
    /// [`SessionFrame`]: a session follows.
    Session = 2,
    /// Bytes of a session's records or of content.
    Data = 3,
    /// [`SessionEnd`].
    SessionEnd = 4,
    /// [`ContentFrame`]: content follows.
    Content = 5,
    /// [`ContentEnd`].
    ContentEnd = 6,
    /// The file of keys.
    Keys = 7,
    /// [`SourceDamage`] that belongs to no session that follows.
    Damage = 8,
    /// [`End`].
    End = 9,
}

const KINDS: [Kind; 9] = [
    Kind::Begin,
    Kind::Session,
    Kind::Data,
    Kind::SessionEnd,
    Kind::Content,
    Kind::ContentEnd,
    Kind::Keys,
    Kind::Damage,
    Kind::End,
];

/// The version of the stream.
pub(crate) const VERSION: u32 = 1;

/// How a stream begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Begin {
    pub(crate) stream: u32,
    /// The id of the directory.
    pub(crate) store: String,
    /// The commit that the backup is consistent at.
    pub(crate) commit: CommitNo,
    pub(crate) time_ms: i64,
    /// The version of Banyan that made the stream.
    pub(crate) banyan: String,
    /// How many sessions there are, about.
    pub(crate) sessions: u64,
}

/// A session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SessionFrame {
    pub(crate) name: String,
    pub(crate) kind: SessionKind,
    pub(crate) id: SessionId,
    pub(crate) born: Born,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) base: Option<Born>,
    /// How many bytes of its records the destination has; what follows comes behind those. Nothing follows if it is as it was.
    pub(crate) from: u64,
    /// True for a session that has not changed: no data and no end follow.
    pub(crate) unchanged: bool,
}

/// What is known once a session's records were sent.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SessionEnd {
    /// BLAKE3 of the bytes that were sent.
    pub(crate) hash: String,
    /// How many of those at the end are a shortened line, which the next backup sends again.
    pub(crate) provisional: u64,
    /// The last commit.
    pub(crate) commit: CommitNo,
    /// Of the first line, if it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) first: Option<String>,
    /// Where the last whole line begins and its digest, if one was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tail: Option<(u64, String)>,
    /// Content that the lines refer to.
    pub(crate) blobs: Vec<String>,
    /// What is wrong with the session.
    pub(crate) damage: Vec<SourceDamage>,
}

/// Content by its hash.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ContentFrame {
    pub(crate) hash: String,
}

/// Whether content was all there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ContentEnd {
    pub(crate) is_whole: bool,
}

/// The end of a stream.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct End {
    pub(crate) sessions: u64,
}

/// The first line of what a destination says it has.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct HaveHead {
    pub(crate) stream: u32,
    /// The directory whose sessions it has, if any.
    pub(crate) store: Option<String>,
    pub(crate) commit: CommitNo,
    /// Whether keys are wanted.
    pub(crate) keys: bool,
    /// Whether what it has is read, too, and compared.
    #[serde(default)]
    pub(crate) reread: bool,
}

/// A further line of what a destination says it has.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Have {
    /// A session.
    Session(Known),
    /// Content that it lacks, though its records refer to it.
    Wants(String),
}

/// What a destination has of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Known {
    pub(crate) name: String,
    pub(crate) id: SessionId,
    pub(crate) kind: SessionKind,
    /// How many bytes of its records.
    pub(crate) length: u64,
    /// Digest of the first line.
    pub(crate) first: String,
    /// Where the last line begins, and its digest.
    pub(crate) tail: (u64, String),
}

/// The largest frame.
pub(crate) const LARGEST: usize = 64 << 20;

/// Adds a frame.
pub(crate) fn push(kind: Kind, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(kind as u8);
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Adds a frame of JSON.
pub(crate) fn push_json(kind: Kind, value: &impl Serialize, out: &mut Vec<u8>) {
    // Values of these types are always JSON.
    push(kind, &serde_json::to_vec(value).unwrap_or_default(), out);
}

/// Reads the next frame; `None` at the end of the input.
pub(crate) fn read(input: &mut dyn Read, bytes: &mut Vec<u8>) -> io::Result<Option<Kind>> {
    let mut head = [0; 5];
    if input.read(&mut head[..1])? == 0 {
        return Ok(None);
    }
    input.read_exact(&mut head[1..])?;
    let kind = KINDS.into_iter().find(|kind| *kind as u8 == head[0]);
    let kind = kind.ok_or_else(|| invalid(format!("a frame of the unknown kind {}", head[0])))?;
    let len = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
    if len > LARGEST {
        return Err(invalid(format!("a frame of {len} bytes")));
    }
    bytes.resize(len, 0);
    input.read_exact(bytes)?;
    Ok(Some(kind))
}

/// The value of a frame of JSON.
pub(crate) fn json<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    serde_json::from_slice(bytes).map_err(|error| invalid(error.to_string()))
}

/// A stream that is not as it should be.
pub(crate) fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}
