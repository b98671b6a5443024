//! The AI SDK's `UIMessage[]`: the messages of the active path.

use banyan_model::Object;
use serde_json::{Value, json};

use super::item::{Item, Kept, Scene};
use super::meta::Meta;
use super::piece::{Call, Media, Outcome, Piece};
use super::restore::{Said, entries_of};
use super::turn::{Ending, Speaker, Turn, turns};
use super::{Extent, Follows, Posted, PostedMessage, Shape, json_of, parse, value_of};

/// See the module.
pub(super) struct AiSdk;

const NAME: &str = "ai-sdk";

impl Shape for AiSdk {
    fn name(&self) -> &'static str {
        NAME
    }

    fn extent(&self) -> Extent {
        Extent::Path
    }

    fn write(&self, items: &[Item], scene: &Scene) -> Value {
        turns(items, scene).iter().map(message).collect()
    }

    fn read(&self, form: &Value, now: i64) -> Result<Posted, String> {
        let messages = form.as_array().or_else(|| form.get("messages")?.as_array());
        let messages =
            messages.ok_or("the body is neither an array of UI messages nor an object with `messages`")?;
        let messages = messages.iter().map(|message| posted(message, now)).collect::<Result<_, _>>()?;
        Ok(Posted { messages, head: None })
    }
}

fn message(turn: &Turn) -> Value {
    let mut message = Kept::fields_of(turn.kept.as_ref(), NAME);
    let mut metadata = message.shift_remove("metadata").filter(Value::is_object).unwrap_or_else(|| json!({}));
    metadata["banyan"] = json!({"entries": turn.metas, "timestamp": turn.time});
    match &turn.ending {
        Ending::Failed(words) => metadata["banyan"]["error"] = json!(words),
        Ending::Cancelled => metadata["banyan"]["cancelled"] = true.into(),
        Ending::Complete | Ending::Running | Ending::Waiting | Ending::TooLong => {}
    }
    message.insert("id".to_owned(), json!(turn.id));
    message.insert("role".to_owned(), turn.speaker.as_str().into());
    message.insert("metadata".to_owned(), metadata);
    let mut parts: Vec<Value> = Vec::with_capacity(turn.pieces.len());
    for (at, piece) in turn.pieces.iter().enumerate() {
        if turn.begins_step(at) {
            parts.push(json!({"type": STEP}));
        }
        parts.push(part(piece));
    }
    // The SDK refuses a message of a person that has no part.
    if parts.is_empty() && turn.speaker != Speaker::Assistant {
        parts.push(json!({"type": NOTHING, "data": null}));
    }
    if let (Ending::Running, Some(last)) = (&turn.ending, parts.last_mut())
        && last.get("state") == Some(&json!("done"))
    {
        last["state"] = "streaming".into();
    }
    message.insert("parts".to_owned(), parts.into());
    Value::Object(message)
}

/// The part before what a model said after it had seen results.
const STEP: &str = "step-start";

/// The part of a message in which nothing was said.
const NOTHING: &str = "data-nothing";

fn part(piece: &Piece) -> Value {
    match piece {
        Piece::Text(text) => json!({"type": "text", "text": text, "state": "done"}),
        Piece::Reasoning { text, signature: None } => json!({"type": "reasoning", "text": text, "state": "done"}),
        Piece::Reasoning { text, signature } => json!({"type": "reasoning", "text": text, "state": "done",
            "providerMetadata": {"banyan": {"signature": signature}}}),
        Piece::Call(call) => tool(call),
        Piece::Media(media) => {
            let own = json!({"banyan": media.own()});
            match &media.name {
                None => {
                    json!({"type": "file", "mediaType": media.mime, "url": media.url, "providerMetadata": own})
                }
                Some(name) => json!({"type": "file", "mediaType": media.mime, "url": media.url, "filename": name,
                    "providerMetadata": own}),
            }
        }
        Piece::Data { name, data } => json!({"type": format!("data-{name}"), "data": data}),
        Piece::Part { format, part } if format == NAME => part.clone(),
        Piece::Part { format, part } => json!({"type": format!("data-part.{format}"), "data": part}),
    }
}

