//! Reading a query by the type of the function's request: nothing unknown, nothing twice, nothing of a wrong type.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::LazyLock;

use banyan::functions;
use percent_encoding::percent_decode_str;
use serde_json::Value;
use serde_json::value::RawValue;

use super::fields::Fields;
use crate::problem::Problem;

/// A field of a request as a query can carry it.
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Number,
    /// A whole number that may be below zero.
    Signed,
    Flag,
    /// Some of a fixed set of words, with commas between them.
    Words,
    /// Any texts, the key once for each.
    Texts,
    /// A JSON object.
    Object,
}

impl Kind {
    fn described(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Number | Self::Signed => "a whole number",
            Self::Flag => "true or false",
            Self::Words => "words with commas between them",
            Self::Texts => "text, once for each",
            Self::Object => "a JSON object",
        }
    }

    /// The kind of a property, by its schema.
    fn of(schema: &Value) -> Self {
        let types =
            schema["type"].as_array().map_or_else(|| vec![&schema["type"]], |types| types.iter().collect());
        let is = |name: &str| types.iter().any(|known| *known == name);
        match () {
            () if is("integer") && schema["minimum"].is_null() => Self::Signed,
            () if is("integer") => Self::Number,
            () if is("boolean") => Self::Flag,
            () if is("object") => Self::Object,
            () if is("array") && schema["items"]["$ref"].is_string() => Self::Words,
            () if is("array") => Self::Texts,
            () => Self::Text,
        }
    }
}

/// The fields of a function's request.
pub(crate) fn fields_of(function: &str) -> &'static [Field] {
    static FIELDS: LazyLock<HashMap<&'static str, Vec<Field>>> = LazyLock::new(|| {
        let fields = |function: &banyan::Function| {
            let schema = function.request_schema();
            let of_property =
                |(name, schema): (&String, &Value)| Field { name: name.clone(), kind: Kind::of(schema) };
            schema["properties"].as_object().into_iter().flatten().map(of_property).collect()
        };
        functions().iter().map(|function| (function.id, fields(function))).collect()
    });
    FIELDS.get(function).map_or(&[], Vec::as_slice)
}

/// Names and values, decoded. The key of a caller that cannot set headers is left out.
pub(crate) fn pairs(query: Option<&str>) -> Result<Vec<(String, String)>, Problem> {
    let mut pairs = Vec::new();
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (decoded(name)?, decoded(value)?);
        if name != "access_token" {
            pairs.push((name, value));
        }
    }
    Ok(pairs)
}

fn decoded(text: &str) -> Result<String, Problem> {
    let spaced = text.replace('+', " ");
    percent_decode_str(&spaced)
        .decode_utf8()
        .map(std::borrow::Cow::into_owned)
        .map_err(|_| Problem::invalid(format!("the query is not UTF-8 at `{text}`")))
}

/// Writes a query's values as fields of the request.
pub(crate) fn read(given: &[(String, String)], accepted: &[&Field], into: &mut Fields) -> Result<(), Problem> {
    let refused = |what: String| Problem::invalid(format!("{what}; {}", listed(accepted)));
    for (name, _) in given {
        if !accepted.iter().any(|field| field.name == *name) {
            return Err(refused(format!("the query has an unknown key `{name}`")));
        }
    }
    for field in accepted {
        let values: Vec<&str> =
            given.iter().filter(|(name, _)| *name == field.name).map(|(_, value)| value.as_str()).collect();
        match (field.kind, values.as_slice()) {
            (_, []) => {}
            (Kind::Texts, values) => into.value(&field.name, values),
            (kind, [value]) => {
                let wrong =
                    || refused(format!("`{}` should be {}, and is `{value}`", field.name, kind.described()));
                write(kind, value, &field.name, into).ok_or_else(wrong)?;
            }
            _ => return Err(refused(format!("`{}` is given more than once", field.name))),
        }
    }
    Ok(())
}

fn write(kind: Kind, value: &str, name: &str, into: &mut Fields) -> Option<()> {
    match kind {
        Kind::Text | Kind::Texts => into.value(name, value),
        Kind::Number => into.value(name, &value.parse::<u64>().ok().filter(|_| is_digits(value))?),
        Kind::Signed => into.value(name, &value.parse::<i64>().ok().filter(|_| !value.starts_with('+'))?),
        Kind::Flag => into.value(name, &value.parse::<bool>().ok()?),
        Kind::Words if value.is_empty() => return None,
        Kind::Words => into.value(name, &value.split(',').collect::<Vec<_>>()),
        Kind::Object => {
            let object = serde_json::from_str::<&RawValue>(value).ok()?;
            into.raw(name, Some(object.get()).filter(|text| text.starts_with('{'))?);
        }
    }
    Some(())
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn listed(accepted: &[&Field]) -> String {
    if accepted.is_empty() {
        return "this address takes no query".to_owned();
    }
    let mut list = String::from("this address takes ");
    for (at, field) in accepted.iter().enumerate() {
        let separator = if at == 0 { "" } else { ", " };
        let _ = write!(list, "{separator}{} ({})", field.name, field.kind.described());
    }
    list
}
