//! The pieces of goose's messages, in and out.

use banyan_model::{ContentBlock, FunctionCallBlock, ImageBlock, Json, ThinkingBlock, Usage};
use serde_json::{Value, json};

/// The block that a piece is, if the model has one for it.
pub(super) fn block(item: &Value) -> Option<ContentBlock> {
    let text = |key: &str| item.get(key).and_then(Value::as_str).map(str::to_owned);
    match item.get("type")?.as_str()? {
        "text" => Some(ContentBlock::text(text("text")?)),
        "image" => Some(ContentBlock::Image(ImageBlock {
            mime: text("mimeType").unwrap_or_else(|| "image/png".to_owned()),
            data: text("data")?,
            attachment_id: None,
        })),
        "thinking" => Some(ContentBlock::Thinking(ThinkingBlock {
            text: text("thinking")?,
            signature: text("signature").filter(|signature| !signature.is_empty()),
        })),
        "toolRequest" | "frontendToolRequest" => {
            let call = item.get("toolCall")?;
            let (name, arguments) = match call.get("value") {
                Some(value) => {
                    (value.get("name")?.as_str()?, value.get("arguments").cloned().unwrap_or(json!({})))
                }
                // A call that the model got wrong has no name.
                None => ("unknown", call.get("error").cloned().unwrap_or_default()),
            };
            Some(ContentBlock::FunctionCall(FunctionCallBlock {
                id: text("id")?,
                function_id: name.to_owned(),
                arguments: Json::of(&arguments).ok()?,
            }))
        }
        _ => None,
    }
}

/// What came of a call.
pub(super) struct Response {
    pub(super) call: String,
    pub(super) content: Vec<ContentBlock>,
    pub(super) details: Json,
    pub(super) is_error: bool,
}

/// What came of a call, if a piece says that.
pub(super) fn response(item: &Value) -> Option<Response> {
    if item.get("type")?.as_str()? != "toolResponse" {
        return None;
    }
    let call = item.get("id")?.as_str()?.to_owned();
    let result = item.get("toolResult")?;
    let Some(value) = result.get("value") else {
        let error = result.get("error").and_then(Value::as_str).unwrap_or("the call failed");
        let content = vec![ContentBlock::text(error)];
        return Some(Response { call, content, details: Json::null(), is_error: true });
    };
    // Versions before 1.10 have the pieces right there.
    let pieces = value.as_array().or_else(|| value.get("content").and_then(Value::as_array));
    let content = pieces.into_iter().flatten().filter_map(block).collect();
    let details = value.get("structuredContent").map(Json::of).and_then(Result::ok).unwrap_or_default();
    let is_error = value.get("isError").and_then(Value::as_bool).unwrap_or_default();
    Some(Response { call, content, details, is_error })
}

/// What a model's turn consumed.
pub(super) fn usage(usage: &Value) -> Usage {
    let count = |key: &str| usage.get(key).and_then(Value::as_u64);
    Usage {
        input: count("inputTokens"),
        output: count("outputTokens"),
        cache_read: count("cacheReadTokens"),
        cache_write: count("cacheWriteTokens"),
        reasoning: None,
        cost_usd: usage.get("cost").and_then(Value::as_f64),
    }
}

/// What a model's turn consumed, as goose writes it.
pub(super) fn usage_out(usage: &Usage) -> Value {
    let sum = usage.input.unwrap_or_default() + usage.output.unwrap_or_default();
    let mut out = json!({ "inputTokens": usage.input, "outputTokens": usage.output, "totalTokens": sum,
        "cacheReadTokens": usage.cache_read, "cacheWriteTokens": usage.cache_write, "cost": usage.cost_usd });
    if let Some(out) = out.as_object_mut() {
        out.retain(|_, value| !value.is_null());
    }
    out
}

/// A piece of text or a picture, as goose writes it.
pub(super) fn plain_out(block: &ContentBlock) -> Option<Value> {
    match block {
        ContentBlock::Text(text) if !text.text.is_empty() => Some(json!({ "type": "text", "text": text.text })),
        ContentBlock::Image(image) => Some(json!({ "type": "image", "data": image.data, "mimeType": image.mime })),
        _ => None,
    }
}
