//! The records of the tree: what each becomes.

use std::borrow::Cow;

use banyan_model::{AgentMessage, ContentBlock, CustomMessage, EntryId, FunctionResultMessage, UserMessage};

use super::blocks::{self, Message};
use super::chat::Response;
use super::read::{Reading, note};
use super::record::{Envelope, number};
use crate::build::Place;
use crate::lines::Line;
use crate::native::{self, Left};
use crate::outline::Found;
use crate::rest::{self, Rest};
use crate::{COMPACTION, Problem, Sink, entry_id};

/// What the commands of the user and their output begin with.
const COMMANDS: &[&str] =
    &["<command-", "<local-command-", "<bash-input>", "<bash-stdout>", "<bash-stderr>", "<user-memory-input>"];

/// Where a record stands.
pub(super) struct Spot<'a> {
    /// Which conversation it belongs to.
    pub(super) at: usize,
    pub(super) uuid: &'a str,
    /// The entry that it becomes, if it does not add to one.
    pub(super) id: EntryId,
    pub(super) parent: Option<EntryId>,
    pub(super) line: &'a Line<'a>,
    /// The line without what we added.
    pub(super) record: Found<'a>,
}

impl Reading {
    /// One more line of a model's response.
    pub(super) fn assistant(
        &mut self,
        spot: Spot<'_>,
        envelope: &Envelope<'_>,
        message: &Message<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        let Spot { at, uuid, id, parent, line, record } = spot;
        let told = self.told;
        let chat = &mut self.chats[at];
        let message_id = message.id.as_deref().filter(|id| !id.is_empty()).unwrap_or(uuid).to_owned();
        let mut rest = Rest::new(record);
        let mut content = blocks::take(message, &mut rest);
        let mut error = None;
        if envelope.is_api_error_message == Some(true) {
            let text = |block: &ContentBlock| match block {
                ContentBlock::Text(block) => block.text.clone(),
                _ => String::new(),
            };
            error = Some(content.drain(..).map(|block| text(&block)).collect::<String>());
        }
        for block in &content {
            if let ContentBlock::FunctionCall(call) = block {
                chat.state.calls.insert(call.id.clone(), call.function_id.clone());
            }
        }
        let model = message.model.clone().unwrap_or_default().into_owned();
        if !model.is_empty() && model != "<synthetic>" {
            chat.telling.model(&model);
        }
        let usage = blocks::usage(message);
        let stop = message.stop_reason.clone().map(Cow::into_owned);
        let goes_on = chat.response.as_ref().is_some_and(|open| open.message == message_id);
        if !goes_on {
            chat.flush(told, sink)?;
            chat.response = Some(Response {
                message: message_id,
                id,
                parent,
                at: chat.state.at,
                natives: Vec::new(),
                content: Vec::new(),
                usage: None,
                model: String::new(),
                stop: None,
                error: None,
                lines: Vec::new(),
                results: Vec::new(),
                newest: 0,
                told: false,
                begins: (line.offset, line.number - 1),
                before: chat.state.clone(),
            });
        }
        let Some(response) = &mut chat.response else { return Ok(()) };
        response.natives.push(Left { line: line.number, record: rest.text() });
        response.content.extend(content);
        response.usage = usage.or_else(|| response.usage.take());
        response.model = model;
        response.stop = stop.or_else(|| response.stop.take());
        response.error = error.or_else(|| response.error.take());
        response.lines.push(number(uuid));
        response.newest = line.offset;
        response.told = false;
        let id = response.id.clone();
        if !goes_on {
            chat.state.tip = Some(id.clone());
        }
        self.place(at, uuid, &id);
        Ok(())
    }

