//! Where a front end is in a stream of AG-UI's events.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a front end has under way, as it follows from the events that it was told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// The run.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<String>,
    /// What was begun and not ended.
    #[serde(rename = "o", default, skip_serializing_if = "Vec::is_empty")]
    pub(super) open: Vec<(Thing, String)>,
}

/// Something that events begin and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Thing {
    #[serde(rename = "t")]
    Text,
    #[serde(rename = "m")]
    Thought,
    #[serde(rename = "s")]
    Span,
    #[serde(rename = "c")]
    Call,
}

impl Left {
    /// Takes in the next event.
    pub fn hear(&mut self, event: &Value) {
        let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
        let id = text("messageId");
        match event["type"].as_str().unwrap_or_default() {
            "RUN_STARTED" => self.run = Some(text("runId")),
            "RUN_FINISHED" | "RUN_ERROR" => *self = Self::default(),
            "TEXT_MESSAGE_START" => self.open.push((Thing::Text, id)),
            "REASONING_START" => self.open.push((Thing::Span, id)),
            "REASONING_MESSAGE_START" => self.open.push((Thing::Thought, id)),
            "TOOL_CALL_START" => self.open.push((Thing::Call, text("toolCallId"))),
            "TEXT_MESSAGE_END" => self.open.retain(|known| *known != (Thing::Text, id.clone())),
            "REASONING_END" => self.open.retain(|known| *known != (Thing::Span, id.clone())),
            "REASONING_MESSAGE_END" => self.open.retain(|known| *known != (Thing::Thought, id.clone())),
            "TOOL_CALL_END" => self.open.retain(|known| *known != (Thing::Call, text("toolCallId"))),
            _ => {}
        }
    }
}
