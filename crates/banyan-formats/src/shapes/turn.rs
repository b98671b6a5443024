//! Entries become messages of a chat front end: one for what a person said, one for everything that was done about it.

use std::collections::{HashMap, HashSet};

use banyan_model::{AgentMessage, ContentBlock, CustomMessage, EntryId, FunctionResultMessage, StopReason};
use serde_json::{Value, json};

use super::item::{Body, DATA, Item, Kept, SYSTEM, Scene, fields_beside};
use super::meta::{Meta, Place};
use super::piece::{Call, Media, Outcome, Piece};
use crate::history::Standing;

/// Who speaks in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    System,
    User,
    Assistant,
}

impl Speaker {
    pub(crate) fn of(item: &Item) -> Self {
        match item.message() {
            Some(AgentMessage::User(_)) => Self::User,
            Some(AgentMessage::Custom(message)) if message.custom_type == SYSTEM => Self::System,
            _ if item.part_of().is_some_and(|part| part.get("role") == Some(&json!("user"))) => Self::User,
            _ => Self::Assistant,
        }
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::System, Self::User, Self::Assistant].into_iter().find(|speaker| speaker.as_str() == name)
    }
}

/// One message of a front end, and the entries that it is made of.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) id: EntryId,
    /// The first entry of the turn that it follows.
    pub(crate) parent: Option<EntryId>,
    pub(crate) speaker: Speaker,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) metas: Vec<Meta>,
    /// The time of its first message.
    pub(crate) time: Option<i64>,
    pub(crate) kept: Option<Kept>,
    pub(crate) ending: Ending,
    last: EntryId,
    /// Which pieces stand where.
    order: Vec<usize>,
}

/// How a turn ended, if it did.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ending {
    Complete,
    Running,
    /// It waits for functions that nobody calls any more.
    Waiting,
    TooLong,
    Cancelled,
    Failed(Option<String>),
}

/// The turns of a tree or of a path, each after the one that it follows. A turn ends where branches begin, and at the active
/// leaf.
pub(crate) fn turns(items: &[Item], scene: &Scene) -> Vec<Turn> {
    let mut children: HashMap<&EntryId, usize> = HashMap::new();
    items.iter().filter_map(|item| item.parent.as_ref()).for_each(|id| *children.entry(id).or_default() += 1);
    let mut turns: Vec<Turn> = Vec::new();
    let mut turn_of: HashMap<&EntryId, usize> = HashMap::new();
    for item in items {
        let speaker = Speaker::of(item);
        let before = item.parent.as_ref().and_then(|parent| turn_of.get(parent).copied());
        let continued = before.filter(|at| {
            let turn = &turns[*at];
            let alone = item.parent.as_ref().is_some_and(|parent| {
                turn.last == *parent && children.get(parent) == Some(&1) && scene.leaf.as_ref() != Some(parent)
            });
            let same = match speaker {
                Speaker::System => false,
                Speaker::User => item.part_of().is_some(),
                Speaker::Assistant => true,
            };
            alone && same && turn.speaker == speaker
        });
        let at = continued.unwrap_or_else(|| {
            let parent = before.map(|at| turns[at].id.clone());
            turns.push(Turn::begin(item, speaker, parent));
            turns.len() - 1
        });
        turns[at].take(item, scene);
        turn_of.insert(&item.id, at);
    }
    for turn in &mut turns {
        turn.finish(scene);
    }
    turns
}

/// The entries of each message that turns make, in their order.
pub fn entries_by_message(items: &[Item], scene: &Scene) -> HashMap<EntryId, Vec<EntryId>> {
    let entries = |turn: Turn| (turn.id, turn.metas.into_iter().map(|meta| meta.id).collect());
    turns(items, scene).into_iter().map(entries).collect()
}

/// The turn that has an entry as its last.
pub(crate) fn turn_ending_in<'a>(turns: &'a [Turn], entry: Option<&EntryId>) -> Option<&'a Turn> {
    entry.and_then(|entry| turns.iter().find(|turn| turn.last == *entry))
}

impl Turn {
    fn begin(item: &Item, speaker: Speaker, parent: Option<EntryId>) -> Self {
        Self {
            id: item.id.clone(),
            parent,
            speaker,
            pieces: Vec::new(),
            metas: Vec::new(),
            time: None,
            kept: item.kept.clone(),
            ending: Ending::Complete,
            last: item.id.clone(),
            order: Vec::new(),
        }
    }

