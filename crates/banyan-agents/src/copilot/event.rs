//! One event as Copilot CLI writes it, and what it is to us.

use banyan_model::{
    AgentMessage, AssistantMessage, ContentBlock, CustomMessage, ErrorKind, FunctionCallBlock,
    FunctionResultMessage, ImageBlock, Json, Object, StopReason, ThinkingBlock, Usage, UserMessage,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ID;
use crate::build::millis;
use crate::rest::{Text, if_text};
use crate::{COMPACTION, OWN, Own};

/// An event, with what all of them have.
#[derive(Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    pub(super) timestamp: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text", rename = "parentId")]
    pub(super) parent: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text", rename = "agentId")]
    pub(super) agent: Option<Text<'a>>,
    #[serde(default, rename = "x_banyan")]
    pub(super) own: Option<Own>,
}

/// What a request consumed, which is told before the answer is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Consumed {
    pub(super) call: String,
    pub(super) usage: Usage,
    pub(super) provider: String,
    pub(super) stop: Option<String>,
}

/// What an event is to us: a message and what the event has besides, or nothing but itself.
pub(super) type Told = Option<(AgentMessage, Object)>;

impl Event<'_> {
    pub(super) fn at(&self) -> Option<i64> {
        millis(self.timestamp.as_deref()?)
    }

    /// Whether it can become a message, so that it is worth reading whole.
    pub(super) fn speaks(&self) -> bool {
        matches!(
            &*self.kind,
            "user.message"
                | "assistant.message"
                | "tool.execution_complete"
                | "system.message"
                | "session.error"
                | "session.compaction_complete"
        )
    }

    /// The message that an event is. `name` gives the tool of a call.
    pub(super) fn told(
        &self,
        mut record: Object,
        consumed: Option<&Consumed>,
        name: &dyn Fn(&str) -> String,
        at: i64,
    ) -> Told {
        record.shift_remove(OWN);
        let Some(Value::Object(mut data)) = record.shift_remove("data") else { return None };
        let message = match &*self.kind {
            "user.message" => user(&mut data, at),
            "system.message" => custom("copilot.system_message", take_text(&mut data, "content"), at),
            "assistant.message" => AgentMessage::Assistant(assistant(&mut data, consumed, at)),
            "tool.execution_complete" => AgentMessage::FunctionResult(result(&mut data, name, at)?),
            "session.error" => AgentMessage::Assistant(failed(&data, at)),
            "session.compaction_complete" if data.get("success") == Some(&Value::Bool(true)) => {
                let AgentMessage::Custom(mut message) =
                    custom(COMPACTION, take_text(&mut data, "summaryContent"), at)
                else {
                    return None;
                };
                message.details = Json::of(&data).ok();
                AgentMessage::Custom(message)
            }
            _ => return None,
        };
        record.insert("data".to_owned(), Value::Object(data));
        Some((message, Object::from_iter([(ID.to_owned(), Value::Object(record))])))
    }
}

impl Consumed {
    /// What a record of usage says.
    pub(super) fn of(record: &Object) -> Option<Self> {
        let usage = record.get("data")?.get("usage")?;
        let count = |key: &str| usage.get(key).and_then(Value::as_u64);
        let text = |key: &str| usage.get(key).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            call: text("apiCallId")?,
            usage: Usage {
                input: count("inputTokens"),
                output: count("outputTokens"),
                cache_read: count("cacheReadTokens"),
                cache_write: count("cacheWriteTokens"),
                ..Usage::default()
            },
            provider: text("modelProvider").unwrap_or_default(),
            stop: text("finishReason"),
        })
    }
}

fn take_text(data: &mut Object, key: &str) -> String {
    match data.get_mut(key) {
        Some(Value::String(text)) => std::mem::take(text),
        _ => String::new(),
    }
}

fn custom(custom_type: &str, text: String, timestamp: i64) -> AgentMessage {
    let content = vec![ContentBlock::text(text)];
    let custom_type = custom_type.to_owned();
    AgentMessage::Custom(CustomMessage { custom_type, content, display: None, details: None, timestamp })
}

/// What a person typed, or an agent that called this one; anything else was put in by the agent itself.
fn user(data: &mut Object, timestamp: i64) -> AgentMessage {
    let mut content = Vec::new();
    let text = take_text(data, "content");
    if !text.is_empty() {
        content.push(ContentBlock::text(text));
    }
    if let Some(Value::Array(attachments)) = data.get_mut("attachments") {
        content.extend(attachments.iter_mut().filter_map(picture));
    }
    let source = data.get("source").and_then(Value::as_str).unwrap_or("user");
    if source == "user" || source.starts_with("agent-") {
        return AgentMessage::User(UserMessage { content, timestamp });
    }
    let kind = source.split('-').next().unwrap_or(source);
    let custom_type = format!("{ID}.{kind}");
    AgentMessage::Custom(CustomMessage { custom_type, content, display: None, details: None, timestamp })
}

