//! A session in lines that a person can read and a test can compare.

#![allow(dead_code, unreachable_pub, reason = "each test program uses some of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use banyan_model::{AgentMessage, ContentBlock, SessionEntry};

use super::Session;

/// A session's active path, one line an entry: who speaks, and what, shortened.
pub fn transcript(session: &Session) -> Vec<String> {
    session.outgoing().path().into_iter().map(line).collect()
}

/// An entry in one line.
pub fn line(entry: &SessionEntry) -> String {
    let message: AgentMessage = match entry {
        SessionEntry::Custom(entry) => return format!("({})", entry.custom_type),
        SessionEntry::Message(entry) => entry.message.parse().unwrap(),
    };
    let who = match &message {
        AgentMessage::User(_) => "user".to_owned(),
        AgentMessage::Assistant(said) => match &said.error_message {
            Some(error) => format!("assistant failed [{}]", short(error)),
            None => "assistant".to_owned(),
        },
        AgentMessage::FunctionResult(result) => {
            let how = if result.is_error { "failed" } else { "gave" };
            format!("{}#{} {how}", result.function_id, last(&result.function_call_id))
        }
        AgentMessage::Custom(said) => said.custom_type.clone(),
    };
    let what: Vec<String> = message.content().iter().map(block).collect();
    format!("{who}: {}", what.join(" | "))
}

fn block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => short(&text.text),
        ContentBlock::Image(image) => format!("picture {} {}", image.mime, image.data.len()),
        ContentBlock::Thinking(thinking) => {
            format!(
                "thinks {}{}",
                short(&thinking.text),
                if thinking.signature.is_some() { " sealed" } else { "" }
            )
        }
        ContentBlock::FunctionCall(call) => {
            format!("calls {}#{} {}", call.function_id, last(&call.id), short(call.arguments.get()))
        }
        ContentBlock::FunctionResult(result) => format!("result of {}", last(&result.function_call_id)),
        ContentBlock::File(file) => format!("file {}", file.name),
    }
}

fn short(text: &str) -> String {
    text.replace('\n', " ").chars().take(40).collect()
}

/// The end of an id tells it from others.
fn last(id: &str) -> String {
    id.chars().skip(id.chars().count().saturating_sub(4)).collect()
}

/// A session in lines, all of its tree: entries with the line of what they follow.
pub fn tree(session: &Session) -> Vec<String> {
    let of = |id: &banyan_model::EntryId| {
        session.entries.iter().position(|entry| entry.id() == id).map_or(0, |place| place + 1)
    };
    let mut lines: Vec<String> = session
        .entries
        .iter()
        .map(|entry| format!("{} < {}", line(entry), entry.parent_id().map_or(0, of)))
        .collect();
    lines.push(format!("leaf {}", session.leaf.as_ref().map_or(0, of)));
    lines
}

/// Where an entry stands in a tree of lines.
pub fn place(entry: &SessionEntry, tree: &[String]) -> usize {
    let line = line(entry);
    tree.iter().position(|known| known.starts_with(&line)).unwrap_or(usize::MAX)
}
