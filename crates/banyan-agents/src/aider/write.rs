//! A session into aider: a history file of its own, which aider restores.
//!
//! Aider has no place for calls. What was called and what came of it becomes text of the model's, which is sent again; lines of the
//! console would not be.

use std::path::{Path, PathBuf};

use banyan_model::{AgentMessage, ContentBlock, EntryId, MessageEntry, SessionEntry};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::blocks::{Who, own_line, protected, written};
use super::{BEGIN, HISTORY, ID};
use crate::files::write_new;
use crate::{Destination, Outgoing, Own, Problem, Step, Story, Written};

/// The file that is being made.
struct Text<'a> {
    session: &'a Outgoing,
    text: String,
    lost: Vec<String>,
    pictures: usize,
    thinking: usize,
    calls: usize,
}

/// Writes a session.
pub(super) fn session(session: &Outgoing, to: &Destination) -> Result<Written, Problem> {
    let begun = Timestamp::from_millisecond(session.meta.created_at).unwrap_or_default();
    let begun = begun.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string();
    let text = format!("\n{BEGIN}{begun}\n\n");
    let mut file = Text { session, text, lost: Vec::new(), pictures: 0, thinking: 0, calls: 0 };
    if session.native_id(ID).is_some() {
        file.as_it_was();
    } else {
        file.anew();
    }
    let path = free_path(&to.home);
    write_new(&path, file.text.as_bytes())?;
    let counts = [
        (file.pictures, "x a picture"),
        (file.thinking, "x thinking"),
        (file.calls, "x a call and what came of it, which are text now"),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let mut lost: Vec<String> = counts.map(|(count, what)| format!("{count} {what}")).collect();
    lost.extend(file.lost);
    let mut command = vec!["aider".to_owned(), "--restore-chat-history".to_owned()];
    if path != to.cwd.join(HISTORY) {
        command.extend(["--chat-history-file".to_owned(), path.display().to_string()]);
    }
    let native_id = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Written { native_id, paths: vec![path], command, lost })
}

/// Aider's own file if there is none yet, else one beside it.
fn free_path(folder: &Path) -> PathBuf {
    let mut path = folder.join(HISTORY);
    let mut number = 1;
    while path.exists() {
        number += 1;
        path = folder.join(format!(".aider.chat.history.{number}.md"));
    }
    path
}

impl Text<'_> {
    fn own(&mut self, entry: Option<&EntryId>) {
        let session = self.session.meta.session_id.clone();
        let own = Own { session, entry: entry.cloned(), made_up: entry.is_none() };
        self.text.push_str(&own_line(&own));
    }

    fn anew(&mut self) {
        let story = Story::of(self.session);
        for step in &story.steps {
            match step {
                Step::User { entry, content, .. } => self.user(entry, content),
                Step::Assistant { entry, message, calls, .. } => {
                    self.answer(entry, &message.content);
                    for call in calls {
                        let outcome = &call.outcome;
                        self.result(
                            outcome.entry.as_ref(),
                            &call.call.function_id,
                            &outcome.content,
                            outcome.is_error,
                        );
                    }
                }
            }
        }
        self.lost.extend(story.lost);
    }

    fn as_it_was(&mut self) {
        for entry in self.session.path() {
            let SessionEntry::Message(entry) = entry else { continue };
            let Ok(message) = entry.message.parse() else { continue };
            self.one(entry, &message);
        }
    }

    fn one(&mut self, entry: &MessageEntry, message: &AgentMessage) {
        let known = entry.origin.as_ref().and_then(|origin| origin.get(ID));
        let of = |key: &str| known.as_ref()?.get(key)?.as_str();
        let now = text_of(message.content());
        let raw = of("raw").filter(|_| of("text") == Some(now.as_str()));
        if let (Some(raw), false) = (raw, message.content().is_empty()) {
            self.own(Some(&entry.id));
            self.text.push_str(raw);
            return;
        }
        match message {
            AgentMessage::User(message) => self.user(&entry.id, &message.content),
            AgentMessage::Assistant(message) => self.answer(&entry.id, &message.content),
            AgentMessage::FunctionResult(result) => {
                self.result(Some(&entry.id), &result.function_id, &result.content, result.is_error);
            }
            AgentMessage::Custom(message) if message.custom_type == "aider.console" => {
                self.own(Some(&entry.id));
                self.text.push_str(&written(Who::Console, &now));
            }
            AgentMessage::Custom(_) => {}
        }
    }

    fn user(&mut self, entry: &EntryId, content: &[ContentBlock]) {
        self.count(content);
        let text = text_of(content);
        if !text.trim().is_empty() {
            self.own(Some(entry));
            self.text.push_str(&written(Who::User, &text));
        }
    }

    fn answer(&mut self, entry: &EntryId, content: &[ContentBlock]) {
        self.count(content);
        let mut said = Vec::new();
        for block in content {
            match block {
                ContentBlock::Text(text) => said.push(text.text.clone()),
                ContentBlock::FunctionCall(call) => {
                    self.calls += 1;
                    said.push(format!("[called {} with {}]", call.function_id, call.arguments.get()));
                }
                _ => {}
            }
        }
        self.model(Some(entry), &said.join("\n\n"));
    }

    fn result(&mut self, entry: Option<&EntryId>, function: &str, content: &[ContentBlock], is_error: bool) {
        self.count(content);
        let how = if is_error { "failed with" } else { "gave back" };
        self.model(entry, &format!("[{function} {how}]\n{}", text_of(content)));
    }

    fn model(&mut self, entry: Option<&EntryId>, text: &str) {
        if !text.trim().is_empty() {
            self.own(entry);
            self.text.push_str(&written(Who::Model, &protected(text)));
        }
    }

    fn count(&mut self, content: &[ContentBlock]) {
        self.pictures += content.iter().filter(|block| matches!(block, ContentBlock::Image(_))).count();
        self.thinking += content.iter().filter(|block| matches!(block, ContentBlock::Thinking(_))).count();
    }
}

fn text_of(content: &[ContentBlock]) -> String {
    let texts = content.iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}
