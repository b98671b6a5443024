//! The fields of a request, put together from an address, a query and a body, without looking into their values.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::problem::Problem;

/// A JSON object in the making.
pub(crate) struct Fields(String);

impl Fields {
    pub(crate) fn new() -> Self {
        Self(String::from("{"))
    }

    /// Adds a field that is JSON already.
    pub(crate) fn raw(&mut self, name: &str, json: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        // A text always has a JSON form.
        self.0.push_str(&serde_json::to_string(name).unwrap_or_default());
        self.0.push(':');
        self.0.push_str(json);
    }

    /// Adds a field.
    pub(crate) fn value<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) {
        if let Ok(json) = serde_json::to_string(value) {
            self.raw(name, &json);
        }
    }

    /// Adds the fields of a body. Those that the address has already must say the same.
    pub(crate) fn body(&mut self, body: &Body<'_>, in_address: &[(String, String)]) -> Result<(), Problem> {
        for (name, value) in &body.0 {
            match in_address.iter().find(|(known, _)| known == name) {
                None => self.raw(name, value.get()),
                Some(_) if value.get() == "null" => {}
                Some((_, known)) if serde_json::from_str::<String>(value.get()).is_ok_and(|it| it == *known) => {}
                Some((_, known)) => {
                    return Err(Problem::invalid(format!(
                        "`{name}` is {} in the body and `{known}` in the address; leave it out of the body",
                        value.get()
                    )));
                }
            }
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.0.push('}');
        self.0.into_bytes()
    }
}

/// The fields of a body, in their order, each as its text.
pub(crate) struct Body<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Body<'a> {
    /// Reads a body. An empty one is an empty object.
    pub(crate) fn read(body: &'a [u8]) -> Result<Self, Problem> {
        if body.trim_ascii().is_empty() {
            return Ok(Self(Vec::new()));
        }
        serde_json::from_slice(body).map_err(|error| Problem::invalid(format!("the body is not valid: {error}")))
    }

    /// Whether a field is there and not null.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, value)| known == name && value.get() != "null")
    }

    /// Takes a field away.
    pub(crate) fn leave_out(&mut self, name: &str) {
        self.0.retain(|(known, _)| known != name);
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Body<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Body<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Body<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Body(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}
