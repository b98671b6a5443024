//! A line, as far as anybody looks before it is known to matter.

use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::Own;
use crate::lines::without_bom;
use crate::rest::{Text, if_it_fits, if_text};

/// The fields of all kinds of records that decide where a record goes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "if_text", rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    pub(super) uuid: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    pub(super) parent_uuid: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    pub(super) logical_parent_uuid: Option<Text<'a>>,
    #[serde(default, deserialize_with = "if_it_fits")]
    pub(super) is_sidechain: Option<bool>,
    #[serde(default, deserialize_with = "if_it_fits")]
    pub(super) is_meta: Option<bool>,
    #[serde(default, deserialize_with = "if_it_fits")]
    pub(super) is_compact_summary: Option<bool>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    pub(super) timestamp: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    pub(super) session_id: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    pub(super) cwd: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    pub(super) version: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    pub(super) git_branch: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    pub(super) custom_title: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    pub(super) ai_title: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    pub(super) summary: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    pub(super) leaf_uuid: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) rendered: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) tool_use_result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) is_api_error_message: Option<&'a RawValue>,
    #[serde(default, rename = "x_banyan")]
    pub(super) own: Option<Marked>,
}

/// Our own mark, and the session that we wrote it into: the agent copies lines when it forks.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Marked {
    #[serde(flatten)]
    pub(super) own: Own,
    #[serde(default)]
    pub(super) native: Option<String>,
}

impl Envelope<'_> {
    pub(super) fn kind(&self) -> &str {
        self.kind.as_deref().unwrap_or("record")
    }

    /// Whether it has what records have and their parts do not.
    pub(super) fn is_whole(&self) -> bool {
        self.kind.is_some() && (self.session_id.is_some() || (self.summary.is_some() && self.leaf_uuid.is_some()))
    }
}

/// Whether a file that begins like this is one of Claude's. Others write lines of nearly the same form.
pub(super) fn looks_own(beginning: &[u8]) -> bool {
    let has = |word: &[u8]| memmem::find(beginning, word).is_some();
    if has(b"\"parts\"") || has(b"\"projectHash\"") {
        return false;
    }
    let first = without_bom(beginning).split(|byte| *byte == b'\n').next().unwrap_or_default();
    match serde_json::from_slice::<Envelope<'_>>(first) {
        Ok(first) => first.kind.is_some() && (first.session_id.is_some() || first.leaf_uuid.is_some()),
        // A first line that is longer than what was looked at.
        Err(_) => has(b"\"sessionId\"") && has(b"\"parentUuid\""),
    }
}

/// A record's name as a number, for a map that may be large.
pub(super) fn number(uuid: &str) -> u128 {
    if let Ok(uuid) = Uuid::try_parse(uuid) {
        return uuid.as_u128();
    }
    let hash = blake3::hash(uuid.as_bytes());
    hash.as_bytes().first_chunk::<16>().map_or(0, |first| u128::from_le_bytes(*first))
}
