//! The messages of a history as entries.

mod blocks;
mod message;

pub(crate) use message::usual_stop;

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::io::{Read, Seek};

use banyan_model::{AgentMessage, AttachmentId, ContentBlock, EntryId, Object, UserMessage};

use super::PROMPT_FILLER;
use super::archive::{Archive, File};
use super::error::Error;
use super::identity;
use super::mark::Mark;
use super::render::PromptNote;
use super::split::{Document, Piece};
use crate::history::milliseconds;

/// How many unanswered calls are remembered, to say which function a result is of.
const OPEN_CALLS: usize = 4096;
/// How many notes of what has no place are kept word for word.
const NOTES: usize = 1000;

/// An entry that was made of a message, or of a part of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// Its id: the one that the history gives, or one that is always the same for the same history.
    pub entry_id: EntryId,
    /// The message.
    pub message: AgentMessage,
    /// What the message does not say, under `opa`. A writer needs it to write the same history again.
    pub origin: Object,
}

/// What became of a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How many messages were read.
    pub messages: u64,
    /// How many entries they became.
    pub entries: u64,
    /// Fields that the history does not give and that were made up, and how often.
    pub invented: BTreeMap<&'static str, u64>,
    /// What has no place in a message and is kept in its entry's origin only. At most a thousand are listed.
    pub unplaced: Vec<Unplaced>,
    /// How many there are, listed or not.
    pub unplaced_count: u64,
}

/// Something that has no place in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unplaced {
    /// The message, counted from 1.
    pub message: u64,
    /// What it is.
    pub what: String,
}

/// Says which attachment was made of a file.
pub(crate) type Attachments<'a> = Box<dyn FnMut(&File) -> Option<AttachmentId> + Send + 'a>;

/// The messages of a history, one entry after another.
pub struct Messages<'a, R> {
    archive: &'a Archive<R>,
    attachments: Attachments<'a>,
    document: Option<Document<Box<dyn Read + Send + 'a>>>,
    /// What the ids of entries are computed from.
    session: String,
    last_time: i64,
    open_calls: VecDeque<(String, String)>,
    /// Short hashes of the ids that the history gave.
    given_ids: HashSet<u64>,
    /// How many bytes of pictures may still be put into messages.
    images_left: u64,
    ready: VecDeque<Imported>,
    report: Report,
}

impl<'a, R: Read + Seek + Send> Messages<'a, R> {
    pub(crate) fn new(archive: &'a Archive<R>, attachments: Attachments<'a>) -> Result<Self, Error> {
        let input: Option<Box<dyn Read + Send + 'a>> = match (&archive.history, &archive.kept) {
            (Some(_), Some(bytes)) => Some(Box::new(bytes.as_slice())),
            (Some(history), None) => Some(Box::new(archive.read(&history.path)?)),
            (None, _) => None,
        };
        let created = archive.history.as_ref().and_then(|history| history.created_at.as_deref());
        Ok(Self {
            archive,
            attachments,
            document: input.map(|input| Document::new(input, archive.limits.message_size)),
            session: archive.session_id().to_string(),
            last_time: created.and_then(milliseconds).unwrap_or_default(),
            open_calls: VecDeque::new(),
            given_ids: HashSet::new(),
            images_left: archive.limits.images_size,
            ready: VecDeque::new(),
            report: Report::default(),
        })
    }

    /// What became of the messages so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The prompt as an entry, which follows the messages; none when it is blank, or only says that there is no prompt. To be
    /// asked for at the end.
    pub fn prompt(&self) -> Option<Imported> {
        let text = self.archive.prompt();
        if text.trim().is_empty() || text.trim_end() == PROMPT_FILLER.trim_end() {
            return None;
        }
        let fields = self.archive.history.iter().flat_map(|history| &history.fields);
        let own = fields
            .filter(|(key, _)| key == "banyan")
            .find_map(|(_, text)| serde_json::from_str::<PromptNote>(text).ok());
        let own = own.map(|own| own.prompt).filter(|given| !self.is_given(&given.entry));
        let mut mark = Mark { prompt: true, entry: own.is_some(), ..Mark::default() };
        if own.is_none() {
            mark.make_up("timestamp");
        }
        let timestamp = own.as_ref().map_or(self.last_time, |given| given.timestamp);
        let entry_id = own.map_or_else(
            || identity::entry(&self.session, self.report.messages + 1, "prompt", 0),
            |given| EntryId::from(given.entry),
        );
        let message = AgentMessage::User(UserMessage { content: vec![ContentBlock::text(text)], timestamp });
        Some(Imported { entry_id, message, origin: mark.into_origin() })
    }

    fn is_given(&self, id: &str) -> bool {
        self.given_ids.contains(&short(id))
    }

    fn unplaced(&mut self, what: impl Into<String>) {
        self.report.unplaced_count += 1;
        if self.report.unplaced.len() < NOTES {
            self.report.unplaced.push(Unplaced { message: self.report.messages, what: what.into() });
        }
    }

    fn invented(&mut self, field: &'static str) {
        *self.report.invented.entry(field).or_default() += 1;
    }
}

fn short(id: &str) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&blake3::hash(id.as_bytes()).as_bytes()[..8]);
    u64::from_le_bytes(bytes)
}

impl<R: Read + Seek + Send> Iterator for Messages<'_, R> {
    type Item = Result<Imported, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.ready.pop_front() {
                self.report.entries += 1;
                return Some(Ok(entry));
            }
            // Taken out, so that what it gives can be worked on.
            let mut document = self.document.take()?;
            let taken = match document.next() {
                Ok(Some(Piece::Message(text))) => self.take(text),
                Ok(Some(Piece::Field(..))) => Ok(()),
                Ok(None) => return None,
                Err(error) => Err(error),
            };
            match taken {
                Ok(()) => self.document = Some(document),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl<R> std::fmt::Debug for Messages<'_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Messages").field("report", &self.report).finish_non_exhaustive()
    }
}
