//! AG-UI: the messages of the active path, and events that tell them live.
//!
//! An entry is one message, or a few: reasoning, and whatever is not text, have messages of their own (`bits.rs`). `live.rs` tells
//! them as events, `read.rs` makes entries of messages, and of events by way of `apply.rs`.

mod apply;
mod bits;
mod left;
mod live;
mod read;

use serde_json::{Value, json};

use super::item::{Item, Scene};
use super::{Extent, Posted, Shape};
use bits::{Bit, Calls, Kind, bits};
pub use left::Left;
pub use live::{Live, Told};

/// See the module.
pub(super) struct AgUi;

const NAME: &str = "ag-ui";

impl Shape for AgUi {
    fn name(&self) -> &'static str {
        NAME
    }

    fn extent(&self) -> Extent {
        Extent::Path
    }

    fn write(&self, items: &[Item], scene: &Scene) -> Value {
        messages(items, scene, &mut Calls::default()).into()
    }

    fn read(&self, form: &Value, now: i64) -> Result<Posted, String> {
        read::read(form, now)
    }
}

/// The messages of entries.
fn messages(items: &[Item], scene: &Scene, calls: &mut Calls) -> Vec<Value> {
    let mut messages = Vec::new();
    for item in items {
        let first = messages.len();
        for bit in bits(item, scene, calls) {
            add(&mut messages, first, bit);
        }
    }
    messages
}

fn add(messages: &mut Vec<Value>, first_of_entry: usize, bit: Bit) {
    let Bit { id, kind, metadata, .. } = bit;
    let message = match kind {
        Kind::Text { role, text } => json!({"id": id, "role": role, "content": text, "metadata": metadata}),
        Kind::Parts(parts) => json!({"id": id, "role": "user", "content": parts, "metadata": metadata}),
        Kind::Reasoning { text, signature } => {
            let mut message = json!({"id": id, "role": "reasoning", "content": text, "metadata": metadata});
            if let Some(signature) = signature {
                message["encryptedValue"] = signature.into();
            }
            message
        }
        Kind::Call { call, name, arguments } => {
            let call = json!({"id": call, "type": "function",
                "function": {"name": name, "arguments": arguments}, "metadata": metadata});
            let known = messages[first_of_entry..].iter_mut().find(|message| message["id"] == id);
            match known {
                Some(message) => match message["toolCalls"].as_array_mut() {
                    Some(calls) => calls.push(call),
                    None => message["toolCalls"] = json!([call]),
                },
                None => messages.push(json!({"id": id, "role": "assistant", "toolCalls": [call]})),
            }
            return;
        }
        Kind::Result { call, content, error } => {
            let mut message =
                json!({"id": id, "role": "tool", "toolCallId": call, "content": content, "metadata": metadata});
            if let Some(error) = error {
                message["error"] = error.into();
            }
            message
        }
        Kind::Activity { name, content } => {
            json!({"id": id, "role": "activity", "activityType": name, "content": content, "metadata": metadata})
        }
    };
    messages.push(message);
}
