//! Where an entry came from, as whoever brought it says.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::Object;
use crate::json::{as_it_is, compacted};
use crate::json_text::compact;

/// An object of somebody's own, kept as its text: it is carried far more often than it is looked into, and may be as large as
/// the message beside it. Cheap to clone. Equality ignores the order of keys.
#[derive(Clone)]
pub struct Origin(Arc<str>);

/// Deeper ones could be written, and not be read again.
const DEPTH: usize = 126;

impl Origin {
    /// Takes the text of an object that was just written or read as JSON, and does not read it once more. None if it is no
    /// object, or one that nobody could read again.
    pub fn vouched(text: &str) -> Option<Self> {
        let text = compact(text, DEPTH).ok()?;
        text.starts_with('{').then(|| Self(Arc::from(text.as_ref())))
    }

    /// The text of a value that an origin is to hold a few levels below its own, without blanks between tokens. None if nobody
    /// could read it again there. Whoever calls has read it as JSON.
    pub fn readable(value: String) -> Option<String> {
        let shorter = match compact(&value, DEPTH - 4).ok()? {
            Cow::Borrowed(_) => None,
            Cow::Owned(shorter) => Some(shorter),
        };
        Some(shorter.unwrap_or(value))
    }

    /// Takes the text of an object that the caller has written without blanks between tokens.
    pub fn from_written(text: String) -> Self {
        Self(Arc::from(text))
    }

    /// Takes the text of an object that was stored, and that a checksum says is still the same.
    pub fn stored(text: &str) -> Option<Self> {
        text.starts_with('{').then(|| Self(Arc::from(text)))
    }

    /// The text, without blanks between tokens.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// All that it says.
    pub fn object(&self) -> Object {
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// What it says under a key.
    pub fn get(&self, key: &str) -> Option<Value> {
        self.only(&[key]).shift_remove(key)
    }

    /// Whether it says anything under a key.
    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// What it says under some keys. The rest is passed over.
    pub fn only(&self, keys: &[&str]) -> Object {
        let mut reader = serde_json::Deserializer::from_str(&self.0);
        reader.deserialize_map(Only(keys)).unwrap_or_default()
    }
}

impl Default for Origin {
    fn default() -> Self {
        Self::from(Object::new())
    }
}

impl From<Object> for Origin {
    fn from(object: Object) -> Self {
        Self(Value::Object(object).to_string().into())
    }
}

impl PartialEq for Origin {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || self.object() == other.object()
    }
}

impl Eq for Origin {}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Origin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        as_it_is(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for Origin {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = compacted(deserializer, DEPTH)?;
        match raw.get().starts_with('{') {
            true => Ok(Self(Arc::from(Box::<str>::from(raw)))),
            false => Err(D::Error::custom("an origin is an object")),
        }
    }
}

/// Reads some fields of an object.
struct Only<'k>(&'k [&'k str]);

impl<'de> Visitor<'de> for Only<'_> {
    type Value = Object;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
        let mut found = Object::new();
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            if self.0.contains(&key.as_ref()) {
                found.insert(key.into_owned(), map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

impl JsonSchema for Origin {
    fn inline_schema() -> bool {
        Object::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        Object::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        Object::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Object::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use serde_json::json;

    use super::*;

    #[test]
    fn an_origin_is_an_object_on_one_line_and_is_asked_key_by_key() {
        let origin: Origin = serde_json::from_str("{\"a\": {\"b\": 1.50},\n \"c\": [2]}").unwrap();
        assert_eq!(origin.text(), r#"{"a":{"b":1.50},"c":[2]}"#);
        assert_eq!((origin.get("c"), origin.get("b"), origin.has("a")), (Some(json!([2])), None, true));
        assert_eq!(serde_json::to_string(&origin).unwrap(), origin.text());
        assert_eq!(serde_json::to_value(&origin).unwrap(), json!({"a": {"b": 1.5}, "c": [2]}));
        assert_eq!(Origin::vouched(r#"{"c":[2],"a":{"b":1.5}}"#), Some(origin));
    }

    #[test]
    fn what_is_no_object_or_could_not_be_read_again_is_refused() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(130), "]".repeat(130));
        for text in ["[]", "null", "\"a\"", &deep] {
            assert!(serde_json::from_str::<Origin>(text).is_err(), "{text}");
            assert_eq!(Origin::vouched(text), None);
        }
    }
}
