//! A message that comes in beside the same message as it is.

use banyan_model::{AgentMessage, ContentBlock};

use super::item::public;

/// What is new in a message that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Nothing: it is there, perhaps with more after it.
    Same,
    /// It goes on where the known one ends.
    Longer,
    /// It says something else.
    Different,
}

/// Compares what people see of two messages: what they say, not when or by which model.
pub fn compare(known: &AgentMessage, new: &AgentMessage) -> Comparison {
    let (known, new) = (public(known.clone()), public(new.clone()));
    if known.role() != new.role() {
        return Comparison::Different;
    }
    // What an application's own message says is not only in its content, and never grows.
    if let (AgentMessage::Custom(known), AgentMessage::Custom(new)) = (&known, &new) {
        let same = known.custom_type == new.custom_type
            && known.display == new.display
            && known.details.as_ref().map(super::value_of) == new.details.as_ref().map(super::value_of);
        if !same {
            return Comparison::Different;
        }
    }
    let (known, new) = (known.content(), new.content());
    match (begins_with(new, known), begins_with(known, new)) {
        (_, true) => Comparison::Same,
        (true, false) => Comparison::Longer,
        (false, false) => Comparison::Different,
    }
}

/// Whether blocks are these and perhaps more. The last of them may be the beginning of a text.
fn begins_with(blocks: &[ContentBlock], these: &[ContentBlock]) -> bool {
    let Some((last, before)) = these.split_last() else { return true };
    let Some(other) = blocks.get(before.len()) else { return false };
    before.iter().zip(blocks).all(|(one, other)| is_same(one, other))
        && (is_same(last, other) || grew(last, other))
}

fn grew(text: &ContentBlock, longer: &ContentBlock) -> bool {
    match (text, longer) {
        (ContentBlock::Text(text), ContentBlock::Text(longer)) => longer.text.starts_with(&text.text),
        (ContentBlock::Thinking(text), ContentBlock::Thinking(longer)) => longer.text.starts_with(&text.text),
        _ => false,
    }
}

fn is_same(one: &ContentBlock, other: &ContentBlock) -> bool {
    match (one, other) {
        (ContentBlock::Image(one), ContentBlock::Image(other)) if one.attachment_id.is_some() => {
            one.attachment_id == other.attachment_id
        }
        (ContentBlock::FunctionCall(one), ContentBlock::FunctionCall(other)) => {
            one.id == other.id
                && one.function_id == other.function_id
                && crate::history::same_value(&super::value_of(&one.arguments), &super::value_of(&other.arguments))
        }
        (ContentBlock::Thinking(one), ContentBlock::Thinking(other)) => one.text == other.text,
        (ContentBlock::FunctionResult(one), ContentBlock::FunctionResult(other)) => {
            one.function_call_id == other.function_call_id
                && one.content.len() == other.content.len()
                && one.content.iter().zip(&other.content).all(|(one, other)| is_same(one, other))
        }
        _ => one == other,
    }
}
