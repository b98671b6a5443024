//! One line in the making.

use banyan_model::LongText;
use serde::Serialize;

use super::SCHEMA_VERSION;
use crate::history::rfc3339;

/// A line of a log: the envelope, then fields in the order in which they are given.
pub(super) struct Line(Vec<u8>);

/// The first and the last time that has four digits for its year. What lies beyond is told besides.
const YEAR_0: i64 = -62_167_219_200_000;
const YEAR_9999: i64 = 253_402_300_799_999;

impl Line {
    pub(super) fn new(seq: u64, time_ms: i64, kind: &str) -> Self {
        let mut line = Self(Vec::with_capacity(1024));
        line.0.extend_from_slice(b"{\"schema_version\":");
        line.json(&SCHEMA_VERSION);
        line.field("seq", &seq);
        line.field("time", &rfc3339(time_ms.clamp(YEAR_0, YEAR_9999)));
        line.field("type", kind);
        line
    }

    /// Adds a field.
    pub(super) fn field<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) {
        self.0.push(b',');
        // Nearly all keys are our own words.
        if key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            self.0.push(b'"');
            self.0.extend_from_slice(key.as_bytes());
            self.0.push(b'"');
        } else {
            self.json(key);
        }
        self.0.push(b':');
        self.json(value);
    }

    /// Adds a field that may be a long text.
    pub(super) fn text(&mut self, key: &str, text: &str) {
        self.field(key, &LongText(text));
    }

    /// Adds a field that may be missing.
    pub(super) fn optional<T: Serialize>(&mut self, key: &str, value: Option<&T>) {
        if let Some(value) = value {
            self.field(key, value);
        }
    }

    /// The line with its end.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.0.extend_from_slice(b"}\n");
        self.0
    }

    fn json<T: Serialize + ?Sized>(&mut self, value: &T) {
        let start = self.0.len();
        // What has no JSON form is null: nothing that is written here is such a thing.
        if serde_json::to_writer(&mut self.0, value).is_err() {
            self.0.truncate(start);
            self.0.extend_from_slice(b"null");
        }
    }
}
