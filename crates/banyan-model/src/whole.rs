//! Whole numbers as JSON Schema sees them: `5.0` is an integer too, and some languages write it so.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

/// A whole number.
pub trait Whole: Sized {
    /// As it is called in an error.
    const NAME: &'static str;

    /// The same number, if this type can hold it.
    fn from_number(number: i128) -> Option<Self>;
}

macro_rules! whole {
    ($($number:ty)*) => {$(
        impl Whole for $number {
            const NAME: &'static str = stringify!($number);

            fn from_number(number: i128) -> Option<Self> {
                Self::try_from(number).ok()
            }
        }
    )*};
}

whole! { i64 u32 u64 usize }

impl Whole for crate::Revision {
    const NAME: &'static str = "u64";

    fn from_number(number: i128) -> Option<Self> {
        u64::try_from(number).ok().map(Self)
    }
}

/// For a field that must be there.
pub fn number<'de, T: Whole, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_i64(WholeVisitor(PhantomData))
}

/// For a field that may be missing or null.
pub fn optional<'de, T: Whole, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    struct Field<T>(T);
    impl<'de, T: Whole> Deserialize<'de> for Field<T> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            number(deserializer).map(Self)
        }
    }
    Ok(Option::<Field<T>>::deserialize(deserializer)?.map(|field| field.0))
}

struct WholeVisitor<T>(PhantomData<T>);

impl<T: Whole> Visitor<'_> for WholeVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::NAME)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        T::from_number(number.into()).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Signed(number), &self))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        T::from_number(number.into())
            .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Unsigned(number), &self))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        // An integer past 64 bits arrives rounded, at the least on the bound itself, which is written without a fraction.
        let inside = number > i64::MIN as f64;
        let whole = Some(number)
            .filter(|number| inside && number.fract() == 0.0)
            .and_then(|number| T::from_number(number as i128));
        whole.ok_or_else(|| E::invalid_type(serde::de::Unexpected::Float(number), &self))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Fields {
        #[serde(deserialize_with = "number")]
        at: i64,
        #[serde(default, deserialize_with = "optional")]
        limit: Option<u64>,
    }

    fn read(text: &str) -> Result<Fields, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_whole_number_may_be_written_with_a_fraction_of_nothing() {
        for (text, at, limit) in [
            (r#"{"at":-5.0,"limit":7.0}"#, -5, Some(7)),
            (r#"{"at":1e3,"limit":null}"#, 1000, None),
            (r#"{"at":-0.0}"#, 0, None),
            (r#"{"at":-9223372036854775808,"limit":18446744073709551615}"#, i64::MIN, Some(u64::MAX)),
        ] {
            assert_eq!(read(text).unwrap(), Fields { at, limit }, "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for (text, why) in [
            (r#"{"at":0.5}"#, "invalid type: floating point `0.5`, expected i64"),
            (r#"{"at":1e300}"#, "invalid type: floating point `1e+300`, expected i64"),
            (
                r#"{"at":-9223372036854775809}"#,
                "invalid type: floating point `-9.223372036854776e+18`, expected i64",
            ),
            (r#"{"at":18446744073709551615}"#, "invalid value: integer `18446744073709551615`, expected i64"),
            (r#"{"at":0,"limit":-1}"#, "invalid value: integer `-1`, expected u64"),
            (r#"{"at":"5"}"#, "invalid type: string \"5\", expected i64"),
            (r#"{"at":null}"#, "invalid type: null, expected i64"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(why), "{text}: {error}");
        }
    }
}
