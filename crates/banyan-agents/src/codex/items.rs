//! Response items: what is said and called, taken out of them and put back.

use banyan_model::{ContentBlock, FunctionCallBlock, Json, ThinkingBlock};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::native::{Blocks, is_taken, picture, take_text, text_at};

/// What an item is to a conversation.
pub(super) enum Item {
    /// Part of a model's response.
    Assistant(Vec<ContentBlock>),
    /// Said by the human.
    User(Vec<ContentBlock>),
    /// Put there by Codex; the kind of it.
    Context(String, Vec<ContentBlock>),
    /// What came of a call.
    Result { call: String, content: Vec<ContentBlock>, is_error: bool },
    /// Something else.
    Other,
}

/// Tags that Codex itself puts before what it adds to a conversation.
const TAGS: &[&str] = &[
    "user_instructions",
    "environment_context",
    "turn_aborted",
    "subagent_notification",
    "skills_instructions",
    "permissions instructions",
    "collaboration_mode",
    "user_shell_command",
    "skill",
];
const AGENTS_MD: &str = "# AGENTS.md instructions";

/// Takes out of an item what a message has a place for.
pub(super) fn take(item: &mut Value) -> Item {
    match text_at(item, "type") {
        "message" if text_at(item, "role") == "assistant" => Item::Assistant(take_content(item, "content")),
        "message" => {
            let context = context_of(item);
            let content = take_content(item, "content");
            context.map_or_else(|| Item::User(content.clone()), |kind| Item::Context(kind, content.clone()))
        }
        "reasoning" => Item::Assistant(vec![take_reasoning(item)]),
        "function_call" => {
            let arguments = take_arguments(item);
            call_of(item, text_at(item, "name").to_owned(), arguments)
        }
        "custom_tool_call" => {
            let input = take_text(item, "input").unwrap_or_default();
            let arguments = Json::of(&json!({ "input": input })).unwrap_or_default();
            call_of(item, text_at(item, "name").to_owned(), arguments)
        }
        "local_shell_call" if item.get("call_id").is_some_and(Value::is_string) => {
            let arguments = item.get_mut("action").map(Value::take).unwrap_or_default();
            call_of(item, "local_shell".to_owned(), Json::of(&arguments).unwrap_or_default())
        }
        "function_call_output" | "custom_tool_call_output" => take_output(item),
        _ => Item::Other,
    }
}

fn call_of(item: &Value, function_id: String, arguments: Json) -> Item {
    let id = text_at(item, "call_id").to_owned();
    Item::Assistant(vec![ContentBlock::FunctionCall(FunctionCallBlock { id, function_id, arguments })])
}

/// Takes text and pictures out of a list of content items; what else is there stays.
fn take_content(item: &mut Value, key: &str) -> Vec<ContentBlock> {
    if let Some(text) = take_text(item, key) {
        return vec![ContentBlock::text(text)];
    }
    let Some(parts) = item.get_mut(key).and_then(Value::as_array_mut) else { return Vec::new() };
    let take = |part: &mut Value| match text_at(part, "type") {
        "input_text" | "output_text" | "text" => take_text(part, "text").map(ContentBlock::text),
        "input_image" => {
            let found = picture(text_at(part, "image_url"))?;
            take_text(part, "image_url");
            Some(found)
        }
        _ => None,
    };
    parts.iter_mut().filter_map(take).collect()
}

fn take_reasoning(item: &mut Value) -> ContentBlock {
    let signature = take_text(item, "encrypted_content");
    let mut text = String::new();
    for key in ["summary", "content"] {
        let Some(parts) = item.get_mut(key).and_then(Value::as_array_mut).filter(|parts| !parts.is_empty()) else {
            continue;
        };
        text = match parts.as_mut_slice() {
            [part] => take_text(part, "text").unwrap_or_default(),
            parts => joined(parts),
        };
        break;
    }
    ContentBlock::Thinking(ThinkingBlock { text, signature })
}

fn joined(parts: &[Value]) -> String {
    parts.iter().map(|part| text_at(part, "text")).collect::<Vec<_>>().join("\n\n")
}

/// Arguments are JSON in a string. One that has blanks in it stays as it is spelled.
fn take_arguments(item: &mut Value) -> Json {
    let text = text_at(item, "arguments");
    let Ok(arguments) = Json::from_text(text) else {
        return Json::of(text).unwrap_or_default();
    };
    if arguments.get() == text {
        take_text(item, "arguments");
    }
    arguments
}

fn take_output(item: &mut Value) -> Item {
    let call = text_at(item, "call_id").to_owned();
    let Some(output) = item.get_mut("output") else {
        return Item::Result { call, content: Vec::new(), is_error: false };
    };
    if output.is_object() {
        let is_error = output.get("success").and_then(Value::as_bool) == Some(false);
        return Item::Result { call, content: take_content(output, "content"), is_error };
    }
    let content = take_content(item, "output");
    let is_error = matches!(content.as_slice(), [ContentBlock::Text(only)] if failed(&only.text));
    Item::Result { call, content, is_error }
}

