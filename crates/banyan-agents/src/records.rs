//! What an entry's origin keeps of the agent's own records, so that they can be written again as they were.

use std::collections::HashMap;

use banyan_model::{AgentMessage, Json, Object, Origin};
use serde_json::{Value, json};

/// Shorter texts are kept where they are.
const SHORT: usize = 24;
/// Stands in a record for a text that the message has.
const TEXT: &str = "$text";

/// The origin of a message: the agent's records, with the message's own texts taken out.
pub(crate) fn keep(agent: &str, records: Vec<Value>, message: &AgentMessage) -> Object {
    let texts = texts(message);
    let by_text: HashMap<&str, usize> =
        texts.iter().enumerate().rev().map(|(place, text)| (text.as_str(), place)).collect();
    let mut records = Value::Array(records);
    if !has_stand_in(&records) {
        take_out(&mut records, &by_text);
    }
    let mut origin = Object::new();
    origin.insert(agent.to_owned(), json!({ "records": records, "of": digest(message) }));
    origin
}

/// The agent's records of a message, if they are known and the message is still what they say.
pub(crate) fn kept(agent: &str, origin: Option<&Origin>, message: &AgentMessage) -> Option<Vec<Value>> {
    let kept = origin?.get(agent)?;
    if kept.get("of")?.as_str()? != digest(message) {
        return None;
    }
    let mut records = kept.get("records")?.clone();
    put_back(&mut records, &texts(message));
    match records {
        Value::Array(records) => Some(records),
        _ => None,
    }
}

fn digest(message: &AgentMessage) -> String {
    let text = Json::of(message).unwrap_or_default();
    blake3::hash(text.get().as_bytes()).to_hex()[..16].to_owned()
}

/// The message's longer texts, in order.
fn texts(message: &AgentMessage) -> Vec<String> {
    let mut all = Vec::new();
    gather(&serde_json::to_value(message).unwrap_or_default(), &mut all);
    all
}

fn gather(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) if text.len() >= SHORT => into.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| gather(item, into)),
        Value::Object(fields) => fields.values().for_each(|field| gather(field, into)),
        _ => {}
    }
}

fn has_stand_in(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_stand_in),
        Value::Object(fields) => fields.contains_key(TEXT) || fields.values().any(has_stand_in),
        _ => false,
    }
}

fn take_out(value: &mut Value, texts: &HashMap<&str, usize>) {
    match value {
        Value::String(text) => {
            if let Some(place) = texts.get(text.as_str()) {
                *value = json!({ TEXT: place });
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| take_out(item, texts)),
        Value::Object(fields) => fields.values_mut().for_each(|field| take_out(field, texts)),
        _ => {}
    }
}

fn put_back(value: &mut Value, texts: &[String]) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| put_back(item, texts)),
        Value::Object(fields) => {
            let place = fields.get(TEXT).and_then(Value::as_u64).and_then(|place| usize::try_from(place).ok());
            match place.and_then(|place| texts.get(place)) {
                Some(text) if fields.len() == 1 => *value = Value::String(text.clone()),
                _ => fields.values_mut().for_each(|field| put_back(field, texts)),
            }
        }
        _ => {}
    }
}
