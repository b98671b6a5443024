//! What `?format=` changes about operations that others describe.

use serde_json::{Value, json};

use super::others::query;
use super::schemas::Schemas;
use crate::resources::{Operation, Verb};
use crate::shapes::{OF_EVENTS, names};

/// Adds the formats to the operations that have them.
pub(super) fn add(operation: &Operation, document: &mut Value, schemas: &mut Schemas) {
    if operation.path != "/v1/sessions/{session_id}/messages" {
        return;
    }
    let description = match operation.verb {
        Verb::Get => {
            "Messages as a front end keeps them, in place of entries: `assistant-ui` is the whole tree; `ai-sdk` and `ag-ui` are the active path, and take `limit` and `cursor` only."
        }
        _ => "The body is messages as a front end keeps them; whatever is not there yet is appended.",
    };
    if let Some(parameters) = document["parameters"].as_array_mut() {
        parameters.push(query("format", description, json!({"type": "string", "enum": names()})));
    }
    match operation.verb {
        Verb::Get => {
            or(
                &mut document["responses"]["200"],
                json!({"type": "array", "items": {"type": "object", "required": ["id", "role"]}}),
            );
            or(&mut document["responses"]["200"], json!({"type": "object", "required": ["headId", "messages"]}));
            let link = json!({"description": "The page after this one (`next`), if there is one and a format was asked for.",
                "schema": {"type": "string"}});
            document["responses"]["200"]["headers"]["Link"] = link;
        }
        _ => {
            let written = schemas.name("PostShapeResponse", written());
            let refused = document["responses"]["404"].clone();
            document["responses"]["200"] = json!({"description": "What was written, when a format was given.",
                "content": {"application/json": {"schema": written}}});
            if document["responses"].get("409").is_none() {
                document["responses"]["409"] = refused;
                document["responses"]["409"]["description"] =
                    json!("A message is there already and says something else.");
            }
            or(&mut document["requestBody"], json!({"type": "object", "required": ["messages"]}));
            or(&mut document["requestBody"], json!({"type": "array", "items": {"type": "object"}}));
        }
    }
}

/// The format of events.
pub(super) fn of_events() -> Value {
    let description =
        "Events as AG-UI has them: a snapshot of the messages, and then what happens. Takes `after` only.";
    query("format", description, json!({"type": "string", "enum": [OF_EVENTS]}))
}

fn or(content: &mut Value, schema: Value) {
    let known = &mut content["content"]["application/json"]["schema"];
    match known.get_mut("anyOf").and_then(Value::as_array_mut) {
        Some(schemas) => schemas.push(schema),
        None => *known = json!({"anyOf": [known.take(), schema]}),
    }
}

fn written() -> Value {
    let entries =
        |description: &str| json!({"type": "array", "items": {"type": "string"}, "description": description});
    json!({"type": "object", "required": ["added", "extended"], "description": "What was written.", "properties": {
        "added": entries("The entries that are new."),
        "extended": entries("The entries that are longer than they were."),
    }})
}
