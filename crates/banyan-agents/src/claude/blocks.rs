//! Content blocks: taken out of records, and put back.

use banyan_model::{ContentBlock, FunctionCallBlock, ImageBlock, Json, ThinkingBlock, Usage};
use serde_json::{Value, json};

use crate::native::{Blocks, is_taken, json_of, take_text, text_at};

/// A result inside a record of the user.
pub(super) struct Answer {
    pub(super) call: String,
    pub(super) content: Vec<ContentBlock>,
    pub(super) is_error: bool,
}

/// Takes text, pictures, thinking and calls out of a message; what else is there stays.
pub(super) fn take(message: &mut Value) -> Vec<ContentBlock> {
    take_at(message, "content")
}

fn take_at(holder: &mut Value, key: &str) -> Vec<ContentBlock> {
    if let Some(text) = take_text(holder, key) {
        return vec![ContentBlock::text(text)];
    }
    let parts = holder.get_mut(key).and_then(Value::as_array_mut);
    parts.into_iter().flatten().filter_map(take_block).collect()
}

fn take_block(part: &mut Value) -> Option<ContentBlock> {
    match text_at(part, "type") {
        "text" => take_text(part, "text").map(ContentBlock::text),
        "image" => {
            let source = part.get_mut("source").filter(|source| text_at(source, "type") == "base64")?;
            let mime = text_at(source, "media_type").to_owned();
            let data = take_text(source, "data")?;
            Some(ContentBlock::Image(ImageBlock { mime, data, attachment_id: None }))
        }
        "thinking" => {
            let text = take_text(part, "thinking")?;
            let signature = take_text(part, "signature");
            Some(ContentBlock::Thinking(ThinkingBlock { text, signature }))
        }
        "tool_use" => {
            let arguments = part.get_mut("input").map(Value::take).unwrap_or_default();
            let (id, function_id) = (text_at(part, "id").to_owned(), text_at(part, "name").to_owned());
            Some(ContentBlock::FunctionCall(FunctionCallBlock { id, function_id, arguments: json_of(&arguments) }))
        }
        _ => None,
    }
}

/// Takes the results out of a message of the user.
pub(super) fn take_answers(message: &mut Value) -> Vec<Answer> {
    let parts = message.get_mut("content").and_then(Value::as_array_mut);
    let take = |part: &mut Value| {
        if text_at(part, "type") != "tool_result" {
            return None;
        }
        let is_error = part.get("is_error").and_then(Value::as_bool).unwrap_or_default();
        Some(Answer { call: text_at(part, "tool_use_id").to_owned(), content: take_at(part, "content"), is_error })
    };
    parts.into_iter().flatten().filter_map(take).collect()
}

/// What a response used.
pub(super) fn usage(message: &Value) -> Option<Usage> {
    let usage = message.get("usage")?;
    let number = |key: &str| usage.get(key).and_then(Value::as_u64);
    Some(Usage {
        input: number("input_tokens"),
        output: number("output_tokens"),
        cache_read: number("cache_read_input_tokens"),
        cache_write: number("cache_creation_input_tokens"),
        reasoning: None,
        cost_usd: None,
    })
}

/// Puts blocks back where they were taken from. None if they do not fit any more.
pub(super) fn fill(message: &mut Value, blocks: &mut Blocks) -> Option<()> {
    fill_at(message, "content", blocks)
}

fn fill_at(holder: &mut Value, key: &str, blocks: &mut Blocks) -> Option<()> {
    let Some(place) = holder.get_mut(key) else { return Some(()) };
    if place.is_null() {
        *place = blocks.text()?;
        return Some(());
    }
    for part in place.as_array_mut()? {
        fill_block(part, blocks)?;
    }
    Some(())
}

fn fill_block(part: &mut Value, blocks: &mut Blocks) -> Option<()> {
    match text_at(part, "type") {
        "text" if is_taken(part, "text") => part["text"] = blocks.text()?,
        "image" if part.get("source").is_some_and(|source| is_taken(source, "data")) => {
            let image = blocks.image()?;
            part["source"]["media_type"] = image.mime.into();
            part["source"]["data"] = image.data.into();
        }
        "thinking" if is_taken(part, "thinking") => {
            let ContentBlock::Thinking(thinking) = blocks.next()? else { return None };
            part["thinking"] = thinking.text.into();
            if let Some(signature) = thinking.signature {
                part["signature"] = signature.into();
            }
        }
        "tool_use" => {
            let ContentBlock::FunctionCall(call) = blocks.next()? else { return None };
            part["input"] = call.arguments.parse().ok()?;
        }
        _ => {}
    }
    Some(())
}

/// Puts a result back into the record of the user that it was taken from.
pub(super) fn fill_answer(message: &mut Value, call: &str, blocks: &mut Blocks) -> Option<()> {
    let parts = message.get_mut("content")?.as_array_mut()?;
    let part = parts.iter_mut().find(|part| text_at(part, "tool_use_id") == call)?;
    fill_at(part, "content", blocks)
}

/// A block as Claude sends it. None of what it does not send.
pub(super) fn block(block: &ContentBlock) -> Option<Value> {
    match block {
        ContentBlock::Text(block) if !block.text.trim().is_empty() => {
            Some(json!({ "type": "text", "text": block.text }))
        }
        ContentBlock::Image(image) => {
            let source = json!({ "type": "base64", "media_type": image.mime, "data": image.data });
            Some(json!({ "type": "image", "source": source }))
        }
        ContentBlock::FunctionCall(call) => {
            let input = arguments(&call.arguments);
            Some(
                json!({ "type": "tool_use", "id": plain(&call.id), "name": plain(&call.function_id), "input": input }),
            )
        }
        ContentBlock::Thinking(thinking) => {
            let signature = thinking.signature.as_deref()?;
            Some(json!({ "type": "thinking", "thinking": thinking.text, "signature": signature }))
        }
        ContentBlock::Text(_) | ContentBlock::FunctionResult(_) | ContentBlock::File(_) => None,
    }
}

/// What a function is called with must be an object.
fn arguments(arguments: &Json) -> Value {
    match arguments.parse().unwrap_or_default() {
        Value::Object(fields) => Value::Object(fields),
        Value::Null => json!({}),
        other => json!({ "input": other }),
    }
}

/// A name or id with only such characters as the model's side takes.
pub(super) fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    if name.is_empty() { "_".to_owned() } else { name.chars().map(plain).collect() }
}
