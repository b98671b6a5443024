//! A line, as far as anybody looks before it is known to matter.

use std::borrow::Cow;

use memchr::memmem;
use serde::Deserialize;
use uuid::Uuid;

use crate::Own;
use crate::lines::without_bom;
use crate::outline::{Found, Outline, Sought, sought};

sought! {
    /// The fields of all kinds of records that decide where a record goes.
    pub(super) struct Envelope<'a> {
        pub(super) kind: Cow<'a, str> = "type",
        pub(super) uuid: Cow<'a, str> = "uuid",
        pub(super) parent_uuid: Cow<'a, str> = "parentUuid",
        pub(super) logical_parent_uuid: Cow<'a, str> = "logicalParentUuid",
        pub(super) is_sidechain: bool = "isSidechain",
        pub(super) is_meta: bool = "isMeta",
        pub(super) is_compact_summary: bool = "isCompactSummary",
        pub(super) timestamp: Cow<'a, str> = "timestamp",
        pub(super) session_id: Cow<'a, str> = "sessionId",
        pub(super) cwd: Cow<'a, str> = "cwd",
        pub(super) version: Cow<'a, str> = "version",
        pub(super) git_branch: Cow<'a, str> = "gitBranch",
        pub(super) custom_title: Cow<'a, str> = "customTitle",
        pub(super) ai_title: Cow<'a, str> = "aiTitle",
        pub(super) summary: Cow<'a, str> = "summary",
        pub(super) leaf_uuid: Cow<'a, str> = "leafUuid",
        pub(super) rendered: Found<'a> = "rendered",
        pub(super) message: Found<'a> = "message",
        pub(super) tool_use_result: Found<'a> = "toolUseResult",
        pub(super) is_api_error_message: bool = "isApiErrorMessage",
        pub(super) own: Marked = "x_banyan",
    }
}

/// Our own mark, and the session that we wrote it into: the agent copies lines when it forks.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Marked {
    #[serde(flatten)]
    pub(super) own: Own,
    #[serde(default)]
    pub(super) native: Option<String>,
}

impl Sought<'_> for Marked {
    fn sought(value: Found<'_>) -> Option<Self> {
        value.read()
    }
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
    match std::str::from_utf8(first).ok().and_then(|first| Outline::of(first).ok()) {
        Some(first) => {
            let first = Envelope::of(Some(first.root()));
            first.kind.is_some() && (first.session_id.is_some() || first.leaf_uuid.is_some())
        }
        // A first line that is longer than what was looked at.
        None => has(b"\"sessionId\"") && has(b"\"parentUuid\""),
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
