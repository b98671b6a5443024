//! A session's active path as a conversation that any agent can hold: said, called, answered, in that order and nothing open.

use std::collections::{HashMap, VecDeque};

use banyan_model::{
    AgentMessage, AssistantMessage, ContentBlock, CustomMessage, EntryId, FunctionCallBlock, SessionEntry,
};

use crate::{AGENTS, Outgoing};

/// The custom type of messages that stand for everything before them, whichever agent made them.
pub const COMPACTION: &str = "compaction";
/// What an interrupted call is answered with.
const INTERRUPTED: &str = "[The call was interrupted before it had a result.]";

/// A conversation in which every call is answered right after it was made.
#[derive(Clone, Debug, Default)]
pub struct Story {
    /// What happened, in order.
    pub steps: Vec<Step>,
    /// What was left out or changed, in words.
    pub lost: Vec<String>,
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub enum Step {
    /// A person said something: text and pictures.
    User {
        /// The entry that it comes from.
        entry: EntryId,
        /// What was said.
        content: Vec<ContentBlock>,
        /// When, in milliseconds since 1970.
        at: i64,
    },
    /// A model said something, and perhaps made calls.
    Assistant {
        /// The entry that it comes from.
        entry: EntryId,
        /// What was said: the message with its texts, pictures, thinking and calls.
        message: Box<AssistantMessage>,
        /// Its calls, each with what came of it.
        calls: Vec<Call>,
        /// When, in milliseconds since 1970.
        at: i64,
    },
}

/// A call and what came of it.
#[derive(Clone, Debug)]
pub struct Call {
    /// The call.
    pub call: FunctionCallBlock,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a call.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The entry that it comes from; none if the call was never answered and this was made up.
    pub entry: Option<EntryId>,
    /// What the model gets to see: text and pictures.
    pub content: Vec<ContentBlock>,
    /// Whether it failed.
    pub is_error: bool,
    /// When, in milliseconds since 1970.
    pub at: i64,
}

impl Story {
    /// The conversation on a session's active path.
    pub fn of(session: &Outgoing) -> Self {
        let said: Vec<Said> = session.path().into_iter().filter_map(Said::of).collect();
        let mut outcomes = outcomes(&said);
        let mut story = Self::default();
        let mut left_out: HashMap<String, u64> = HashMap::new();
        for (place, Said { entry, message }) in said.iter().enumerate() {
            match message {
                AgentMessage::User(message) => story.user(entry, &message.content, message.timestamp),
                AgentMessage::Assistant(message) => story.assistant(entry, message, place, &mut outcomes),
                AgentMessage::FunctionResult(_) => {}
                AgentMessage::Custom(message) if is_context(message) => {
                    *left_out.entry(message.custom_type.clone()).or_default() += 1;
                }
                // A summary stays where it is: what it sums up is still there, and it may say more than that.
                AgentMessage::Custom(message) => story.user(entry, &message.content, message.timestamp),
            }
        }
        story.strays(outcomes);
        let mut left_out: Vec<String> =
            left_out.into_iter().map(|(kind, count)| format!("{count} x {kind}")).collect();
        left_out.sort();
        story
            .lost
            .extend((!left_out.is_empty()).then(|| format!("context of the agent: {}", left_out.join(", "))));
        story
    }

    fn user(&mut self, entry: &EntryId, content: &[ContentBlock], at: i64) {
        let content = plain(content, &mut self.lost);
        if !content.is_empty() {
            self.steps.push(Step::User { entry: entry.clone(), content, at });
        }
    }

