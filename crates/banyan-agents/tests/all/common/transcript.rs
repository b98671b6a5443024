//! A session's active path in short lines, to be compared with what a sample's note says.

use banyan_agents::Outgoing;
use banyan_model::{AgentMessage, ContentBlock, SessionEntry};

/// So many characters of a text are shown.
const SHOWN: usize = 60;

/// The messages of the active path, one line each block. Records that are no messages are left out.
pub fn transcript(session: &Outgoing) -> Vec<String> {
    session.path().into_iter().flat_map(lines).collect()
}

/// The lines of one entry.
pub fn lines(entry: &SessionEntry) -> Vec<String> {
    let SessionEntry::Message(entry) = entry else { return Vec::new() };
    let message = entry.message.parse().unwrap();
    let head = match &message {
        AgentMessage::User(_) => "user".to_owned(),
        AgentMessage::Assistant(_) => "assistant".to_owned(),
        AgentMessage::FunctionResult(result) => {
            let error = if result.is_error { " failed" } else { "" };
            format!("result of {} {}{error}", result.function_id, result.function_call_id)
        }
        AgentMessage::Custom(custom) => custom.custom_type.clone(),
    };
    let mut lines: Vec<String> = message.content().iter().map(|block| format!("{head}{}", shown(block))).collect();
    if let AgentMessage::Assistant(assistant) = &message {
        lines.extend(assistant.error_message.as_ref().map(|error| format!("{head} failed: {}", short(error))));
    }
    lines
}

fn shown(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(block) => format!(": {}", short(&block.text)),
        ContentBlock::Image(block) => format!(": [{}]", block.mime),
        ContentBlock::Thinking(block) => format!(" thinks: {}", short(&block.text)),
        ContentBlock::FunctionCall(call) => {
            format!(" calls {} {} {:?}", call.function_id, call.id, call.arguments)
        }
        ContentBlock::FunctionResult(result) => format!(" answers {}", result.function_call_id),
        ContentBlock::File(file) => format!(": [file {}]", file.name),
    }
}

fn short(text: &str) -> String {
    text.chars().take(SHOWN).collect::<String>().replace('\n', "|")
}