/// Takes the bytes of a picture that was attached.
fn picture(attachment: &mut Value) -> Option<ContentBlock> {
    let mime = attachment.get("mimeType")?.as_str().filter(|mime| mime.starts_with("image/"))?.to_owned();
    let data = attachment.get_mut("data").filter(|data| data.is_string())?.take();
    let Value::String(data) = data else { return None };
    Some(ContentBlock::Image(ImageBlock { mime, data, attachment_id: None }))
}

fn assistant(data: &mut Object, consumed: Option<&Consumed>, timestamp: i64) -> AssistantMessage {
    let mut content = thinking(data);
    let text = take_text(data, "content");
    if !text.is_empty() {
        content.push(ContentBlock::text(text));
    }
    let mut stop_reason = StopReason::End;
    if let Some(Value::Array(requests)) = data.get_mut("toolRequests") {
        for request in requests.iter_mut().filter_map(Value::as_object_mut) {
            let text = |key: &str| request.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            let (id, function_id) = (text("toolCallId"), text("name"));
            let arguments = request.get("arguments").and_then(|arguments| Json::of(arguments).ok());
            let arguments = arguments.unwrap_or_default();
            content.push(ContentBlock::FunctionCall(FunctionCallBlock { id, function_id, arguments }));
            for key in ["toolCallId", "name", "arguments"] {
                request.insert(key.to_owned(), Value::Null);
            }
            stop_reason = StopReason::FunctionCall;
        }
    }
    let consumed =
        consumed.filter(|consumed| data.get("apiCallId").and_then(Value::as_str) == Some(&consumed.call));
    AssistantMessage {
        content,
        model: data.get("model").and_then(Value::as_str).unwrap_or_default().to_owned(),
        provider: consumed.map(|consumed| consumed.provider.clone()).unwrap_or_else(|| "github".to_owned()),
        stop_reason,
        native_stop_reason: consumed.and_then(|consumed| consumed.stop.clone()),
        error_kind: None,
        error_message: None,
        usage: consumed.map(|consumed| consumed.usage.clone()),
        warnings: None,
        agent: None,
        timestamp,
    }
}

/// Thinking in blocks with signatures, or else as one text. The texts are taken out of the event.
fn thinking(data: &mut Object) -> Vec<ContentBlock> {
    let whole = take_text(data, "reasoningText");
    let mut found = Vec::new();
    let blocks = data.get_mut("reasoningBlocks").and_then(|blocks| blocks.get_mut("blocks")?.as_array_mut());
    for block in blocks.into_iter().flatten() {
        let signature = block.get("signature").and_then(Value::as_str).map(str::to_owned);
        if let Some(Value::String(text)) = block.get_mut("thinking").map(Value::take) {
            found.push(ContentBlock::Thinking(ThinkingBlock { text, signature }));
        }
    }
    if found.is_empty() && !whole.is_empty() {
        found.push(ContentBlock::Thinking(ThinkingBlock { text: whole, signature: None }));
    }
    found
}

fn result(data: &mut Object, name: &dyn Fn(&str) -> String, timestamp: i64) -> Option<FunctionResultMessage> {
    let function_call_id = data.get("toolCallId")?.as_str()?.to_owned();
    let is_error = data.get("success") == Some(&Value::Bool(false));
    let mut content = Vec::new();
    let mut add = |from: Option<&mut Value>, key: &str| {
        let text = from.and_then(|from| from.get_mut(key)).filter(|text| text.is_string()).map(Value::take);
        if let Some(Value::String(text)) = text {
            content.push(ContentBlock::text(text));
        }
    };
    add(data.get_mut("result"), "content");
    if is_error {
        add(data.get_mut("error"), "message");
    }
    let shown = data.get_mut("result").and_then(|result| result.get_mut("contents")?.as_array_mut());
    content.extend(shown.into_iter().flatten().filter_map(picture));
    let function_id = name(&function_call_id);
    Some(FunctionResultMessage {
        function_call_id,
        function_id,
        content,
        details: Json::null(),
        is_error,
        timestamp,
    })
}

fn failed(data: &Object, timestamp: i64) -> AssistantMessage {
    let error_kind = data.get("statusCode").and_then(Value::as_u64).map(|status| match status {
        401 | 403 => ErrorKind::AuthExpired,
        429 => ErrorKind::RateLimited,
        500.. => ErrorKind::Transient,
        _ => ErrorKind::Permanent,
    });
    let message = data.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
    AssistantMessage {
        content: Vec::new(),
        model: String::new(),
        provider: "github".to_owned(),
        stop_reason: StopReason::Error,
        native_stop_reason: None,
        error_kind,
        error_message: Some(message),
        usage: None,
        warnings: None,
        agent: None,
        timestamp,
    }
}

/// A picture as an attachment.
pub(super) fn attachment(image: &ImageBlock, kind: &str) -> Value {
    json!({"type": kind, "data": image.data, "mimeType": image.mime})
}
