//! JSON objects whose values are kept as text, and the key that is never shown.

use std::fmt;

use banyan_model::{Json, Object};
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// The key whose value only operators get to see, at whatever depth it stands.
pub(crate) const TECHNICAL_DETAILS: &str = "technical_details";

/// A JSON object in the order of its keys. Values keep their text, so numbers keep their digits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<(String, Json)>);

impl Fields {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every key with its value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    /// The value of a key, when it is a string.
    pub fn text(&self, key: &str) -> Option<String> {
        self.get(key)?.parse().ok()
    }

    /// Gives a key a value, in its place when the key is there already.
    pub fn set(&mut self, key: &str, value: Json) {
        match self.0.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    /// Takes a key out.
    pub fn take(&mut self, key: &str) -> Option<Json> {
        let at = self.0.iter().position(|(known, _)| known == key)?;
        Some(self.0.remove(at).1)
    }

    /// Takes a key out that should hold a `T`; a value of another kind stays where it is.
    pub(crate) fn take_as<T: serde::de::DeserializeOwned>(&mut self, key: &str) -> Option<T> {
        let value = self.get(key)?.parse().ok()?;
        self.take(key);
        Some(value)
    }

    /// Calls a key by another name, in its place.
    pub(crate) fn rename(&mut self, key: &str, name: &str) {
        if let Some((known, _)) = self.0.iter_mut().find(|(known, _)| known == key) {
            name.clone_into(known);
        }
    }

    /// The same without what only operators see.
    pub(crate) fn without_technical_details(&self) -> Self {
        let shown = self.0.iter().filter(|(key, _)| key != TECHNICAL_DETAILS);
        Self(shown.map(|(key, value)| (key.clone(), without_technical_details(value))).collect())
    }

    pub(crate) fn to_object(&self) -> Object {
        self.iter().map(|(key, value)| (key.to_owned(), value_of(value))).collect()
    }
}

impl FromIterator<(String, Json)> for Fields {
    fn from_iter<I: IntoIterator<Item = (String, Json)>>(pairs: I) -> Self {
        let mut fields = Self::default();
        for (key, value) in pairs {
            fields.set(&key, value);
        }
        fields
    }
}

impl From<&Object> for Fields {
    fn from(object: &Object) -> Self {
        object.iter().map(|(key, value)| (key.clone(), json_of(value))).collect()
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in self.iter() {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;

        impl<'de> Visitor<'de> for Pairs {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Fields::default();
                while let Some(key) = map.next_key::<String>()? {
                    fields.set(&key, map.next_value()?);
                }
                Ok(fields)
            }
        }

        deserializer.deserialize_map(Pairs)
    }
}

/// The JSON form of a value that always has one.
pub(crate) fn json_of<T: Serialize + ?Sized>(value: &T) -> Json {
    Json::of(value).unwrap_or_default()
}

/// A value with its text read.
pub(crate) fn value_of(json: &Json) -> Value {
    json.parse().unwrap_or_default()
}

/// The same value without what only operators see, at any depth.
pub(crate) fn without_technical_details(json: &Json) -> Json {
    let text = json.get();
    if !may_have_technical_details(text) {
        return json.clone();
    }
    match text.as_bytes().first() {
        Some(b'{') => json_of(&json.parse::<Fields>().unwrap_or_default().without_technical_details()),
        Some(b'[') => {
            let items: Vec<Json> = json.parse().unwrap_or_default();
            json_of(&items.iter().map(without_technical_details).collect::<Vec<_>>())
        }
        _ => json.clone(),
    }
}

/// A key can be written with escapes, so escaped ASCII counts as a maybe.
fn may_have_technical_details(text: &str) -> bool {
    text.contains(TECHNICAL_DETAILS) || text.contains("\\u00")
}

/// Whether two texts spell the same value: the order of keys and the spelling of numbers do not count.
pub(crate) fn same_json(one: &Json, other: &Json) -> bool {
    one == other || same_value(&value_of(one), &value_of(other))
}

/// Whether two values are the same; `1` and `1.0` are, because front ends write either for the other.
pub(crate) fn same_value(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same_value(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| same_value(value, other)))
        }
        _ => one == other,
    }
}
