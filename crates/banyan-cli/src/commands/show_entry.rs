//! One entry of a conversation, as text.

use banyan::model::{AgentMessage, AssistantMessage, MessageItem, StopReason};

use super::show_block::{self, Last};
use crate::failure::Failure;
use crate::prose::{self, Length, short_width};
use crate::screen::{Screen, Style};
use crate::words::{Clock, clip, one_line};

/// Tells entries one after another: a heading when somebody begins to speak, tools in a few lines each.
pub(super) struct Teller {
    length: Length,
    speaker: Option<String>,
    clock: Clock,
    last: Last,
}

impl Teller {
    pub(super) fn new(length: Length) -> Self {
        Self { length, speaker: None, clock: Clock::default(), last: Last::Heading }
    }

    /// Tells an entry.
    pub(super) fn tell(&mut self, item: &MessageItem, screen: &mut Screen) -> Result<(), Failure> {
        if let Some(custom) = &item.custom {
            let line = format!("· {} {}", one_line(&custom.custom_type), one_line(custom.data.get()));
            self.last = Last::Tool;
            return match self.length {
                Length::Short => aside(&line, screen),
                Length::Full => screen.line(&screen.paint(Style::Aside, &line)),
            };
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
            AgentMessage::User(_) => self.heading("user", Style::User, message.timestamp(), screen)?,
            AgentMessage::Assistant(said) => {
                let speaker = match said.model.is_empty() {
                    true => "assistant".to_owned(),
                    false => format!("assistant · {}", one_line(&said.model)),
                };
                self.heading(&speaker, Style::Assistant, message.timestamp(), screen)?;
            }
            AgentMessage::FunctionResult(result) => {
                self.last = Last::Tool;
                let function = Some(result.function_id.as_str());
                return show_block::returned(function, &result.content, result.is_error, self.length, screen);
            }
            AgentMessage::Custom(custom) => {
                self.heading(&one_line(&custom.custom_type), Style::Heading, message.timestamp(), screen)?;
                if let Some(display) = &custom.display {
                    return prose::said(display, screen).iter().try_for_each(|line| screen.line(line));
                }
            }
        }
        for block in message.content() {
            self.last = show_block::tell(block, self.last, self.length, screen)?;
        }
        match message {
            AgentMessage::Assistant(said) => ending(said, screen),
            AgentMessage::User(_) | AgentMessage::FunctionResult(_) | AgentMessage::Custom(_) => Ok(()),
        }
    }

    /// A heading, unless the assistant goes on after its tools.
    fn heading(&mut self, speaker: &str, style: Style, time: i64, screen: &mut Screen) -> Result<(), Failure> {
        if speaker.starts_with("assistant") && self.speaker.as_deref() == Some(speaker) {
            return Ok(());
        }
        self.speaker = Some(speaker.to_owned());
        self.last = Last::Heading;
        screen.line("")?;
        let time = screen.paint(Style::Aside, &format!(" · {}", self.clock.tell(time)));
        screen.line(&format!("{}{time}", screen.paint(style, speaker)))
    }
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
    let line = clip(line, short_width(screen));
    screen.line(&screen.paint(Style::Aside, &line))
}
