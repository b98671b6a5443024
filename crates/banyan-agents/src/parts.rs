//! The parts that Gemini's interface speaks in, which Gemini CLI and Qwen Code keep on disk: text, thoughts, pictures, calls, responses.

use banyan_model::{ContentBlock, FunctionCallBlock, ImageBlock, Json, Object, ThinkingBlock};
use serde_json::{Value, json};

/// Stands before a text that the agent would take for a command of its own and leave out.
pub(crate) const SHIELD: &str = "\u{200b}";

/// Where the pictures of a result stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pictures {
    /// After it, as parts of their own.
    Beside,
    /// In it.
    Within,
}

/// What a list of parts says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    /// What was said.
    pub(crate) blocks: Vec<ContentBlock>,
    /// The results of calls.
    pub(crate) responses: Vec<Response>,
    /// What blocks have no place for, with where it stands.
    pub(crate) kept: Vec<Value>,
}

/// The result of a call.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) call: String,
    pub(crate) name: String,
    pub(crate) content: Vec<ContentBlock>,
    pub(crate) is_error: bool,
    /// The parts as they were, when they cannot be made again of the rest.
    pub(crate) kept: Option<Value>,
}

/// Reads a content: a text, a part, or a list of either.
pub(crate) fn read(content: &Value, pictures: Pictures) -> Parts {
    let mut parts = Parts::default();
    let mut response: Option<(Response, Vec<Value>)> = None;
    let single = std::slice::from_ref(content);
    let list = if let Value::Array(list) = content { list.as_slice() } else { single };
    for part in list {
        if let Some(told) = part.get("functionResponse") {
            finish(&mut parts, response.take(), pictures);
            response = Some((response_of(told), vec![part.clone()]));
            continue;
        }
        if let (Some((response, raw)), Some(image)) = (&mut response, image_of(part)) {
            response.content.push(image);
            raw.push(part.clone());
            continue;
        }
        finish(&mut parts, response.take(), pictures);
        take(&mut parts, part);
    }
    finish(&mut parts, response, pictures);
    parts
}

fn finish(parts: &mut Parts, response: Option<(Response, Vec<Value>)>, pictures: Pictures) {
    let Some((mut response, raw)) = response else { return };
    let raw = Value::Array(raw);
    let made = response_parts(&response.call, &response.name, &response.content, response.is_error, pictures);
    let made = Value::Array(made);
    response.kept = (made != raw).then_some(raw);
    parts.responses.push(response);
}

fn take(parts: &mut Parts, part: &Value) {
    let at = parts.blocks.len();
    let (block, known): (_, &[&str]) = match part {
        Value::Null => return,
        Value::String(text) if text.is_empty() => return,
        Value::String(text) => (ContentBlock::text(text.clone()), &[]),
        _ => match block_of(part) {
            Some(found) => found,
            None => return parts.kept.push(json!({"at": at, "part": part})),
        },
    };
    if matches!(&block, ContentBlock::Text(text) if text.text == SHIELD) {
        return;
    }
    parts.blocks.push(block);
    let more: Object = part
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| !known.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if !more.is_empty() {
        parts.kept.push(json!({"at": at, "more": more}));
    }
}

/// A part as a block, and which of its keys are in it.
fn block_of(part: &Value) -> Option<(ContentBlock, &'static [&'static str])> {
    if let Some(text) = part.get("text").and_then(Value::as_str) {
        if part.get("thought") == Some(&Value::Bool(true)) {
            let signature = part.get("thoughtSignature").and_then(Value::as_str).map(str::to_owned);
            let thinking = ThinkingBlock { text: text.to_owned(), signature };
            return Some((ContentBlock::Thinking(thinking), &["text", "thought", "thoughtSignature"]));
        }
        return Some((ContentBlock::text(text), &["text"]));
    }
    if let Some(call) = part.get("functionCall") {
        let text = |key: &str| call.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let arguments = call.get("args").and_then(|args| Json::of(args).ok()).unwrap_or_default();
        let call = FunctionCallBlock { id: text("id"), function_id: text("name"), arguments };
        return Some((ContentBlock::FunctionCall(call), &["functionCall"]));
    }
    image_of(part).map(|image| (image, &["inlineData"][..]))
}

