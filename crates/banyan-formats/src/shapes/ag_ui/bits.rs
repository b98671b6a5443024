//! What AG-UI tells of one entry, before it is a message of a snapshot or events of a stream.

use std::collections::HashMap;

use banyan_model::{AgentMessage, ContentBlock, CustomMessage, EntryId, Object};
use serde_json::{Value, json};

use super::NAME;
use crate::shapes::item::{Body, DATA, Item, Kept, SYSTEM, Scene, fields_beside};
use crate::shapes::piece::{Media, Outcome};
use crate::shapes::value_of;

/// One thing that AG-UI tells of an entry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bit {
    /// What front ends know it by.
    pub(crate) id: String,
    pub(crate) kind: Kind,
    /// Which entry it is of, and what is needed to make the same entry of it again.
    pub(crate) metadata: Value,
    /// The block that it shows.
    pub(crate) block: Option<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A text, of whoever speaks.
    Text {
        role: &'static str,
        text: String,
    },
    /// What a person said that is not only text.
    Parts(Value),
    Reasoning {
        text: String,
        signature: Option<String>,
    },
    /// A call, in the message with the bit's id.
    Call {
        call: String,
        name: String,
        arguments: String,
    },
    Result {
        call: String,
        content: Value,
        error: Option<String>,
    },
    Activity {
        name: String,
        content: Value,
    },
}

/// The calls of a path. Their ids have to differ, because front ends find calls by them alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    /// How often each id was given, and how many of those calls were answered.
    given: HashMap<String, (usize, usize)>,
}

impl Calls {
    fn call(&mut self, id: &str) -> String {
        let (given, _) = self.given.entry(id.to_owned()).or_default();
        *given += 1;
        shown(id, *given)
    }

    fn result(&mut self, id: &str) -> String {
        let Some((given, answered)) = self.given.get_mut(id) else { return id.to_owned() };
        *answered = (*answered + 1).min(*given);
        shown(id, *answered)
    }
}

fn shown(id: &str, nth: usize) -> String {
    if nth == 1 { id.to_owned() } else { format!("{id}#{nth}") }
}

/// Everything that is told of an entry; at least one thing.
pub(crate) fn bits(item: &Item, scene: &Scene, calls: &mut Calls) -> Vec<Bit> {
    let mut mark = Object::from_iter([("entry".to_owned(), json!(item.id))]);
    let id = item.id.as_str().to_owned();
    let message = match &item.body {
        Body::Message(message) => message,
        Body::Custom(custom) => {
            mark.insert("custom".to_owned(), custom.custom_type.clone().into());
            let (content, wrapped) = object(value_of(&custom.data));
            if wrapped {
                mark.insert("wrapped".to_owned(), true.into());
            }
            let kind = Kind::Activity { name: custom.custom_type.clone(), content };
            return vec![Bit { id, kind, metadata: own(mark), block: None }];
        }
        Body::Unreadable => {
            let kind = Kind::Activity { name: "banyan.unreadable".to_owned(), content: json!({}) };
            return vec![Bit { id, kind, metadata: own(mark), block: None }];
        }
    };
    let mut bits = match &**message {
        AgentMessage::User(user) => {
            mark.insert("message".to_owned(), fields_beside(message, &["content"]).into());
            let content = told_content(&user.content, scene, &mut mark);
            let kind = match content {
                Value::String(text) => Kind::Text { role: "user", text },
                parts => Kind::Parts(parts),
            };
            vec![Bit { id, kind, metadata: own(mark), block: None }]
        }
        AgentMessage::Assistant(assistant) => {
            mark.insert("message".to_owned(), fields_beside(message, &["content"]).into());
            assistant_bits(&item.id, &assistant.content, mark, scene, calls)
        }
        AgentMessage::FunctionResult(result) => {
            let outcome = Outcome::from(result);
            let keys = ["content", "details", "is_error"];
            mark.insert("message".to_owned(), fields_beside(message, &keys).into());
            if !result.details.is_null() {
                mark.insert("details".to_owned(), value_of(&result.details));
            }
            if result.is_error {
                mark.insert("is_error".to_owned(), true.into());
            }
            let content = told_content(&result.content, scene, &mut mark);
            let error = if result.is_error { Some(outcome.text()) } else { None };
            let kind = Kind::Result { call: calls.result(&result.function_call_id), content, error };
            vec![Bit { id, kind, metadata: own(mark), block: None }]
        }
        AgentMessage::Custom(custom) => {
            let keys = ["content", "display", "details"];
            mark.insert("message".to_owned(), fields_beside(message, &keys).into());
            let kind = custom_kind(custom, item, &mut mark);
            vec![Bit { id, kind, metadata: own(mark), block: None }]
        }
    };
    add_kept(&mut bits, item.kept.as_ref());
    bits
}

/// The id of a block's message, when it is not the first of its entry.
pub(crate) fn block_id(entry: &EntryId, block: usize) -> String {
    format!("{entry}#{block}")
}

