//! Entries as a message of a history.

use std::borrow::Cow;

use banyan_model::{AgentMessage, ContentBlock, EntryId, FileBlock, ImageBlock, Json, LongText};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::mark::Mark;
use super::rest::{Metadata, metadata};
use super::{mime, path, sources, time};
use crate::history::milliseconds;

/// An entry that is to be written.
pub(crate) struct Outgoing<'a> {
    pub entry_id: &'a EntryId,
    pub message: &'a AgentMessage,
    pub mark: Option<&'a Mark>,
}

/// Says where pictures and files are in the archive. A wish is where one was in the archive that it came from.
pub(crate) trait Places {
    fn image(&self, block: &ImageBlock, wish: Option<&str>) -> Option<String>;
    fn file(&self, block: &FileBlock, wish: Option<&str>) -> Option<String>;
}

/// Everything is where it was.
pub(crate) struct AsImported;

impl Places for AsImported {
    fn image(&self, _: &ImageBlock, wish: Option<&str>) -> Option<String> {
        wish.map(str::to_owned)
    }

    fn file(&self, _: &FileBlock, wish: Option<&str>) -> Option<String> {
        wish.map(str::to_owned)
    }
}

/// The role of a message in a history; none for what has no place there.
pub(crate) fn role<'a>(message: &'a AgentMessage, mark: Option<&'a Mark>) -> Option<&'a str> {
    Some(match message {
        AgentMessage::User(_) => "user",
        AgentMessage::Assistant(_) => "assistant",
        AgentMessage::FunctionResult(_) => "tool",
        AgentMessage::Custom(custom) => match custom.custom_type.as_str() {
            "system" => "system",
            other => {
                let role = other.strip_prefix("opa:")?;
                mark.and_then(|mark| mark.role.as_deref()).unwrap_or(role)
            }
        },
    })
}

