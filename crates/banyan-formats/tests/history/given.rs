//! Messages of Banyan's own, briefly.

use banyan_model::*;

pub(crate) fn text(text: &str) -> ContentBlock {
    ContentBlock::text(text)
}

pub(crate) fn thinking(text: &str) -> ContentBlock {
    ContentBlock::Thinking(ThinkingBlock { text: text.into(), signature: None })
}

pub(crate) fn call(id: &str, function: &str, arguments: &serde_json::Value) -> ContentBlock {
    ContentBlock::FunctionCall(FunctionCallBlock {
        id: id.into(),
        function_id: function.into(),
        arguments: Json::of(arguments).unwrap(),
    })
}

pub(crate) fn image(data: &str) -> ContentBlock {
    ContentBlock::Image(ImageBlock { mime: "image/png".into(), data: data.into(), attachment_id: None })
}

pub(crate) fn user(content: Vec<ContentBlock>, timestamp: i64) -> AgentMessage {
    AgentMessage::User(UserMessage { content, timestamp })
}

pub(crate) fn assistant(content: Vec<ContentBlock>, stop_reason: StopReason, timestamp: i64) -> AgentMessage {
    AgentMessage::Assistant(AssistantMessage {
        content,
        model: "m-1".into(),
        provider: "p".into(),
        stop_reason,
        native_stop_reason: None,
        error_kind: None,
        error_message: None,
        usage: None,
        warnings: None,
        agent: None,
        timestamp,
    })
}

pub(crate) fn failed(content: Vec<ContentBlock>, words: &str, timestamp: i64) -> AgentMessage {
    match assistant(content, StopReason::Error, timestamp) {
        AgentMessage::Assistant(message) => {
            AgentMessage::Assistant(AssistantMessage { error_message: Some(words.into()), ..message })
        }
        other => other,
    }
}

pub(crate) fn result(call: &str, function: &str, content: Vec<ContentBlock>, timestamp: i64) -> AgentMessage {
    AgentMessage::FunctionResult(FunctionResultMessage {
        function_call_id: call.into(),
        function_id: function.into(),
        content,
        details: Json::null(),
        is_error: false,
        timestamp,
    })
}

pub(crate) fn custom(
    kind: &str,
    content: Vec<ContentBlock>,
    display: Option<&str>,
    timestamp: i64,
) -> AgentMessage {
    AgentMessage::Custom(CustomMessage {
        custom_type: kind.into(),
        content,
        display: display.map(Into::into),
        details: None,
        timestamp,
    })
}
