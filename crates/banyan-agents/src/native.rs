//! An agent's own records in an entry's origin: everything that they say and the message does not.
//!
//! What the message says is taken out of a record when it is read, and null stands in its place; writing puts it back.

use std::collections::VecDeque;

use banyan_model::{ContentBlock, ImageBlock, Json, Origin, SessionEntry};
use serde_json::{Value, json};

use crate::{OWN, Own};

/// A record of an agent, and which line it was.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Native {
    pub(crate) line: u64,
    pub(crate) record: Value,
}

/// What is left of a record that was read, and which line it was.
#[derive(Clone, Debug)]
pub(crate) struct Left {
    pub(crate) line: u64,
    /// The record as JSON; nothing of one that the entry carries whole.
    pub(crate) record: Option<String>,
}

/// The origin of an entry that carries a record whole: only the line is left to say.
pub(crate) fn line_of(agent: &str, line: u64) -> Origin {
    origin(agent, &[Left { line, record: None }])
}

/// The origin of an entry that was made of these records.
pub(crate) fn origin(agent: &str, records: &[Left]) -> Origin {
    if let [Left { line, record: None }] = records {
        return Origin::from_written(format!("{{\"{agent}\":{line}}}"));
    }
    let length: usize = records.iter().map(|left| left.record.as_ref().map_or(0, String::len) + 40).sum();
    let mut text = String::with_capacity(length + 40);
    text.push_str("{\"");
    text.push_str(agent);
    text.push_str("\":[");
    for (at, Left { line, record }) in records.iter().enumerate() {
        text.push_str(if at == 0 { "{\"line\":" } else { ",{\"line\":" });
        text.push_str(&line.to_string());
        if let Some(record) = record {
            text.push_str(",\"record\":");
            text.push_str(record);
        }
        text.push('}');
    }
    text.push_str("]}");
    Origin::from_written(text)
}

/// The records that an entry was made of, if it comes from this agent.
pub(crate) fn natives(entry: &SessionEntry, agent: &str) -> Option<Vec<Native>> {
    let origin = entry.origin()?.get(agent)?;
    if let Some(line) = origin.as_u64() {
        return Some(vec![Native { line, record: Value::Null }]);
    }
    let natives = origin.as_array()?;
    let natives = natives.iter().map(|native| Native {
        line: native.get("line").and_then(Value::as_u64).unwrap_or_default(),
        record: native.get("record").cloned().unwrap_or_default(),
    });
    Some(natives.collect())
}

/// Takes the text of a key out of an object, and leaves null there.
pub(crate) fn take_text(object: &mut Value, key: &str) -> Option<String> {
    let value = object.get_mut(key).filter(|value| value.is_string())?;
    match value.take() {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// The text of a key.
pub(crate) fn text_at<'a>(object: &'a Value, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Whether an object has a key whose value was taken.
pub(crate) fn is_taken(object: &Value, key: &str) -> bool {
    object.get(key).is_some_and(Value::is_null)
}

/// Takes out of a record what we wrote there for ourselves.
pub(crate) fn take_own(record: &mut Value) -> Option<Own> {
    let own = record.as_object_mut()?.shift_remove(OWN)?;
    serde_json::from_value(own).ok()
}

/// Writes into a record what we want to find again.
pub(crate) fn put_own(record: &mut Value, own: &Own) {
    if let Some(record) = record.as_object_mut() {
        record.insert(OWN.to_owned(), json!(own));
    }
}

/// The picture that a `data:` address holds.
pub(crate) fn picture(url: &str) -> Option<ContentBlock> {
    let (mime, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    Some(ContentBlock::Image(ImageBlock { mime: mime.to_owned(), data: data.to_owned(), attachment_id: None }))
}

/// The JSON form of a value that was read, or null when nobody could read it again.
pub(crate) fn json_of(value: &Value) -> Json {
    Json::of(value).unwrap_or_default()
}

/// The blocks of a message on their way back into records.
pub(crate) struct Blocks(VecDeque<ContentBlock>);

impl Blocks {
    pub(crate) fn new(blocks: Vec<ContentBlock>) -> Self {
        Self(blocks.into())
    }

    /// Whether all of them found a place.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn next(&mut self) -> Option<ContentBlock> {
        self.0.pop_front()
    }

    pub(crate) fn text(&mut self) -> Option<Value> {
        match self.next()? {
            ContentBlock::Text(block) => Some(Value::String(block.text)),
            _ => None,
        }
    }

    pub(crate) fn image(&mut self) -> Option<ImageBlock> {
        match self.next()? {
            ContentBlock::Image(block) => Some(block),
            _ => None,
        }
    }
}

/// One line of a file.
pub(crate) fn push_line(out: &mut String, record: &Value) {
    out.push_str(&record.to_string());
    out.push('\n');
}
