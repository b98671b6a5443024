//! The identity of one incarnation of a session: a deleted and re-ensured id gets a new one.

use std::fmt;
use std::str::FromStr;

use banyan_model::SessionId;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::hex;

/// Which incarnation of a session id a record or a fork means. Written as 32 lower-case hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Born(pub [u8; 16]);

impl Born {
    /// The incarnation of a file that does not say: one written by session-manager, or one whose first record is lost.
    pub fn unsaid(session: &SessionId) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("banyan 2026 born of a file that does not say");
        hasher.update(session.as_str().as_bytes());
        let mut bytes = [0; 16];
        hasher.finalize_xof().fill(&mut bytes);
        Self(bytes)
    }
}

impl fmt::Display for Born {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(hex::text(&hex::encode16(&self.0)))
    }
}

/// The text is not 32 lower-case hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotBorn;

impl fmt::Display for NotBorn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an incarnation is 32 lower-case hex digits")
    }
}

impl std::error::Error for NotBorn {}

impl FromStr for Born {
    type Err = NotBorn;

    fn from_str(text: &str) -> Result<Self, NotBorn> {
        hex::decode16(text.as_bytes()).map(Self).ok_or(NotBorn)
    }
}

impl Serialize for Born {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Born {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}
