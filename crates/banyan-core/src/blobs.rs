//! Taking long strings out of a body's JSON, and putting them back, exactly.
//!
//! A long string is stored once, however often it is used, and the line that uses it stays short. The place that it
//! was taken from holds `""`, and the record's `blobs` say what belongs there.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::scan::{self, Step};

/// Strings of at least this many bytes are taken out, unless a store is told otherwise.
pub const DEFAULT_THRESHOLD: usize = 32 * 1024;

/// How the bytes of a blob stand for the string that they were taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// The bytes are the string.
    Text,
    /// The string is the padded base64 of the bytes.
    Base64,
    /// The bytes are what stands between the quotes, for a string that is escaped in an unusual way.
    Escaped,
}

/// A string that was taken out of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where it belongs: a JSON pointer within the body.
    pub pointer: String,
    /// The blob's content.
    pub bytes: Vec<u8>,
    /// How the content stands for the string.
    pub encoding: Encoding,
}

/// What a record says about a string that was taken out of its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobRef {
    /// Where it belongs: a JSON pointer within the body.
    pub pointer: String,
    /// The BLAKE3 hash of the blob, 64 lower-case hex digits.
    pub hash: String,
    /// The blob's length in bytes.
    pub len: u64,
    /// How the blob stands for the string.
    pub encoding: Encoding,
}

impl Piece {
    /// The reference that a record keeps instead.
    pub fn blob_ref(&self) -> BlobRef {
        BlobRef {
            pointer: self.pointer.clone(),
            hash: blake3::hash(&self.bytes).to_hex().to_string(),
            len: self.bytes.len() as u64,
            encoding: self.encoding,
        }
    }
}

impl Serialize for BlobRef {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (&self.pointer, &self.hash, self.len, self.encoding).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for BlobRef {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (pointer, hash, len, encoding) = Deserialize::deserialize(deserializer)?;
        Ok(Self { pointer, hash, len, encoding })
    }
}

/// Why a body could not be made whole again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoreFault {
    /// Nothing was taken out at this pointer.
    NoPlace(String),
    /// The blob for this pointer is not text.
    NotText(String),
}

impl fmt::Display for RestoreFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPlace(pointer) => {
                write!(f, "the body has no empty string at `{pointer}` to put the blob back")
            }
            Self::NotText(pointer) => write!(f, "the blob for `{pointer}` is not UTF-8 text"),
        }
    }
}

impl std::error::Error for RestoreFault {}

/// Takes every string value of at least `threshold` bytes out of `json`; `None` when there is none.
pub fn extract(json: &str, threshold: usize) -> Option<(String, Vec<Piece>)> {
    let threshold = threshold.max(1);
    if json.len() < threshold {
        return None;
    }
    let mut short = String::new();
    let mut copied = 0;
    let mut pieces = Vec::new();
    scan::each_string_value(json, |steps, text| {
        if text.len() < threshold {
            return;
        }
        let (bytes, encoding) = content(&json[text.clone()], is_data(json, steps));
        pieces.push(Piece { pointer: scan::pointer(json, steps), bytes, encoding });
        short.push_str(&json[copied..text.start]);
        copied = text.end;
    });
    if pieces.is_empty() {
        return None;
    }
    short.push_str(&json[copied..]);
    // An object with a repeated key has two places behind one pointer. Such a body stays whole.
    (restore(&short, &pieces).as_deref() == Ok(json)).then_some((short, pieces))
}

/// Puts the pieces back where they were taken from.
pub fn restore(json: &str, pieces: &[Piece]) -> Result<String, RestoreFault> {
    let mut wanted: HashMap<&str, &Piece> = pieces.iter().map(|piece| (piece.pointer.as_str(), piece)).collect();
    let mut found: Vec<(Range<usize>, &Piece)> = Vec::with_capacity(pieces.len());
    scan::each_string_value(json, |steps, text| {
        if text.is_empty() && !wanted.is_empty() {
            found.extend(wanted.remove(scan::pointer(json, steps).as_str()).map(|piece| (text, piece)));
        }
    });
    if let Some(piece) = wanted.values().next() {
        return Err(RestoreFault::NoPlace(piece.pointer.clone()));
    }
    let grown: usize = pieces.iter().map(|piece| piece.bytes.len() * 4 / 3 + 4).sum();
    let mut whole = String::with_capacity(json.len() + grown);
    let mut copied = 0;
    for (text, piece) in found {
        whole.push_str(&json[copied..text.start]);
        push_string(piece, &mut whole)?;
        copied = text.end;
    }
    whole.push_str(&json[copied..]);
    Ok(whole)
}

