//! The parts of OpenCode's messages, in and out.

use banyan_model::{
    ContentBlock, FunctionCallBlock, FunctionResultMessage, ImageBlock, Json, StopReason, ThinkingBlock, Usage,
};
use serde_json::{Value, json};

/// The block that a part is, if the model has one for it.
pub(super) fn block(part: &Value) -> Option<ContentBlock> {
    let text = |key: &str| part.get(key).and_then(Value::as_str).map(str::to_owned);
    match part.get("type")?.as_str()? {
        "text" => Some(ContentBlock::text(text("text")?)),
        "reasoning" => {
            let seal = |provider: &Value| provider.get("signature").and_then(Value::as_str).map(str::to_owned);
            let metadata = part.get("metadata").and_then(Value::as_object);
            let signature = metadata.into_iter().flat_map(|metadata| metadata.values()).find_map(seal);
            Some(ContentBlock::Thinking(ThinkingBlock { text: text("text")?, signature }))
        }
        "tool" => Some(ContentBlock::FunctionCall(FunctionCallBlock {
            id: text("callID").or_else(|| text("id"))?,
            function_id: text("tool").or_else(|| text("name"))?,
            arguments: Json::of(part.pointer("/state/input").unwrap_or(&json!({}))).ok()?,
        })),
        "file" => image(part),
        _ => None,
    }
}

/// A picture that is in the part itself.
fn image(part: &Value) -> Option<ContentBlock> {
    let address = part.get("url").or_else(|| part.get("uri"))?.as_str()?;
    let (mime, data) = address.strip_prefix("data:")?.split_once(";base64,")?;
    let picture = ImageBlock { mime: mime.to_owned(), data: data.to_owned(), attachment_id: None };
    mime.starts_with("image/").then_some(ContentBlock::Image(picture))
}

/// What came of a call, if it is over.
pub(super) fn result(part: &Value, at: i64) -> Option<FunctionResultMessage> {
    let Some(ContentBlock::FunctionCall(call)) = block(part) else { return None };
    let state = part.get("state")?;
    let is_error = match state.get("status")?.as_str()? {
        "completed" => false,
        "error" => true,
        _ => return None,
    };
    let said = |key: &str| state.get(key).and_then(Value::as_str);
    let error = said("error").or_else(|| state.pointer("/error/message").and_then(Value::as_str));
    let output = if is_error { error.or(said("output")) } else { said("output") };
    let mut content: Vec<ContentBlock> = output.map(ContentBlock::text).into_iter().collect();
    for more in ["attachments", "content"] {
        let pieces = state.get(more).and_then(Value::as_array).into_iter().flatten();
        content.extend(pieces.filter_map(block));
    }
    let details = state.get("structured").or_else(|| state.get("metadata"));
    if let (true, Some(details)) = (content.is_empty(), state.get("structured")) {
        // The model is shown the structured form when there is no other.
        content.push(ContentBlock::text(details.to_string()));
    }
    let time = |place: &str| part.pointer(place).and_then(Value::as_i64);
    Some(FunctionResultMessage {
        function_call_id: call.id,
        function_id: call.function_id,
        content,
        details: details.map(Json::of).and_then(Result::ok).unwrap_or_default(),
        is_error,
        timestamp: time("/state/time/end").or_else(|| time("/time/completed")).unwrap_or(at),
    })
}

/// What a model's turn consumed.
pub(super) fn usage(info: &Value) -> Option<Usage> {
    let tokens = info.get("tokens")?;
    let count = |place: &str| tokens.pointer(place).and_then(Value::as_f64).map(|count| count as u64);
    Some(Usage {
        input: count("/input"),
        output: count("/output"),
        cache_read: count("/cache/read"),
        cache_write: count("/cache/write"),
        reasoning: count("/reasoning"),
        cost_usd: info.get("cost").and_then(Value::as_f64),
    })
}

/// Why a model stopped.
pub(super) fn stop_reason(info: &Value) -> StopReason {
    let error = info.get("error").filter(|error| !error.is_null());
    let name = error.and_then(|error| error.get("name").or_else(|| error.get("type"))?.as_str());
    match (name, info.get("finish").and_then(Value::as_str)) {
        (Some("MessageAbortedError"), _) => StopReason::Aborted,
        (Some("MessageOutputLengthError"), _) => StopReason::Length,
        _ if error.is_some() => StopReason::Error,
        (_, Some("tool-calls")) => StopReason::FunctionCall,
        (_, Some("length")) => StopReason::Length,
        _ => StopReason::End,
    }
}

/// A failure in words.
pub(super) fn error_message(info: &Value) -> Option<String> {
    let error = info.get("error").filter(|error| !error.is_null())?;
    let words = error.pointer("/data/message").or_else(|| error.get("message")).or_else(|| error.get("name"));
    Some(words.and_then(Value::as_str).map_or_else(|| error.to_string(), str::to_owned))
}

/// A picture as OpenCode writes it.
pub(super) fn file_out(image: &ImageBlock) -> Value {
    let url = format!("data:{};base64,{}", image.mime, image.data);
    json!({ "type": "file", "mime": image.mime, "url": url, "filename": "image" })
}

/// What came of a call, as OpenCode writes it.
pub(super) fn state_out(input: &Value, content: &[ContentBlock], is_error: bool, start: i64, end: i64) -> Value {
    let texts: Vec<&str> = content
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        })
        .collect();
    let time = json!({ "start": start, "end": end });
    if is_error {
        return json!({ "status": "error", "input": input, "error": texts.join("\n"), "time": time });
    }
    let mut state = json!({ "status": "completed", "input": input, "output": texts.join("\n"), "title": "",
        "metadata": {}, "time": time });
    let files: Vec<Value> = content
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Image(image) => Some(file_out(image)),
            _ => None,
        })
        .collect();
    if !files.is_empty() {
        state["attachments"] = json!(files);
    }
    state
}
