//! OpenCode's second generation of messages: one row each, with everything in it.

use banyan_model::{AgentMessage, ContentBlock, Json, UserMessage};
use serde_json::{Value, json};

use super::read::{Reading, assistant, custom};
use super::{ID_2, content};
use crate::{COMPACTION, Problem};

/// Takes the next message. The first one begins a tree of its own, because this generation does not see what the other said.
pub(super) fn take(reading: &mut Reading<'_>, record: Value) -> Result<(), Problem> {
    if !reading.any[1] {
        reading.any[1] = true;
        if reading.any[0] {
            reading.teller.begin_again();
        }
    }
    reading.teller.progress(record.to_string().len());
    let text = |key: &str| record.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (native, at) = (text("id"), record.pointer("/time/created").and_then(Value::as_i64).unwrap_or_default());
    let said = |key: &str| vec![ContentBlock::text(text(key))];
    match record.get("type").and_then(Value::as_str).unwrap_or_default() {
        "user" => {
            let mut content = said("text");
            let files = record.get("files").and_then(Value::as_array).into_iter().flatten();
            content.extend(files.filter_map(|file| {
                let mut file = file.clone();
                file["type"] = json!("file");
                content::block(&file)
            }));
            let message = AgentMessage::User(UserMessage { content, timestamp: at });
            reading.tell(&native, ID_2, vec![record], &message)
        }
        "assistant" => answer(reading, &native, record, at),
        kind @ ("synthetic" | "system") => {
            let message = custom(&format!("opencode.{kind}"), said("text"), None, at);
            reading.tell(&native, ID_2, vec![record], &message)
        }
        "compaction" => {
            let summary = if text("summary").is_empty() { said("text") } else { said("summary") };
            let message = custom(COMPACTION, summary, Some(Json::of(&record)?), at);
            reading.tell(&native, ID_2, vec![record], &message)
        }
        kind => {
            let (id, _) = reading.entry(&native);
            reading.teller.custom(id, at, &format!("opencode.{kind}"), Json::of(&record)?)
        }
    }
}

fn answer(reading: &mut Reading<'_>, native: &str, mut record: Value, at: i64) -> Result<(), Problem> {
    let parts = record.get("content").and_then(Value::as_array).cloned().unwrap_or_default();
    let content = parts.iter().filter_map(content::block).collect();
    let message = AgentMessage::Assistant(assistant(&record, content, at));
    let mut results = Vec::new();
    let kept = record.get_mut("content").and_then(Value::as_array_mut);
    for part in kept.into_iter().flatten() {
        let Some(result) = content::result(part, at) else { continue };
        let input = part["state"].get("input").cloned().unwrap_or_default();
        let state = std::mem::replace(&mut part["state"], json!({ "input": input }));
        results.push((state, result));
    }
    reading.tell(native, ID_2, vec![record], &message)?;
    for (state, result) in results {
        let key = format!("{native} {}", result.function_call_id);
        reading.result(&key, ID_2, vec![state], result)?;
    }
    Ok(())
}
