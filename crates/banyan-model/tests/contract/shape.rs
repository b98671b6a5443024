//! What a schema allows, freed from the many ways to write it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// A schema, whether `null` is allowed besides, the default, and the contract's name for it.
pub(crate) struct Shape<'a> {
    pub(crate) name: Option<&'a str>,
    pub(crate) nullable: bool,
    pub(crate) form: Form<'a>,
}

/// What is allowed besides `null`.
pub(crate) enum Form<'a> {
    Anything,
    Scalar { kind: &'a str, format: Option<&'a str>, minimum: Option<f64> },
    Words(BTreeSet<&'a str>),
    List(&'a Value),
    Object { fields: &'a Map<String, Value>, required: BTreeSet<&'a str>, open: bool },
    Variants(BTreeMap<&'a str, &'a Value>),
}

/// Reads a schema; `root` is where its references lead.
pub(crate) fn shape<'a>(schema: &'a Value, root: &'a Value) -> Shape<'a> {
    let Some(keys) = schema.as_object() else {
        return Shape { name: None, nullable: false, form: Form::Anything };
    };
    if let Some(reference) = keys.get("$ref").and_then(Value::as_str) {
        let pointer = reference.strip_prefix('#').expect("references stay in the document");
        let target = root.pointer(pointer).expect("references lead somewhere");
        return Shape { name: pointer.rsplit('/').next(), ..shape(target, root) };
    }
    if let Some([only]) = list(keys, "allOf") {
        return shape(only, root);
    }
    if let Some(options) = list(keys, "anyOf") {
        let (null, other): (Vec<_>, Vec<_>) = options.iter().partition(|option| option["type"] == "null");
        assert_eq!((null.len(), other.len()), (1, 1), "anyOf is only used for `T or null`: {schema}");
        return Shape { nullable: true, ..shape(other[0], root) };
    }
    let types: Vec<&str> = match keys.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    Shape {
        name: keys.get("title").and_then(Value::as_str),
        nullable: types.contains(&"null"),
        form: form(keys, types.iter().find(|kind| **kind != "null").copied(), root),
    }
}

fn form<'a>(keys: &'a Map<String, Value>, kind: Option<&'a str>, root: &'a Value) -> Form<'a> {
    if let Some(word) = keys.get("const").and_then(Value::as_str) {
        return Form::Words(BTreeSet::from([word]));
    }
    if let Some(words) = list(keys, "enum") {
        return Form::Words(words.iter().filter_map(Value::as_str).collect());
    }
    if let Some(options) = list(keys, "oneOf") {
        return one_of(options, root);
    }
    match kind {
        None => Form::Anything,
        Some("array") => Form::List(&keys["items"]),
        Some("object") => {
            static NONE: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
            Form::Object {
                fields: keys.get("properties").and_then(Value::as_object).unwrap_or(&NONE),
                required: list(keys, "required").into_iter().flatten().filter_map(Value::as_str).collect(),
                open: keys.get("additionalProperties") == Some(&Value::Bool(true)),
            }
        }
        Some(kind) => Form::Scalar {
            kind,
            format: keys.get("format").and_then(Value::as_str),
            minimum: keys.get("minimum").and_then(Value::as_f64),
        },
    }
}

/// Either a list of words, each with its own description, or objects told apart by a field of one word.
fn one_of<'a>(options: &'a [Value], root: &'a Value) -> Form<'a> {
    let mut words = BTreeSet::new();
    let mut variants = BTreeMap::new();
    for option in options {
        match shape(option, root).form {
            Form::Words(more) => words.extend(more),
            Form::Object { fields, .. } => {
                let tag = fields.values().find_map(|field| match shape(field, root).form {
                    Form::Words(words) if words.len() == 1 => words.first().copied(),
                    _ => None,
                });
                variants.insert(tag.expect("a variant names itself"), option);
            }
            _ => panic!("oneOf is only used for words and tagged objects: {option}"),
        }
    }
    assert!(words.is_empty() || variants.is_empty(), "words and objects are not mixed");
    if variants.is_empty() { Form::Words(words) } else { Form::Variants(variants) }
}

fn list<'a>(keys: &'a Map<String, Value>, key: &str) -> Option<&'a [Value]> {
    keys.get(key).and_then(Value::as_array).map(Vec::as_slice)
}
