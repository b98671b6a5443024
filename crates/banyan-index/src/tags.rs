//! The labels that sessions are found by, so that a filter meets its sessions without reading the others.
//!
//! A listed session stands in each order once under its status, and once under each of its metadata *pairs*: eight bytes
//! for a key with its value. Beside each entry is a *signature*, a few bits for every label that the session has, so that
//! a walk along one label sees which sessions lack another without reading them. Both only narrow the search: different
//! pairs may share their bytes and bits, so every session that is found is compared with the filter itself.

use banyan_model::{Object, SessionStatus};
use serde_json::Value;

/// Eight bytes that stand for one metadata key with its value.
pub(crate) type Pair = [u8; 8];

/// The label of sessions with more than [`MOST_PAIRS`] metadata keys, which are not labelled with their pairs.
pub(crate) const WIDE: &[u8] = &[0xff];

/// Each pair costs an entry in either order, so a session with very many keys is [`WIDE`] instead.
pub(crate) const MOST_PAIRS: usize = 32;

/// The numbers of all statuses.
pub(crate) const STATUSES: [i64; 4] = [0, 1, 2, 3];

/// The signature bits of the four statuses.
pub(crate) const ANY_STATUS: i64 = 0b1111;

/// The signature bits of pairs, all set.
const ANY_PAIR: i64 = ((1 << PAIR_BITS) - 1) << 4;
const PAIR_BITS: u64 = 44;

/// The number that stands for a status in the tables.
pub(crate) fn status_number(status: SessionStatus) -> i64 {
    match status {
        SessionStatus::Idle => 0,
        SessionStatus::Working => 1,
        SessionStatus::Done => 2,
        SessionStatus::Error => 3,
    }
}

/// The label of a status.
pub(crate) fn status_tag(number: i64) -> &'static [u8] {
    match number {
        0 => &[0],
        1 => &[1],
        2 => &[2],
        _ => &[3],
    }
}

/// The signature bit of a status.
pub(crate) fn status_bit(number: i64) -> i64 {
    1 << number
}

/// What a session's metadata makes it found by.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Labels {
    /// Sorted, each once.
    pub(crate) pairs: Vec<Pair>,
    /// The bits of all pairs.
    pub(crate) signature: i64,
}

impl Labels {
    /// The labels of this metadata.
    pub(crate) fn of(metadata: Option<&Object>) -> Self {
        let Some(metadata) = metadata else {
            return Self::default();
        };
        if metadata.len() > MOST_PAIRS {
            return Self { pairs: Vec::new(), signature: ANY_PAIR };
        }
        let mut pairs: Vec<Pair> = metadata.iter().map(|(key, value)| pair(key, value)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        Self { signature: signature(&pairs), pairs }
    }

    /// Every label of the session apart from its status.
    pub(crate) fn tags(&self) -> impl Iterator<Item = &[u8]> {
        let wide = self.pairs.is_empty() && self.signature == ANY_PAIR;
        self.pairs.iter().map(Pair::as_slice).chain(wide.then_some(WIDE))
    }
}

/// The bits of these pairs.
pub(crate) fn signature(pairs: &[Pair]) -> i64 {
    pairs.iter().map(bits).fold(0, std::ops::BitOr::bitor)
}

/// The pair of one key and value; equal values have equal pairs.
pub(crate) fn pair(key: &str, value: &Value) -> Pair {
    let mut text = String::with_capacity(64);
    push_string(key, &mut text);
    push_canonical(value, &mut text);
    let hash = blake3::hash(text.as_bytes());
    let mut pair = Pair::default();
    pair.copy_from_slice(&hash.as_bytes()[..8]);
    pair
}

/// Whether a session with `stored` metadata passes the filter: each wanted key is there, with an equal value.
pub(crate) fn matches(wanted: &Object, stored: Option<&Object>) -> bool {
    wanted.iter().all(|(key, value)| stored.and_then(|stored| stored.get(key)) == Some(value))
}

/// Up to three bits, which with a handful of pairs a session without the pair rarely has.
fn bits(pair: &Pair) -> i64 {
    let hash = u64::from_le_bytes(*pair);
    let bit = |shift: u32| 1 << (4 + (hash >> shift) % PAIR_BITS);
    bit(0) | bit(20) | bit(40)
}

/// Writes one text for all values that compare equal: object keys sorted, one zero.
fn push_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push('n'),
        Value::Bool(true) => out.push('t'),
        Value::Bool(false) => out.push('f'),
        Value::Number(number) if number.is_f64() && number.as_f64() == Some(0.0) => out.push_str("0.0"),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::String(text) => push_string(text, out),
        Value::Array(items) => {
            out.push('[');
            for item in items {
                push_canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(object) => {
            let mut members: Vec<_> = object.iter().collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (key, value) in members {
                push_string(key, out);
                push_canonical(value, out);
                out.push(',');
            }
            out.push('}');
        }
    }
}

/// The length comes first, so that no string can be mistaken for what follows it.
fn push_string(text: &str, out: &mut String) {
    out.push('"');
    out.push_str(&text.len().to_string());
    out.push(':');
    out.push_str(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn equal_values_share_a_pair_whatever_their_spelling() {
        let one = json!({"a": 1, "b": [0.0, {"x": null, "y": "z"}]});
        let other: Value = serde_json::from_str(r#"{"b":[-0.0,{"y":"z","x":null}],"a":1}"#).unwrap();
        assert_eq!(one, other);
        assert_eq!(pair("key", &one), pair("key", &other));
    }

    #[test]
    fn different_keys_or_values_have_different_pairs() {
        let cases = [
            ("k", json!(1)),
            ("k", json!(1.0)),
            ("k", json!("1")),
            ("k", json!(null)),
            ("k", json!([])),
            ("k", json!({})),
            ("k", json!([[], []])),
            ("k", json!([[[]]])),
            ("k", json!(false)),
            ("k\"1:1", json!("")),
            ("k", json!("1:1")),
        ];
        for (i, (key, value)) in cases.iter().enumerate() {
            for (other_key, other_value) in &cases[i + 1..] {
                assert_ne!(pair(key, value), pair(other_key, other_value), "{value} and {other_value}");
            }
        }
    }

    #[test]
    fn a_session_with_very_many_keys_is_wide_and_its_signature_has_every_pair() {
        let many: Object = (0..=MOST_PAIRS).map(|i| (i.to_string(), json!(i))).collect();
        let labels = Labels::of(Some(&many));
        assert_eq!(labels.tags().collect::<Vec<_>>(), [WIDE]);
        let any = pair("any", &json!("thing"));
        assert_eq!(labels.signature & signature(&[any]), signature(&[any]));
    }
}