    /// Whether a model went on with this piece after others of the same turn.
    pub(crate) fn begins_step(&self, at: usize) -> bool {
        let by_model = |meta: &&Meta| {
            meta.message.as_ref().is_some_and(|message| message.get("role") == Some(&json!("assistant")))
        };
        let first = |meta: &Meta| match meta.blocks.first() {
            Some(Place::At(first) | Place::Renamed { at: first, .. }) => *first == at,
            Some(Place::Result { .. }) | None => false,
        };
        at > 0 && self.metas.iter().filter(by_model).any(first)
    }

    fn take(&mut self, item: &Item, scene: &Scene) {
        self.last = item.id.clone();
        let id = item.id.clone();
        let meta = match &item.body {
            Body::Message(message) => {
                self.time = self.time.or(Some(message.timestamp()));
                self.message(id, message, item, scene)
            }
            Body::Custom(custom) => {
                let data = super::value_of(&custom.data);
                let at = self.push(Piece::Data { name: custom.custom_type.clone(), data });
                let custom = Some(custom.custom_type.clone());
                Meta { id, blocks: vec![Place::At(at)], answers: None, message: None, custom }
            }
            Body::Unreadable => Meta { id, blocks: Vec::new(), answers: None, message: None, custom: None },
        };
        self.metas.push(meta);
    }

    fn message(&mut self, id: EntryId, message: &AgentMessage, item: &Item, scene: &Scene) -> Meta {
        let meta = |blocks: Vec<Place>, answers: Option<usize>, content: &[&str]| Meta {
            id: id.clone(),
            blocks,
            answers,
            message: Some(fields_beside(message, content)),
            custom: None,
        };
        match message {
            AgentMessage::User(message) => meta(self.blocks(&message.content, scene), None, &["content"]),
            AgentMessage::Assistant(message) => {
                self.ending = match message.stop_reason {
                    StopReason::End => Ending::Complete,
                    StopReason::Length => Ending::TooLong,
                    StopReason::FunctionCall => Ending::Waiting,
                    StopReason::Aborted => Ending::Cancelled,
                    StopReason::Error => Ending::Failed(message.error_message.clone()),
                };
                meta(self.blocks(&message.content, scene), None, &["content"])
            }
            AgentMessage::FunctionResult(message) => match self.unanswered(&message.function_call_id) {
                Some(at) => {
                    self.answer(at, Outcome::from(message));
                    meta(Vec::new(), Some(at), &["content", "details", "is_error"])
                }
                None => {
                    let data = said(item, &["content", "details", "is_error"]);
                    let at = self.push(Piece::Data { name: "function_result".to_owned(), data });
                    meta(vec![Place::At(at)], None, &["content", "details", "is_error"])
                }
            },
            AgentMessage::Custom(message) => {
                let (piece, place) = custom(message, item);
                let at = self.push(piece);
                if let Some(place) = place {
                    self.move_to(at, place);
                }
                meta(vec![Place::At(at)], None, &["content", "display", "details"])
            }
        }
    }

    fn blocks(&mut self, blocks: &[ContentBlock], scene: &Scene) -> Vec<Place> {
        let mut places = Vec::with_capacity(blocks.len());
        for block in blocks {
            let place = match block {
                ContentBlock::Text(block) => Place::At(self.push(Piece::Text(block.text.clone()))),
                ContentBlock::Thinking(block) => {
                    let (text, signature) = (block.text.clone(), block.signature.clone());
                    Place::At(self.push(Piece::Reasoning { text, signature }))
                }
                ContentBlock::FunctionCall(call) => {
                    let shown = self.free_name(&call.id);
                    let renamed = shown != call.id;
                    let at = self.push(Piece::Call(Call {
                        shown,
                        id: call.id.clone(),
                        name: call.function_id.clone(),
                        arguments: call.arguments.clone(),
                        outcome: None,
                    }));
                    if renamed { Place::Renamed { at, id: call.id.clone() } } else { Place::At(at) }
                }
                ContentBlock::FunctionResult(block) => match self.unanswered(&block.function_call_id) {
                    Some(result) => {
                        let is_error = block.is_error.unwrap_or_default();
                        let (content, details) = (block.content.clone(), banyan_model::Json::null());
                        self.answer(result, Outcome { content, details, is_error });
                        Place::Result { result, is_error: block.is_error }
                    }
                    None => {
                        let data = serde_json::to_value(ContentBlock::FunctionResult(block.clone()));
                        let data = data.unwrap_or_default();
                        Place::At(self.push(Piece::Data { name: "function_result".to_owned(), data }))
                    }
                },
                block @ (ContentBlock::Image(_) | ContentBlock::File(_)) => {
                    match Media::of(block, &scene.attachments) {
                        Some(media) => Place::At(self.push(Piece::Media(media))),
                        None => continue,
                    }
                }
            };
            places.push(place);
        }
        places
    }