fn image_of(part: &Value) -> Option<ContentBlock> {
    let data = part.get("inlineData")?;
    let mime = data.get("mimeType")?.as_str().filter(|mime| mime.starts_with("image/"))?.to_owned();
    let data = data.get("data")?.as_str()?.to_owned();
    Some(ContentBlock::Image(ImageBlock { mime, data, attachment_id: None }))
}

fn response_of(told: &Value) -> Response {
    let text = |key: &str| told.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let response = told.get("response").unwrap_or(&Value::Null);
    let is_error = response.get("error").is_some_and(|error| !error.is_null());
    let said = match (response.get("output"), response.get("error")) {
        (Some(output), None) => output,
        (None, Some(error)) => error,
        _ => response,
    };
    let said = match said {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut content = Vec::new();
    if !said.is_empty() {
        content.push(ContentBlock::text(said));
    }
    content.extend(told.get("parts").and_then(Value::as_array).into_iter().flatten().filter_map(image_of));
    Response { call: text("id"), name: text("name"), content, is_error, kept: None }
}

/// Blocks as parts, with what was kept beside them put back. Results are left out.
pub(crate) fn write(blocks: &[ContentBlock], kept: &[Value]) -> Vec<Value> {
    let place = |kept: &Value| kept.get("at").and_then(Value::as_u64).and_then(|at| usize::try_from(at).ok());
    let mut parts = Vec::new();
    let others = |at: usize| {
        kept.iter().filter(move |kept| place(kept) == Some(at)).filter_map(|kept| kept.get("part")).cloned()
    };
    for (at, block) in blocks.iter().enumerate() {
        parts.extend(others(at));
        let Some(mut part) = part_of(block) else { continue };
        let more =
            kept.iter().filter(|kept| place(kept) == Some(at)).filter_map(|kept| kept.get("more")?.as_object());
        if let Value::Object(part) = &mut part {
            part.extend(more.flatten().map(|(key, value)| (key.clone(), value.clone())));
        }
        parts.push(part);
    }
    parts.extend(others(blocks.len()));
    parts
}

/// A block as a part.
pub(crate) fn part_of(block: &ContentBlock) -> Option<Value> {
    Some(match block {
        ContentBlock::Text(text) => json!({"text": text.text}),
        ContentBlock::Image(image) => json!({"inlineData": {"data": image.data, "mimeType": image.mime}}),
        ContentBlock::Thinking(thinking) => match &thinking.signature {
            Some(signature) => json!({"text": thinking.text, "thought": true, "thoughtSignature": signature}),
            None => json!({"text": thinking.text, "thought": true}),
        },
        ContentBlock::FunctionCall(call) => {
            json!({"functionCall": {"id": call.id, "name": call.function_id, "args": arguments(call)}})
        }
        ContentBlock::FunctionResult(_) | ContentBlock::File(_) => return None,
    })
}

/// The arguments of a call, which must be an object here.
pub(crate) fn arguments(call: &FunctionCallBlock) -> Value {
    match call.arguments.parse::<Value>() {
        Ok(Value::Object(arguments)) => Value::Object(arguments),
        Ok(Value::Null) | Err(_) => json!({}),
        Ok(other) => json!({"input": other}),
    }
}

/// A result as parts: the response with its pictures.
pub(crate) fn response_parts(
    call: &str,
    name: &str,
    content: &[ContentBlock],
    is_error: bool,
    pictures: Pictures,
) -> Vec<Value> {
    let texts = content.iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    let texts: Vec<&str> = texts.collect();
    let key = if is_error { "error" } else { "output" };
    let mut response = json!({"id": call, "name": name, "response": {key: texts.join("\n")}});
    let shown = content.iter().filter(|block| matches!(block, ContentBlock::Image(_))).filter_map(part_of);
    let mut shown: Vec<Value> = shown.collect();
    if pictures == Pictures::Within && !shown.is_empty() {
        response["parts"] = Value::Array(std::mem::take(&mut shown));
    }
    let mut parts = vec![json!({"functionResponse": response})];
    parts.append(&mut shown);
    parts
}
