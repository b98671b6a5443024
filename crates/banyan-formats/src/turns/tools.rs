//! The calls of a turn, and what became of each.

use banyan_model::{
    EntryId, FunctionCallBlock, FunctionResultBlock, FunctionResultMessage, Json, Object, StopReason, ToolState,
    ToolUse, TurnStatus,
};
use serde_json::Value;

/// The calls so far.
#[derive(Debug, Default)]
pub(super) struct Tools {
    uses: Vec<(ToolUse, Without)>,
}

/// What a call is while it has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Without {
    /// The model waits for it.
    Awaited,
    /// The model was not done when it stopped, so nobody began the call.
    NotBegun,
    /// The model went on without it.
    PassedOver,
}

impl Tools {
    pub(super) fn call(
        &mut self,
        entry_id: &EntryId,
        call: &FunctionCallBlock,
        time: i64,
        stop: Option<StopReason>,
    ) {
        let tool = ToolUse {
            call_id: call.id.clone(),
            name: call.function_id.clone(),
            state: ToolState::Pending,
            started_at: Some(time),
            ended_at: None,
            duration_ms: None,
            entry_id: Some(entry_id.clone()),
            result_entry_id: None,
        };
        let without = match stop {
            Some(StopReason::Aborted | StopReason::Error | StopReason::Length) => Without::NotBegun,
            Some(StopReason::FunctionCall | StopReason::End) | None => Without::Awaited,
        };
        self.uses.push((tool, without));
    }

    /// The model said something more. What has no result by now was passed over, if anything has one.
    pub(super) fn go_on(&mut self) {
        for (tool, without) in &mut self.uses {
            if tool.state == ToolState::Pending && *without == Without::Awaited {
                *without = Without::PassedOver;
            }
        }
    }

    pub(super) fn result(&mut self, entry_id: &EntryId, result: &FunctionResultMessage) {
        let details = result.details.parse::<Object>().ok();
        let state = stated(details.as_ref()).unwrap_or(settled(result.is_error));
        let tool = self.settle(&result.function_call_id, &result.function_id, entry_id, state, result.timestamp);
        if let Some(duration) = details.as_ref().and_then(duration) {
            tool.duration_ms = Some(duration);
        }
    }

    pub(super) fn block(&mut self, entry_id: &EntryId, result: &FunctionResultBlock, time: i64) {
        let state = settled(result.is_error.unwrap_or_default());
        self.settle(&result.function_call_id, "", entry_id, state, time);
    }

    /// The same id can name several calls of a session: a result belongs to the last of them that has none.
    fn settle(
        &mut self,
        call_id: &str,
        name: &str,
        entry_id: &EntryId,
        state: ToolState,
        time: i64,
    ) -> &mut ToolUse {
        let waits = |(tool, _): &(ToolUse, Without)| tool.call_id == call_id && tool.state == ToolState::Pending;
        let at = self.uses.iter().rposition(waits).unwrap_or_else(|| {
            let unasked = ToolUse {
                call_id: call_id.to_owned(),
                name: name.to_owned(),
                state,
                started_at: None,
                ended_at: None,
                duration_ms: None,
                entry_id: None,
                result_entry_id: None,
            };
            self.uses.push((unasked, Without::Awaited));
            self.uses.len() - 1
        });
        let tool = &mut self.uses[at].0;
        tool.state = state;
        tool.ended_at = Some(time);
        tool.duration_ms = tool.started_at.and_then(|start| u64::try_from(time.saturating_sub(start)).ok());
        tool.result_entry_id = Some(entry_id.clone());
        tool
    }

    /// Whether the model waits for a result.
    pub(super) fn awaits_any(&self) -> bool {
        self.uses.iter().any(|(tool, without)| tool.state == ToolState::Pending && *without == Without::Awaited)
    }

    /// The call whose result an entry has.
    pub(super) fn settled_by(&self, entry_id: &EntryId) -> Option<&ToolUse> {
        self.uses.iter().rev().map(|(tool, _)| tool).find(|tool| tool.result_entry_id.as_ref() == Some(entry_id))
    }

    /// All calls, once it is known how the turn stands.
    pub(super) fn close(self, status: TurnStatus) -> Vec<ToolUse> {
        let close = |(mut tool, without): (ToolUse, Without)| {
            if tool.state == ToolState::Pending {
                tool.state = match without {
                    Without::NotBegun | Without::PassedOver => ToolState::Skipped,
                    Without::Awaited if status.is_over() => ToolState::Interrupted,
                    Without::Awaited => ToolState::Pending,
                };
            }
            tool
        };
        self.uses.into_iter().map(close).collect()
    }
}

fn settled(is_error: bool) -> ToolState {
    if is_error { ToolState::Failed } else { ToolState::Ok }
}

/// The state that a result's details name, in the words of different agents.
fn stated(details: Option<&Object>) -> Option<ToolState> {
    let word = ["status", "state", "outcome"].iter().find_map(|key| details?.get(*key)?.as_str())?;
    match word.to_ascii_lowercase().as_str() {
        "interrupted" | "cancelled" | "canceled" | "aborted" => Some(ToolState::Interrupted),
        "skipped" | "denied" | "rejected" | "declined" => Some(ToolState::Skipped),
        _ => None,
    }
}

fn duration(details: &Object) -> Option<u64> {
    ["duration_ms", "durationMs"].iter().find_map(|key| details.get(*key).and_then(Value::as_u64))
}

/// The details of a result that a log says was interrupted or skipped.
pub(crate) fn details_of(state: ToolState) -> Option<Json> {
    match state {
        ToolState::Interrupted | ToolState::Skipped => {
            Json::of(&serde_json::json!({"status": state.as_str()})).ok()
        }
        ToolState::Pending | ToolState::Ok | ToolState::Failed => None,
    }
}