    fn push(&mut self, piece: Piece) -> usize {
        self.pieces.push(piece);
        self.order.push(self.pieces.len() - 1);
        self.pieces.len() - 1
    }

    fn move_to(&mut self, piece: usize, place: usize) {
        self.order.retain(|at| *at != piece);
        self.order.insert(place.min(self.order.len()), piece);
    }

    fn unanswered(&self, call_id: &str) -> Option<usize> {
        self.pieces
            .iter()
            .position(|piece| matches!(piece, Piece::Call(call) if call.id == call_id && call.outcome.is_none()))
    }

    fn answer(&mut self, at: usize, outcome: Outcome) {
        if let Piece::Call(call) = &mut self.pieces[at] {
            call.outcome = Some(outcome);
        }
    }

    fn free_name(&self, id: &str) -> String {
        let taken: HashSet<&str> = self
            .pieces
            .iter()
            .filter_map(|piece| match piece {
                Piece::Call(call) => Some(call.shown.as_str()),
                _ => None,
            })
            .collect();
        let names = std::iter::once(id.to_owned()).chain((2..).map(|n: usize| format!("{id}#{n}")));
        names.into_iter().find(|name| !taken.contains(name.as_str())).unwrap_or_default()
    }

    /// Puts the pieces in their places, and says how the turn ended.
    fn finish(&mut self, scene: &Scene) {
        let mut place_of = vec![0; self.order.len()];
        self.order.iter().enumerate().for_each(|(place, at)| place_of[*at] = place);
        let pieces: Vec<Piece> = self.order.iter().map(|at| self.pieces[*at].clone()).collect();
        self.pieces = pieces;
        for meta in &mut self.metas {
            meta.answers = meta.answers.map(|at| place_of[at]);
            for place in &mut meta.blocks {
                match place {
                    Place::At(at) | Place::Renamed { at, .. } | Place::Result { result: at, .. } => {
                        *at = place_of[*at];
                    }
                }
            }
        }
        if self.speaker == Speaker::Assistant && scene.leaf.as_ref() == Some(&self.last) {
            self.ending = match (scene.standing, self.ending.clone()) {
                (Standing::Running, _) => Ending::Running,
                (Standing::Failed, Ending::Failed(words)) => Ending::Failed(words),
                (Standing::Failed, _) => Ending::Failed(None),
                (Standing::Abandoned, _) => Ending::Cancelled,
                (Standing::Over, ending) => ending,
            };
        }
    }
}

impl From<&FunctionResultMessage> for Outcome {
    fn from(message: &FunctionResultMessage) -> Self {
        Self { content: message.content.clone(), details: message.details.clone(), is_error: message.is_error }
    }
}

/// A message of an application's own, and where in its turn it stands when that is not at the end.
fn custom(message: &CustomMessage, item: &Item) -> (Piece, Option<usize>) {
    if let Some(part) = item.part_of()
        && let (Some(format), Some(own)) = (part.get("format").and_then(Value::as_str), part.get("part"))
    {
        let place = part.get("at").and_then(Value::as_u64).and_then(|at| usize::try_from(at).ok());
        let piece = match (format, own.get("name").and_then(Value::as_str)) {
            (DATA, Some(name)) => Piece::Data { name: name.to_owned(), data: own["data"].clone() },
            _ => Piece::Part { format: format.to_owned(), part: own.clone() },
        };
        return (piece, place);
    }
    if let CustomMessage { display: None, details: None, content, .. } = message
        && let (SYSTEM, [ContentBlock::Text(block)]) = (message.custom_type.as_str(), content.as_slice())
    {
        return (Piece::Text(block.text.clone()), None);
    }
    let data = said(item, &["content", "display", "details"]);
    (Piece::Data { name: message.custom_type.clone(), data }, None)
}

/// Some fields of a message.
fn said(item: &Item, keys: &[&str]) -> Value {
    let message = serde_json::to_value(item.message()).unwrap_or_default();
    let pairs = keys.iter().filter_map(|key| Some(((*key).to_owned(), message.get(*key)?.clone())));
    Value::Object(pairs.collect())
}