fn push_string(piece: &Piece, whole: &mut String) -> Result<(), RestoreFault> {
    let text = || std::str::from_utf8(&piece.bytes).map_err(|_| RestoreFault::NotText(piece.pointer.clone()));
    match piece.encoding {
        Encoding::Base64 => STANDARD.encode_string(&piece.bytes, whole),
        Encoding::Escaped => whole.push_str(text()?),
        Encoding::Text => whole.push_str(&escaped(text()?)),
    }
    Ok(())
}

/// The blob for a string, from the text between its quotes.
fn content(between_quotes: &str, may_be_base64: bool) -> (Vec<u8>, Encoding) {
    if may_be_base64
        && let Ok(bytes) = STANDARD.decode(between_quotes)
        && STANDARD.encode(&bytes) == between_quotes
    {
        return (bytes, Encoding::Base64);
    }
    match scan::unescape(between_quotes) {
        Some(text) if escaped(&text) == between_quotes => (text.into_bytes(), Encoding::Text),
        _ => (between_quotes.as_bytes().to_vec(), Encoding::Escaped),
    }
}

/// What stands between the quotes when `text` is written as JSON.
fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// True for a value behind a key `data`, where images keep their base64.
fn is_data(json: &str, steps: &[Step]) -> bool {
    matches!(steps.last(), Some(Step::Key(key)) if &json[key.clone()] == "data")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,24}".prop_map(Value::from),
            proptest::collection::vec(any::<u8>(), 0..24).prop_map(|bytes| Value::from(STANDARD.encode(bytes))),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::vec(("data|[a-c~/\"\\\\]{0,3}", inner), 0..5)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_taken_out_goes_back_byte_for_byte(value in any_json(), threshold in 1_usize..20, pretty: bool) {
            let json = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
            if let Some((short, pieces)) = extract(&json, threshold) {
                prop_assert_eq!(restore(&short, &pieces).unwrap(), json);
            }
        }
    }

    #[test]
    fn given_an_image_its_bytes_are_stored_and_its_text_comes_back() {
        let json = json!({"content": [{"type": "image", "data": STANDARD.encode([7; 30]), "mime": "image/png"}]})
            .to_string();
        let (short, pieces) = extract(&json, 20).unwrap();
        assert_eq!(short, r#"{"content":[{"type":"image","data":"","mime":"image/png"}]}"#);
        let piece = Piece { pointer: "/content/0/data".into(), bytes: vec![7; 30], encoding: Encoding::Base64 };
        assert_eq!(pieces, vec![piece]);
        assert_eq!(restore(&short, &pieces).unwrap(), json);
    }

    #[test]
    fn given_an_unusual_escape_the_string_is_kept_as_it_was_written() {
        let json = r#"["\u0041bcdefgh\/"]"#;
        let (short, pieces) = extract(json, 5).unwrap();
        assert_eq!(pieces[0].encoding, Encoding::Escaped);
        assert_eq!(restore(&short, &pieces).unwrap(), json);
    }

    #[test]
    fn given_a_repeated_key_that_would_mislead_nothing_is_taken_out() {
        assert_eq!(extract(r#"{"a":"","a":"long enough"}"#, 5), None);
    }

    #[test]
    fn given_a_blob_without_a_place_restoring_says_so() {
        let piece = Piece { pointer: "/b".into(), bytes: vec![], encoding: Encoding::Text };
        assert_eq!(restore(r#"{"a":""}"#, &[piece]), Err(RestoreFault::NoPlace("/b".into())));
    }

    #[test]
    fn a_short_body_is_left_alone_without_looking() {
        assert_eq!(extract("\"abc\"", 6), None);
    }
}
