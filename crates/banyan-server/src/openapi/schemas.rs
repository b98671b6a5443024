//! The schemas of requests and responses, each named once.

use serde_json::{Map, Value, json};

/// Named schemas.
pub(super) struct Schemas(Map<String, Value>);

impl Schemas {
    pub(super) fn new() -> Self {
        let problem = json!({
            "type": "object",
            "description": "Why a request was refused (RFC 9457).",
            "required": ["type", "title", "status", "detail", "code"],
            "properties": {
                "type": {"type": "string", "description": "Names the kind of problem."},
                "title": {"type": "string", "description": "The kind of problem in a few words."},
                "status": {"type": "integer", "minimum": 400, "maximum": 599, "description": "The status of the answer."},
                "detail": {"type": "string", "description": "What was asked, what is wrong and what to do."},
                "code": {"type": "string", "description": "The kind of problem, for programs.", "examples": ["session/not_found"]},
            },
        });
        Self(Map::from_iter([("Problem".to_owned(), problem)]))
    }

    /// Takes in the schema of a type with all that it refers to. What refers to it.
    pub(super) fn add(&mut self, schema: Value) -> Value {
        let title = schema["title"].as_str().unwrap_or_default().to_owned();
        let schema = self.unnamed(schema);
        // A type that may be null has no name that anybody would use.
        if title.starts_with("Nullable_") { schema } else { self.name(&title, schema) }
    }

    /// Takes in what the schema of a type refers to. The schema itself.
    pub(super) fn unnamed(&mut self, mut schema: Value) -> Value {
        if let Some(fields) = schema.as_object_mut() {
            for (name, definition) in fields.remove("definitions").into_iter().flat_map(into_entries) {
                self.name(&name, tidied(definition));
            }
        }
        tidied(schema)
    }

    /// Takes in a schema under a name. What refers to it.
    pub(super) fn name(&mut self, name: &str, mut schema: Value) -> Value {
        tighten(name, &mut schema);
        self.0.insert(name.to_owned(), schema);
        json!({"$ref": format!("#/components/schemas/{name}")})
    }

    pub(super) fn get(&self, reference: &Value) -> Value {
        let name = reference["$ref"].as_str().and_then(|it| it.rsplit('/').next()).unwrap_or_default();
        self.0.get(name).cloned().unwrap_or_else(|| reference.clone())
    }

    pub(super) fn finish(mut self) -> Value {
        self.0.sort_keys();
        Value::Object(self.0)
    }
}

/// The same type without `null`.
pub(super) fn never_null(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let not_null = |it: &&Value| **it != "null" && it["type"] != "null";
    if let Some(types) = schema["type"].as_array() {
        let types: Vec<Value> = types.iter().filter(not_null).cloned().collect();
        schema["type"] = if types.len() == 1 { types[0].clone() } else { json!(types) };
    }
    if let Some(options) = schema["anyOf"].as_array() {
        let options: Vec<Value> = options.iter().filter(not_null).cloned().collect();
        if let (Some(fields), [only]) = (schema.as_object_mut(), options.as_slice()) {
            fields.remove("anyOf");
            fields.extend(only.as_object().cloned().unwrap_or_default());
        }
    }
    schema
}

fn into_entries(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(entries) => entries,
        _ => Map::new(),
    }
}

/// A schema of a type as it stands in the document: references lead to the named schemas, and numbers have the bounds that
/// they are read with.
fn tidied(schema: Value) -> Value {
    match schema {
        Value::Array(items) => items.into_iter().map(tidied).collect(),
        Value::Object(fields) => {
            let mut fields: Map<String, Value> =
                fields.into_iter().map(|(name, value)| (name, tidied(value))).collect();
            // A field may be called `title`, and then it is a schema.
            fields.retain(|name, value| !(matches!(name.as_str(), "$schema" | "title") && value.is_string()));
            if let Some(Value::String(reference)) = fields.get_mut("$ref") {
                *reference = reference.replace("#/definitions/", "#/components/schemas/");
            }
            alone(&mut fields);
            words(&mut fields);
            bounds(&mut fields);
            Value::Object(fields)
        }
        other => other,
    }
}