fn tool(call: &Call) -> Value {
    let mut part = json!({"type": "dynamic-tool", "toolName": call.name, "toolCallId": call.shown,
        "state": "input-available", "input": value_of(&call.arguments)});
    let Some(outcome) = &call.outcome else { return part };
    let (value, details) = outcome.value();
    let mut own = Object::new();
    if outcome.is_error {
        part["state"] = "output-error".into();
        part["errorText"] = outcome.text().into();
        if value != part["errorText"] {
            own.insert("output".to_owned(), value);
        }
    } else {
        part["state"] = "output-available".into();
        part["output"] = value;
    }
    if let Some(details) = details {
        own.insert("details".to_owned(), details);
    }
    if !own.is_empty() {
        part["resultProviderMetadata"] = json!({"banyan": own});
    }
    part
}

fn posted(message: &Value, now: i64) -> Result<PostedMessage, String> {
    let id = message["id"].as_str().filter(|id| !id.is_empty()).ok_or("every message needs an `id`")?;
    let role = message["role"].as_str().unwrap_or_default();
    let speaker = Speaker::named(role)
        .ok_or_else(|| format!("message `{id}` has the role `{role}`; there is system, user and assistant"))?;
    let parts = message["parts"].as_array();
    let parts = parts.ok_or_else(|| format!("`parts` of message `{id}` should be an array"))?;
    let own = &message["metadata"]["banyan"];
    let metas: Vec<Meta> = parse(&own["entries"]).unwrap_or_default();
    let (mut pieces, mut steps) = (Vec::new(), Vec::new());
    for part in parts {
        match part["type"].as_str() {
            Some(STEP) => steps.push(pieces.len()),
            Some(NOTHING) => {}
            _ => pieces.push(piece(part)),
        }
    }
    let mut fields = message.as_object().cloned().unwrap_or_default();
    fields.retain(|key, value| !["id", "role", "parts"].contains(&key.as_str()) && !value.is_null());
    let said = Said {
        format: NAME,
        id: id.to_owned(),
        speaker,
        time: own["timestamp"].as_i64().unwrap_or(now),
        pieces,
        steps,
        metas,
        ending: Ending::Complete,
        fields,
    };
    Ok(PostedMessage {
        id: id.to_owned(),
        follows: Follows::Before,
        entries: entries_of(&said)?,
        knows_entries: !said.metas.is_empty(),
    })
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
        "file" => Media::read(part["url"].as_str()?, Some(own).filter(|own| own.is_object())).map(Piece::Media),
        "dynamic-tool" => call(part, text("toolName")?),
        kind => match (kind.strip_prefix("tool-"), kind.strip_prefix("data-")) {
            (Some(name), _) => call(part, name.to_owned()),
            (_, Some(name)) => match name.strip_prefix("part.") {
                Some(format) => Some(Piece::Part { format: format.to_owned(), part: part["data"].clone() }),
                // An id is more than a piece of data has.
                None if part.get("id").is_some() => None,
                None => Some(Piece::Data { name: name.to_owned(), data: part["data"].clone() }),
            },
            _ => None,
        },
    }
}

fn call(part: &Value, name: String) -> Option<Piece> {
    let id = part["toolCallId"].as_str()?.to_owned();
    let own = &part["resultProviderMetadata"]["banyan"];
    let outcome = match part["state"].as_str()? {
        "output-available" => Some(Outcome::of(&part["output"], own.get("details"), false)),
        "output-error" => {
            Some(Outcome::of(own.get("output").unwrap_or(&part["errorText"]), own.get("details"), true))
        }
        "output-denied" => {
            let words = part["approval"]["reason"].as_str().unwrap_or("The call was not allowed.");
            Some(Outcome::of(&words.into(), None, true))
        }
        _ => None,
    };
    let arguments = json_of(part.get("input").unwrap_or(&Value::Null));
    Some(Piece::Call(Call { shown: id.clone(), id, name, arguments, outcome }))
}
