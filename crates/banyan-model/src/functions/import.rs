//! What came of taking in a file of somebody else's.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{EntryId, Object, SessionId, SessionStatus};

/// What came of an import: one report for each session in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportResponse {
    /// What the file was taken for, for example `session-log`.
    pub format: String,
    /// True when nothing was written, because only the report was asked for.
    pub dry_run: bool,
    /// The sessions.
    pub sessions: Vec<ImportedSession>,
}

/// What came of one session of an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedSession {
    /// The session.
    pub session_id: SessionId,
    /// Its title.
    pub title: String,
    /// Whether it began with this import.
    pub created: bool,
    /// How many entries are new.
    pub added: u64,
    /// How many entries were there in an older form, and were replaced.
    pub updated: u64,
    /// How many entries were there already.
    pub unchanged: u64,
    /// How many attachments are new.
    pub attachments: u64,
    /// What the file did not say and had to be made up.
    pub invented: Vec<ImportNote>,
    /// What the file says and found no place.
    pub not_placed: Vec<ImportNote>,
    /// How many notes there were beyond those that are listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_notes: u64,
    /// What is unusual about the file, and no reason to refuse it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// What the file's signature is worth, when it is of a form that can be signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<ImportedSignature>,
}

/// What the signature of a file is worth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedSignature {
    /// `full`, `partial` or `none`. A file whose signature does not hold is not imported.
    pub coverage: String,
    /// The parts that are not covered, and can be anybody's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncovered: Vec<String>,
    /// Whose certificate it was made with. That it is in the file does not make it trustworthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
}

/// One remark about a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportNote {
    /// Where in the file, for example `line 7`; empty when it is about all of it.
    #[serde(rename = "where")]
    pub place: String,
    /// What it is.
    pub note: String,
}

/// What somebody who imports a session again and again told of it the last time. Whatever the session still has of it is theirs to
/// change; whatever it has not was changed by somebody else since, and stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastTold {
    /// The title.
    pub title: String,
    /// The status.
    pub status: SessionStatus,
    /// The labels.
    pub metadata: Object,
    /// Where the active path ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaf: Option<EntryId>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
