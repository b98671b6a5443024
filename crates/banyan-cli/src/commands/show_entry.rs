//! One entry of a conversation, as text.

use banyan::model::{AgentMessage, AssistantMessage, ContentBlock, MessageItem, StopReason};

use crate::failure::Failure;
use crate::screen::{Screen, Style};
use crate::words::{ago, clip, count, one_line, safe, size};

/// How wide a short form is where there is no terminal.
const WIDE: usize = 120;

/// Tells entries one after another: a heading when somebody begins to speak, tools in a line each.
#[derive(Default)]
pub(super) struct Teller {
    speaker: Option<String>,
}

impl Teller {
    /// Tells an entry.
    pub(super) fn tell(&mut self, item: &MessageItem, screen: &mut Screen) -> Result<(), Failure> {
        if let Some(custom) = &item.custom {
            let line = format!("· {} {}", one_line(&custom.custom_type), one_line(custom.data.get()));
            return aside(&line, screen);
        }
        let Some(message) = &item.message else { return Ok(()) };
        match message.parse() {
            Ok(message) => self.message(&message, screen)?,
            Err(error) => screen.line(&format!("(entry {} cannot be shown: {})", item.entry_id, error.message))?,
        }
        match item.elided {
            true => aside("(parts were left out)", screen),
            false => Ok(()),
        }
    }

    fn message(&mut self, message: &AgentMessage, screen: &mut Screen) -> Result<(), Failure> {
        match message {
            AgentMessage::User(_) => self.heading("user", message.timestamp(), screen)?,
            AgentMessage::Assistant(said) => {
                let speaker = match said.model.is_empty() {
                    true => "assistant".to_owned(),
                    false => format!("assistant · {}", one_line(&said.model)),
                };
                self.heading(&speaker, message.timestamp(), screen)?;
            }
            AgentMessage::FunctionResult(result) => {
                return returned(Some(&result.function_id), &result.content, result.is_error, screen);
            }
            AgentMessage::Custom(custom) => {
                self.heading(&one_line(&custom.custom_type), message.timestamp(), screen)?;
                if let Some(display) = &custom.display {
                    return screen.line(safe(display).trim_end());
                }
            }
        }
        message.content().iter().try_for_each(|block| tell_block(block, screen))?;
        match message {
            AgentMessage::Assistant(said) => ending(said, screen),
            AgentMessage::User(_) | AgentMessage::FunctionResult(_) | AgentMessage::Custom(_) => Ok(()),
        }
    }

    /// A heading, unless the same speaker goes on.
    fn heading(&mut self, speaker: &str, time: i64, screen: &mut Screen) -> Result<(), Failure> {
        if speaker.starts_with("assistant") && self.speaker.as_deref() == Some(speaker) {
            return Ok(());
        }
        self.speaker = Some(speaker.to_owned());
        screen.line("")?;
        let time = screen.paint(Style::Aside, &format!(" · {}", ago(time)));
        screen.line(&format!("{}{time}", screen.paint(Style::Heading, speaker)))
    }
}

fn tell_block(block: &ContentBlock, screen: &mut Screen) -> Result<(), Failure> {
    match block {
        ContentBlock::Text(block) if block.text.is_empty() => Ok(()),
        ContentBlock::Text(block) => screen.line(safe(&block.text).trim_end()),
        ContentBlock::Thinking(block) => {
            let thinking = screen.paint(Style::Aside, safe(&block.text).trim_end());
            if thinking.is_empty() { Ok(()) } else { screen.line(&thinking) }
        }
        ContentBlock::FunctionCall(call) => short(
            &format!("→ {} {}", one_line(&call.function_id), one_line(call.arguments.get())),
            Style::Busy,
            screen,
        ),
        ContentBlock::FunctionResult(result) => {
            returned(None, &result.content, result.is_error.unwrap_or(false), screen)
        }
        ContentBlock::Image(_) | ContentBlock::File(_) => aside(&in_words(block), screen),
    }
}

/// What a function gave back, on one line.
fn returned(
    function: Option<&str>,
    content: &[ContentBlock],
    failed: bool,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let whole: Vec<String> = content.iter().map(in_words).collect();
    let whole = whole.join("\n");
    let whole = whole.trim();
    let first = whole.lines().next().unwrap_or("nothing");
    let more = whole.lines().count().saturating_sub(1);
    let more = if more > 0 { format!(" (+ {})", count(more as u64, "line")) } else { String::new() };
    let function = function.map(|id| format!("{} ", one_line(id))).unwrap_or_default();
    let (word, style) = if failed { ("failed: ", Style::Bad) } else { ("", Style::Aside) };
    let room = screen.columns().unwrap_or(WIDE).saturating_sub(more.len()).max(20);
    let line = clip(&format!("← {function}{word}{}", one_line(first)), room);
    screen.line(&screen.paint(style, &format!("{line}{more}")))
}

/// A block as text.
pub(super) fn in_words(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(block) => safe(&block.text),
        ContentBlock::Thinking(block) => safe(&block.text),
        ContentBlock::FunctionCall(call) => format!("→ {}", one_line(&call.function_id)),
        ContentBlock::FunctionResult(result) => result.content.iter().map(in_words).collect::<Vec<_>>().join("\n"),
        ContentBlock::Image(image) => match (&image.attachment_id, image.data.is_empty()) {
            (Some(id), true) => format!("[image {}, attachment {}]", one_line(&image.mime), one_line(id.as_str())),
            _ => format!("[image {}, {}]", one_line(&image.mime), size(decoded(&image.data))),
        },
        ContentBlock::File(file) => {
            format!("[file {}, {}, {}]", one_line(&file.name), one_line(&file.mime), size(file.size))
        }
    }
}

/// How many bytes a base64 text stands for.
fn decoded(base64: &str) -> u64 {
    let digits = base64.trim_end_matches('=').len() as u64;
    digits * 3 / 4
}

/// How a turn ended, when it did not just end.
fn ending(said: &AssistantMessage, screen: &mut Screen) -> Result<(), Failure> {
    let why = match said.stop_reason {
        StopReason::End | StopReason::FunctionCall => return Ok(()),
        StopReason::Length => "stopped at a limit of length",
        StopReason::Aborted => "stopped by somebody",
        StopReason::Error => "failed",
    };
    let line = match &said.error_message {
        Some(message) => format!("({why}: {})", one_line(message)),
        None => format!("({why})"),
    };
    screen.line(&screen.paint(Style::Bad, &line))
}

fn aside(line: &str, screen: &mut Screen) -> Result<(), Failure> {
    short(line, Style::Aside, screen)
}

fn short(line: &str, style: Style, screen: &mut Screen) -> Result<(), Failure> {
    let line = clip(line, screen.columns().unwrap_or(WIDE));
    screen.line(&screen.paint(style, &line))
}
