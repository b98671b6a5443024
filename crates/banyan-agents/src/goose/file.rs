//! Goose's files: what it exports, and what its old versions kept.

use std::path::Path;

use banyan_model::Object;
use serde_json::Value;

use super::head::Session;
use super::read::{Reading, at};
use crate::{Between, Lines, Mark, Problem, Sink, Taken};

/// Reads an exported session, or one of the old files.
pub(super) fn read(path: &Path, mark: Option<&Mark>, sink: &mut dyn Sink) -> Result<Mark, Problem> {
    if path.extension().is_some_and(|end| end == "jsonl") {
        return old_file(path, mark, sink);
    }
    let bytes = std::fs::read(path).map_err(|error| Problem::io(path, error))?;
    let export: Value = serde_json::from_slice(&bytes).map_err(|error| Problem::form(path, error.to_string()))?;
    let Value::Object(mut record) = export else { return Err(Problem::form(path, "it is not a session")) };
    let messages = record.shift_remove("conversation").or_else(|| record.shift_remove("messages"));
    for derived in [
        "message_count",
        "last_message_at",
        "last_message_snippet",
        "usage",
        "accumulated_usage",
        "accumulated_cost",
    ] {
        record.shift_remove(derived);
    }
    record.retain(|_, value| !value.is_null());
    let mut reading = Reading::new(Session::new(record), path, None, mark, sink)?;
    if let Some(Value::Array(messages)) = messages {
        messages.into_iter().try_for_each(|message| reading.take(message))?;
    }
    reading.finish()
}

/// Reads a file of lines: what is known of the session, then its messages. Its name is the session's id.
fn old_file(path: &Path, mark: Option<&Mark>, sink: &mut dyn Sink) -> Result<Mark, Problem> {
    let mut records: Vec<Value> = Vec::new();
    Lines::open(path, Between::default())?.each(sink, |line, _| {
        match serde_json::from_str::<Value>(&line.text) {
            Ok(record) if line.glued && record.get("role").is_none() => Ok(Taken::is_a_part()),
            Ok(record) if record.is_object() => {
                records.push(record);
                Ok(Taken::Yes)
            }
            Ok(_) => Ok(Taken::NotARecord("it is no object".to_owned())),
            Err(error) => Ok(Taken::NotARecord(error.to_string())),
        }
    })?;
    let has_head = records.first().is_some_and(|first| first.get("role").is_none());
    let mut messages = records.into_iter();
    let mut record = match has_head.then(|| messages.next()).flatten() {
        Some(Value::Object(record)) => record,
        _ => Object::new(),
    };
    let messages: Vec<Value> = messages.collect();
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    record.insert("id".to_owned(), stem.into());
    let begun = messages.first().map_or(0, at);
    for key in ["created_at", "updated_at"] {
        record.entry(key).or_insert_with(|| crate::build::iso(begun).into());
    }
    let mut reading = Reading::new(Session::new(record), path, None, mark, sink)?;
    messages.into_iter().try_for_each(|message| reading.take(message))?;
    reading.finish()
}
