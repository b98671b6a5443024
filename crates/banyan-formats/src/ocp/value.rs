//! What `OCP-Session` carries: JSON, packed with gzip when it is long, as base64.

use std::fmt;
use std::io::{Read, Write};

use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{alphabet, prelude::BASE64_STANDARD};
use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};
use serde_json::Value;

/// A value is never longer, neither one that is read nor one that is written.
pub const LONGEST_HEADER: usize = 8192;

/// So many bytes of JSON may be in a value. A real context in 8 KiB has less; what has more is made to fill memory.
pub const LARGEST_CONTEXT: usize = 128 << 10;

/// JSON that is longer is packed.
const PACKED_BEYOND: usize = 1000;

const PREFIX: &str = "gzip:";

/// Why a value cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unreadable {
    /// It is longer than a header may be.
    Oversized,
    /// It is not base64.
    NotBase64,
    /// It is said to be packed, and cannot be unpacked.
    NotGzip,
    /// There is more in it than any context has.
    InflatesTooFar,
    /// What is in it is not JSON.
    NotJson,
    /// What is in it is not an object.
    NotAnObject,
}

impl Unreadable {
    /// The reason as one word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Oversized => "oversized",
            Self::NotBase64 => "not-base64",
            Self::NotGzip => "not-gzip",
            Self::InflatesTooFar => "inflates-too-far",
            Self::NotJson => "not-json",
            Self::NotAnObject => "not-an-object",
        }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Oversized => write!(f, "it has more than {LONGEST_HEADER} characters"),
            Self::NotBase64 => f.write_str("it is not base64"),
            Self::NotGzip => f.write_str("it is said to be gzip and cannot be unpacked"),
            Self::InflatesTooFar => write!(f, "there are more than {LARGEST_CONTEXT} bytes in it"),
            Self::NotJson => f.write_str("what is in it is not JSON"),
            Self::NotAnObject => f.write_str("what is in it is not a JSON object"),
        }
    }
}

impl std::error::Error for Unreadable {}

/// Reads a value. Both alphabets of base64 are taken, with padding or without.
pub fn decode(value: &[u8]) -> Result<Value, Unreadable> {
    const TOLERANT: GeneralPurposeConfig = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    const ENGINE: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, TOLERANT);
    if value.len() > LONGEST_HEADER {
        return Err(Unreadable::Oversized);
    }
    let value = value.trim_ascii();
    let packed = value.strip_prefix(PREFIX.as_bytes());
    let standard: Vec<u8> = packed
        .unwrap_or(value)
        .iter()
        .map(|byte| match byte {
            b'-' => b'+',
            b'_' => b'/',
            other => *other,
        })
        .collect();
    let mut bytes = ENGINE.decode(standard).map_err(|_| Unreadable::NotBase64)?;
    // Some pack without saying so.
    if packed.is_some() || bytes.starts_with(&[0x1f, 0x8b]) {
        bytes = unpacked(&bytes)?;
    }
    let value: Value = serde_json::from_slice(&bytes).map_err(|_| Unreadable::NotJson)?;
    if value.is_object() { Ok(value) } else { Err(Unreadable::NotAnObject) }
}

fn unpacked(bytes: &[u8]) -> Result<Vec<u8>, Unreadable> {
    let mut json = Vec::new();
    let most = LARGEST_CONTEXT as u64 + 1;
    GzDecoder::new(bytes).take(most).read_to_end(&mut json).map_err(|_| Unreadable::NotGzip)?;
    if json.len() > LARGEST_CONTEXT { Err(Unreadable::InflatesTooFar) } else { Ok(json) }
}

/// Writes a value, whatever its length. The same JSON is always the same value.
pub fn encode(json: &str) -> String {
    if json.len() <= PACKED_BEYOND {
        return BASE64_STANDARD.encode(json);
    }
    let mut packer = GzBuilder::new().mtime(0).write(Vec::new(), Compression::default());
    // Memory takes what is written to it.
    let packed = packer.write_all(json.as_bytes()).and_then(|()| packer.finish()).unwrap_or_default();
    let mut value = PREFIX.to_owned();
    BASE64_STANDARD.encode_string(packed, &mut value);
    value
}
