//! How much of a function's schemas the engine is told.
//!
//! Engines copy a function's schemas with every call, so what they are told of a message is paid for by everyone who sends one.

use serde_json::{Map, Value};

/// How much of a function's schemas the engine is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schemas {
    /// Everything.
    #[default]
    Full,
    /// The fields of a request and a response, and not what messages and entries in them are made of.
    Brief,
}

impl Schemas {
    /// A schema, as the engine is told it.
    pub(super) fn told(self, schema: Value) -> Value {
        match self {
            Self::Full => schema,
            Self::Brief => brief(schema),
        }
    }
}

/// Where the schemas that others refer to are.
const SHARED: [&str; 2] = ["$defs", "definitions"];
/// What says nothing about the form.
const REMARKS: [&str; 4] = ["$schema", "title", "description", "default"];

/// A schema without what it refers to.
fn brief(schema: Value) -> Value {
    match schema {
        Value::Object(fields) if fields.contains_key("$ref") => Value::Bool(true),
        Value::Object(fields) => {
            let stays = |key: &str| !SHARED.contains(&key) && !REMARKS.contains(&key);
            Value::Object(
                fields
                    .into_iter()
                    .filter(|(key, _)| stays(key))
                    .map(|(key, value)| {
                        let value = if key == "properties" { brief_each(value) } else { brief(value) };
                        (key, value)
                    })
                    .collect(),
            )
        }
        Value::Array(values) => Value::Array(values.into_iter().map(brief).collect()),
        other => other,
    }
}

/// The schemas of fields, whose names may be anything.
fn brief_each(properties: Value) -> Value {
    match properties {
        Value::Object(fields) => {
            Value::Object(fields.into_iter().map(|(name, schema)| (name, brief(schema))).collect::<Map<_, _>>())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_brief_schema_has_the_fields_and_nothing_that_they_refer_to() {
        let schema = json!({
            "$schema": "x", "type": "object", "required": ["message"], "description": "Adds.",
            "properties": {
                "description": {"type": "string", "description": "A field of that name."},
                "message": {"$ref": "#/$defs/Message"},
                "messages": {"type": "array", "items": {"$ref": "#/$defs/Message"}},
            },
            "$defs": {"Message": {"type": "object"}},
        });
        let told = json!({
            "type": "object", "required": ["message"],
            "properties": {
                "description": {"type": "string"},
                "message": true,
                "messages": {"type": "array", "items": true},
            },
        });
        assert_eq!(Schemas::Brief.told(schema.clone()), told);
        assert_eq!(Schemas::Full.told(schema.clone()), schema);
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