    /// What the user said, or what came of calls.
    pub(super) fn user(
        &mut self,
        spot: Spot<'_>,
        envelope: &Envelope<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        let Spot { at, uuid, id, mut parent, line, record } = spot;
        let message = Message::of(envelope.message);
        let mut rest = Rest::new(record);
        let answers = blocks::take_answers(&message, &mut rest);
        let content = blocks::take(&message, &mut rest);
        let mut details = if answers.is_empty() { None } else { envelope.tool_use_result };
        if let Some(details) = details {
            rest.take(details);
        }
        let is_new = line.offset >= self.told;
        let chat = &mut self.chats[at];
        let timestamp = chat.state.at;
        let origin = native::origin("claude", &[Left { line: line.number, record: rest.text() }]);
        // The record stands at the first entry that is made of it; the others say only that they are parts.
        let mut origin = Some(origin);
        let mut origin = || origin.take().or_else(|| Some(native::origin("claude", &[])));
        let mut next = Some(id);
        let mut last = None;
        let session = chat.telling.head.session.clone();
        let mut part = 0_u32;
        let mut id_of = |next: &mut Option<EntryId>| {
            part += 1;
            next.take().unwrap_or_else(|| entry_id(&session, &format!("{uuid}#{part}")))
        };
        let is_result = !answers.is_empty();
        for answer in answers {
            let message = AgentMessage::FunctionResult(FunctionResultMessage {
                function_id: chat.state.calls.remove(&answer.call).unwrap_or_default(),
                function_call_id: answer.call,
                content: answer.content,
                details: details.take().map(rest::carried).unwrap_or_default(),
                is_error: answer.is_error,
                timestamp,
            });
            let id = id_of(&mut next);
            let place = Place { id: id.clone(), parent, at: timestamp, revision: 0, origin: origin() };
            chat.tell(place.message(&message)?, is_new, sink)?;
            parent = Some(id.clone());
            last = Some(id);
        }
        if !content.is_empty() || last.is_none() {
            let kind = context_of(envelope, &content);
            if kind.is_none() {
                chat.telling.said(&content, sink)?;
            }
            let message = match kind {
                None => AgentMessage::User(UserMessage { content, timestamp }),
                Some(custom_type) => AgentMessage::Custom(CustomMessage {
                    custom_type,
                    content,
                    display: None,
                    details: None,
                    timestamp,
                }),
            };
            let id = id_of(&mut next);
            let place = Place { id: id.clone(), parent, at: timestamp, revision: 0, origin: origin() };
            chat.tell(place.message(&message)?, is_new, sink)?;
            last = Some(id);
        }
        if let Some(response) = chat.response.as_mut().filter(|_| is_result) {
            response.results.push(number(uuid));
        }
        if let Some(last) = last {
            self.place(at, uuid, &last);
        }
        Ok(())
    }

    /// Context that the model was shown.
    pub(super) fn attachment(
        &mut self,
        spot: Spot<'_>,
        envelope: &Envelope<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        let Spot { at, uuid, id, parent, line, record } = spot;
        let mut rest = Rest::new(record);
        let rendered = rest::list(envelope.rendered);
        let content = rendered.flat_map(|shown| blocks::take(&Message::of(Some(shown)), &mut rest)).collect();
        let timestamp = self.chats[at].state.at;
        let custom_type = "claude.attachment".to_owned();
        let message =
            AgentMessage::Custom(CustomMessage { custom_type, content, display: None, details: None, timestamp });
        let left = Left { line: line.number, record: rest.text() };
        let origin = Some(native::origin("claude", &[left]));
        let place = Place { id: id.clone(), parent, at: timestamp, revision: 0, origin };
        self.chats[at].tell(place.message(&message)?, line.offset >= self.told, sink)?;
        self.place(at, uuid, &id);
        Ok(())
    }

    /// A record that is no message.
    pub(super) fn other(&mut self, spot: Spot<'_>, kind: &str, sink: &mut dyn Sink) -> Result<(), Problem> {
        let Spot { at, uuid, id, parent, line, record } = spot;
        let Some(data) = record.json() else {
            sink.note(note(line, "the record is too deep or too odd to be kept", true));
            if let Some(parent) = parent {
                self.place(at, uuid, &parent);
            }
            return Ok(());
        };
        let origin = Some(native::line_of("claude", line.number));
        let place = Place { id: id.clone(), parent, at: self.chats[at].state.at, revision: 0, origin };
        let entry = place.custom(format!("claude.{kind}"), data);
        self.chats[at].tell(entry, line.offset >= self.told, sink)?;
        self.place(at, uuid, &id);
        Ok(())
    }
}

/// What kind of context a record of the user is; none if the human typed it.
fn context_of(envelope: &Envelope<'_>, content: &[ContentBlock]) -> Option<String> {
    if envelope.is_compact_summary == Some(true) {
        return Some(COMPACTION.to_owned());
    }
    if envelope.is_meta == Some(true) {
        return Some("claude.meta".to_owned());
    }
    let is_command = matches!(content, [ContentBlock::Text(text)]
        if COMMANDS.iter().any(|command| text.text.trim_start().starts_with(command)));
    is_command.then(|| "claude.command".to_owned())
}
