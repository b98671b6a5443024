//! A session as turns: one question each, and what was done about it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{EntryId, ErrorKind, SessionId, Usage, whole};

/// Asks for a page of the turns of the active path, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnsRequest {
    /// The session.
    pub session_id: SessionId,
    /// How many turns at most.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Where the page before this one ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// A page of turns, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnsResponse {
    /// The turns.
    pub turns: Vec<Turn>,
    /// Where to continue, when there is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// One prompt, and the loop of model and tools that follows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Turn {
    /// Names the turn. It is the same in a history and in a session log.
    pub turn_id: String,
    /// How the turn ended, if it did.
    pub status: TurnStatus,
    /// The model that answered last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Who served that model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// What all answers of the turn consumed together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// When it began, in milliseconds since 1970.
    pub started_at: i64,
    /// When the last thing of it happened; absent while it is not over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<i64>,
    /// How long it took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Its first entry.
    pub first_entry_id: EntryId,
    /// Its last entry so far.
    pub last_entry_id: EntryId,
    /// Every call of a tool, in order.
    pub tools: Vec<ToolUse>,
    /// What went wrong, in the words that people were shown. Secrets are taken out.
    pub errors: Vec<TurnError>,
    /// Where the agent worked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    /// The instructions that were loaded, without their text.
    pub instructions: Vec<InstructionSource>,
}

/// How a turn ended, if it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// Something is still to come, and nobody says that they work on it.
    Pending,
    /// Somebody works on it.
    Running,
    /// It was answered.
    Finished,
    /// Somebody stopped it.
    Cancelled,
    /// It failed.
    Failed,
    /// It was left without an end.
    Interrupted,
}

impl TurnStatus {
    /// The status as it stands in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }

    /// Whether nothing more will come.
    pub const fn is_over(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }
}

/// One call of a tool, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolUse {
    /// Names the call.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// What became of the call.
    pub state: ToolState,
    /// When the model asked for it, in milliseconds since 1970; absent when only its result is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<i64>,
    /// When its result was there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<i64>,
    /// How long it took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The entry that asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_id: Option<EntryId>,
    /// The entry that has its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_entry_id: Option<EntryId>,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolState {
    /// There is no result yet.
    Pending,
    /// It gave a result.
    Ok,
    /// It failed.
    Failed,
    /// It was begun, and ended by something else.
    Interrupted,
    /// It was asked for, and never begun.
    Skipped,
}

impl ToolState {
    /// The state as it stands in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Skipped => "skipped",
        }
    }
}

/// Something that went wrong in a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnError {
    /// What kind of failure it was, when the writer said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ErrorKind>,
    /// The failure in words.
    pub message: String,
    /// The entry that says so; absent when the session's status does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_id: Option<EntryId>,
}

/// Instructions that an agent was given, by where they came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstructionSource {
    /// What kind of instructions, for example `project_instructions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The file that they were read from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What they apply to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The hash of their text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Whether only a part of the text was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    /// Why they could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
