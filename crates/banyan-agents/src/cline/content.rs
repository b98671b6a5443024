//! The pieces of Cline's messages, in and out.

use banyan_model::{ContentBlock, FunctionCallBlock, ImageBlock, Json, ThinkingBlock, Usage};
use serde_json::{Value, json};

/// How Cline begins and ends what a person typed.
const TYPED: &str = "<user_input";
const TYPED_END: &str = "</user_input>";

/// What a person typed, and what Cline put around it.
pub(super) fn typed(text: &str) -> Option<(&str, &str, &str)> {
    let start = text.starts_with(TYPED).then(|| text.find('>'))?? + 1;
    let end = text.strip_suffix(TYPED_END)?.len();
    (start <= end).then(|| (&text[..start], &text[start..end], &text[end..]))
}

/// What a person typed, as Cline writes it.
pub(super) fn typed_out(text: &str) -> String {
    format!("<user_input mode=\"act\">{text}{TYPED_END}")
}

/// The block that a piece is, if the model has one for it.
pub(super) fn block(item: &Value) -> Option<ContentBlock> {
    let text = |place: &str| item.pointer(place).and_then(Value::as_str).map(str::to_owned);
    match item.get("type")?.as_str()? {
        "text" => Some(ContentBlock::text(text("/text")?)),
        "image" => Some(ContentBlock::Image(ImageBlock {
            mime: text("/mediaType")
                .or_else(|| text("/source/media_type"))
                .unwrap_or_else(|| "image/png".to_owned()),
            data: text("/data").or_else(|| text("/source/data"))?,
            attachment_id: None,
        })),
        "thinking" => Some(ContentBlock::Thinking(ThinkingBlock {
            text: text("/thinking")?,
            signature: text("/signature").filter(|signature| !signature.is_empty()),
        })),
        "tool_use" => Some(ContentBlock::FunctionCall(FunctionCallBlock {
            id: text("/id")?,
            function_id: text("/name")?,
            arguments: Json::of(item.get("input").unwrap_or(&json!({}))).ok()?,
        })),
        _ => None,
    }
}

/// What a function gave back, and whether it failed.
pub(super) fn result(item: &Value) -> (Vec<ContentBlock>, bool) {
    let failed = |piece: &Value| piece.get("success") == Some(&Value::Bool(false));
    let mut is_error = item.get("is_error") == Some(&Value::Bool(true));
    let content = match item.get("content") {
        Some(Value::String(text)) => vec![ContentBlock::text(text)],
        Some(Value::Array(pieces)) => {
            is_error |= pieces.iter().any(failed);
            pieces.iter().flat_map(piece).collect()
        }
        Some(Value::Null) | None => Vec::new(),
        Some(other) => vec![ContentBlock::text(other.to_string())],
    };
    (content, is_error)
}

/// Cline's own functions do several things at once, and give back for each what was asked and what came of it.
fn piece(piece: &Value) -> Vec<ContentBlock> {
    if let Some(block) = block(piece) {
        return vec![block];
    }
    let said = match (piece.get("error").and_then(Value::as_str), piece.get("result")) {
        (Some(error), None | Some(Value::Null)) if !error.is_empty() => return vec![ContentBlock::text(error)],
        (_, said) => said.unwrap_or(piece),
    };
    match said {
        Value::String(text) => vec![ContentBlock::text(text)],
        Value::Array(items) if items.iter().all(|item| block(item).is_some()) => {
            items.iter().filter_map(block).collect()
        }
        other => vec![ContentBlock::text(other.to_string())],
    }
}

/// What a model's turn consumed.
pub(super) fn usage(metrics: &Value) -> Usage {
    let count = |key: &str| metrics.get(key).and_then(Value::as_u64);
    Usage {
        input: count("inputTokens"),
        output: count("outputTokens"),
        cache_read: count("cacheReadTokens"),
        cache_write: count("cacheWriteTokens"),
        reasoning: None,
        cost_usd: metrics.get("cost").and_then(Value::as_f64),
    }
}

/// What a model's turn consumed, as Cline writes it.
pub(super) fn usage_out(usage: &Usage) -> Value {
    let mut metrics = json!({ "inputTokens": usage.input, "outputTokens": usage.output,
        "cacheReadTokens": usage.cache_read, "cacheWriteTokens": usage.cache_write, "cost": usage.cost_usd });
    if let Some(metrics) = metrics.as_object_mut() {
        metrics.retain(|_, count| !count.is_null());
    }
    metrics
}

/// A picture as Cline writes it.
pub(super) fn image_out(image: &ImageBlock) -> Value {
    json!({ "type": "image", "data": image.data, "mediaType": image.mime })
}
