//! assistant-ui's `ExportedMessageRepository`: the whole tree, each message with the one that it follows.

use banyan_model::{Json, Object};
use serde_json::{Value, json};

use super::item::{Item, Kept, Scene};
use super::meta::Meta;
use super::piece::{Call, Media, Outcome, Piece};
use super::restore::{Said, entries_of};
use super::turn::{Ending, Speaker, Turn, turn_ending_in, turns};
use super::{Extent, Follows, Posted, PostedMessage, Shape, json_of, parse, value_of};
use crate::history::{iso, milliseconds};

/// See the module.
pub(super) struct AssistantUi;

const NAME: &str = "assistant-ui";

impl Shape for AssistantUi {
    fn name(&self) -> &'static str {
        NAME
    }

    fn extent(&self) -> Extent {
        Extent::Tree
    }

    fn write(&self, items: &[Item], scene: &Scene) -> Value {
        let turns = turns(items, scene);
        let head = turn_ending_in(&turns, scene.leaf.as_ref()).map(|turn| &turn.id);
        let item = |turn: &Turn| json!({"parentId": turn.parent, "message": message(turn)});
        json!({"headId": head, "messages": turns.iter().map(item).collect::<Vec<_>>()})
    }

    fn read(&self, form: &Value, now: i64) -> Result<Posted, String> {
        let items = form.get("messages").and_then(Value::as_array);
        let items = items.ok_or("the body is not an exported repository: `messages` should be an array")?;
        let messages = items.iter().map(|item| posted(item, now)).collect::<Result<_, _>>()?;
        Ok(Posted { messages, head: form.get("headId").and_then(Value::as_str).map(str::to_owned) })
    }
}

fn message(turn: &Turn) -> Value {
    let mut message = Kept::fields_of(turn.kept.as_ref(), NAME);
    let mut custom = message
        .shift_remove("metadata")
        .and_then(|mut metadata| metadata.get_mut("custom").map(Value::take))
        .filter(Value::is_object)
        .unwrap_or_else(|| json!({}));
    custom["banyan"] = json!({"entries": turn.metas});
    message.insert("id".to_owned(), json!(turn.id));
    message.insert("role".to_owned(), turn.speaker.as_str().into());
    message.insert("createdAt".to_owned(), iso(turn.time.unwrap_or_default()).into());
    message.insert("content".to_owned(), turn.pieces.iter().map(part).collect());
    let metadata = match turn.speaker {
        Speaker::Assistant => {
            message.insert("status".to_owned(), status(&turn.ending));
            json!({"unstable_state": null, "unstable_annotations": [], "unstable_data": [], "steps": [],
                "custom": custom})
        }
        Speaker::User => {
            message.entry("attachments").or_insert_with(|| json!([]));
            json!({"custom": custom})
        }
        Speaker::System => json!({"custom": custom}),
    };
    message.insert("metadata".to_owned(), metadata);
    Value::Object(message)
}

fn status(ending: &Ending) -> Value {
    match ending {
        Ending::Complete => json!({"type": "complete", "reason": "stop"}),
        Ending::Running => json!({"type": "running"}),
        Ending::Waiting => json!({"type": "incomplete", "reason": "tool-calls"}),
        Ending::TooLong => json!({"type": "incomplete", "reason": "length"}),
        Ending::Cancelled => json!({"type": "incomplete", "reason": "cancelled"}),
        Ending::Failed(None) => json!({"type": "incomplete", "reason": "error"}),
        Ending::Failed(Some(words)) => json!({"type": "incomplete", "reason": "error", "error": words}),
    }
}

fn ending(status: &Value) -> Ending {
    match (status["type"].as_str(), status["reason"].as_str()) {
        (Some("running"), _) => Ending::Running,
        (Some("requires-action"), _) | (_, Some("tool-calls")) => Ending::Waiting,
        (_, Some("length")) => Ending::TooLong,
        (_, Some("cancelled")) => Ending::Cancelled,
        (_, Some("error" | "content-filter")) => Ending::Failed(words(&status["error"])),
        _ => Ending::Complete,
    }
}

fn words(error: &Value) -> Option<String> {
    match error {
        Value::Null => None,
        Value::String(words) => Some(words.clone()),
        other => Some(other.to_string()),
    }
}

fn part(piece: &Piece) -> Value {
    match piece {
        Piece::Text(text) => json!({"type": "text", "text": text}),
        Piece::Reasoning { text, signature: None } => json!({"type": "reasoning", "text": text}),
        Piece::Reasoning { text, signature } => {
            json!({"type": "reasoning", "text": text, "providerMetadata": {"banyan": {"signature": signature}}})
        }
        Piece::Call(call) => tool_call(call),
        Piece::Media(media) => {
            let own = json!({"banyan": media.own()});
            match media.name {
                None => json!({"type": "image", "image": media.url, "providerMetadata": own}),
                Some(_) => json!({"type": "file", "data": media.url, "mimeType": media.mime,
                    "filename": media.name, "sourceType": "url", "providerMetadata": own}),
            }
        }
        Piece::Data { name, data } => json!({"type": "data", "name": name, "data": data}),
        Piece::Part { format, part } if format == NAME => part.clone(),
        Piece::Part { format, part } => json!({"type": "data", "name": format!("part.{format}"), "data": part}),
    }
}

