//! Content blocks: taken out of records, and put back.

use std::borrow::Cow;

use banyan_model::{ContentBlock, FunctionCallBlock, ImageBlock, Json, ThinkingBlock, Usage};
use serde_json::{Value, json};

use crate::native::{Blocks, is_taken, text_at};
use crate::outline::{Found, Sought, sought};
use crate::rest::{Rest, carried, list};

/// A result inside a record of the user.
pub(super) struct Answer {
    pub(super) call: String,
    pub(super) content: Vec<ContentBlock>,
    pub(super) is_error: bool,
}

sought! {
    /// What a message says that anybody looks at.
    pub(super) struct Message<'a> {
        pub(super) id: Cow<'a, str> = "id",
        pub(super) model: Cow<'a, str> = "model",
        content: Found<'a> = "content",
        pub(super) stop_reason: Cow<'a, str> = "stop_reason",
        usage: Found<'a> = "usage",
    }
}

sought! {
    /// The same of a block, of whatever kind.
    struct Part<'a> {
        kind: Cow<'a, str> = "type",
        text: Found<'a> = "text",
        source: Found<'a> = "source",
        thinking: Found<'a> = "thinking",
        signature: Found<'a> = "signature",
        id: Cow<'a, str> = "id",
        name: Cow<'a, str> = "name",
        input: Found<'a> = "input",
        tool_use_id: Cow<'a, str> = "tool_use_id",
        content: Found<'a> = "content",
        is_error: bool = "is_error",
    }
}

sought! {
    /// Where a picture has its data.
    struct Data<'a> {
        kind: Cow<'a, str> = "type",
        media_type: Cow<'a, str> = "media_type",
        data: Found<'a> = "data",
    }
}

/// Takes text, pictures, thinking and calls out of a message; what else is there stays.
pub(super) fn take<'a>(message: &Message<'a>, rest: &mut Rest<'a>) -> Vec<ContentBlock> {
    take_content(message.content, rest)
}

fn take_content<'a>(content: Option<Found<'a>>, rest: &mut Rest<'a>) -> Vec<ContentBlock> {
    if let Some(text) = rest.take_text(content) {
        return vec![ContentBlock::text(text)];
    }
    list(content).filter_map(|part| take_block(Part::of(Some(part)), rest)).collect()
}

fn take_block<'a>(part: Part<'a>, rest: &mut Rest<'a>) -> Option<ContentBlock> {
    match part.kind.as_deref()? {
        "text" => rest.take_text(part.text).map(ContentBlock::text),
        "image" => {
            let source = Data::of(part.source);
            if source.kind.as_deref() != Some("base64") {
                return None;
            }
            let data = rest.take_text(source.data)?;
            let mime = source.media_type.unwrap_or_default().into_owned();
            Some(ContentBlock::Image(ImageBlock { mime, data, attachment_id: None }))
        }
        "thinking" => {
            let text = rest.take_text(part.thinking)?;
            let signature = rest.take_text(part.signature);
            Some(ContentBlock::Thinking(ThinkingBlock { text, signature }))
        }
        "tool_use" => {
            if let Some(input) = part.input {
                rest.take(input);
            }
            let said = |text: Option<Cow<'_, str>>| text.unwrap_or_default().into_owned();
            let (id, function_id) = (said(part.id), said(part.name));
            let arguments = part.input.map(carried).unwrap_or_default();
            Some(ContentBlock::FunctionCall(FunctionCallBlock { id, function_id, arguments }))
        }
        _ => None,
    }
}

/// Takes the results out of a message of the user.
pub(super) fn take_answers<'a>(message: &Message<'a>, rest: &mut Rest<'a>) -> Vec<Answer> {
    let take = |part: Found<'a>| {
        let part = Part::of(Some(part));
        (part.kind.as_deref() == Some("tool_result")).then(|| Answer {
            call: part.tool_use_id.unwrap_or_default().into_owned(),
            content: take_content(part.content, rest),
            is_error: part.is_error == Some(true),
        })
    };
    list(message.content).filter_map(take).collect()
}

/// What a response used.
pub(super) fn usage(message: &Message<'_>) -> Option<Usage> {
    let mut usage = Usage::default();
    for (name, value) in message.usage?.fields() {
        let count = u64::sought(value);
        match name.as_ref() {
            "input_tokens" => usage.input = count,
            "output_tokens" => usage.output = count,
            "cache_read_input_tokens" => usage.cache_read = count,
            "cache_creation_input_tokens" => usage.cache_write = count,
            _ => {}
        }
    }
    Some(usage)
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
