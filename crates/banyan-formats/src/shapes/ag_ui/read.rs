//! AG-UI's messages become entries, one for each, or one for all that were told of the same entry.

use banyan_model::{ContentBlock, CustomPayload, EntryId, Object};
use serde_json::{Value, json};

use super::{NAME, apply};
use crate::shapes::item::{Body, DATA, Kept, PART, SYSTEM};
use crate::shapes::piece::Media;
use crate::shapes::{Follows, NewEntry, Posted, PostedMessage, json_of, parse};

/// Reads messages: a list of them, whatever has one as `messages`, or a list of events.
pub(super) fn read(form: &Value, now: i64) -> Result<Posted, String> {
    let list = form.as_array().or_else(|| form.get("messages")?.as_array());
    let list = list.ok_or("the body is neither a list of messages or events nor an object with `messages`")?;
    let are_events =
        !list.is_empty() && list.iter().all(|item| item["role"].is_null() || item["type"].is_string());
    let applied;
    let messages = if are_events {
        applied = apply::messages_of(list);
        &applied
    } else {
        list
    };
    let mut found: Vec<Found> = Vec::new();
    for message in messages {
        take(message, &mut found, now)?;
    }
    let posted = found.into_iter().map(Found::posted).collect::<Result<_, _>>()?;
    Ok(Posted { messages: posted, head: None })
}

/// An entry in the making.
struct Found {
    id: String,
    /// The message without its content; empty for one that is known to be unreadable.
    fields: Object,
    blocks: Vec<(usize, ContentBlock)>,
    custom: Option<CustomPayload>,
    kept: Object,
}

impl Found {
    fn new(id: &str, fields: Object) -> Self {
        Self { id: id.to_owned(), fields, blocks: Vec::new(), custom: None, kept: Object::new() }
    }

    fn posted(mut self) -> Result<PostedMessage, String> {
        let body = match self.custom {
            Some(custom) => Body::Custom(custom),
            None if self.fields.is_empty() => Body::Unreadable,
            None => {
                if !self.fields.contains_key("content") {
                    self.blocks.sort_by_key(|(at, _)| *at);
                    let blocks: Vec<ContentBlock> = self.blocks.into_iter().map(|(_, block)| block).collect();
                    let blocks = serde_json::to_value(blocks).unwrap_or_default();
                    self.fields.insert("content".to_owned(), blocks);
                }
                match parse(&Value::Object(self.fields)) {
                    Some(message) => Body::Message(Box::new(message)),
                    None => {
                        return Err(format!("message `{}` does not say what a message has to say", self.id));
                    }
                }
            }
        };
        let kept = Kept { format: NAME.to_owned(), fields: self.kept };
        let origin = if kept.fields.is_empty() { None } else { Some(kept.into_origin()) };
        let entry = NewEntry { id: EntryId::from(self.id.as_str()), body, origin };
        Ok(PostedMessage { id: self.id, follows: Follows::Before, entries: vec![entry], knows_entries: true })
    }
}

/// The entry that a thing was told of, with the fields that came along.
fn entry_of<'a>(found: &'a mut Vec<Found>, own: &Value) -> Option<&'a mut Found> {
    let id = own["entry"].as_str()?;
    let at = match found.iter().position(|known| known.id == id) {
        Some(at) => at,
        None => {
            found.push(Found::new(id, Object::new()));
            found.len() - 1
        }
    };
    let entry = &mut found[at];
    if let Some(fields) = own["message"].as_object() {
        entry.fields.extend(fields.clone());
    }
    Some(entry)
}