fn tool_call(call: &Call) -> Value {
    let arguments = value_of(&call.arguments);
    let mut part = json!({"type": "tool-call", "toolCallId": call.shown, "toolName": call.name,
        "args": if arguments.is_object() { arguments } else { json!({}) }, "argsText": call.arguments.get()});
    if let Some(outcome) = &call.outcome {
        let (value, details) = outcome.value();
        part["result"] = value;
        part["isError"] = outcome.is_error.into();
        if let Some(details) = details {
            part["artifact"] = details;
        }
    }
    part
}

fn posted(item: &Value, now: i64) -> Result<PostedMessage, String> {
    let message = &item["message"];
    let id = message["id"].as_str().filter(|id| !id.is_empty());
    let id = id.ok_or("every message needs an `id`")?;
    let role = message["role"].as_str().unwrap_or_default();
    let speaker = Speaker::named(role)
        .ok_or_else(|| format!("message `{id}` has the role `{role}`; there is system, user and assistant"))?;
    let content = message["content"].as_array();
    let content = content.ok_or_else(|| format!("`content` of message `{id}` should be an array"))?;
    let follows = match &item["parentId"] {
        Value::Null => Follows::Nothing,
        Value::String(parent) => Follows::Message(parent.clone()),
        _ => return Err(format!("`parentId` of message `{id}` should be a string or null")),
    };
    let metas: Vec<Meta> = parse(&message["metadata"]["custom"]["banyan"]["entries"]).unwrap_or_default();
    let said = Said {
        format: NAME,
        id: id.to_owned(),
        speaker,
        time: message["createdAt"].as_str().and_then(milliseconds).unwrap_or(now),
        pieces: content.iter().map(piece).collect(),
        steps: Vec::new(),
        metas,
        ending: ending(&message["status"]),
        fields: fields_beside(message),
    };
    Ok(PostedMessage {
        id: id.to_owned(),
        follows,
        entries: entries_of(&said)?,
        knows_entries: !said.metas.is_empty(),
    })
}

/// What a message says that no entry holds.
fn fields_beside(message: &Value) -> Object {
    let mut fields = message.as_object().cloned().unwrap_or_default();
    for key in ["id", "role", "createdAt", "content", "status"] {
        fields.shift_remove(key);
    }
    fields.retain(|key, value| !(key == "attachments" && *value == json!([])));
    let custom = fields.shift_remove("metadata").map(|mut metadata| metadata["custom"].take());
    if let Some(custom) = custom.filter(|custom| custom.as_object().is_some_and(|custom| !custom.is_empty())) {
        fields.insert("metadata".to_owned(), json!({"custom": custom}));
    }
    fields
}

fn piece(part: &Value) -> Piece {
    read(part).unwrap_or_else(|| Piece::Part { format: NAME.to_owned(), part: part.clone() })
}

fn read(part: &Value) -> Option<Piece> {
    let text = |key: &str| part[key].as_str().map(str::to_owned);
    let own = &part["providerMetadata"]["banyan"];
    match part["type"].as_str()? {
        "text" => Some(Piece::Text(text("text")?)),
        "reasoning" => {
            Some(Piece::Reasoning { text: text("text")?, signature: own["signature"].as_str().map(str::to_owned) })
        }
        "tool-call" => {
            let id = text("toolCallId")?;
            let raw = text("argsText").and_then(|raw| Json::from_text(&raw).ok());
            let outcome = part.get("result").map(|value| {
                Outcome::of(value, part.get("artifact"), part["isError"].as_bool().unwrap_or_default())
            });
            Some(Piece::Call(Call {
                shown: id.clone(),
                id,
                name: text("toolName")?,
                arguments: raw.unwrap_or_else(|| json_of(&part["args"])),
                outcome,
            }))
        }
        "image" => Media::read(part["image"].as_str()?, Some(own).filter(|own| own.is_object())).map(Piece::Media),
        "file" => Media::read(part["data"].as_str()?, Some(own).filter(|own| own.is_object())).map(Piece::Media),
        "data" => match text("name")? {
            name if name.starts_with("part.") => {
                Some(Piece::Part { format: name["part.".len()..].to_owned(), part: part["data"].clone() })
            }
            name => Some(Piece::Data { name, data: part["data"].clone() }),
        },
        _ => None,
    }
}
