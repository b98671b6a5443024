//! A message that comes in beside the same message as it is.

use banyan_model::EntryId;
use serde_json::Value;

use super::assemble::Projected;
use super::fields::{json_of, same_value, value_of};
use super::message::{HistoryMessage, Speaker, Status};
use super::part::Part;
use super::read::{NewEntry, entries_of_rest};

/// What is new in a message that is there already.
#[derive(Clone, Debug, PartialEq)]
pub enum Comparison {
    /// Nothing: it is there, perhaps with more after it.
    Same,
    /// It goes on where the known one ends.
    Longer(Rest),
    /// It says something else.
    Different,
}

/// What has to be added to a message so that it is whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Rest {
    /// Text for the end of the last part that was there.
    pub growth: Option<Growth>,
    /// Entries to append.
    pub entries: Vec<NewEntry>,
}

/// Text for the end of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Growth {
    /// The entry.
    pub entry_id: EntryId,
    /// The block.
    pub block: usize,
    /// The text to add.
    pub text: String,
}

/// Compares what people see of a message: technical details do not count, because whoever sends a message back never saw them.
pub fn compare(existing: &Projected, posted: &HistoryMessage) -> Comparison {
    let (known, new) = (existing.message.clone().public(), posted.clone().public());
    if known.role != new.role || known.interaction_id != new.interaction_id {
        return Comparison::Different;
    }
    if known.role == Speaker::User && known.text_content != new.text_content {
        return Comparison::Different;
    }
    let same = known.parts.iter().zip(&new.parts).take_while(|(one, other)| is_same(one, other)).count();
    if same == new.parts.len() && same < known.parts.len() && known.role == Speaker::Assistant {
        return Comparison::Same;
    }
    if same == known.parts.len() && same == new.parts.len() {
        return compare_fields(existing, &known, &new, posted);
    }
    if known.role == Speaker::User {
        return Comparison::Different;
    }
    let (growth, said) = match &known.parts[same..] {
        [] => (None, same),
        [last] => match new.parts.get(same).and_then(|longer| added(last, longer)) {
            Some(text) => (growth_of(existing, same, text), same + 1),
            None => return shorter_or_different(last, &new.parts[same..]),
        },
        [first, ..] => return shorter_or_different(first, &new.parts[same..]),
    };
    if said > same && growth.is_none() {
        return Comparison::Different;
    }
    let rest = &posted.parts[said..];
    let entries = if rest.is_empty() && !(existing.posted && has_other_fields(&known, &new)) {
        Vec::new()
    } else {
        entries_of_rest(posted, rest, existing.entries.len())
    };
    Comparison::Longer(Rest { growth, entries })
}

/// The last part of a message that was sent while it grew may be the beginning of what is there now.
fn shorter_or_different(known: &Part, new: &[Part]) -> Comparison {
    match new {
        [last] if added(last, known).is_some() => Comparison::Same,
        _ => Comparison::Different,
    }
}

fn growth_of(existing: &Projected, part: usize, text: String) -> Option<Growth> {
    let place = existing.places.get(part)?;
    Some(Growth { entry_id: existing.entries.get(place.entry)?.clone(), block: place.block?, text })
}

/// What one part has after all of the other.
fn added(part: &Part, longer: &Part) -> Option<String> {
    let (mut part, mut longer) = (part.clone(), longer.clone());
    let (text, longer_text) = (part.growing_text_mut()?, longer.growing_text_mut()?);
    let added = longer_text.strip_prefix(text.as_str())?.to_owned();
    longer_text.clone_from(text);
    if is_same(&part, &longer) { Some(added) } else { None }
}

fn is_same(one: &Part, other: &Part) -> bool {
    one == other || same_value(&value_of(&json_of(one)), &value_of(&json_of(other)))
}

/// Messages with the same parts: fields that were not known are added, and fields that were cannot change.
///
/// The fields of Banyan's own messages follow from their entries, so nobody has anything to say about them.
fn compare_fields(
    existing: &Projected,
    known: &HistoryMessage,
    new: &HistoryMessage,
    posted: &HistoryMessage,
) -> Comparison {
    if !existing.posted {
        return Comparison::Same;
    }
    let known_fields = value_of(&json_of(known));
    let is_known = |key: &str| known_fields.get(key).is_some_and(|value| !value.is_null());
    if differing_fields(known, new).iter().any(|key| is_known(key)) {
        return Comparison::Different;
    }
    if has_other_fields(known, new) {
        let entries = entries_of_rest(posted, &[], existing.entries.len());
        return Comparison::Longer(Rest { growth: None, entries });
    }
    Comparison::Same
}

/// Whether a message says something about itself that is not known.
fn has_other_fields(known: &HistoryMessage, new: &HistoryMessage) -> bool {
    let ended = new.status.is_some_and(|status| status != Status::Streaming);
    (new.is_welcome_message && !known.is_welcome_message)
        || (ended && new.status != known.status)
        || !differing_fields(known, new).is_empty()
}

/// The fields of which a message says something else. A null says nothing.
fn differing_fields(known: &HistoryMessage, new: &HistoryMessage) -> Vec<String> {
    let (known, new) = (value_of(&json_of(known)), value_of(&json_of(new)));
    let told = |key: &str| ["parts", "activity_parts", "is_welcome_message", "status"].contains(&key);
    let differs = |(key, value): &(&String, &Value)| {
        !told(key) && !value.is_null() && !known.get(*key).is_some_and(|known| same_value(known, value))
    };
    new.as_object().into_iter().flatten().filter(differs).map(|(key, _)| key.clone()).collect()
}
