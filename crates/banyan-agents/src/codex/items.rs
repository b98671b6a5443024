//! Response items: what is said and called, taken out of them.

use banyan_model::{ContentBlock, FunctionCallBlock, Json, ThinkingBlock};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::native::picture;
use crate::rest::{Rest, carried, fields, is_text, list, text};

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

/// The fields of all kinds of items that anybody looks at.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Fields<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    call_id: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    summary: Option<&'a RawValue>,
    #[serde(borrow)]
    encrypted_content: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    action: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow, rename = "internal_chat_message_metadata_passthrough")]
    passthrough: Option<&'a RawValue>,
}

/// The same of a part of a content.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Part<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    image_url: Option<&'a RawValue>,
}

/// What an output that is an object says.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Output<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    success: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Passthrough<'a> {
    #[serde(borrow)]
    content_item_kinds: Option<&'a RawValue>,
}

/// Takes out of an item what a message has a place for. The item stands in the record that `rest` is of.
pub(super) fn take<'a>(item: &'a str, rest: &mut Rest<'a>) -> Item {
    let Ok(item) = serde_json::from_str::<Fields<'a>>(item) else { return Item::Other };
    match text(item.kind).as_ref() {
        "message" if text(item.role) == "assistant" => Item::Assistant(take_content(item.content, rest)),
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
            call_of(&item, text(item.name).into_owned(), arguments)
        }
        "custom_tool_call" => {
            let input = rest.take_text(item.input).unwrap_or_default();
            let arguments = Json::of(&json!({ "input": input })).unwrap_or_default();
            call_of(&item, text(item.name).into_owned(), arguments)
        }
        "local_shell_call" if item.call_id.is_some_and(is_text) => {
            if let Some(action) = item.action {
                rest.take(action);
            }
            call_of(&item, "local_shell".to_owned(), item.action.map(carried).unwrap_or_default())
        }
        "function_call_output" | "custom_tool_call_output" => take_output(&item, rest),
        _ => Item::Other,
    }
}

fn call_of(item: &Fields<'_>, function_id: String, arguments: Json) -> Item {
    let id = text(item.call_id).into_owned();
    Item::Assistant(vec![ContentBlock::FunctionCall(FunctionCallBlock { id, function_id, arguments })])
}

/// Takes text and pictures out of a list of content items; what else is there stays.
fn take_content<'a>(content: Option<&'a RawValue>, rest: &mut Rest<'a>) -> Vec<ContentBlock> {
    if let Some(text) = rest.take_text(content) {
        return vec![ContentBlock::text(text)];
    }
    let take = |part: &'a RawValue| {
        let part: Part<'a> = fields(Some(part));
        match text(part.kind).as_ref() {
            "input_text" | "output_text" | "text" => rest.take_text(part.text).map(ContentBlock::text),
            "input_image" => {
                let found = picture(&text(part.image_url))?;
                rest.take_text(part.image_url);
                Some(found)
            }
            _ => None,
        }
    };
    list(content).into_iter().filter_map(take).collect()
}

fn take_reasoning<'a>(item: &Fields<'a>, rest: &mut Rest<'a>) -> ContentBlock {
    let signature = rest.take_text(item.encrypted_content);
    let said = [item.summary, item.content].into_iter().map(list).find(|parts| !parts.is_empty());
    let parts: Vec<Part<'a>> = said.into_iter().flatten().map(|part| fields(Some(part))).collect();
    let text = match parts.as_slice() {
        [part] => rest.take_text(part.text).unwrap_or_default(),
        parts => parts.iter().map(|part| text(part.text)).collect::<Vec<_>>().join("\n\n"),
    };
    ContentBlock::Thinking(ThinkingBlock { text, signature })
}

/// Arguments are JSON in a string. One that has blanks in it stays as it is spelled.
fn take_arguments<'a>(spelled: Option<&'a RawValue>, rest: &mut Rest<'a>) -> Json {
    let text = text(spelled);
    let Ok(arguments) = Json::from_text(&text) else {
        return Json::of(text.as_ref()).unwrap_or_default();
    };
    if arguments.get() == text {
        rest.take_text(spelled);
    }
    arguments
}

fn take_output<'a>(item: &Fields<'a>, rest: &mut Rest<'a>) -> Item {
    let call = text(item.call_id).into_owned();
    if item.output.is_some_and(|output| output.get().starts_with('{')) {
        let output: Output<'a> = fields(item.output);
        let is_error = output.success.is_some_and(|success| success.get() == "false");
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
    let parts = list(item.content);
    let first = parts.first().map(|part| fields::<Part<'_>>(Some(part)).text);
    let named = tag_of(&text(first.unwrap_or(item.content)));
    let role = text(item.role);
    if role == "user" {
        let passthrough: Passthrough<'_> = fields(item.passthrough);
        let kinds = list(passthrough.content_item_kinds);
        let mut kinds = kinds.into_iter().filter(|kind| is_text(kind)).map(|kind| text(Some(kind))).peekable();
        let typed = match kinds.peek() {
            Some(_) => kinds.any(|kind| kind.starts_with("user.") || kind == "unknown"),
            None => named.is_none(),
        };
        if typed {
            return None;
        }
    }
    Some(named.unwrap_or_else(|| if role.is_empty() { "context".to_owned() } else { role.into_owned() }))
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
