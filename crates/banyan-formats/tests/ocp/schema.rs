//! Judges contexts by the protocol's own schema, as far as that one goes.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

static SCHEMA: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../fixtures/ocp/ocp-context.schema")).unwrap());

pub(crate) fn assert_valid(context: &Value) {
    let mut wrong = Vec::new();
    judge(context, &SCHEMA, "", &mut wrong);
    assert!(wrong.is_empty(), "{wrong:?} in {context}");
}

fn matches(pattern: &str, text: &str) -> bool {
    thread_local! {
        static KNOWN: RefCell<HashMap<String, Regex>> = RefCell::default();
    }
    KNOWN.with_borrow_mut(|known| {
        known.entry(pattern.to_owned()).or_insert_with(|| Regex::new(pattern).unwrap()).is_match(text)
    })
}

fn judge(value: &Value, schema: &Value, at: &str, wrong: &mut Vec<String>) {
    let mut say = |what: &str| wrong.push(format!("{at}: {what}"));
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let is = |kind: &&str| match *kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "null" => value.is_null(),
        other => panic!("{other}"),
    };
    if !kinds.is_empty() && !kinds.iter().any(is) {
        return say("type");
    }
    if let (Some(pattern), Some(text)) = (schema["pattern"].as_str(), value.as_str())
        && !matches(pattern, text)
    {
        say("pattern");
    }
    if let (Some(format), Some(text)) = (schema["format"].as_str(), value.as_str()) {
        let shape = match format {
            "date-time" => {
                r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$"
            }
            "uri" => r"^[A-Za-z][A-Za-z0-9+.-]*:[!#-;=?-\[\]_a-z~]+$",
            other => panic!("{other}"),
        };
        if !matches(shape, text) {
            say("format");
        }
    }
    if schema["minimum"].as_i64().is_some_and(|least| value.as_i64().is_some_and(|value| value < least)) {
        say("minimum");
    }
    if let Some(items) = value.as_array() {
        if schema["maxItems"].as_u64().is_some_and(|most| items.len() as u64 > most) {
            say("maxItems");
        }
        for (index, item) in items.iter().enumerate() {
            judge(item, &schema["items"], &format!("{at}/{index}"), wrong);
        }
    }
    let Some(fields) = value.as_object() else { return };
    for required in schema["required"].as_array().into_iter().flatten() {
        if !fields.contains_key(required.as_str().unwrap()) {
            wrong.push(format!("{at}: {required} is missing"));
        }
    }
    for (key, value) in fields {
        let by_pattern = schema["patternProperties"].as_object().into_iter().flatten();
        let mut known = by_pattern.filter(|(pattern, _)| matches(pattern, key)).map(|(_, it)| it);
        match schema["properties"].get(key).or_else(|| known.next()) {
            Some(schema) => judge(value, schema, &format!("{at}/{key}"), wrong),
            None if schema["additionalProperties"] == Value::Bool(false) => {
                wrong.push(format!("{at}: {key} is too much"))
            }
            None => {}
        }
    }
}