fn take(message: &Value, found: &mut Vec<Found>, now: i64) -> Result<(), String> {
    let id = message["id"].as_str().filter(|id| !id.is_empty()).ok_or("every message needs an `id`")?;
    let own = own_of(message, id);
    let block = own["block"].as_u64().and_then(|at| usize::try_from(at).ok());
    let ours = own["entry"].is_string();
    let text = || message["content"].as_str().unwrap_or_default().to_owned();
    match message["role"].as_str() {
        Some("user") => {
            let (content, kept) = content_of(message, &own);
            let entry = begin(found, &own, id, json!({"role": "user", "timestamp": now}), message);
            entry.fields.insert("content".to_owned(), content);
            entry.kept.extend(kept);
        }
        Some("assistant") => {
            let calls = message["toolCalls"].as_array().cloned().unwrap_or_default();
            let has_text = message["content"].is_string() && (!ours || block.is_some());
            let foreign_calls = calls.iter().any(|call| !call["metadata"]["banyan"]["entry"].is_string());
            if ours || has_text || foreign_calls || calls.is_empty() {
                let entry = begin(found, &own, id, assistant(now, !calls.is_empty()), message);
                if has_text {
                    entry.blocks.push((block.unwrap_or_default(), ContentBlock::text(text())));
                }
            }
            for (at, call) in calls.iter().enumerate() {
                take_call(call, at, id, found)?;
            }
        }
        Some("reasoning") => {
            let entry = begin(found, &own, id, assistant(now, false), message);
            let thought = json!({"type": "thinking", "text": text(), "signature": message["encryptedValue"]});
            entry.blocks.extend(parse(&thought).map(|thought| (block.unwrap_or_default(), thought)));
        }
        Some("tool") => tool(message, &own, id, found, now),
        Some(role @ ("system" | "developer")) => {
            let fields = json!({"role": "custom", "custom_type": SYSTEM, "timestamp": now});
            let entry = begin(found, &own, id, fields, message);
            entry.fields.insert("content".to_owned(), json!([{"type": "text", "text": text()}]));
            if role == "developer" {
                entry.kept.insert("role".to_owned(), role.into());
            }
        }
        Some("activity") => activity(message, &own, id, found, now),
        role => {
            let role = role.unwrap_or_default();
            return Err(format!("message `{id}` has the role `{role}`, which AG-UI does not have"));
        }
    }
    Ok(())
}

/// What a message says about the entry that it was told of. Clients that know no metadata keep the id, which says most of it.
fn own_of(message: &Value, id: &str) -> Value {
    if message["metadata"]["banyan"].is_object() {
        return message["metadata"]["banyan"].clone();
    }
    match (entry_named(id), id.rsplit_once('#').map(|(_, block)| block.parse::<usize>())) {
        (entry, Some(Ok(block))) if entry != id => json!({"entry": entry, "block": block}),
        _ => Value::Null,
    }
}

/// The entry of a message: the one that it was told of, or one of its own.
fn begin<'a>(found: &'a mut Vec<Found>, own: &Value, id: &str, fields: Value, message: &Value) -> &'a mut Found {
    if own["entry"].is_string() {
        // Somebody may have taken the rest of the metadata away.
        let at = found.iter().position(|known| own["entry"] == known.id.as_str());
        let at = at.unwrap_or_else(|| {
            let fields = if own.get("message").is_some() { Object::new() } else { to_object(fields) };
            found.push(Found::new(own["entry"].as_str().unwrap_or_default(), fields));
            found.len() - 1
        });
        if let Some(fields) = own["message"].as_object() {
            found[at].fields.extend(fields.clone());
        }
        return &mut found[at];
    }
    if let Some(at) = found.iter().position(|known| known.id == id) {
        return &mut found[at];
    }
    let mut entry = Found::new(id, to_object(fields));
    if let Some(metadata) = message["metadata"].as_object().filter(|metadata| !metadata.is_empty()) {
        entry.kept.insert("metadata".to_owned(), metadata.clone().into());
    }
    found.push(entry);
    let last = found.len() - 1;
    &mut found[last]
}

fn to_object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}

fn assistant(now: i64, asks: bool) -> Value {
    let stop_reason = if asks { "function_call" } else { "end" };
    json!({"role": "assistant", "model": "", "provider": "", "stop_reason": stop_reason, "timestamp": now})
}

fn take_call(call: &Value, at: usize, message: &str, found: &mut Vec<Found>) -> Result<(), String> {
    let own = call["metadata"]["banyan"].clone();
    let function = &call["function"];
    let (id, name, arguments) = (&call["id"], &function["name"], &function["arguments"]);
    let (Some(id), Some(name), Some(arguments)) = (id.as_str(), name.as_str(), arguments.as_str()) else {
        return Err(format!(
            "a call of message `{message}` needs an `id`, and a `function` with `name` and `arguments`"
        ));
    };
    let id = own["call"].as_str().unwrap_or(id);
    let read: Value = serde_json::from_str(arguments).unwrap_or_else(|_| arguments.into());
    let block = json!({"type": "function_call", "id": id, "function_id": name, "arguments": read});
    let (entry, at) = match entry_of(found, &own) {
        Some(entry) => (Some(entry), own["block"].as_u64().and_then(|at| usize::try_from(at).ok()).unwrap_or(at)),
        // A text comes before the calls of its message.
        None => (found.iter_mut().rfind(|known| known.id == entry_named(message)), at + 1),
    };
    if let (Some(entry), Some(block)) = (entry, parse(&block)) {
        entry.blocks.push((at, block));
    }
    Ok(())
}

