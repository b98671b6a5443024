//! Reads an enum whose JSON object names its variant in one field.
//!
//! serde's own internally tagged enums buffer the object in a form that verbatim JSON cannot be read back from.
//! Here the fields go straight to the variant when the tag comes first, and are kept as text until it comes otherwise.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserializer;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Error as _, IntoDeserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::json_text::{FIELD_DEPTH, compact};

/// An enum that names its variant in a field of the object.
pub(crate) trait Tagged: Sized {
    /// The field that names the variant.
    const TAG: &'static str;
    /// Every name that the field can hold.
    const NAMES: &'static [&'static str];

    /// Reads the fields of the named variant; `None` when there is no such variant.
    fn variant<'de, D: Deserializer<'de>>(name: &str, fields: D) -> Result<Option<Self>, D::Error>;
}

/// Reads a tagged enum from a JSON object.
pub(crate) fn deserialize<'de, T: Tagged, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_map(TaggedVisitor(PhantomData))
}

struct TaggedVisitor<T>(PhantomData<T>);

impl<'de, T: Tagged> Visitor<'de> for TaggedVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with the field `{}`", T::TAG)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let mut early: Vec<(String, Box<RawValue>)> = Vec::new();
        while let Some(key) = map.next_key_seed(OneOf(&[T::TAG]))? {
            let Err(key) = key else {
                let name = map.next_value_seed(OneOf(T::NAMES))?;
                let name = name.as_ref().map_or_else(String::as_str, |known| *known);
                let read = if early.is_empty() {
                    T::variant(name, MapAccessDeserializer::new(map))?
                } else {
                    while let Some(field) = map.next_entry()? {
                        early.push(field);
                    }
                    read_kept(name, &early).map_err(A::Error::custom)?
                };
                return read.ok_or_else(|| A::Error::unknown_variant(name, T::NAMES));
            };
            early.push((key, map.next_value()?));
        }
        Err(A::Error::missing_field(T::TAG))
    }
}

/// Reads a string that is most often one of a few, which are not copied.
struct OneOf(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for OneOf {
    type Value = Result<&'static str, String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for OneOf {
    type Value = Result<&'static str, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().find(|known| **known == text).copied().ok_or_else(|| text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(self.0.iter().find(|known| **known == text).copied().ok_or(text))
    }
}

fn read_kept<T: Tagged>(name: &str, fields: &[(String, Box<RawValue>)]) -> Result<Option<T>, serde_json::Error> {
    // Parsing kept text starts a fresh count of levels, so the depth is bounded here.
    for (_, value) in fields {
        compact(value.get(), FIELD_DEPTH).map_err(serde_json::Error::custom)?;
    }
    T::variant(name, MapAccessDeserializer::new(KeptFields { fields, value: None }))
}

struct KeptFields<'a> {
    fields: &'a [(String, Box<RawValue>)],
    value: Option<&'a RawValue>,
}

impl<'a> MapAccess<'a> for KeptFields<'a> {
    type Error = serde_json::Error;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>, Self::Error> {
        let Some(((key, value), rest)) = self.fields.split_first() else {
            return Ok(None);
        };
        self.fields = rest;
        self.value = Some(value);
        seed.deserialize(key.as_str().into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value, Self::Error> {
        seed.deserialize(self.value.take().unwrap_or(RawValue::NULL))
    }
}
