//! What an agent does between saying things: calls, results and wakes, which a tail shows as one block, shortened.

use banyan_model::{AgentMessage, ContentBlock, Error, FunctionCallBlock, Json, Object, Raw};
use serde_json::{Map, Value};

use crate::node_kind::NodeKind;
use crate::state::{NodeIx, SessionState};

/// What a tail asks for to tell an agent's steps from the conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    /// The entry's origin.
    pub origin: Option<Object>,
    /// The message; `None` for custom entries.
    pub message: Option<AgentMessage>,
}

/// Reads an entry.
pub(super) type Load<'a> = dyn FnMut(NodeIx) -> Result<Loaded, Error> + 'a;

/// What an entry is to a tail.
#[derive(Debug)]
pub(super) enum Part {
    /// Part of the conversation.
    Said,
    /// An assistant's message with calls.
    Call(Box<AgentMessage>),
    /// A function's result.
    Result,
    /// Something that woke the agent up.
    Wake,
}

const WAKE_PREFIXES: [&str; 9] = [
    "e_fire_",
    "e_notify_",
    "e_expire_",
    "e_stalespawn_",
    "e_claimfail_",
    "e_condfail_",
    "e_trigfired_",
    "e_trigexpired_",
    "e_trigstale_",
];

const TRIGGER_FIRED: &str = "trigger_fired";

/// Tells what an entry is, reading it only if that cannot be told otherwise.
pub(super) fn part_of(state: &SessionState, ix: NodeIx, load: &mut Load<'_>) -> Result<Part, Error> {
    let node = state.node(ix);
    let named_wake = || WAKE_PREFIXES.iter().any(|prefix| node.key().starts_with(prefix));
    Ok(match node.kind() {
        NodeKind::FunctionResult => Part::Result,
        NodeKind::Assistant => match load(ix)?.message {
            Some(message) if has_calls(&message) => Part::Call(Box::new(message)),
            _ => Part::Said,
        },
        NodeKind::CustomEntry if state.custom_type(ix) == Some(TRIGGER_FIRED) => Part::Wake,
        NodeKind::User | NodeKind::CustomMessage | NodeKind::CustomEntry if named_wake() => Part::Wake,
        NodeKind::User | NodeKind::CustomEntry if !node.has_origin() => Part::Said,
        NodeKind::User | NodeKind::CustomMessage | NodeKind::CustomEntry => {
            let loaded = load(ix)?;
            let fired = matches!(&loaded.message, Some(AgentMessage::Custom(custom)) if custom.custom_type == TRIGGER_FIRED);
            if fired || loaded.origin.as_ref().is_some_and(wakes) { Part::Wake } else { Part::Said }
        }
        NodeKind::Lost => Part::Said,
    })
}

fn has_calls(message: &AgentMessage) -> bool {
    message.content().iter().any(|block| matches!(block, ContentBlock::FunctionCall(_)))
}

fn wakes(origin: &Object) -> bool {
    ["notification", "trigger_fired"].iter().any(|key| origin.get(*key) == Some(&Value::Bool(true)))
}

/// The ids of the calls that a message makes.
pub(super) fn call_ids(message: &AgentMessage) -> Vec<&str> {
    let calls = message.content().iter().filter_map(|block| match block {
        ContentBlock::FunctionCall(call) => Some(call.id.as_str()),
        _ => None,
    });
    calls.collect()
}

/// An assistant's message without thinking, and with its calls' arguments left out.
pub(super) fn shortened_call(message: &AgentMessage) -> Result<Raw<AgentMessage>, Error> {
    let mut short = message.clone();
    let content = short.content_mut();
    content.retain(|block| !matches!(block, ContentBlock::Thinking(_)));
    for block in content {
        if let ContentBlock::FunctionCall(call) = block {
            call.arguments = short_arguments(call)?;
        }
    }
    Raw::of(&short)
}

/// A function's result without its content.
pub(super) fn shortened_result(message: AgentMessage) -> Result<Raw<AgentMessage>, Error> {
    let mut short = message;
    short.content_mut().clear();
    if let AgentMessage::FunctionResult(result) = &mut short {
        result.details = Json::null();
    }
    Raw::of(&short)
}

/// Nothing, except for the call that hands work to another agent, which says in short what it hands over.
fn short_arguments(call: &FunctionCallBlock) -> Result<Json, Error> {
    const LONGEST_FUNCTION: usize = 256;
    const LONGEST_DESCRIPTION: usize = 120;
    let mut kept = Map::new();
    if call.function_id == "agent_trigger"
        && let Ok(Value::Object(arguments)) = call.arguments.parse()
    {
        if let Some(Value::String(function)) = arguments.get("function")
            && function.chars().count() <= LONGEST_FUNCTION
        {
            kept.insert("function".to_owned(), Value::from(function.as_str()));
        }
        if let Some(Value::String(description)) = arguments.get("description") {
            let cut: String = description.chars().take(LONGEST_DESCRIPTION).collect();
            kept.insert("description".to_owned(), Value::from(cut));
        }
    }
    Json::of(&kept)
}
