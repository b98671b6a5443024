//! What both documents say in the same words.

use banyan_model::{
    AgentMessage, AssistantMessage, ContentBlock, FunctionResultMessage, SessionEntry, StopReason,
};
use serde_json::Value;

use super::Head;
use crate::body::Body;
use crate::history::{Entry, display_of, failure, rfc3339};
use crate::redact::Finding;

/// An entry as people see it: who speaks, when, and what there is to see.
pub(super) struct Shown {
    pub(super) speaker: String,
    pub(super) kind: Kind,
    pub(super) time: String,
    pub(super) blocks: Vec<Block>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    User,
    Assistant,
    Tool,
    Other,
}

/// One thing to see.
pub(super) enum Block {
    Text(String),
    Thinking(String),
    Call {
        name: String,
        arguments: String,
    },
    Result {
        name: String,
        failed: bool,
        blocks: Vec<Block>,
    },
    Image {
        mime: String,
        data: String,
        attachment: Option<banyan_model::AttachmentId>,
    },
    File {
        name: String,
        about: String,
        attachment: banyan_model::AttachmentId,
        mime: String,
    },
    Error(String),
    /// A remark of ours.
    Remark(String),
}

/// What there is to see of an entry; none when it is nothing for people.
pub(super) fn shown(entry: &SessionEntry) -> Option<Shown> {
    let read = Entry::from(entry);
    if read.is_silent() {
        return None;
    }
    let (kind, speaker, blocks) = match &read.body {
        Body::Message(message) => match &**message {
            AgentMessage::User(message) => (Kind::User, "User".to_owned(), blocks(&message.content)),
            AgentMessage::Assistant(message) => (Kind::Assistant, assistant_name(message), assistant(message)),
            AgentMessage::FunctionResult(message) => (Kind::Tool, "Tool".to_owned(), vec![result(message)]),
            AgentMessage::Custom(message) => {
                let blocks = match &message.display {
                    Some(display) => vec![Block::Text(display.clone())],
                    None => blocks(&message.content),
                };
                (Kind::Other, message.custom_type.clone(), blocks)
            }
        },
        Body::Custom(custom) => {
            (Kind::Other, custom.custom_type.clone(), vec![Block::Text(display_of(custom).unwrap_or_default())])
        }
        Body::Unreadable => {
            let remark = Block::Remark("This entry could not be read.".to_owned());
            (Kind::Other, "Banyan".to_owned(), vec![remark])
        }
    };
    Some(Shown { speaker, kind, time: time(read.time().unwrap_or_else(|| entry.timestamp())), blocks })
}

fn assistant_name(message: &AssistantMessage) -> String {
    match message.model.is_empty() {
        true => "Assistant".to_owned(),
        false => format!("Assistant ({})", message.model),
    }
}

fn assistant(message: &AssistantMessage) -> Vec<Block> {
    let mut all = blocks(&message.content);
    all.extend(failure(message).map(Block::Error));
    if message.stop_reason == StopReason::Aborted {
        all.push(Block::Remark("Stopped here.".to_owned()));
    }
    all
}

fn result(message: &FunctionResultMessage) -> Block {
    Block::Result { name: message.function_id.clone(), failed: message.is_error, blocks: blocks(&message.content) }
}

fn blocks(content: &[ContentBlock]) -> Vec<Block> {
    content.iter().map(block).collect()
}

fn block(block: &ContentBlock) -> Block {
    match block {
        ContentBlock::Text(block) => Block::Text(block.text.clone()),
        ContentBlock::Thinking(block) => Block::Thinking(block.text.clone()),
        ContentBlock::FunctionCall(call) => {
            Block::Call { name: call.function_id.clone(), arguments: laid_out(call.arguments.get()) }
        }
        ContentBlock::FunctionResult(result) => Block::Result {
            name: result.function_call_id.clone(),
            failed: result.is_error.unwrap_or_default(),
            blocks: blocks(&result.content),
        },
        ContentBlock::Image(image) => Block::Image {
            mime: image.mime.clone(),
            data: image.data.clone(),
            attachment: image.attachment_id.clone(),
        },
        ContentBlock::File(file) => Block::File {
            name: file.name.clone(),
            about: format!("{}, {}", file.mime, size(file.size)),
            attachment: file.attachment_id.clone(),
            mime: file.mime.clone(),
        },
    }
}

/// Arguments over several lines. Numbers that would not survive it leave them as they are.
fn laid_out(json: &str) -> String {
    let value: Option<Value> = serde_json::from_str(json).ok();
    let same = serde_json::to_string(&value).is_ok_and(|text| text == json);
    match value.filter(|_| same) {
        Some(value) => serde_json::to_string_pretty(&value).unwrap_or_else(|_| json.to_owned()),
        None => json.to_owned(),
    }
}

/// The title, or what stands for one.
pub(super) fn title(head: &Head) -> String {
    let title = head.meta.title.split_whitespace().collect::<Vec<_>>().join(" ");
    if title.is_empty() { "A session without a title".to_owned() } else { title }
}

/// What is said about the session below its title.
pub(super) fn about(head: &Head) -> Vec<(&'static str, String)> {
    let mut about = vec![
        ("Session", head.meta.session_id.as_str().to_owned()),
        ("Status", head.meta.status.as_str().to_owned()),
        ("Messages", head.meta.message_count.to_string()),
        ("Created", time(head.meta.created_at)),
        ("Changed", time(head.meta.updated_at)),
    ];
    let mut add = |name, value: Option<&String>| about.extend(value.map(|value| (name, value.clone())));
    add("Reason", head.meta.status_reason.as_ref());
    add("Model", head.facts.model.as_ref());
    add("Provider", head.facts.provider.as_ref());
    add("Directory", head.facts.directory.as_ref());
    about
}

/// What was taken out, in a sentence each.
pub(super) fn taken_out(findings: &[Finding]) -> impl Iterator<Item = String> + '_ {
    findings.iter().map(|finding| match finding.count {
        1 => format!("{} in {}", finding.kind, finding.place),
        count => format!("{} in {}, {count} times", finding.kind, finding.place),
    })
}

/// A time to the second, in UTC.
fn time(ms: i64) -> String {
    let text = rfc3339(ms);
    let (date, clock) = text.split_once('T').unwrap_or((&text, ""));
    format!("{date} {} UTC", clock.split('.').next().unwrap_or_default())
}

/// A number of bytes in words.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} bytes"),
        1000..1_000_000 => format!("{}.{} kB", bytes / 1000, bytes % 1000 / 100),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

/// The bytes that a text in base64 stands for, about.
pub(super) fn decoded(data: &str) -> u64 {
    data.len() as u64 / 4 * 3
}
