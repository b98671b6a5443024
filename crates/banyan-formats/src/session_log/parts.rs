//! Messages as the events of a log have them. Whoever writes checks that the parts make the same message again, and adds the
//! message itself when they do not.

use banyan_model::{
    AgentMessage, AssistantMessage, ContentBlock, ErrorKind, FunctionCallBlock, FunctionResultMessage, Json,
    StopReason, TextBlock, ThinkingBlock, Usage, UserMessage,
};

use crate::history::text_of;

/// What a `user` line says.
pub(super) fn user(text: &str, said_at: i64) -> AgentMessage {
    AgentMessage::User(UserMessage { content: texts(text), timestamp: said_at })
}

/// The text of a message, as a line shows it.
pub(super) fn shown(content: &[ContentBlock]) -> String {
    text_of(content)
}

/// What the lines of one assistant message say together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Assistant {
    pub(super) model: String,
    pub(super) provider: String,
    pub(super) agent: Option<Json>,
    pub(super) reasoning: Vec<ThinkingBlock>,
    pub(super) text: String,
    pub(super) calls: Vec<FunctionCallBlock>,
    pub(super) end: Option<End>,
}

/// What an `assistant_finished` line says besides the text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct End {
    pub(super) stop_reason: Option<StopReason>,
    pub(super) native_stop_reason: Option<String>,
    pub(super) usage: Option<Usage>,
    pub(super) error_kind: Option<ErrorKind>,
    pub(super) error: Option<String>,
    pub(super) warnings: Option<Vec<String>>,
}

impl Assistant {
    pub(super) fn of(message: &AssistantMessage) -> Self {
        let mut parts = Self {
            model: message.model.clone(),
            provider: message.provider.clone(),
            agent: message.agent.clone(),
            text: shown(&message.content),
            ..Self::default()
        };
        for block in &message.content {
            match block {
                ContentBlock::Thinking(thought) => parts.reasoning.push(thought.clone()),
                ContentBlock::FunctionCall(call) => parts.calls.push(call.clone()),
                _ => {}
            }
        }
        parts.end = Some(End {
            stop_reason: Some(message.stop_reason),
            native_stop_reason: message.native_stop_reason.clone(),
            usage: message.usage.clone(),
            error_kind: message.error_kind,
            error: message.error_message.clone(),
            warnings: message.warnings.clone(),
        });
        parts
    }

    /// The message: thoughts, then text, then calls.
    pub(super) fn message(self, said_at: i64) -> AgentMessage {
        let end = self.end.unwrap_or_default();
        let left_to = if self.calls.is_empty() { StopReason::Aborted } else { StopReason::FunctionCall };
        let thoughts = self.reasoning.into_iter().map(ContentBlock::Thinking);
        let calls = self.calls.into_iter().map(ContentBlock::FunctionCall);
        AgentMessage::Assistant(AssistantMessage {
            content: thoughts.chain(texts(&self.text)).chain(calls).collect(),
            model: self.model,
            provider: self.provider,
            stop_reason: end.stop_reason.unwrap_or(left_to),
            native_stop_reason: end.native_stop_reason,
            error_kind: end.error_kind,
            error_message: end.error,
            usage: end.usage,
            warnings: end.warnings,
            agent: self.agent,
            timestamp: said_at,
        })
    }
}

/// What a `tool_finished` line says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ToolResult {
    pub(super) call_id: String,
    pub(super) name: String,
    pub(super) is_error: bool,
    pub(super) text: String,
    pub(super) details: Json,
}

impl ToolResult {
    pub(super) fn of(message: &FunctionResultMessage) -> Self {
        Self {
            call_id: message.function_call_id.clone(),
            name: message.function_id.clone(),
            is_error: message.is_error,
            text: shown(&message.content),
            details: message.details.clone(),
        }
    }

    pub(super) fn message(self, said_at: i64) -> AgentMessage {
        AgentMessage::FunctionResult(FunctionResultMessage {
            function_call_id: self.call_id,
            function_id: self.name,
            content: texts(&self.text),
            details: self.details,
            is_error: self.is_error,
            timestamp: said_at,
        })
    }
}

fn texts(text: &str) -> Vec<ContentBlock> {
    if text.is_empty() { Vec::new() } else { vec![ContentBlock::Text(TextBlock { text: text.to_owned() })] }
}
