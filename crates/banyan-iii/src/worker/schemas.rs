//! How much of a function's schemas the engine is told.
//!
//! Engines copy a function's schemas with every call, each object and each word of them, so whatever they are told is paid
//! for by everyone who calls. They are told the form, in as few words as it takes, and no remarks.

use serde_json::{Map, Value, json};

/// How much of a function's schemas the engine is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schemas {
    /// The whole form: every field and what it is made of.
    #[default]
    Full,
    /// The fields of a request and a response, and not what messages and entries in them are made of.
    Brief,
}

impl Schemas {
    /// A schema, as the engine is told it.
    pub fn told(self, schema: Value) -> Value {
        match self {
            Self::Full => without_remarks(schema),
            Self::Brief => brief(without_remarks(schema)),
        }
    }
}

/// What says nothing about the form.
const REMARKS: [&str; 3] = ["$schema", "description", "examples"];
/// Where schemas have names, which may be anything.
const NAMED: [&str; 3] = ["properties", "definitions", "$defs"];
/// Where the schemas that others refer to are.
const SHARED: [&str; 2] = ["definitions", "$defs"];
/// What is a value and not a schema.
const VALUES: [&str; 4] = ["enum", "const", "default", "required"];

/// The same form without remarks, and without what is only there to carry them.
fn without_remarks(schema: Value) -> Value {
    let Value::Object(fields) = schema else { return each(schema, without_remarks) };
    let fields = fields.into_iter().filter(|(key, _)| !REMARKS.contains(&key.as_str()));
    let mut fields = inside(fields, without_remarks);
    if fields.len() == 1
        && let Some(Value::Array(only)) = fields.get_mut("allOf")
        && only.len() == 1
        && let Some(only) = only.pop()
    {
        return only;
    }
    match words(&fields) {
        Some(words) => json!({"type": "string", "enum": words}),
        None => Value::Object(fields),
    }
}

/// The words that a schema allows, if it allows them one by one.
fn words(fields: &Map<String, Value>) -> Option<Vec<Value>> {
    let Some(Value::Array(options)) = fields.get("oneOf").filter(|_| fields.len() == 1) else { return None };
    let word = |option: &Value| {
        let word = option.get("const").filter(|word| word.is_string())?;
        (*option == json!({"type": "string", "const": word})).then(|| word.clone())
    };
    options.iter().map(word).collect()
}

/// A schema without what it refers to.
fn brief(schema: Value) -> Value {
    match schema {
        Value::Object(fields) if fields.contains_key("$ref") => Value::Bool(true),
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(key, _)| !SHARED.contains(&key.as_str()));
            Value::Object(inside(fields, brief))
        }
        other => each(other, brief),
    }
}

/// Changes the schemas inside a schema.
fn inside(fields: impl Iterator<Item = (String, Value)>, change: fn(Value) -> Value) -> Map<String, Value> {
    fields
        .map(|(key, value)| {
            let value = match value {
                value if VALUES.contains(&key.as_str()) => value,
                Value::Object(named) if NAMED.contains(&key.as_str()) => {
                    Value::Object(named.into_iter().map(|(name, schema)| (name, change(schema))).collect())
                }
                value => change(value),
            };
            (key, value)
        })
        .collect()
}

fn each(value: Value, change: fn(Value) -> Value) -> Value {
    match value {
        Value::Array(values) => Value::Array(values.into_iter().map(change).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_schema() -> Value {
        json!({
            "$schema": "x", "title": "Adds", "type": "object", "required": ["message"], "description": "Adds.",
            "properties": {
                "description": {"type": "string", "description": "A field of that name.", "default": "description"},
                "message": {"allOf": [{"$ref": "#/definitions/Message"}], "description": "It."},
                "messages": {"type": "array", "items": {"$ref": "#/definitions/Message"}},
            },
            "definitions": {
                "Message": {"type": "object", "properties": {"why": {"$ref": "#/definitions/Why"}}},
                "Why": {"description": "Why.", "oneOf": [
                    {"type": "string", "const": "end", "description": "It is over."},
                    {"type": "string", "const": "error", "description": "It failed."},
                ]},
            },
        })
    }

    #[test]
    fn a_full_schema_has_the_whole_form_and_no_remarks() {
        let told = json!({
            "title": "Adds", "type": "object", "required": ["message"],
            "properties": {
                "description": {"type": "string", "default": "description"},
                "message": {"$ref": "#/definitions/Message"},
                "messages": {"type": "array", "items": {"$ref": "#/definitions/Message"}},
            },
            "definitions": {
                "Message": {"type": "object", "properties": {"why": {"$ref": "#/definitions/Why"}}},
                "Why": {"type": "string", "enum": ["end", "error"]},
            },
        });
        assert_eq!(Schemas::Full.told(a_schema()), told);
    }

    #[test]
    fn a_brief_schema_has_the_fields_and_nothing_that_they_refer_to() {
        let told = json!({
            "title": "Adds", "type": "object", "required": ["message"],
            "properties": {
                "description": {"type": "string", "default": "description"},
                "message": true,
                "messages": {"type": "array", "items": true},
            },
        });
        assert_eq!(Schemas::Brief.told(a_schema()), told);
    }

    #[test]
    fn every_function_is_told_briefly() {
        for function in banyan::functions() {
            let (full, told) = (function.request_schema(), Schemas::Brief.told(function.request_schema()));
            assert_eq!(told["required"], full["required"], "{}", function.id);
            assert!(!told.to_string().contains("$ref"), "{}", function.id);
        }
    }
}
