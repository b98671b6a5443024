//! Where a stream in a shape was left.

use banyan::model::{EntryId, Error, Position};
use banyan_formats::shapes::Left;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

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
