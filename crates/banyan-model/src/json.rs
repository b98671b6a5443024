//! JSON that is carried and not looked into: a caller's own values, and stored messages on their way out.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, Error as _, Visitor};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use crate::Error;
use crate::json_text::{VALUE_DEPTH, compact, quote_into};

/// A JSON object supplied by a caller, such as session metadata. Equality ignores the order of keys.
pub type Object = serde_json::Map<String, serde_json::Value>;

/// Any JSON value, kept as its text: numbers keep their digits and objects their order.
///
/// The text never holds blanks between tokens, so it always fits on one line. Equality is equality of that text.
#[derive(Clone)]
pub struct Json(Arc<str>);

impl Json {
    /// The value `null`, which is also the default.
    pub fn null() -> Self {
        Self(Arc::from("null"))
    }

    /// The JSON form of a value.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, Error> {
        written(value).map(|raw| Self(Arc::from(Box::<str>::from(raw))))
    }

    /// The value that a text spells, for text that is not yet known to be JSON.
    pub fn from_text(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map_err(|error| Error::invalid_request(format!("not a JSON value: {error}")))
    }

    /// The value that a text spells, for text that was just read to its end as one JSON value: it is not parsed once more.
    pub fn vouched(text: &str) -> Result<Self, Error> {
        let text = compact(text, VALUE_DEPTH).map_err(|error| Error::invalid_request(error.to_string()))?;
        Ok(Self(Arc::from(text.as_ref())))
    }

    /// Takes the text of a value that is known to be as [`Json::vouched`] would leave it.
    pub fn from_written(text: &str) -> Self {
        Self(Arc::from(text))
    }

    /// The text, without blanks between tokens.
    pub fn get(&self) -> &str {
        &self.0
    }

    /// Whether the value is `null`.
    pub fn is_null(&self) -> bool {
        self.get() == "null"
    }

    /// Reads the value as a type of the caller's choice.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Error> {
        read(self.get())
    }
}

impl Default for Json {
    fn default() -> Self {
        Self::null()
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        as_it_is(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        compacted(deserializer, VALUE_DEPTH).map(|raw| Self(Arc::from(Box::<str>::from(raw))))
    }
}

impl JsonSchema for Json {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AnyValue".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        true.into()
    }
}

/// The JSON text of a `T`, remembered as such: it goes out as it was stored, and is parsed only by those who ask.
///
/// Reading a `Raw<T>` from JSON checks that it is JSON, not that it is a `T`; [`Raw::parse`] checks that. Cheap to clone.
pub struct Raw<T> {
    text: Arc<str>,
    of: PhantomData<fn() -> T>,
}

impl<T> Raw<T> {
    /// Takes text that should spell a `T`; fails when it is not JSON.
    pub fn from_text(text: String) -> Result<Self, Error> {
        RawValue::from_string(text)
            .map(Self::from)
            .map_err(|error| Error::storage(format!("stored text is not JSON: {error}")))
    }

    /// Takes text that was JSON when it was written, and that a checksum says is still the same.
    pub fn vouched(text: &str) -> Self {
        Self { text: Arc::from(text), of: PhantomData }
    }

    /// The JSON text.
    pub fn get(&self) -> &str {
        &self.text
    }
}

impl<T: Serialize> Raw<T> {
    /// The JSON text of a value.
    pub fn of(value: &T) -> Result<Self, Error> {
        let text = serde_json::to_string(value).map_err(|error| {
            Error::storage(format!("a {} has no JSON form: {error}", std::any::type_name::<T>()))
        })?;
        Ok(Self { text: Arc::from(text), of: PhantomData })
    }
}

impl<T: DeserializeOwned> Raw<T> {
    /// Reads the text as the type that it stands for.
    pub fn parse(&self) -> Result<T, Error> {
        read(self.get())
    }
}

impl<T> From<Box<RawValue>> for Raw<T> {
    fn from(text: Box<RawValue>) -> Self {
        Self { text: Arc::from(Box::<str>::from(text)), of: PhantomData }
    }
}

impl<T> Clone for Raw<T> {
    fn clone(&self) -> Self {
        Self { text: Arc::clone(&self.text), of: PhantomData }
    }
}

impl<T> PartialEq for Raw<T> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T> Eq for Raw<T> {}

impl<T> fmt::Debug for Raw<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

/// The name by which serde_json knows a struct whose one field is JSON text to be written as it is. A [`RawValue`] has it
/// too, but can only be had by reading the text again, which would be most of what a page of messages costs.
const AS_IT_IS: &str = "$serde_json::private::RawValue";

pub(crate) fn as_it_is<S: Serializer>(json: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let mut written = serializer.serialize_struct(AS_IT_IS, 1)?;
    written.serialize_field(AS_IT_IS, json)?;
    written.end()
}

/// Writes a string that may be long.
pub(crate) fn long_text<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    if text.len() < LONG {
        return serializer.serialize_str(text);
    }
    let mut scratch = SCRATCH.take();
    scratch.clear();
    quote_into(text, &mut scratch);
    let written = as_it_is(&scratch, serializer);
    if scratch.capacity() <= KEPT {
        SCRATCH.set(scratch);
    }
    written
}

thread_local! {
    /// Where long texts are quoted, one after another.
    static SCRATCH: Cell<String> = const { Cell::new(String::new()) };
}

/// A larger buffer is not kept for the next text.
const KEPT: usize = 16 << 10;

/// A string that may be long, written as serde_json writes it, several times as fast.
#[derive(Clone, Copy, Debug)]
pub struct LongText<'a>(pub &'a str);

impl Serialize for LongText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        long_text(self.0, serializer)
    }
}

/// From so many bytes on [`quote_into`] is worth a copy.
const LONG: usize = 256;

impl<T> Serialize for Raw<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        as_it_is(self.get(), serializer)
    }
}

impl<'de, T> Deserialize<'de> for Raw<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Parsing bounds the depth; carrying the text does not depend on it.
        compacted(deserializer, usize::MAX).map(Self::from)
    }
}

impl<T: JsonSchema> JsonSchema for Raw<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> std::borrow::Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// For optional fields that are not an `Option`: an explicit `null` means the default, as omission does.
pub fn null_as_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// For fields that hold an object: serde would also take an array, and fill the fields by their order.
pub(crate) fn object<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    Option::<OnlyObject<T>>::deserialize(deserializer).map(|found| found.map(|OnlyObject(value)| value))
}

struct OnlyObject<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OnlyObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(AsMap(deserializer)).map(Self)
    }
}

/// Reads a struct as a map.
struct AsMap<D>(D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for AsMap<D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(visitor)
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

pub(crate) fn compacted<'de, D: Deserializer<'de>>(
    deserializer: D,
    max_depth: usize,
) -> Result<Box<RawValue>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    let shorter = match compact(raw.get(), max_depth).map_err(D::Error::custom)? {
        std::borrow::Cow::Borrowed(_) => None,
        std::borrow::Cow::Owned(text) => Some(text),
    };
    match shorter {
        None => Ok(raw),
        Some(text) => RawValue::from_string(text).map_err(D::Error::custom),
    }
}

fn written<T: Serialize + ?Sized>(value: &T) -> Result<Box<RawValue>, Error> {
    to_raw_value(value)
        .map_err(|error| Error::storage(format!("a {} has no JSON form: {error}", std::any::type_name::<T>())))
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    serde_json::from_str(text)
        .map_err(|error| Error::storage(format!("stored JSON is not a {}: {error}", std::any::type_name::<T>())))
}
