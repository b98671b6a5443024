//! A line, as far as anybody looks before it is known to matter.

use std::borrow::Cow;

use banyan_model::Json;
use memchr::memmem;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use uuid::Uuid;

use crate::lines::Line;
use crate::native::take_own;
use crate::{OWN, Own};

type Text<'a> = Option<Cow<'a, str>>;

/// The fields of all kinds of records that decide where a record goes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Envelope<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) uuid: Text<'a>,
    #[serde(borrow, default)]
    pub(super) parent_uuid: Text<'a>,
    #[serde(borrow, default)]
    pub(super) logical_parent_uuid: Text<'a>,
    #[serde(default)]
    pub(super) is_sidechain: Option<bool>,
    #[serde(default)]
    pub(super) is_meta: Option<bool>,
    #[serde(default)]
    pub(super) is_compact_summary: Option<bool>,
    #[serde(borrow, default)]
    pub(super) timestamp: Text<'a>,
    #[serde(borrow, default)]
    pub(super) session_id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) cwd: Text<'a>,
    #[serde(borrow, default)]
    pub(super) version: Text<'a>,
    #[serde(borrow, default)]
    pub(super) git_branch: Text<'a>,
    #[serde(borrow, default)]
    pub(super) custom_title: Text<'a>,
    #[serde(borrow, default)]
    pub(super) ai_title: Text<'a>,
    #[serde(borrow, default)]
    pub(super) summary: Text<'a>,
    #[serde(borrow, default)]
    pub(super) leaf_uuid: Text<'a>,
    #[serde(default)]
    pub(super) rendered: Option<IgnoredAny>,
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
}

/// Whether a file that begins like this is one of Claude's. Others write lines of nearly the same form.
pub(super) fn looks_own(beginning: &[u8]) -> bool {
    let has = |word: &[u8]| memmem::find(beginning, word).is_some();
    if has(b"\"parts\"") || has(b"\"projectHash\"") {
        return false;
    }
    let first = beginning.split(|byte| *byte == b'\n').next().unwrap_or_default();
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

/// The record as it is, without what we added.
pub(super) fn json(line: &Line<'_>) -> Option<Json> {
    if memmem::find(line.text.as_bytes(), OWN.as_bytes()).is_none() {
        return Json::vouched(&line.text).ok();
    }
    Json::of(&value(line)?).ok()
}

/// The record, without what we added.
pub(super) fn value(line: &Line<'_>) -> Option<Value> {
    let mut value: Value = serde_json::from_str(&line.text).ok()?;
    take_own(&mut value);
    Some(value)
}