/// The entry that a message's id names.
fn entry_named(message: &str) -> &str {
    match message.rsplit_once('#') {
        Some((entry, block)) if !entry.is_empty() && block.parse::<usize>().is_ok() => entry,
        _ => message,
    }
}

fn tool(message: &Value, own: &Value, id: &str, found: &mut Vec<Found>, now: i64) {
    let call = message["toolCallId"].as_str().unwrap_or_default();
    let (content, kept) = match message["error"].as_str() {
        Some(error) if message["content"] == "" && !own["entry"].is_string() => {
            (json!([{"type": "text", "text": error}]), None)
        }
        _ => content_of(message, own),
    };
    let name = name_of_call(call, found);
    let fields =
        json!({"role": "function_result", "function_call_id": call, "function_id": name, "timestamp": now});
    let is_error = own["is_error"] == true || message["error"].is_string();
    let entry = begin(found, own, id, fields, message);
    entry.fields.insert("content".to_owned(), content);
    entry.fields.insert("details".to_owned(), own["details"].clone());
    entry.fields.insert("is_error".to_owned(), is_error.into());
    entry.kept.extend(kept);
}

fn name_of_call(call: &str, found: &[Found]) -> String {
    let blocks = found.iter().rev().flat_map(|entry| &entry.blocks);
    let mut names = blocks.filter_map(|(_, block)| match block {
        ContentBlock::FunctionCall(known) if known.id == call => Some(known.function_id.clone()),
        _ => None,
    });
    names.next().unwrap_or_default()
}

fn activity(message: &Value, own: &Value, id: &str, found: &mut Vec<Found>, now: i64) {
    let content = &message["content"];
    let block = own["block"].as_u64().and_then(|at| usize::try_from(at).ok());
    if let Some(custom_type) = own["custom"].as_str() {
        let data = if own["wrapped"] == true { &content["value"] } else { content };
        let custom = CustomPayload { custom_type: custom_type.to_owned(), data: json_of(data) };
        begin(found, own, id, json!({}), message).custom = Some(custom);
    } else if let Some(block) = block {
        let entry = begin(found, own, id, assistant(now, false), message);
        entry.blocks.extend(parse(content).map(|content| (block, content)));
    } else if own["entry"].is_string() && own["message"].is_null() {
        // What could not be read is there, or was lost; it cannot be written again.
        begin(found, own, id, json!({}), message).fields.clear();
    } else if own["entry"].is_string() {
        let entry = begin(found, own, id, json!({}), message);
        match own.get("details") {
            Some(details) => {
                entry.fields.insert("content".to_owned(), json!([]));
                entry.fields.insert("details".to_owned(), details.clone());
            }
            None => entry.fields.extend(content.as_object().cloned().unwrap_or_default()),
        }
    } else {
        let name = message["activityType"].as_str().unwrap_or_default();
        let details = json!({"format": DATA, "part": {"name": name, "data": content}});
        let fields = json!({"role": "custom", "custom_type": PART, "content": [], "details": details,
            "timestamp": now});
        begin(found, own, id, fields, message);
    }
}

/// The blocks of a message's content, and the content itself when it has parts that no block holds.
fn content_of(message: &Value, own: &Value) -> (Value, Option<(String, Value)>) {
    if let Some(content) = own.get("content") {
        return (content.clone(), None);
    }
    let content = &message["content"];
    if let Some(text) = content.as_str() {
        return (json!([{"type": "text", "text": text}]), None);
    }
    let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
    let blocks: Vec<ContentBlock> = parts.iter().filter_map(block_of).collect();
    let kept = if blocks.len() < parts.len() { Some(("content".to_owned(), content.clone())) } else { None };
    (serde_json::to_value(blocks).unwrap_or_default(), kept)
}

fn block_of(part: &Value) -> Option<ContentBlock> {
    if let Some(text) = part["text"].as_str() {
        return Some(ContentBlock::text(text));
    }
    let (source, own) = (&part["source"], &part["metadata"]["banyan"]);
    let value = source["value"].as_str()?;
    let url = match source["type"].as_str()? {
        "data" => format!("data:{};base64,{value}", source["mimeType"].as_str()?),
        _ => value.to_owned(),
    };
    Media::read(&url, Some(own).filter(|own| own.is_object())).map(|media| media.block)
}
