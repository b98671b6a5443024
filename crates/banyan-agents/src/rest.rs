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
use serde_json::Value;
use serde_json::value::RawValue;

use crate::OWN;

/// A record that is being read.
pub(crate) struct Rest<'a> {
    text: &'a str,
    taken: Vec<Range<usize>>,
}

impl<'a> Rest<'a> {
    /// A record, all of which is still there.
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, taken: Vec::new() }
    }

    /// Leaves null in the place of a value that was found in the record.
    pub(crate) fn take(&mut self, value: &'a RawValue) {
        let start = (value.get().as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let place = start..start.saturating_add(value.get().len());
        debug_assert_eq!(self.text.get(place.clone()), Some(value.get()));
        self.taken.push(place);
    }

    /// The same for a text; nothing happens, and there is none, if the value is none.
    pub(crate) fn take_text(&mut self, value: Option<&'a RawValue>) -> Option<String> {
        let value = value.filter(|value| is_text(value))?;
        self.take(value);
        Some(text(Some(value)).into_owned())
    }

    /// What is left, on one line without blanks. None if nobody could read it again.
    pub(crate) fn text(mut self) -> Option<String> {
        self.taken.sort_unstable_by_key(|place| place.start);
        let mut left = String::with_capacity(self.text.len());
        let mut from = 0;
        for place in self.taken {
            left.push_str(self.text.get(from..place.start)?);
            left.push_str("null");
            from = place.end;
        }
        left.push_str(self.text.get(from..)?);
        Origin::readable(left)
    }
}

/// Whether a value is a text.
pub(crate) fn is_text(value: &RawValue) -> bool {
    value.get().starts_with('"')
}

/// The text that a value is; empty if it is none.
pub(crate) fn text(value: Option<&RawValue>) -> Cow<'_, str> {
    let Some(value) = value.filter(|value| is_text(value)) else { return Cow::Borrowed("") };
    let between = value.get().get(1..value.get().len() - 1).unwrap_or_default();
    match memchr::memchr(b'\\', between.as_bytes()) {
        None => Cow::Borrowed(between),
        Some(_) => serde_json::from_str::<String>(value.get()).map(Cow::Owned).unwrap_or_default(),
    }
}

/// The values of a list; none if the value is no list.
pub(crate) fn list(value: Option<&RawValue>) -> Vec<&RawValue> {
    match value.filter(|value| value.get().starts_with('[')) {
        Some(value) => serde_json::from_str(value.get()).unwrap_or_default(),
        None => Vec::new(),
    }
}

/// The fields that somebody looks for; the defaults if the value is no object.
pub(crate) fn fields<'a, T: Deserialize<'a> + Default>(value: Option<&'a RawValue>) -> T {
    match value.filter(|value| value.get().starts_with('{')) {
        Some(value) => serde_json::from_str(value.get()).unwrap_or_default(),
        None => T::default(),
    }
}

/// A value to be carried on as it is spelled.
pub(crate) fn carried(value: &RawValue) -> Json {
    let deep = || Json::of(&serde_json::from_str::<Value>(value.get()).ok()?).ok();
    Json::vouched(value.get()).ok().or_else(deep).unwrap_or_default()
}

/// A line without what we wrote there for ourselves. None if there is nothing of ours.
pub(crate) fn without_own(line: &str) -> Option<String> {
    static FINDER: LazyLock<memmem::Finder<'_>> = LazyLock::new(|| memmem::Finder::new(OWN));
    FINDER.find(line.as_bytes())?;
    let mut record: Value = serde_json::from_str(line).ok()?;
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
    Ok(is_text(value).then(|| Text(text(Some(value)))))
}

/// The same for whatever else it may be.
pub(crate) fn if_it_fits<'a, D: Deserializer<'a>, T: Deserialize<'a>>(field: D) -> Result<Option<T>, D::Error> {
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

    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Fields<'a> {
        #[serde(borrow)]
        said: Option<&'a RawValue>,
        #[serde(borrow)]
        parts: Option<&'a RawValue>,
    }

    #[test]
    fn what_is_taken_leaves_null_and_the_rest_stays_as_it_is_spelled() {
        let line = r#"{"n":1.50, "parts":["a\u00e9\n", 2],"said":"yes","z":"\/"}"#;
        let found: Fields<'_> = serde_json::from_str(line).unwrap();
        let mut rest = Rest::new(line);
        assert_eq!(rest.take_text(found.said).as_deref(), Some("yes"));
        assert_eq!(rest.take_text(list(found.parts).first().copied()).as_deref(), Some("aé\n"));
        assert_eq!(rest.take_text(found.parts), None);
        assert_eq!(rest.text().as_deref(), Some(r#"{"n":1.50,"parts":[null,2],"said":null,"z":"\/"}"#));
    }

    #[test]
    fn a_field_that_is_something_else_is_missing_and_the_others_are_there() {
        #[derive(Deserialize)]
        struct Few<'a> {
            #[serde(borrow, default, deserialize_with = "if_text")]
            said: Option<Text<'a>>,
            #[serde(default, deserialize_with = "if_it_fits")]
            sure: Option<bool>,
        }
        let read = |line: &'static str| -> (Option<String>, Option<bool>) {
            let few: Few<'_> = serde_json::from_str(line).unwrap();
            (few.said.as_deref().map(str::to_owned), few.sure)
        };
        assert_eq!(read(r#"{"said":"a\n","sure":true}"#), (Some("a\n".to_owned()), Some(true)));
        for odd in ["null", "7", "[1]", "{\"a\":{}}", "1e999"] {
            let line = format!(r#"{{"said":{odd},"sure":{odd}}}"#);
            assert_eq!(read(line.leak()), (None, None), "{odd}");
        }
        assert_eq!(read("{}"), (None, None));
    }

    #[test]
    fn a_record_that_nobody_could_read_again_is_not_kept() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        assert_eq!(Rest::new(&deep).text(), None);
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