/// An entry of an agent: a message for each text, calls in the message before them, and everything else apart.
fn assistant_bits(
    entry: &EntryId,
    blocks: &[ContentBlock],
    mark: Object,
    scene: &Scene,
    calls: &mut Calls,
) -> Vec<Bit> {
    let mut bits = Vec::new();
    let mut parent: Option<String> = None;
    let mut mark = Some(mark);
    for (at, block) in blocks.iter().enumerate() {
        let mut said = mark.take().unwrap_or_else(|| Object::from_iter([("entry".to_owned(), json!(entry))]));
        said.insert("block".to_owned(), at.into());
        let apart = block_id(entry, at);
        let (id, kind) = match block {
            ContentBlock::Text(block) => {
                let id = if parent.is_none() { entry.as_str().to_owned() } else { apart };
                parent = Some(id.clone());
                (id, Kind::Text { role: "assistant", text: block.text.clone() })
            }
            ContentBlock::Thinking(block) => {
                (apart, Kind::Reasoning { text: block.text.clone(), signature: block.signature.clone() })
            }
            ContentBlock::FunctionCall(call) => {
                let id = parent.get_or_insert_with(|| entry.as_str().to_owned()).clone();
                let shown = calls.call(&call.id);
                if shown != call.id {
                    said.insert("call".to_owned(), call.id.clone().into());
                }
                let (name, arguments) = (call.function_id.clone(), call.arguments.get().to_owned());
                (id, Kind::Call { call: shown, name, arguments })
            }
            block => {
                let content = apart_content(block, scene);
                (apart, Kind::Activity { name: "banyan.block".to_owned(), content })
            }
        };
        bits.push(Bit { id, kind, metadata: own(said), block: Some(at) });
    }
    if let Some(mark) = mark {
        let kind = Kind::Text { role: "assistant", text: String::new() };
        bits.push(Bit { id: entry.as_str().to_owned(), kind, metadata: own(mark), block: None });
    }
    bits
}

/// A block that no message of an agent can hold, with an address when it is something to see.
fn apart_content(block: &ContentBlock, scene: &Scene) -> Value {
    match Media::of(block, &scene.attachments) {
        Some(media) => {
            let mut content = serde_json::to_value(&media.block).unwrap_or_default();
            content["url"] = media.url.into();
            content
        }
        None => serde_json::to_value(block).unwrap_or_default(),
    }
}

fn custom_kind(custom: &CustomMessage, item: &Item, mark: &mut Object) -> Kind {
    if let CustomMessage { display: None, details: None, content, .. } = custom
        && let (SYSTEM, [ContentBlock::Text(block)]) = (custom.custom_type.as_str(), content.as_slice())
    {
        return Kind::Text { role: "system", text: block.text.clone() };
    }
    if let Some(part) = item.part_of() {
        // Where it stands is said by the mark; what it is, by the content.
        let (name, data) = match (part.get("format").and_then(Value::as_str), part.get("part")) {
            (Some(DATA), Some(own)) => (own["name"].as_str().unwrap_or_default().to_owned(), own["data"].clone()),
            (format, own) => (format!("part.{}", format.unwrap_or_default()), own.cloned().unwrap_or_default()),
        };
        mark.insert("details".to_owned(), part.into());
        let (content, _) = object(data);
        return Kind::Activity { name, content };
    }
    let message = serde_json::to_value(item.message()).unwrap_or_default();
    let pairs = ["content", "display", "details"].into_iter();
    let pairs = pairs.filter_map(|key| Some((key.to_owned(), message.get(key)?.clone())));
    Kind::Activity { name: custom.custom_type.clone(), content: Value::Object(pairs.collect()) }
}

/// Blocks as the content of a message: a text, or parts. What no part can hold is kept beside it.
fn told_content(blocks: &[ContentBlock], scene: &Scene, mark: &mut Object) -> Value {
    if let [ContentBlock::Text(block)] = blocks {
        return block.text.clone().into();
    }
    let parts: Vec<Value> = blocks.iter().filter_map(|block| part(block, scene)).collect();
    if parts.len() < blocks.len() {
        mark.insert("content".to_owned(), serde_json::to_value(blocks).unwrap_or_default());
    }
    parts.into()
}

fn part(block: &ContentBlock, scene: &Scene) -> Option<Value> {
    if let ContentBlock::Text(block) = block {
        return Some(json!({"type": "text", "text": block.text}));
    }
    let media = Media::of(block, &scene.attachments)?;
    let source = match media.url.strip_prefix("data:").and_then(|url| url.split_once(";base64,")) {
        Some((mime, data)) => json!({"type": "data", "value": data, "mimeType": mime}),
        None => json!({"type": "url", "value": media.url, "mimeType": media.mime}),
    };
    let kind = if media.name.is_some() { "document" } else { "image" };
    Some(json!({"type": kind, "source": source, "metadata": {"banyan": media.own()}}))
}

/// The content of an activity is an object; whatever is not is put into one.
fn object(value: Value) -> (Value, bool) {
    if value.is_object() { (value, false) } else { (json!({"value": value}), true) }
}

fn own(mark: Object) -> Value {
    json!({"banyan": mark})
}

/// Gives a message back what its writer said about it.
fn add_kept(bits: &mut [Bit], kept: Option<&Kept>) {
    let fields = Kept::fields_of(kept, NAME);
    let Some(first) = bits.first_mut() else { return };
    if fields.get("role") == Some(&json!("developer"))
        && let Kind::Text { role, .. } = &mut first.kind
    {
        *role = "developer";
    }
    match (&mut first.kind, fields.get("content")) {
        (Kind::Result { content, .. }, Some(kept)) => *content = kept.clone(),
        (kind @ (Kind::Text { role: "user", .. } | Kind::Parts(_)), Some(kept)) => {
            *kind = Kind::Parts(kept.clone())
        }
        _ => {}
    }
    for (key, value) in fields.get("metadata").and_then(Value::as_object).into_iter().flatten() {
        first.metadata[key] = value.clone();
    }
}
