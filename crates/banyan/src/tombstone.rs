//! What the journal keeps of a deleted session: when it ended, and which subscribers may be notified.
//!
//! Its metadata is not kept. Each pair leaves a fingerprint, keyed with the session's incarnation, by which it is found out whether the
//! session had a pair that a filter or a scope asks for.

use std::collections::BTreeSet;

use banyan_core::Born;
use banyan_model::Object;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// See the module.
#[derive(Serialize, Deserialize)]
pub(crate) struct Tombstone {
    pub(crate) timestamp: i64,
    /// The fingerprints of the session's pairs.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pairs: BTreeSet<String>,
    /// All pairs, as earlier versions wrote them.
    #[serde(default, skip_serializing)]
    metadata: Option<Object>,
}

impl Tombstone {
    pub(crate) fn of(timestamp: i64, born: Born, metadata: Option<&Object>) -> Self {
        let pairs = metadata.into_iter().flatten().map(|(key, value)| fingerprint(born, key, value)).collect();
        Self { timestamp, pairs, metadata: None }
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Those of the pairs that the session had.
    pub(crate) fn metadata_among<'a>(&self, born: Born, asked: impl Iterator<Item = &'a Object>) -> Object {
        if let Some(metadata) = &self.metadata {
            return metadata.clone();
        }
        let pairs = asked.flatten().filter(|(key, value)| self.pairs.contains(&fingerprint(born, key, value)));
        pairs.map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

/// Equal for equal pairs of one incarnation, whatever the order of keys within the value.
fn fingerprint(born: Born, key: &str, value: &Value) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("banyan 2026-11 metadata of a deleted session");
    hasher.update(&born.0);
    add_text(&mut hasher, key);
    add(&mut hasher, value);
    hasher.finalize().to_hex().chars().take(24).collect()
}

fn add(hasher: &mut blake3::Hasher, value: &Value) {
    match value {
        Value::Null => drop(hasher.update(b"n")),
        Value::Bool(true) => drop(hasher.update(b"t")),
        Value::Bool(false) => drop(hasher.update(b"f")),
        // Two zeros are equal, and are written in two ways.
        Value::Number(number) if number.is_f64() && number.as_f64() == Some(0.0) => drop(hasher.update(b"z")),
        Value::Number(number) => {
            hasher.update(b"#");
            add_text(hasher, &number.to_string());
        }
        Value::String(text) => {
            hasher.update(b"s");
            add_text(hasher, text);
        }
        Value::Array(values) => {
            hasher.update(b"a").update(&values.len().to_le_bytes());
            values.iter().for_each(|value| add(hasher, value));
        }
        Value::Object(pairs) => {
            hasher.update(b"o").update(&pairs.len().to_le_bytes());
            let mut pairs: Vec<_> = pairs.iter().collect();
            pairs.sort_unstable_by_key(|(key, _)| *key);
            for (key, value) in pairs {
                add_text(hasher, key);
                add(hasher, value);
            }
        }
    }
}

fn add_text(hasher: &mut blake3::Hasher, text: &str) {
    hasher.update(&text.len().to_le_bytes()).update(text.as_bytes());
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Object {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn pairs_are_known_again_and_not_written() {
        let born = Born([7; 16]);
        let metadata = object(json!({"owner": "u_1", "deep": {"x": 1, "y": [0.0, null]}}));
        let encoded = Tombstone::of(5, born, Some(&metadata)).encode();
        assert!(!String::from_utf8_lossy(&encoded).contains("u_1"));
        let tombstone = Tombstone::parse(&encoded).unwrap();
        let asked = [
            object(json!({"owner": "u_1", "deep": {"y": [-0.0, null], "x": 1}, "more": 1})),
            object(json!({"owner": "u_2"})),
        ];
        assert_eq!(tombstone.metadata_among(born, asked.iter()), metadata);
        assert_eq!(tombstone.metadata_among(Born([8; 16]), asked.iter()), Object::default());
        assert_eq!(tombstone.timestamp, 5);
    }

    #[test]
    fn what_earlier_versions_wrote_is_read() {
        let tombstone = Tombstone::parse(br#"{"timestamp":1,"metadata":{"owner":"u_1"}}"#).unwrap();
        assert_eq!(tombstone.metadata_among(Born([0; 16]), [].into_iter()), object(json!({"owner": "u_1"})));
    }
}