/// `allOf` around one schema is that schema.
fn alone(fields: &mut Map<String, Value>) {
    if let Some([Value::Object(only)]) = fields.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
        let only = only.clone();
        fields.remove("allOf");
        let described = fields.get("description").cloned();
        fields.extend(only);
        fields.extend(described.map(|described| ("description".to_owned(), described)));
    }
}

/// A choice between words is an `enum`; what each of them means goes into the description.
fn words(fields: &mut Map<String, Value>) {
    let Some(options) = fields.get("oneOf").and_then(Value::as_array) else { return };
    if !options.iter().all(|option| option["const"].is_string()) {
        return;
    }
    let words: Vec<Value> = options.iter().map(|option| option["const"].clone()).collect();
    let mut description = fields.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
    for option in options {
        let (word, meaning) = (option["const"].as_str(), option["description"].as_str());
        description.push_str(&format!("\n- `{}`: {}", word.unwrap_or_default(), meaning.unwrap_or_default()));
    }
    fields.remove("oneOf");
    fields.insert("type".to_owned(), json!("string"));
    fields.insert("enum".to_owned(), json!(words));
    fields.insert("description".to_owned(), json!(description));
}

fn bounds(fields: &mut Map<String, Value>) {
    let (format, least, most) = match fields.get("format").and_then(Value::as_str) {
        Some("uint" | "uint64") => ("uint64", json!(0), json!(u64::MAX)),
        Some("uint32") => ("uint32", json!(0), json!(u32::MAX)),
        Some("int64") => ("int64", json!(i64::MIN), json!(i64::MAX)),
        _ => return,
    };
    fields.insert("format".to_owned(), json!(format));
    fields.insert("minimum".to_owned(), least);
    fields.insert("maximum".to_owned(), most);
}

/// Base64 with padding, whose last digit has no bits to spare.
const BASE64: &str = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$";

/// Adds what a type cannot say of itself, and is checked all the same.
fn tighten(name: &str, schema: &mut Value) {
    match name.replace("Body", "Request").as_str() {
        // What is left out may also be null.
        "AgentMessage" => {
            for option in schema["oneOf"].as_array_mut().into_iter().flatten() {
                if let Some(is_error) = option.pointer_mut("/properties/is_error/type") {
                    *is_error = json!(["boolean", "null"]);
                }
            }
        }
        "EnsureRequest" => {
            if let Some(id) = schema.pointer_mut("/properties/session_id") {
                id["minLength"] = json!(1);
            }
        }
        "AppendRequest" => *schema = either(schema, &["message"], &["custom"]),
        "AppendManyRequest" => schema["properties"]["messages"]["minItems"] = json!(1),
        "PutAttachmentRequest" => {
            schema["properties"]["name"]["pattern"] = json!("\\S");
            schema["properties"]["data"]["pattern"] = json!(BASE64);
        }
        "MessagesRangeRequest" => {
            schema["properties"]["entry_ids"]["items"] = json!({"type": "string"});
            *schema = either(schema, &["from_entry_id", "to_entry_id"], &["entry_ids"]);
        }
        _ => {}
    }
}

/// The same object with these fields and without those, or the other way round.
fn either(schema: &Value, these: &[&str], those: &[&str]) -> Value {
    let only = |given: &[&str], missing: &[&str]| {
        let mut option = schema.clone();
        option.as_object_mut().and_then(|fields| fields.remove("description"));
        for name in given {
            option["properties"][name] = never_null(&schema["properties"][name]);
        }
        for name in missing {
            option["properties"][name] = json!({"type": "null"});
        }
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        option["required"] = required.chain(given.iter().copied()).collect();
        option
    };
    json!({"description": schema["description"], "oneOf": [only(these, those), only(those, these)]})
}