/// The JSON text of the message that a group of entries is: several results, or one entry. None when it has no place.
pub(crate) fn render(group: &[Outgoing<'_>], places: &dyn Places, number: u64) -> Option<String> {
    let first = group.first()?;
    if let Some(raw) = as_it_was(group, places) {
        return Some(raw);
    }
    let mark = first.mark;
    let mut blocks = Vec::new();
    for entry in group {
        let wishes = entry.mark.map(|mark| mark.paths.as_slice()).unwrap_or_default();
        let mut scribe = Scribe { places, wishes, lists: entry.mark.is_some_and(|mark| mark.result_lists) };
        match entry.message {
            AgentMessage::FunctionResult(result) => {
                let is_error = result.is_error.then_some(true);
                let content = scribe.result(&result.content);
                blocks.push(Block::ToolResult { tool_use_id: &result.function_call_id, content, is_error });
            }
            message => blocks.extend(message.content().iter().filter_map(|block| scribe.block(block))),
        }
    }
    let message = Message {
        id: match mark {
            Some(mark) => mark.id.clone(),
            None => Some(number.to_string().into()),
        },
        role: role(first.message, mark)?,
        content: Content::of(blocks, mark.is_some_and(|mark| mark.list), first.message),
        timestamp: timestamp(first.message.timestamp(), mark),
        metadata: metadata(first),
    };
    serde_json::to_string(&message).ok()
}

/// The text that a message was read from, while everything is as it was.
fn as_it_was(group: &[Outgoing<'_>], places: &dyn Places) -> Option<String> {
    let first = group.first()?.mark?;
    let raw = first.raw.as_deref()?;
    if first.part.map_or(1, |(_, of)| of) != group.len() as u64 {
        return None;
    }
    for entry in group {
        let mark = entry.mark?;
        if !mark.is_as_it_was(entry.message)
            || !are_in_place(entry.message.content(), &mut mark.paths.iter(), places)
        {
            return None;
        }
    }
    // An origin is anybody's to write, so what it says is looked at before it goes into an archive.
    let mut is_safe = true;
    let read = sources::collect(raw, &mut |source| is_safe &= path::source_flaw(source).is_none());
    (read.is_ok() && is_safe).then(|| raw.to_owned())
}

/// Whether all pictures and files are at the paths that the text names.
fn are_in_place(blocks: &[ContentBlock], wishes: &mut std::slice::Iter<'_, String>, places: &dyn Places) -> bool {
    blocks.iter().all(|block| {
        let (wish, place) = match block {
            ContentBlock::FunctionResult(result) => return are_in_place(&result.content, wishes, places),
            ContentBlock::Image(image) => {
                let wish = wishes.next().map(String::as_str).filter(|wish| !wish.is_empty());
                (wish, places.image(image, wish))
            }
            ContentBlock::File(file) => {
                let wish = wishes.next().map(String::as_str).filter(|wish| !wish.is_empty());
                (wish, places.file(file, wish))
            }
            _ => return true,
        };
        wish.is_none() || place.as_deref() == wish
    })
}

fn timestamp(ms: i64, mark: Option<&Mark>) -> Option<String> {
    let Some(mark) = mark else { return Some(time::written(ms)) };
    if mark.is_made_up("timestamp") {
        return mark.timestamp.clone();
    }
    let given = mark.timestamp.clone().filter(|text| milliseconds(text) == Some(ms));
    Some(given.unwrap_or_else(|| time::written(ms)))
}

#[derive(Serialize)]
struct Message<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Value>,
    role: &'a str,
    content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(LongText<'a>),
    Blocks(Vec<Block<'a>>),
}

impl<'a> Content<'a> {
    fn of(blocks: Vec<Block<'a>>, as_list: bool, message: &AgentMessage) -> Self {
        match blocks.as_slice() {
            [Block::Text { text: Cow::Borrowed(text) }]
                if !as_list && !matches!(message, AgentMessage::FunctionResult(_)) =>
            {
                Self::Text(LongText(text))
            }
            _ => Self::Blocks(blocks),
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        #[serde(serialize_with = "long")]
        text: Cow<'a, str>,
    },
    Image {
        source: Source,
        #[serde(skip_serializing_if = "Option::is_none")]
        media_type: Option<&'a str>,
    },
    File {
        source: Source,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        media_type: Option<&'a str>,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: &'a Json,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: Content<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        is_error: Option<bool>,
    },
}

fn long<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    LongText(text).serialize(serializer)
}

#[derive(Serialize)]
struct Source {
    r#type: &'static str,
    path: String,
}

impl Source {
    fn at(path: String) -> Self {
        Self { r#type: "attachment", path }
    }
}

/// Writes blocks, and keeps count of the places that they had.
struct Scribe<'a> {
    places: &'a dyn Places,
    wishes: &'a [String],
    lists: bool,
}

impl<'a> Scribe<'a> {
    fn wish(&mut self) -> Option<&'a str> {
        let (first, rest) = self.wishes.split_first()?;
        self.wishes = rest;
        Some(first.as_str()).filter(|wish| !wish.is_empty())
    }

    /// A block; none for thinking, which has no place in a history.
    fn block<'b>(&mut self, block: &'b ContentBlock) -> Option<Block<'b>> {
        Some(match block {
            ContentBlock::Text(text) => Block::Text { text: Cow::Borrowed(&text.text) },
            ContentBlock::Thinking(_) => return None,
            ContentBlock::Image(image) => {
                let wish = self.wish();
                match self.places.image(image, wish) {
                    Some(path) => {
                        let media_type =
                            (image.mime != mime::guess(&path, &beginning(&image.data))).then_some(&*image.mime);
                        Block::Image { source: Source::at(path), media_type }
                    }
                    None => Block::Text {
                        text: Cow::Owned(format!("[a picture that cannot be read, {}]", image.mime)),
                    },
                }
            }
            ContentBlock::File(file) => {
                let wish = self.wish();
                match self.places.file(file, wish) {
                    Some(path) => {
                        let name = path.rsplit('/').next();
                        Block::File {
                            name: (name != Some(file.name.as_str())).then_some(&*file.name),
                            media_type: (file.mime != mime::by_name(&path)).then_some(&*file.mime),
                            source: Source::at(path),
                        }
                    }
                    None => Block::Text { text: Cow::Owned(format!("[the file {} is missing]", file.name)) },
                }
            }
            ContentBlock::FunctionCall(call) => {
                Block::ToolUse { id: &call.id, name: &call.function_id, input: &call.arguments }
            }
            ContentBlock::FunctionResult(result) => Block::ToolResult {
                tool_use_id: &result.function_call_id,
                content: self.result(&result.content),
                is_error: result.is_error,
            },
        })
    }

    fn result<'b>(&mut self, content: &'b [ContentBlock]) -> Content<'b> {
        let blocks: Vec<Block<'b>> = content.iter().filter_map(|block| self.block(block)).collect();
        match blocks.as_slice() {
            [Block::Text { text: Cow::Borrowed(text) }] if !self.lists => Content::Text(LongText(text)),
            _ => Content::Blocks(blocks),
        }
    }
}

/// The first bytes of a picture, which tell its type.
fn beginning(base64: &str) -> Vec<u8> {
    base64
        .get(..24)
        .and_then(|start| STANDARD.decode(start).ok())
        .or_else(|| STANDARD.decode(base64).ok())
        .unwrap_or_default()
}

/// What a history says of the prompt that was a message of the session.
#[derive(Serialize, Deserialize)]
pub(crate) struct PromptNote {
    pub prompt: PromptEntry,
}

/// The message that became the prompt.
#[derive(Serialize, Deserialize)]
pub(crate) struct PromptEntry {
    pub entry: String,
    pub timestamp: i64,
}
