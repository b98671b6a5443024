//! What a stream in a shape writes, and where it was left.

use std::fmt::Write;

use banyan::model::{EntryId, Error, Position};
use banyan_formats::shapes::Left;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::follow::Follower;

/// What the frames of a stream are numbered by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    /// Everything up to here was told.
    #[serde(rename = "p")]
    pub(super) position: Position,
    /// The leaf of the path that was told; none in the middle of telling.
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub(super) leaf: Option<String>,
    /// What was begun and not ended.
    #[serde(flatten)]
    pub(super) left: Left,
}

impl Mark {
    pub(super) fn encode(&self) -> String {
        // A mark always has a JSON form.
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    pub(super) fn decode(text: &str) -> Result<Self, Error> {
        let json = URL_SAFE_NO_PAD.decode(text).ok();
        json.and_then(|json| serde_json::from_slice(&json).ok()).ok_or_else(|| {
            Error::invalid_cursor(format!("`{text}` is not the `id` of a frame in this format; pass one, or none"))
        })
    }
}

/// A leaf in few characters.
pub(super) fn tag(leaf: Option<&EntryId>) -> String {
    let text = leaf.map_or("", EntryId::as_str);
    blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
}

/// What was written, and what the front end has under way because of it.
#[derive(Default)]
pub(super) struct Written {
    pub(super) left: Left,
    id: String,
}

impl Written {
    /// Events that bring a front end to where the follower is.
    pub(super) fn frames(&mut self, events: &[Value], follower: &Follower) -> Bytes {
        self.write(events, follower.seen, Some(tag(follower.leaf.as_ref())))
    }

    /// Events after which more is to come.
    pub(super) fn unfinished(&mut self, events: &[Value], follower: &Follower) -> Bytes {
        self.write(events, follower.seen, None)
    }

    /// Only who has seen the last of these frames, or all messages among them, is where the follower is. Who leaves before is told
    /// everything again, and what is under way then is in the id of the frame that it has seen.
    pub(super) fn write(&mut self, events: &[Value], position: Position, leaf: Option<String>) -> Bytes {
        let mut text = String::new();
        let mut all_told = false;
        for (at, event) in events.iter().enumerate() {
            self.left.hear(event);
            all_told |= event["type"] == "MESSAGES_SNAPSHOT";
            let leaf = leaf.clone().filter(|_| all_told || at + 1 == events.len());
            let id = Mark { position, leaf, left: self.left.clone() }.encode();
            if id != self.id {
                let _ = writeln!(text, "id: {id}");
                self.id = id;
            }
            let _ = write!(text, "data: {event}\n\n");
        }
        text.into()
    }
}
