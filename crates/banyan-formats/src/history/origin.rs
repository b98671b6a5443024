//! What an entry's origin says about the history message that the entry was made of: everything that no typed content holds.

use banyan_model::{Object, Origin};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::message::Speaker;

pub(super) const KEY: &str = "history";
const HIDDEN: &str = "hidden";

/// The `history` of an entry's origin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// The message's interaction.
    pub interaction_id: String,
    /// The message's role.
    pub role: Speaker,
    /// Fields of the message; the last entry that has one decides.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub message: Object,
    /// Fields of the first part that the entry makes, over what its content says.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub part: Object,
    /// Whether the entry's results belong to the activity before it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub joined: bool,
    /// The same fields with everything that only operators see.
    #[serde(default, skip_serializing_if = "Hidden::is_empty")]
    pub hidden: Hidden,
}

/// What only operators see.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hidden {
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub message: Object,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub part: Object,
}

impl Hidden {
    fn is_empty(&self) -> bool {
        self.message.is_empty() && self.part.is_empty()
    }
}

impl Mark {
    pub(crate) fn new(interaction_id: &str, role: Speaker) -> Self {
        Self {
            interaction_id: interaction_id.to_owned(),
            role,
            message: Object::new(),
            part: Object::new(),
            joined: false,
            hidden: Hidden::default(),
        }
    }

    /// The mark of an origin, when it has one. Somebody else's `history` is not a mark.
    pub(crate) fn of(origin: Option<&Object>) -> Option<Self> {
        Self::deserialize(origin?.get(KEY)?).ok()
    }

    pub(crate) fn into_origin(self) -> Object {
        let mut origin = Object::new();
        origin.insert(KEY.to_owned(), serde_json::to_value(self).unwrap_or_default());
        origin
    }
}

/// Whether an entry's origin has technical details that not everybody may see.
#[must_use]
pub fn hides_something(origin: &Origin) -> bool {
    origin.get(KEY).is_some_and(|history| history.get(HIDDEN).is_some())
}

/// An entry's origin as everybody may see it: the same without technical details of a history message.
#[must_use]
pub fn public_origin(mut origin: Object) -> Object {
    if let Some(Value::Object(history)) = origin.get_mut(KEY) {
        history.remove(HIDDEN);
    }
    origin
}
