//! The history, message by message.

use std::io::Write;

use banyan_model::{AgentMessage, EntryId};

use super::super::error::Error;
use super::super::mark::Mark;
use super::super::render::{Outgoing, Places, render, role};
use super::super::rest::rest_of;
use super::Entry;
use super::places::Placed;

/// How many results of one message are put together again.
const PARTS: u64 = 1000;

/// Takes the entries of a history.
pub struct HistoryWriter<'a> {
    out: &'a mut dyn Write,
    placed: &'a Placed,
    /// Parts of one message that wait for the others.
    parts: Vec<(EntryId, AgentMessage, Mark)>,
    messages: u64,
    left_out: u64,
    missing: u64,
    /// The highest number that a message has as its id.
    number: u64,
}

impl<'a> HistoryWriter<'a> {
    pub(super) fn new(out: &'a mut dyn Write, placed: &'a Placed) -> Self {
        Self { out, placed, parts: Vec::new(), messages: 0, left_out: 0, missing: 0, number: 0 }
    }

    /// Writes the next entry.
    pub fn write(&mut self, entry: Entry<'_>) -> Result<(), Error> {
        let mark = Mark::of(entry.origin);
        self.missing += missing(entry.message.content(), self.placed);
        if let Some((part, mark)) = part(entry.message, mark.as_ref()) {
            if part != self.parts.len() as u64 || self.parts.first().is_some_and(|(.., first)| first.id != mark.id)
            {
                self.flush()?;
            }
            if part == self.parts.len() as u64 {
                let last = mark.part.is_some_and(|(part, of)| part + 1 == of);
                self.parts.push((entry.entry_id.clone(), entry.message.clone(), mark.clone()));
                return if last { self.flush() } else { Ok(()) };
            }
        }
        self.flush()?;
        if role(entry.message, mark.as_ref()).is_none() {
            self.left_out += 1;
            return Ok(());
        }
        self.message(&[Outgoing { entry_id: entry.entry_id, message: entry.message, mark: mark.as_ref() }])
    }

    fn flush(&mut self) -> Result<(), Error> {
        let parts = std::mem::take(&mut self.parts);
        if parts.is_empty() {
            return Ok(());
        }
        let outgoing = |(entry_id, message, mark)| Outgoing { entry_id, message, mark: Some(mark) };
        let group: Vec<Outgoing<'_>> =
            parts.iter().map(|(id, message, mark)| outgoing((id, message, mark))).collect();
        self.message(&group)
    }

    fn message(&mut self, group: &[Outgoing<'_>]) -> Result<(), Error> {
        let Some(text) = render(group, self.placed, self.number + 1) else {
            self.left_out += 1;
            return Ok(());
        };
        let given = group.first().and_then(|entry| entry.mark).map(|mark| mark.id.as_ref());
        match given {
            None => self.number += 1,
            Some(id) => {
                let number = id.and_then(|id| id.as_str()).and_then(|id| id.parse::<u64>().ok());
                self.number = self.number.max(number.unwrap_or_default());
            }
        }
        self.out.write_all(if self.messages == 0 { b"\n" } else { b",\n" })?;
        self.out.write_all(text.as_bytes())?;
        self.messages += 1;
        Ok(())
    }

    /// How many messages were written, how many entries left out, and how many files not found.
    pub(super) fn finish(mut self) -> Result<(u64, u64, u64), Error> {
        self.flush()?;
        Ok((self.messages, self.left_out, self.missing))
    }
}

impl std::fmt::Debug for HistoryWriter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HistoryWriter").field("messages", &self.messages).finish_non_exhaustive()
    }
}

/// Which part of a message an entry is, when it can be put together with the others.
fn part<'a>(message: &AgentMessage, mark: Option<&'a Mark>) -> Option<(u64, &'a Mark)> {
    let mark = mark?;
    let (part, of) = mark.part.filter(|(part, of)| part < of && *of > 1 && *of <= PARTS)?;
    let is_whole = matches!(message, AgentMessage::FunctionResult(_)) && rest_of(message, Some(mark)).is_empty();
    (is_whole && of > 1).then_some((part, mark))
}

/// How many files of a message are not in the archive.
fn missing(blocks: &[banyan_model::ContentBlock], placed: &Placed) -> u64 {
    use banyan_model::ContentBlock;
    let of_block = |block: &ContentBlock| match block {
        ContentBlock::FunctionResult(result) => missing(&result.content, placed),
        ContentBlock::File(file) => u64::from(placed.file(file, None).is_none()),
        _ => 0,
    };
    blocks.iter().map(of_block).sum()
}