#[derive(Deserialize)]
struct ShellOutput {
    metadata: ShellMetadata,
}

#[derive(Deserialize)]
struct ShellMetadata {
    exit_code: i64,
}

/// Whether a command says that it ended badly: Codex keeps that only in the text.
fn failed(text: &str) -> bool {
    if text.starts_with("{\"output\"") {
        return serde_json::from_str::<ShellOutput>(text).is_ok_and(|output| output.metadata.exit_code != 0);
    }
    let header = text.lines().take(8).take_while(|line| !line.starts_with("Output:"));
    let code = |line: &str| {
        let code = line.strip_prefix("Process exited with code ").or_else(|| line.strip_prefix("Exit code: "));
        code.and_then(|code| code.trim().parse::<i64>().ok())
    };
    header.filter_map(code).any(|code| code != 0)
}

/// What kind of context a message of the user or the developer is; none if the human typed it.
fn context_of(item: &Value) -> Option<String> {
    let parts = item.get("content").and_then(Value::as_array);
    let first = parts
        .and_then(|parts| parts.first())
        .map_or_else(|| text_at(item, "content"), |part| text_at(part, "text"));
    let kinds =
        item.get("internal_chat_message_metadata_passthrough").and_then(|meta| meta.get("content_item_kinds"));
    let mut kinds = kinds.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).peekable();
    let role = text_at(item, "role");
    let named = tag_of(first);
    if role == "user" {
        let typed = match kinds.peek() {
            Some(_) => kinds.any(|kind| kind.starts_with("user.") || kind == "unknown"),
            None => named.is_none(),
        };
        if typed {
            return None;
        }
    }
    Some(named.unwrap_or_else(|| if role.is_empty() { "context".to_owned() } else { role.to_owned() }))
}

fn tag_of(text: &str) -> Option<String> {
    let text = text.trim_start();
    if text.starts_with(AGENTS_MD) {
        return Some("agents_md".to_owned());
    }
    let inner = text.strip_prefix('<')?;
    let end = inner.find('>')?;
    TAGS.iter().find(|tag| inner[..end].trim() == **tag).map(|tag| tag.replace(' ', "_"))
}

/// Puts blocks back where they were taken from. None if they do not fit any more.
pub(super) fn fill(item: &mut Value, blocks: &mut Blocks) -> Option<()> {
    match text_at(item, "type") {
        "message" => fill_content(item, "content", blocks),
        "reasoning" => fill_reasoning(item, blocks),
        "function_call" => {
            let ContentBlock::FunctionCall(call) = blocks.next()? else { return None };
            let spelled =
                item.get("arguments").and_then(Value::as_str).and_then(|text| Json::from_text(text).ok());
            if spelled.as_ref() != Some(&call.arguments) {
                let text = call.arguments.parse::<String>().unwrap_or_else(|_| call.arguments.get().to_owned());
                let is_text = text_at(item, "arguments") == text;
                if !is_text {
                    *item.get_mut("arguments")? = call.arguments.get().into();
                }
            }
            Some(())
        }
        "custom_tool_call" => {
            let ContentBlock::FunctionCall(call) = blocks.next()? else { return None };
            let mut arguments: Value = call.arguments.parse().ok()?;
            *item.get_mut("input")? = arguments.get_mut("input")?.take();
            Some(())
        }
        "local_shell_call" => {
            let ContentBlock::FunctionCall(call) = blocks.next()? else { return None };
            *item.get_mut("action")? = call.arguments.parse().ok()?;
            Some(())
        }
        "function_call_output" | "custom_tool_call_output" => {
            if item.get("output").is_some_and(Value::is_object) {
                return fill_content(item.get_mut("output")?, "content", blocks);
            }
            fill_content(item, "output", blocks)
        }
        _ => None,
    }
}

fn fill_content(item: &mut Value, key: &str, blocks: &mut Blocks) -> Option<()> {
    let place = item.get_mut(key)?;
    let Some(parts) = place.as_array_mut() else {
        *place = blocks.text()?;
        return Some(());
    };
    for part in parts {
        if is_taken(part, "text") {
            part["text"] = blocks.text()?;
        } else if is_taken(part, "image_url") {
            let image = blocks.image()?;
            part["image_url"] = format!("data:{};base64,{}", image.mime, image.data).into();
        }
    }
    Some(())
}

fn fill_reasoning(item: &mut Value, blocks: &mut Blocks) -> Option<()> {
    let ContentBlock::Thinking(thinking) = blocks.next()? else { return None };
    if let Some(signature) = thinking.signature {
        item["encrypted_content"] = signature.into();
    }
    for key in ["summary", "content"] {
        let Some(parts) = item.get_mut(key).and_then(Value::as_array_mut).filter(|parts| !parts.is_empty()) else {
            continue;
        };
        match parts.as_mut_slice() {
            [part] => part["text"] = thinking.text.into(),
            parts if joined(parts) == thinking.text => {}
            _ => return None,
        }
        return Some(());
    }
    thinking.text.is_empty().then_some(())
}