    fn assistant(&mut self, entry: &EntryId, message: &AssistantMessage, place: usize, outcomes: &mut Outcomes) {
        let at = message.timestamp;
        let mut message = message.clone();
        message.content.retain(|block| !matches!(block, ContentBlock::FunctionResult(_)));
        if message.content.is_empty() {
            self.lost
                .extend(message.error_message.as_ref().map(|error| format!("an answer that failed: {error}")));
            return;
        }
        let mut calls = Vec::new();
        for block in &message.content {
            let ContentBlock::FunctionCall(call) = block else { continue };
            let outcome = outcomes.of(&call.id, place).unwrap_or_else(|| {
                self.lost.push(format!("call {} had no result and was settled as interrupted", call.id));
                Outcome { entry: None, content: vec![ContentBlock::text(INTERRUPTED)], is_error: true, at }
            });
            calls.push(Call { call: call.clone(), outcome });
        }
        self.steps.push(Step::Assistant { entry: entry.clone(), message: Box::new(message), calls, at });
    }

    /// Results of calls that nobody made have no place in any agent.
    fn strays(&mut self, outcomes: Outcomes) {
        self.lost
            .extend(outcomes.left().into_iter().map(|id| format!("a result of call {id}, which is not there")));
    }
}

/// A message of the path.
struct Said {
    entry: EntryId,
    message: AgentMessage,
}

impl Said {
    fn of(entry: &SessionEntry) -> Option<Self> {
        let SessionEntry::Message(entry) = entry else { return None };
        Some(Self { entry: entry.id.clone(), message: entry.message.parse().ok()? })
    }
}

/// Whether a message was put there by an agent and not by anybody who took part.
fn is_context(message: &CustomMessage) -> bool {
    let kind = message.custom_type.split_once('.').map(|(agent, _)| agent);
    kind.is_some_and(|kind| AGENTS.iter().any(|agent| agent.id() == kind))
}

/// Results by the call that they answer, in order, with their place on the path.
struct Outcomes(HashMap<String, VecDeque<(usize, Outcome)>>);

impl Outcomes {
    /// The first result of a call that stands after it. Calls of one id come one after another.
    fn of(&mut self, call: &str, place: usize) -> Option<Outcome> {
        let waiting = self.0.get_mut(call)?;
        while waiting.front().is_some_and(|(at, _)| *at < place) {
            waiting.pop_front();
        }
        waiting.pop_front().map(|(_, outcome)| outcome)
    }

    fn add(&mut self, call: &str, place: usize, outcome: Outcome) {
        self.0.entry(call.to_owned()).or_default().push_back((place, outcome));
    }

    /// The calls that have results which nobody asked for.
    fn left(self) -> Vec<String> {
        let mut left: Vec<String> =
            self.0.into_iter().filter(|(_, waiting)| !waiting.is_empty()).map(|(id, _)| id).collect();
        left.sort();
        left
    }
}

fn outcomes(said: &[Said]) -> Outcomes {
    let mut all = Outcomes(HashMap::new());
    for (place, Said { entry, message }) in said.iter().enumerate() {
        let outcome = |content: &[ContentBlock], is_error| Outcome {
            entry: Some(entry.clone()),
            content: plain(content, &mut Vec::new()),
            is_error,
            at: message.timestamp(),
        };
        if let AgentMessage::FunctionResult(result) = message {
            all.add(&result.function_call_id, place, outcome(&result.content, result.is_error));
        }
        for block in message.content() {
            if let ContentBlock::FunctionResult(result) = block {
                let is_error = result.is_error.unwrap_or_default();
                all.add(&result.function_call_id, place, outcome(&result.content, is_error));
            }
        }
    }
    all
}

/// Text and pictures; a file is named in words.
fn plain(content: &[ContentBlock], lost: &mut Vec<String>) -> Vec<ContentBlock> {
    let mut plain = Vec::new();
    for block in content {
        match block {
            ContentBlock::Text(_) | ContentBlock::Image(_) => plain.push(block.clone()),
            ContentBlock::File(file) => {
                lost.push(format!("the content of file {}", file.name));
                plain
                    .push(ContentBlock::text(format!("[file {}, {}, {} bytes]", file.name, file.mime, file.size)));
            }
            ContentBlock::Thinking(_) | ContentBlock::FunctionCall(_) | ContentBlock::FunctionResult(_) => {}
        }
    }
    plain
}
