//! Content blocks: taken out of records, and put back.

use banyan_model::{ContentBlock, FunctionCallBlock, ImageBlock, Json, ThinkingBlock, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::native::{Blocks, is_taken, text_at};
use crate::rest::{Rest, carried, fields, list, text};

/// A result inside a record of the user.
pub(super) struct Answer {
    pub(super) call: String,
    pub(super) content: Vec<ContentBlock>,
    pub(super) is_error: bool,
}

/// What a message says that anybody looks at.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) model: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) stop_reason: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

/// The same of a block, of whatever kind.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Part<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    source: Option<&'a RawValue>,
    #[serde(borrow)]
    thinking: Option<&'a RawValue>,
    #[serde(borrow)]
    signature: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_use_id: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    is_error: Option<&'a RawValue>,
}

/// Where a picture has its data.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Data<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    media_type: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Tokens<'a> {
    #[serde(borrow)]
    input_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    output_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    cache_read_input_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    cache_creation_input_tokens: Option<&'a RawValue>,
}

/// Takes text, pictures, thinking and calls out of a message; what else is there stays.
pub(super) fn take<'a>(message: &Message<'a>, rest: &mut Rest<'a>) -> Vec<ContentBlock> {
    take_content(message.content, rest)
}

fn take_content<'a>(content: Option<&'a RawValue>, rest: &mut Rest<'a>) -> Vec<ContentBlock> {
    if let Some(text) = rest.take_text(content) {
        return vec![ContentBlock::text(text)];
    }
    list(content).into_iter().filter_map(|part| take_block(&fields(Some(part)), rest)).collect()
}

fn take_block<'a>(part: &Part<'a>, rest: &mut Rest<'a>) -> Option<ContentBlock> {
    match text(part.kind).as_ref() {
        "text" => rest.take_text(part.text).map(ContentBlock::text),
        "image" => {
            let source: Data<'a> = fields(part.source);
            if text(source.kind) != "base64" {
                return None;
            }
            let data = rest.take_text(source.data)?;
            let mime = text(source.media_type).into_owned();
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
            let (id, function_id) = (text(part.id).into_owned(), text(part.name).into_owned());
            let arguments = part.input.map(carried).unwrap_or_default();
            Some(ContentBlock::FunctionCall(FunctionCallBlock { id, function_id, arguments }))
        }
        _ => None,
    }
}

/// Takes the results out of a message of the user.
pub(super) fn take_answers<'a>(message: &Message<'a>, rest: &mut Rest<'a>) -> Vec<Answer> {
    let take = |part: &'a RawValue| {
        let part: Part<'a> = fields(Some(part));
        (text(part.kind) == "tool_result").then(|| Answer {
            call: text(part.tool_use_id).into_owned(),
            content: take_content(part.content, rest),
            is_error: part.is_error.is_some_and(|is_error| is_error.get() == "true"),
        })
    };
    list(message.content).into_iter().filter_map(take).collect()
}

/// What a response used.
pub(super) fn usage(message: &Message<'_>) -> Option<Usage> {
    let tokens: Tokens<'_> = fields(Some(message.usage?));
    let number = |value: Option<&RawValue>| value.and_then(|value| value.get().parse().ok());
    Some(Usage {
        input: number(tokens.input_tokens),
        output: number(tokens.output_tokens),
        cache_read: number(tokens.cache_read_input_tokens),
        cache_write: number(tokens.cache_creation_input_tokens),
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
