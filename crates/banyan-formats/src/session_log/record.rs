//! One line that was read: an object, its fields in their order and as their text.

use std::borrow::Cow;
use std::fmt;

use banyan_model::{Json, Object, Origin, Revision};
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{SCHEMA_VERSION, kind};

/// The fields of the envelope, and those that every event may have.
pub(super) const ENVELOPE: [&str; 4] = ["schema_version", "seq", "time", "type"];

/// A line of a log.
#[derive(Debug)]
pub(super) struct Record<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

/// What a line of ours says that the document has no field for.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Own {
    /// True when the line only repeats what others say.
    #[serde(default)]
    pub(super) derived: bool,
    /// What the entry follows, when that is not the entry before. Null at a root.
    #[serde(default, deserialize_with = "given")]
    pub(super) parent_id: Option<Option<String>>,
    #[serde(default)]
    pub(super) timestamp: Option<i64>,
    #[serde(default)]
    pub(super) said_at: Option<i64>,
    #[serde(default)]
    pub(super) revision: Revision,
    #[serde(default)]
    pub(super) origin: Option<Origin>,
    #[serde(default)]
    pub(super) message: Option<Box<RawValue>>,
}

/// A null that was given is not the same as nothing given.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl<'a> Record<'a> {
    /// Reads a line, or says why it cannot be.
    pub(super) fn read(line: &'a [u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(line).map_err(|_| "the line is not UTF-8".to_owned())?;
        let record: Self =
            serde_json::from_str(text).map_err(|error| format!("the line is not a JSON object: {error}"))?;
        match record.parse::<u64>("schema_version") {
            Some(version) if version > SCHEMA_VERSION => {
                return Err(format!(
                    "schema_version {version} is newer than {SCHEMA_VERSION}, which is read here"
                ));
            }
            _ => {}
        }
        if record.word("type").is_none_or(|kind| kind.is_empty()) {
            return Err("the line has no `type`".to_owned());
        }
        Ok(record)
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| *value)
    }

    /// The value of a key, when it is a `T`.
    pub(super) fn parse<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        serde_json::from_str(self.get(key)?.get()).ok()
    }

    pub(super) fn text(&self, key: &str) -> Option<String> {
        self.word(key).map(Cow::into_owned)
    }

    /// The same without a copy, where the text stands in the line as it is.
    pub(super) fn word(&self, key: &str) -> Option<Cow<'a, str>> {
        let value = self.get(key)?.get();
        let text = value.strip_prefix('"')?.strip_suffix('"')?;
        match text.contains('\\') {
            true => serde_json::from_str(value).ok().map(Cow::Owned),
            false => Some(Cow::Borrowed(text)),
        }
    }

    pub(super) fn json(&self, key: &str) -> Option<Json> {
        Json::from_text(self.get(key)?.get()).ok().filter(|value| !value.is_null())
    }

    /// What only we write. Absent on lines of others; an error when it is there and cannot be read.
    pub(super) fn own(&self) -> Result<Option<Own>, String> {
        let Some(own) = self.get("banyan") else { return Ok(None) };
        serde_json::from_str(own.get()).map(Some).map_err(|error| format!("`banyan` cannot be read: {error}"))
    }

    /// Everything but these keys and the envelope, as one object in the same order.
    pub(super) fn rest(&self, without: &[&str]) -> Option<String> {
        let kept = |key: &str| !ENVELOPE.contains(&key) && !without.contains(&key);
        object_text(self.fields().filter(|(key, _)| kept(key)))
    }

    /// The same as an object; empty when there is nothing.
    pub(super) fn rest_object(&self, without: &[&str]) -> Result<Object, String> {
        let is_known = |key: &str| ENVELOPE.contains(&key) || without.contains(&key);
        if self.fields().all(|(key, _)| is_known(key)) {
            return Ok(Object::new());
        }
        let text = self.rest(without).unwrap_or_default();
        serde_json::from_str(&text).map_err(|error| format!("the line has a value that cannot be kept: {error}"))
    }

    pub(super) fn fields(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.0.iter().map(|(key, value)| (key.as_ref(), *value))
    }
}

/// The compact text of an object with these fields.
pub(super) fn object_text<'a>(fields: impl Iterator<Item = (&'a str, &'a RawValue)>) -> Option<String> {
    let mut text = String::from("{");
    for (key, value) in fields {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&serde_json::to_string(key).ok()?);
        text.push(':');
        text.push_str(value.get());
    }
    text.push('}');
    Some(text)
}

impl<'de> Deserialize<'de> for Record<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Record<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Record<'de>, A::Error> {
                let mut fields = Vec::with_capacity(12);
                while let Some((Key(key), value)) = map.next_entry()? {
                    fields.push((key, value));
                }
                Ok(Record(fields))
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

/// A key, which stands in the line as it is unless something in it is escaped.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// Whether a file that begins with these bytes is a session log: one of its first whole lines is an event of one.
pub fn recognise(beginning: &[u8]) -> bool {
    let beginning = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning);
    let is_event = |line: &[u8]| {
        Record::read(line).is_ok_and(|record| {
            record.parse::<u64>("schema_version").is_some()
                && record.word("type").is_some_and(|word| kind::ALL.contains(&word.as_ref()))
        })
    };
    // A first line that is longer than what was read has its envelope first.
    let cut = || {
        let text = String::from_utf8_lossy(beginning);
        let head: String = text.chars().filter(|c| !c.is_whitespace()).take(200).collect();
        head.starts_with("{\"schema_version\":")
            && kind::ALL.iter().any(|word| head.contains(&format!("\"type\":\"{word}\"")))
    };
    beginning.split(|byte| *byte == b'\n').take(16).any(is_event) || cut()
}
