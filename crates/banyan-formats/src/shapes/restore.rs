//! Messages of a front end become entries: the same that they were made of, or new ones whose ids follow from the message.

use banyan_model::{
    AgentMessage, AssistantMessage, ContentBlock, CustomMessage, EntryId, FunctionCallBlock,
    FunctionResultMessage, Json, Object, StopReason, ThinkingBlock, UserMessage,
};
use serde_json::{Value, json};

use super::item::{Body, DATA, Kept, PART, SYSTEM};
use super::meta::{Meta, Place, restored};
use super::piece::{Call, Outcome, Piece};
use super::turn::{Ending, Speaker};
use super::{NewEntry, json_of};

/// A message as a shape read it.
pub(crate) struct Said {
    pub(crate) format: &'static str,
    pub(crate) id: String,
    pub(crate) speaker: Speaker,
    pub(crate) time: i64,
    pub(crate) pieces: Vec<Piece>,
    /// The pieces that a model went on with after it had seen results.
    pub(crate) steps: Vec<usize>,
    /// What the message was made of, when it is one of ours.
    pub(crate) metas: Vec<Meta>,
    pub(crate) ending: Ending,
    /// Whatever else the message says.
    pub(crate) fields: Object,
}

/// The entries of a message, in the order in which each follows the one before.
pub(crate) fn entries_of(said: &Said) -> Result<Vec<NewEntry>, String> {
    let mut entries = Vec::new();
    let (mut told, mut answered) = (0, Vec::new());
    let pieces = named(said);
    for meta in &said.metas {
        told = told.max(meta.blocks.iter().map(|place| place.at() + 1).max().unwrap_or_default());
        let nested = meta.blocks.iter().filter_map(|place| match place {
            Place::Result { result, .. } => Some(*result),
            Place::At(_) | Place::Renamed { .. } => None,
        });
        answered.extend(meta.answers.into_iter().chain(nested));
        if meta.message.is_none() && meta.custom.is_none() {
            entries.push(NewEntry { id: meta.id.clone(), body: Body::Unreadable, origin: None });
            continue;
        }
        let body = restored(meta, &pieces, said.speaker).ok_or_else(|| {
            format!(
                "the parts of message `{}` are not those that its metadata tells of; send what was changed as a message of its own, under another id",
                said.id
            )
        })?;
        entries.push(NewEntry { id: meta.id.clone(), body, origin: None });
    }
    let mut rest = Rest { said, entries, block: Vec::new(), first: 0, results: Vec::new() };
    for (at, piece) in pieces[..told].iter().enumerate() {
        if let (Piece::Call(call), false) = (piece, answered.contains(&at)) {
            rest.results.extend(result_of(said, call));
        }
    }
    rest.flush(StopReason::FunctionCall);
    rest.take(told);
    let mut entries = rest.entries;
    if let Some(first) = entries.first_mut()
        && said.metas.is_empty()
        && !said.fields.is_empty()
    {
        let kept = Kept { format: said.format.to_owned(), fields: said.fields.clone() };
        first.origin = Some(kept.into_origin());
    }
    Ok(entries)
}

/// An id that is always the same for the same thing in the same message.
pub(crate) fn derived_id(message: &str, what: &str) -> EntryId {
    let mut hasher = blake3::Hasher::new_derive_key("banyan 2026 entries of a message of a shape");
    for text in [message, what] {
        hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }
    let hex = hasher.finalize().to_hex();
    EntryId::from(format!("e_{}", &hex[..32]))
}

/// The pieces, with the ids that models gave their calls.
fn named(said: &Said) -> Vec<Piece> {
    let mut pieces = said.pieces.clone();
    for place in said.metas.iter().flat_map(|meta| &meta.blocks) {
        if let (Place::Renamed { id, .. }, Some(Piece::Call(call))) = (place, pieces.get_mut(place.at())) {
            call.id.clone_from(id);
        }
    }
    pieces
}

pub(crate) fn block_of(piece: &Piece) -> Option<ContentBlock> {
    match piece {
        Piece::Text(text) => Some(ContentBlock::text(text.as_str())),
        Piece::Reasoning { text, signature } => {
            Some(ContentBlock::Thinking(ThinkingBlock { text: text.clone(), signature: signature.clone() }))
        }
        Piece::Call(call) => Some(call_block(call)),
        Piece::Media(media) => Some(media.block.clone()),
        Piece::Data { .. } | Piece::Part { .. } => None,
    }
}

pub(crate) fn call_block(call: &Call) -> ContentBlock {
    ContentBlock::FunctionCall(FunctionCallBlock {
        id: call.id.clone(),
        function_id: call.name.clone(),
        arguments: call.arguments.clone(),
    })
}

/// What is kept of a piece that no block holds.
pub(crate) fn apart(piece: &Piece, user_at: Option<usize>) -> Option<Value> {
    let mut details = match piece {
        Piece::Part { format, part } => json!({"format": format, "part": part}),
        Piece::Data { name, data } => json!({"format": DATA, "part": {"name": name, "data": data}}),
        _ => return None,
    };
    if let Some(at) = user_at {
        details["role"] = "user".into();
        details["at"] = at.into();
    }
    Some(details)
}

