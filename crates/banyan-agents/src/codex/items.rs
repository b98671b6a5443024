//! Response items: what is said and called, taken out of them.

use std::borrow::Cow;

use banyan_model::{ContentBlock, FunctionCallBlock, Json, ThinkingBlock};
use serde::Deserialize;
use serde_json::json;

use crate::native::picture;
use crate::outline::{Found, Outline, sought};
use crate::rest::{Rest, carried, list, text};

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

sought! {
    /// The fields of all kinds of items that anybody looks at.
    struct Fields<'a> {
        kind: Cow<'a, str> = "type",
        role: Cow<'a, str> = "role",
        name: Cow<'a, str> = "name",
        call_id: Cow<'a, str> = "call_id",
        content: Found<'a> = "content",
        summary: Found<'a> = "summary",
        encrypted_content: Found<'a> = "encrypted_content",
        arguments: Found<'a> = "arguments",
        input: Found<'a> = "input",
        action: Found<'a> = "action",
        output: Found<'a> = "output",
        passthrough: Found<'a> = "internal_chat_message_metadata_passthrough",
    }
}

sought! {
    /// The same of a part of a content.
    struct Part<'a> {
        kind: Cow<'a, str> = "type",
        text: Found<'a> = "text",
        image_url: Found<'a> = "image_url",
    }
}

sought! {
    /// What an output that is an object says.
    struct Output<'a> {
        content: Found<'a> = "content",
        success: bool = "success",
    }
}

/// Takes out of an item what a message has a place for. The item stands in the record that `rest` is of.
pub(super) fn take<'a>(item: Found<'a>, rest: &mut Rest<'a>) -> Item {
    let item = Fields::of(Some(item));
    match item.kind.as_deref().unwrap_or_default() {
        "message" if item.role.as_deref() == Some("assistant") => {
            Item::Assistant(take_content(item.content, rest))
        }
        "message" => {
            let context = context_of(&item);
            let content = take_content(item.content, rest);
            match context {
                Some(kind) => Item::Context(kind, content),
                None => Item::User(content),
            }
        }
        "reasoning" => Item::Assistant(vec![take_reasoning(&item, rest)]),
        "function_call" => {
            let arguments = take_arguments(item.arguments, rest);
            call_of(item.call_id, item.name, arguments)
        }
        "custom_tool_call" => {
            let input = rest.take_text(item.input).unwrap_or_default();
            let arguments = Json::of(&json!({ "input": input })).unwrap_or_default();
            call_of(item.call_id, item.name, arguments)
        }
        "local_shell_call" if item.call_id.is_some() => {
            if let Some(action) = item.action {
                rest.take(action);
            }
            let arguments = item.action.map(carried).unwrap_or_default();
            call_of(item.call_id, Some("local_shell".into()), arguments)
        }
        "function_call_output" | "custom_tool_call_output" => take_output(item, rest),
        _ => Item::Other,
    }
}

fn call_of(id: Option<Cow<'_, str>>, function: Option<Cow<'_, str>>, arguments: Json) -> Item {
    let [id, function_id] = [id, function].map(|text| text.unwrap_or_default().into_owned());
    Item::Assistant(vec![ContentBlock::FunctionCall(FunctionCallBlock { id, function_id, arguments })])
}

/// Takes text and pictures out of a list of content items; what else is there stays.
fn take_content<'a>(content: Option<Found<'a>>, rest: &mut Rest<'a>) -> Vec<ContentBlock> {
    if let Some(text) = rest.take_text(content) {
        return vec![ContentBlock::text(text)];
    }
    let take = |part: Found<'a>| {
        let part = Part::of(Some(part));
        match part.kind.as_deref()? {
            "input_text" | "output_text" | "text" => rest.take_text(part.text).map(ContentBlock::text),
            "input_image" => {
                let url = part.image_url?;
                let found = picture(&url.text()?)?;
                rest.take(url);
                Some(found)
            }
            _ => None,
        }
    };
    list(content).filter_map(take).collect()
}

fn take_reasoning<'a>(item: &Fields<'a>, rest: &mut Rest<'a>) -> ContentBlock {
    let signature = rest.take_text(item.encrypted_content);
    let parts = |said| list(said).map(|part| Part::of(Some(part)).text).collect::<Vec<_>>();
    let said = [item.summary, item.content].into_iter().map(parts).find(|parts| !parts.is_empty());
    let text = match said.unwrap_or_default().as_slice() {
        [part] => rest.take_text(*part).unwrap_or_default(),
        parts => parts.iter().map(|part| text(*part)).collect::<Vec<_>>().join("\n\n"),
    };
    ContentBlock::Thinking(ThinkingBlock { text, signature })
}

/// Arguments are JSON in a string. One that has blanks in it stays as it is spelled.
fn take_arguments<'a>(spelled: Option<Found<'a>>, rest: &mut Rest<'a>) -> Json {
    let text = text(spelled);
    let Some(arguments) = Outline::of_any(&text).and_then(|outline| outline.root().json()) else {
        return Json::of(text.as_ref()).unwrap_or_default();
    };
    if let Some(spelled) = spelled.filter(|_| arguments.get() == text) {
        rest.take(spelled);
    }
    arguments
}

fn take_output<'a>(item: Fields<'a>, rest: &mut Rest<'a>) -> Item {
    let call = item.call_id.unwrap_or_default().into_owned();
    if item.output.is_some_and(|output| output.spelled().starts_with('{')) {
        let output = Output::of(item.output);
        let is_error = output.success == Some(false);
        return Item::Result { call, content: take_content(output.content, rest), is_error };
    }
    let content = take_content(item.output, rest);
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
fn context_of(item: &Fields<'_>) -> Option<String> {
    let first = list(item.content).next().map(|part| Part::of(Some(part)).text);
    let named = tag_of(&text(first.unwrap_or(item.content)));
    let role = item.role.as_deref().unwrap_or_default();
    if role == "user" {
        let kinds = list(item.passthrough.and_then(|passed| passed.get("content_item_kinds")));
        let mut kinds = kinds.filter_map(Found::text).peekable();
        let typed = match kinds.peek() {
            Some(_) => kinds.any(|kind| kind.starts_with("user.") || kind == "unknown"),
            None => named.is_none(),
        };
        if typed {
            return None;
        }
    }
    Some(named.unwrap_or_else(|| if role.is_empty() { "context" } else { role }.to_owned()))
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
