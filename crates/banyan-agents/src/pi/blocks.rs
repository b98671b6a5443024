//! Messages: what they say, taken out of them and put back.

use banyan_model::{
    AgentMessage, AssistantMessage, ContentBlock, FunctionCallBlock, FunctionResultMessage, ImageBlock,
    StopReason, ThinkingBlock, Usage, UserMessage,
};
use serde_json::Value;

use crate::native::{Blocks, is_taken, json_of, take_text, text_at};

/// Takes text, pictures, thinking and calls out of a message; what else is there stays.
pub(super) fn take(holder: &mut Value) -> Vec<ContentBlock> {
    if let Some(text) = take_text(holder, "content") {
        return vec![ContentBlock::text(text)];
    }
    let parts = holder.get_mut("content").and_then(Value::as_array_mut);
    parts.into_iter().flatten().filter_map(take_block).collect()
}

fn take_block(part: &mut Value) -> Option<ContentBlock> {
    match text_at(part, "type") {
        "text" => take_text(part, "text").map(ContentBlock::text),
        "image" => {
            let mime = text_at(part, "mimeType").to_owned();
            let data = take_text(part, "data")?;
            Some(ContentBlock::Image(ImageBlock { mime, data, attachment_id: None }))
        }
        "thinking" => {
            let text = take_text(part, "thinking")?;
            let signature = take_text(part, "thinkingSignature");
            Some(ContentBlock::Thinking(ThinkingBlock { text, signature }))
        }
        "toolCall" => {
            let arguments = part.get_mut("arguments").map(Value::take).unwrap_or_default();
            let (id, function_id) = (text_at(part, "id").to_owned(), text_at(part, "name").to_owned());
            Some(ContentBlock::FunctionCall(FunctionCallBlock { id, function_id, arguments: json_of(&arguments) }))
        }
        _ => None,
    }
}

/// Takes a message that somebody said. None of what is only context.
pub(super) fn take_message(message: &mut Value, at: i64) -> Option<AgentMessage> {
    let timestamp = message.get("timestamp").and_then(Value::as_i64).unwrap_or(at);
    match text_at(message, "role") {
        "user" => Some(AgentMessage::User(UserMessage { content: take(message), timestamp })),
        "assistant" => Some(AgentMessage::Assistant(AssistantMessage {
            content: take(message),
            model: text_at(message, "model").to_owned(),
            provider: text_at(message, "provider").to_owned(),
            stop_reason: match text_at(message, "stopReason") {
                "length" => StopReason::Length,
                "toolUse" => StopReason::FunctionCall,
                "error" => StopReason::Error,
                "aborted" => StopReason::Aborted,
                _ => StopReason::End,
            },
            native_stop_reason: message.get("stopReason").and_then(Value::as_str).map(str::to_owned),
            error_kind: None,
            error_message: message.get("errorMessage").and_then(Value::as_str).map(str::to_owned),
            usage: message.get("usage").map(usage),
            warnings: None,
            agent: None,
            timestamp,
        })),
        "toolResult" => {
            let details = message.get_mut("details").map(Value::take);
            Some(AgentMessage::FunctionResult(FunctionResultMessage {
                function_call_id: text_at(message, "toolCallId").to_owned(),
                function_id: text_at(message, "toolName").to_owned(),
                content: take(message),
                details: details.as_ref().map(json_of).unwrap_or_default(),
                is_error: message.get("isError").and_then(Value::as_bool).unwrap_or_default(),
                timestamp,
            }))
        }
        _ => None,
    }
}

fn usage(usage: &Value) -> Usage {
    let number = |key: &str| usage.get(key).and_then(Value::as_u64);
    Usage {
        input: number("input"),
        output: number("output"),
        cache_read: number("cacheRead"),
        cache_write: number("cacheWrite"),
        reasoning: number("reasoning"),
        cost_usd: usage.get("cost").and_then(|cost| cost.get("total")).and_then(Value::as_f64),
    }
}

/// The words of what is only context: an extension's message, a command of the user, a summary.
pub(super) fn context(holder: &Value) -> Vec<ContentBlock> {
    if text_at(holder, "role") == "bashExecution" {
        return vec![ContentBlock::text(format!(
            "$ {}\n{}",
            text_at(holder, "command"),
            text_at(holder, "output")
        ))];
    }
    let summary = text_at(holder, "summary");
    if !summary.is_empty() {
        return vec![ContentBlock::text(summary)];
    }
    take(&mut holder.clone())
}

/// Puts a message back into the record that it was taken from. None if it does not fit any more.
pub(super) fn fill(record: &mut Value, message: &AgentMessage) -> Option<()> {
    let holder = record.get_mut("message")?;
    let mut blocks = Blocks::new(message.content().to_vec());
    if let Some(content) = holder.get_mut("content") {
        if content.is_null() {
            *content = blocks.text()?;
        } else {
            content.as_array_mut()?.iter_mut().try_for_each(|part| fill_block(part, &mut blocks))?;
        }
    }
    if let AgentMessage::FunctionResult(result) = message
        && is_taken(holder, "details")
    {
        holder["details"] = result.details.parse().ok()?;
    }
    blocks.is_empty().then_some(())
}

fn fill_block(part: &mut Value, blocks: &mut Blocks) -> Option<()> {
    match text_at(part, "type") {
        "text" if is_taken(part, "text") => part["text"] = blocks.text()?,
        "image" if is_taken(part, "data") => {
            let image = blocks.image()?;
            part["mimeType"] = image.mime.into();
            part["data"] = image.data.into();
        }
        "thinking" if is_taken(part, "thinking") => {
            let ContentBlock::Thinking(thinking) = blocks.next()? else { return None };
            part["thinking"] = thinking.text.into();
            if let Some(signature) = thinking.signature {
                part["thinkingSignature"] = signature.into();
            }
        }
        "toolCall" => {
            let ContentBlock::FunctionCall(call) = blocks.next()? else { return None };
            part["arguments"] = call.arguments.parse().ok()?;
        }
        _ => {}
    }
    Some(())
}