fn result_of(said: &Said, call: &Call) -> Option<NewEntry> {
    let Outcome { content, details, is_error } = call.outcome.clone()?;
    let message = AgentMessage::FunctionResult(FunctionResultMessage {
        function_call_id: call.id.clone(),
        function_id: call.name.clone(),
        content,
        details,
        is_error,
        timestamp: said.time,
    });
    let id = derived_id(&said.id, &format!("result {}", call.shown));
    Some(NewEntry { id, body: Body::Message(Box::new(message)), origin: None })
}

/// What is new in a message, as entries.
struct Rest<'a> {
    said: &'a Said,
    entries: Vec<NewEntry>,
    /// The blocks of an entry in the making, and the place of its first piece.
    block: Vec<ContentBlock>,
    first: usize,
    results: Vec<NewEntry>,
}

impl Rest<'_> {
    fn take(&mut self, from: usize) {
        let said = self.said;
        match said.speaker {
            Speaker::Assistant => {
                for (at, piece) in said.pieces.iter().enumerate().skip(from) {
                    if said.steps.contains(&at) {
                        self.flush(StopReason::FunctionCall);
                    }
                    self.assistant(at, piece);
                }
                let stop_reason = match said.ending {
                    Ending::Complete | Ending::Running => StopReason::End,
                    Ending::Waiting => StopReason::FunctionCall,
                    Ending::TooLong => StopReason::Length,
                    Ending::Cancelled => StopReason::Aborted,
                    Ending::Failed(_) => StopReason::Error,
                };
                let asks = self.block.iter().any(|block| matches!(block, ContentBlock::FunctionCall(_)));
                self.flush(match stop_reason {
                    StopReason::End if asks => StopReason::FunctionCall,
                    reason => reason,
                });
                if self.entries.is_empty() {
                    self.push_message(0, self.assistant_of(Vec::new(), stop_reason));
                }
            }
            Speaker::User => self.user(from),
            Speaker::System => {
                for (at, piece) in said.pieces.iter().enumerate().skip(from) {
                    let content = block_of(piece).into_iter().collect();
                    self.push_message(at, custom(SYSTEM, content, None, said.time));
                }
            }
        }
    }

    fn assistant(&mut self, at: usize, piece: &Piece) {
        match piece {
            Piece::Data { .. } | Piece::Part { .. } => {
                self.flush(StopReason::FunctionCall);
                self.apart(at, piece, None);
            }
            Piece::Call(call) => {
                self.add(at, piece);
                self.results.extend(result_of(self.said, call));
            }
            piece => {
                if !self.results.is_empty() {
                    self.flush(StopReason::FunctionCall);
                }
                self.add(at, piece);
            }
        }
    }

    /// What people say is one entry; the parts that no block holds follow it, and know their places.
    fn user(&mut self, from: usize) {
        let said = self.said;
        let new = || said.pieces.iter().enumerate().skip(from);
        let content: Vec<ContentBlock> = new().filter_map(|(_, piece)| block_of(piece)).collect();
        if !content.is_empty() || said.metas.is_empty() {
            let message = AgentMessage::User(UserMessage { content, timestamp: said.time });
            self.push_message(from, message);
        }
        for (at, piece) in new() {
            if block_of(piece).is_none() {
                self.apart(at, piece, Some(at));
            }
        }
    }

    /// A piece that no block holds.
    fn apart(&mut self, at: usize, piece: &Piece, user_at: Option<usize>) {
        let Some(details) = apart(piece, user_at) else { return };
        self.push_message(at, custom(PART, Vec::new(), Some(json_of(&details)), self.said.time));
    }

    fn add(&mut self, at: usize, piece: &Piece) {
        if self.block.is_empty() {
            self.first = at;
        }
        self.block.extend(block_of(piece));
    }

    /// Ends the entry in the making. It waits for functions if it called any, and is over otherwise.
    fn flush(&mut self, reason: StopReason) {
        let content = std::mem::take(&mut self.block);
        if !content.is_empty() {
            let asks = content.iter().any(|block| matches!(block, ContentBlock::FunctionCall(_)));
            let reason = match reason {
                StopReason::FunctionCall if !asks => StopReason::End,
                reason => reason,
            };
            let message = self.assistant_of(content, reason);
            self.push_message(self.first, message);
        }
        self.entries.append(&mut self.results);
    }

    fn assistant_of(&self, content: Vec<ContentBlock>, stop_reason: StopReason) -> AgentMessage {
        let error_message = match &self.said.ending {
            Ending::Failed(words) if stop_reason == StopReason::Error => words.clone(),
            _ => None,
        };
        AgentMessage::Assistant(AssistantMessage {
            content,
            model: String::new(),
            provider: String::new(),
            stop_reason,
            native_stop_reason: None,
            error_kind: None,
            error_message,
            usage: None,
            warnings: None,
            agent: None,
            timestamp: self.said.time,
        })
    }

    fn push_message(&mut self, at: usize, message: AgentMessage) {
        let said = self.said;
        let first = self.entries.is_empty() && said.metas.is_empty();
        let id = if first { EntryId::from(said.id.as_str()) } else { derived_id(&said.id, &format!("part {at}")) };
        self.entries.push(NewEntry { id, body: Body::Message(Box::new(message)), origin: None });
    }
}

fn custom(custom_type: &str, content: Vec<ContentBlock>, details: Option<Json>, timestamp: i64) -> AgentMessage {
    AgentMessage::Custom(CustomMessage {
        custom_type: custom_type.to_owned(),
        content,
        display: None,
        details,
        timestamp,
    })
}
