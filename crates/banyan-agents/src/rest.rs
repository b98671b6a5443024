//! What is left of a record when a message has taken what it has a place for: the record's own text, with null in those places.
//!
//! Nothing is parsed into values and written again, so numbers keep their digits and fields their order, and most of a line is
//! only looked at once and copied once.

use std::borrow::Cow;
use std::ops::{Deref, Range};
use std::sync::LazyLock;

use banyan_model::{Json, Origin};
use memchr::memmem;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::OWN;
use crate::outline::Found;

/// A record that is being read.
pub(crate) struct Rest<'a> {
    record: Found<'a>,
    taken: Vec<Range<usize>>,
}

impl<'a> Rest<'a> {
    /// A record, all of which is still there.
    pub(crate) fn new(record: Found<'a>) -> Self {
        Self { record, taken: Vec::new() }
    }

    /// Leaves null in the place of a value of the record.
    pub(crate) fn take(&mut self, value: Found<'a>) {
        self.taken.push(value.place());
    }

    /// The same for a text; nothing happens, and there is none, if the value is none.
    pub(crate) fn take_text(&mut self, value: Option<Found<'a>>) -> Option<String> {
        let text = value?.text()?.into_owned();
        self.taken.push(value?.place());
        Some(text)
    }

    /// What is left, on one line without blanks. None if nobody could read it again.
    pub(crate) fn text(mut self) -> Option<String> {
        self.taken.sort_unstable_by_key(|place| place.start);
        let whole = self.record.whole();
        let without: usize = self.taken.iter().map(ExactSizeIterator::len).sum();
        let mut left = String::with_capacity(whole.len() - without + 4 * self.taken.len());
        let mut from = 0;
        for place in self.taken {
            left.push_str(whole.get(from..place.start)?);
            left.push_str("null");
            from = place.end;
        }
        left.push_str(whole.get(from..)?);
        if self.record.is_plain() { Some(left) } else { Origin::readable(left) }
    }
}

/// The text that a value is; empty if it is none.
pub(crate) fn text(value: Option<Found<'_>>) -> Cow<'_, str> {
    value.and_then(Found::text).unwrap_or_default()
}

/// The values of a list; none if the value is no list.
pub(crate) fn list(value: Option<Found<'_>>) -> impl Iterator<Item = Found<'_>> {
    value.into_iter().flat_map(Found::items)
}

/// A value to be carried on as it is spelled.
pub(crate) fn carried(value: Found<'_>) -> Json {
    let deep = || Json::of(&value.read::<serde_json::Value>()?).ok();
    value.json().or_else(deep).unwrap_or_default()
}

/// A line without what we wrote there for ourselves. None if there is nothing of ours.
pub(crate) fn without_own(line: &str) -> Option<String> {
    static FINDER: LazyLock<memmem::Finder<'_>> = LazyLock::new(|| memmem::Finder::new(OWN));
    FINDER.find(line.as_bytes())?;
    let mut record: serde_json::Value = serde_json::from_str(line).ok()?;
    record.as_object_mut()?.shift_remove(OWN)?;
    Some(record.to_string())
}

/// A text that is borrowed where it can be.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// A field that is something else than it was in every version that is known counts as missing: the rest of its record is worth
/// more than it.
pub(crate) fn if_text<'a, D: Deserializer<'a>>(field: D) -> Result<Option<Text<'a>>, D::Error> {
    let value = <&RawValue>::deserialize(field)?;
    Ok(serde_json::from_str(value.get()).ok())
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::outline::Outline;

    #[test]
    fn what_is_taken_leaves_null_and_the_rest_stays_as_it_is_spelled() {
        for (blank, line) in [
            (" ", r#"{"n":1.50, "parts":["a\u00e9\n", 2],"said":"yes","z":"\/"}"#),
            ("", r#"{"n":1.50,"parts":["a\u00e9\n",2],"said":"yes","z":"\/"}"#),
        ] {
            let outline = Outline::of(line).unwrap();
            let record = outline.root();
            assert_eq!(record.is_plain(), blank.is_empty());
            let (said, parts) = (record.get("said"), record.get("parts"));
            let mut rest = Rest::new(record);
            assert_eq!(rest.take_text(said).as_deref(), Some("yes"));
            assert_eq!(rest.take_text(list(parts).next()).as_deref(), Some("aé\n"));
            assert_eq!(rest.take_text(parts), None);
            assert_eq!(rest.text().as_deref(), Some(r#"{"n":1.50,"parts":[null,2],"said":null,"z":"\/"}"#));
        }
    }

    #[test]
    fn a_field_that_is_no_text_is_missing_and_the_others_are_there() {
        #[derive(Deserialize)]
        struct Few<'a> {
            #[serde(borrow, default, deserialize_with = "if_text")]
            said: Option<Text<'a>>,
            more: u8,
        }
        let read = |line: &str| {
            let few: Few<'_> = serde_json::from_str(line).unwrap();
            (few.said.as_deref().map(str::to_owned), few.more)
        };
        assert_eq!(read(r#"{"said":"a\n","more":1}"#), (Some("a\n".to_owned()), 1));
        for odd in ["null", "7", "[1]", "{\"a\":{}}", "1e999"] {
            assert_eq!(read(&format!(r#"{{"said":{odd},"more":1}}"#)), (None, 1), "{odd}");
        }
        assert_eq!(read(r#"{"more":1}"#), (None, 1));
    }

    #[test]
    fn a_record_that_nobody_could_read_again_is_not_kept() {
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(200), "]".repeat(200));
        assert_eq!(Rest::new(Outline::of(&deep).unwrap().root()).text(), None);
    }

    #[test]
    fn what_is_ours_is_left_out_and_a_mention_of_it_is_not_ours() {
        assert_eq!(
            without_own(r#"{"a":1,"x_banyan":{"session":"s"},"b":2}"#).as_deref(),
            Some(r#"{"a":1,"b":2}"#)
        );
        assert_eq!(without_own(r#"{"a":"x_banyan"}"#), None);
    }
}
