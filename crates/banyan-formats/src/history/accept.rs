//! Messages as others write them, made into the form that goes out.

use banyan_model::Json;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};

use super::dialect::{Incoming, incoming, is_same_activity, old_activity};
use super::display;
use super::fields::Fields;
use super::message::{HistoryMessage, Speaker, Status, joined_text};
use super::part::Part;
use super::time::with_t;

/// Keys that belong to the store that a message was written by. They are kept, and only operators see them.
const KEYS_OF_OTHER_STORES: [&str; 13] = [
    "message_id",
    "session_id",
    "user_id",
    "agent_id",
    "agent_type",
    "sequence_number",
    "parent_message_id",
    "related_message_ids",
    "token_count",
    "is_partial",
    "interruption_type",
    "interruption_reason",
    "interruption_timestamp",
];

impl<'de> Deserialize<'de> for HistoryMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        accept(Fields::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// Reads a message in any dialect. Unknown keys and parts are kept; what must be there and is not is an error in words.
fn accept(mut fields: Fields) -> Result<HistoryMessage, String> {
    let role: Speaker = required(&mut fields, "role", "`user` or `assistant`")?;
    let interaction_id: String = required(&mut fields, "interaction_id", "a string")?;
    if interaction_id.is_empty() {
        return Err("`interaction_id` of a history message must not be empty".to_owned());
    }
    let stored_at: Option<String> = optional(&mut fields, "created_at", "a string")?;
    let timestamp: Option<String> = optional(&mut fields, "timestamp", "a string")?;
    let timestamp = timestamp.or(stored_at).map(with_t).ok_or("a history message needs a `timestamp`")?;
    let status = optional(&mut fields, "status", "complete, streaming, cancelled, error or interrupted")?;
    let parts: Vec<Json> = optional(&mut fields, "parts", "an array")?.unwrap_or_default();
    let old: Vec<Json> = optional(&mut fields, "activity_parts", "an array")?.unwrap_or_default();
    let mut message = HistoryMessage {
        role,
        interaction_id,
        parts: parts_of(&parts, &old, &timestamp),
        timestamp,
        text_content: optional(&mut fields, "text_content", "a string")?,
        response_text_main: optional(&mut fields, "response_text_main", "a string")?,
        processing_time_ms: optional(&mut fields, "processing_time_ms", "a number")?,
        processed_at: optional(&mut fields, "processed_at", "a string")?.map(with_t),
        model_used: optional(&mut fields, "model_used", "a string")?,
        selection_mode: optional(&mut fields, "selection_mode", "a string")?,
        is_welcome_message: optional(&mut fields, "is_welcome_message", "true or false")?.unwrap_or_default(),
        message_type: optional(&mut fields, "message_type", "a string")?,
        status: status.or_else(|| interruption(&fields)),
        more: Fields::default(),
        kept: Fields::default(),
    };
    for key in KEYS_OF_OTHER_STORES {
        if let Some(value) = fields.take(key) {
            message.kept.set(key, value);
        }
    }
    message.more = fields;
    match role {
        Speaker::User => settle_question(&mut message),
        Speaker::Assistant => settle_answer(&mut message),
    }
    display::fill_in(&mut message.parts);
    Ok(message)
}

/// The parts in order. An activity that only `activity_parts` tells of comes first, because nothing says where it belongs;
/// one that both tell of is there once, with the technical details of either.
fn parts_of(given: &[Json], old: &[Json], timestamp: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut echoes = Vec::new();
    for json in given {
        match incoming(json) {
            Incoming::Parts(more) => parts.extend(more),
            Incoming::Echo(more) => {
                echoes.extend((0..more.len()).map(|at| parts.len() + at));
                parts.extend(more);
            }
        }
    }
    for &echo in echoes.iter().rev() {
        let told = |(at, part): (usize, &Part)| !echoes.contains(&at) && is_same_activity(part, &parts[echo]);
        if parts.iter().enumerate().any(told) {
            parts.remove(echo);
        }
    }
    let mut told_before = vec![false; parts.len()];
    let mut first = Vec::new();
    for part in old.iter().flat_map(|json| old_activity(json, timestamp)) {
        let twin = (0..parts.len()).find(|&at| !told_before[at] && is_same_activity(&parts[at], &part));
        match (twin, part) {
            (Some(at), Part::Activity(old)) => {
                told_before[at] = true;
                if let Part::Activity(known) = &mut parts[at] {
                    known.technical_details = known.technical_details.take().or(old.technical_details);
                }
            }
            // Several notes may be parts of one text.
            (Some(at), part) => told_before[at] = !matches!(part, Part::Text(_)),
            (None, part) => first.push(part),
        }
    }
    first.into_iter().chain(parts).filter(|part| !part.is_empty_text()).collect()
}

/// A question that is only text has no parts. One that has other parts has its text among them, because front ends that
/// find parts show nothing else.
fn settle_question(message: &mut HistoryMessage) {
    let joined = message.joined_text();
    let only_text = message.parts.iter().all(|part| matches!(part, Part::Text(text) if text.more.is_empty()));
    let says_the_same = match (&message.text_content, &joined) {
        (Some(text), Some(joined)) => without_blanks(text) == without_blanks(joined),
        _ => true,
    };
    if only_text && says_the_same {
        message.text_content = message.text_content.take().or(joined);
        message.parts.clear();
        return;
    }
    if let Some(text) = message.text_content.as_ref().filter(|text| !text.is_empty()) {
        let is_there = |part: &Part| matches!(part, Part::Text(known) if known.text == *text);
        let same = joined.is_some_and(|joined| without_blanks(&joined) == without_blanks(text));
        if !same && !message.parts.iter().any(is_there) {
            message.parts.insert(0, Part::text(text.clone()));
        }
    }
    if message.text_content.is_none() {
        message.text_content = joined_text(&message.parts);
    }
}

/// An answer without parts has its text as its one part.
fn settle_answer(message: &mut HistoryMessage) {
    if message.parts.is_empty() {
        let text = message.response_text_main.as_ref().or(message.text_content.as_ref());
        message.parts.extend(text.filter(|text| !text.is_empty()).cloned().map(Part::text));
    }
}

/// How a message ended whose writer marks answers that were cut off.
fn interruption(fields: &Fields) -> Option<Status> {
    let cut_off: bool = fields.get("is_partial")?.parse().ok()?;
    let cancelled = fields.text("interruption_type").is_some_and(|word| word.starts_with("cancelled"))
        && fields.text("interruption_reason").as_deref() != Some("client_disconnect");
    match (cut_off, cancelled) {
        (false, _) => None,
        (true, true) => Some(Status::Cancelled),
        (true, false) => Some(Status::Interrupted),
    }
}

fn without_blanks(text: &str) -> String {
    text.split_whitespace().collect()
}

fn required<T: DeserializeOwned>(fields: &mut Fields, key: &str, kind: &str) -> Result<T, String> {
    optional(fields, key, kind)?.ok_or_else(|| format!("a history message needs `{key}`: {kind}"))
}

fn optional<T: DeserializeOwned>(fields: &mut Fields, key: &str, kind: &str) -> Result<Option<T>, String> {
    match fields.take(key) {
        None => Ok(None),
        Some(value) => value.parse().map_err(|_| format!("`{key}` of a history message must be {kind}")),
    }
}
