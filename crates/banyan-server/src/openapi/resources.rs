//! The resource API, from its own list of operations.

use banyan::functions;
use serde_json::{Map, Value, json};

use super::calls::refusals;
use super::responses::Responses;
use super::schemas::{Schemas, never_null};
use super::{Paths, Protection, shapes};
use crate::resources::{Answer, Input, Kind, Operation, fields_of, operations};

pub(super) fn add(paths: &mut Paths, schemas: &mut Schemas, protection: Protection) {
    for operation in operations() {
        let mut parameters = in_path(operation.path);
        parameters.extend(in_query(operation, schemas));
        parameters.extend(in_headers(operation));
        let mut document = json!({
            "operationId": operation.id,
            "tags": [tag(operation.path)],
            "summary": operation.summary,
            "parameters": parameters,
            "responses": responses(operation, schemas, protection),
            "x-banyan-function": operation.function,
        });
        if let Some(body) = body(operation, schemas) {
            document["requestBody"] = body;
        }
        shapes::add(operation, &mut document, schemas);
        paths.add(operation.path, operation.verb.as_str(), document);
    }
    head_of_attachment(paths);
}

fn tag(path: &str) -> &'static str {
    match () {
        () if path.contains("/messages") => "Messages",
        () if path.contains("/attachments") => "Attachments",
        () if ["/tree", "/leaf", "/fork"].iter().any(|end| path.ends_with(end)) => "Branches",
        () => "Sessions",
    }
}

/// The placeholders of an address.
pub(super) fn in_path(path: &str) -> Vec<Value> {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let described = |name: &str| match name {
        "session_id" => "The session.",
        "entry_id" => "The entry.",
        "attachment_id" => "The attachment.",
        _ => "The key.",
    };
    let parameter = |name: &str| {
        json!({"name": name, "in": "path", "required": true, "description": described(name),
            "schema": {"type": "string", "minLength": 1}})
    };
    names.map(parameter).collect()
}

fn schema_of(function: &str, which: fn(&banyan::Function) -> Value) -> Value {
    functions().iter().find(|known| known.id == function).map(which).unwrap_or_default()
}

/// The fields of the request that are taken from the query.
fn in_query(operation: &Operation, schemas: &mut Schemas) -> Vec<Value> {
    if operation.input == Input::File {
        return vec![json!({"name": "name", "in": "query", "schema": {"type": "string", "pattern": "\\S"},
            "description": "The file's name, when the body is the file; `unnamed` when left out."})];
    }
    if operation.input != Input::Query {
        return Vec::new();
    }
    let request = schemas.unnamed(schema_of(operation.function, banyan::Function::request_schema));
    let fields = fields_of(operation.function)
        .iter()
        .filter(|field| !operation.path.contains(&format!("{{{}}}", field.name)));
    let parameter = |field: &crate::resources::Field| {
        let mut schema = never_null(&request["properties"][&field.name]);
        let description = schema.as_object_mut().and_then(|it| it.remove("description")).unwrap_or_default();
        let mut parameter = json!({"name": field.name, "in": "query", "description": description});
        match field.kind {
            Kind::Object => parameter["content"] = json!({"application/json": {"schema": schema}}),
            Kind::Words => {
                parameter["schema"] = schema;
                parameter["style"] = json!("form");
                parameter["explode"] = json!(false);
            }
            Kind::Texts => parameter["schema"] = json!({"type": "array", "items": {"type": "string"}}),
            _ => parameter["schema"] = schema,
        }
        parameter
    };
    fields.map(parameter).collect()
}

fn in_headers(operation: &Operation) -> Vec<Value> {
    let header = |name: &str, description: &str| json!({"name": name, "in": "header", "description": description, "schema": {"type": "string"}});
    match operation.answer {
        Answer::Revised => vec![header("If-None-Match", "Answer 304 if the entry still has this ETag.")],
        Answer::IfRevision => vec![json!({
            "name": "If-Match", "in": "header",
            "description": "Change the message only if it still has this ETag, or one of these with commas between them; otherwise answer 412. Not together with `expected_revision`.",
            "schema": {"type": "string"},
        })],
        Answer::Bytes => vec![
            header("If-Match", "Answer 412 unless the file still has this ETag."),
            header("Range", "A single range of bytes, for example `bytes=0-99`."),
            header("If-Range", "Heed the range only if the file still has this ETag."),
            header("If-None-Match", "Answer 304 if the file still has this ETag."),
        ],
        _ => Vec::new(),
    }
}

fn body(operation: &Operation, schemas: &mut Schemas) -> Option<Value> {
    let schema = match operation.input {
        Input::Query | Input::Nothing => return None,
        Input::Body | Input::File => body_of(operation, operation.function, schemas),
    };
    let schema = match operation.or_function {
        // A session is asked for with an id of its own or without.
        Some("session::ensure") => {
            let ensure = body_of(operation, "session::ensure", schemas);
            let mut schema = schemas.get(&ensure);
            schema["required"] = json!([]);
            let id = &mut schema["properties"]["session_id"];
            id["type"] = json!(["string", "null"]);
            id["description"] = json!("The session's id; one of the store's making when left out.");
            schema["description"] = json!("Asks for a session.");
            schemas.name("CreateSessionBody", schema)
        }
        Some(other) => json!({"anyOf": [schema, body_of(operation, other, schemas)]}),
        None => schema,
    };
    let mut required = schemas.get(&schema)["required"].as_array().is_none_or(|fields| !fields.is_empty());
    let mut content = Map::from_iter([("application/json".to_owned(), json!({"schema": schema}))]);
    if operation.input == Input::File {
        // A file may be empty.
        required = false;
        content.insert("application/octet-stream".to_owned(), json!({"schema": {}}));
    }
    Some(json!({"required": required, "content": content}))
}

/// A function's request without what the address says.
fn body_of(operation: &Operation, function: &str, schemas: &mut Schemas) -> Value {
    let request = schema_of(function, banyan::Function::request_schema);
    let name = request["title"].as_str().unwrap_or_default().replace("Request", "Body");
    let mut schema = schemas.unnamed(request);
    let in_path = |name: &str| operation.path.contains(&format!("{{{name}}}"));
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.retain(|name, _| !in_path(name));
    }
    if let Some(required) = schema["required"].as_array_mut() {
        required.retain(|name| !name.as_str().is_some_and(in_path));
    }
    schemas.name(&name, schema)
}

fn responses(operation: &Operation, schemas: &mut Schemas, protection: Protection) -> Value {
    let response = schemas.add(schema_of(operation.function, banyan::Function::response_schema));
    let mut responses = Responses::new();
    responses = match operation.answer {
        Answer::Plain => responses.json(200, "What was asked for.", &response),
        Answer::OrNotFound => responses
            .json(200, "What was asked for.", &never_null(&response))
            .problem(404, "There is no such thing."),
        Answer::Revised => responses
            .json(200, "The entry.", &never_null(&response))
            .optional_header(200, "ETag", "Its revision, when nothing of it was left out.")
            .empty(304, "The entry still has the ETag that was given.")
            .header(304, "ETag", "Its revision.")
            .problem(404, "There is no such entry or session."),
        Answer::IfRevision => responses
            .json(200, "Whether the message was changed.", &response)
            .problem(412, "The message does not have the ETag that was given."),
        Answer::Created => {
            let either = match operation.or_function {
                Some(other) => {
                    json!({"anyOf": [response, schemas.add(schema_of(other, banyan::Function::response_schema))]})
                }
                None => response,
            };
            responses.json(201, "It was made.", &either).header(201, "Location", "Where it is.")
        }
        Answer::Ensured => {
            let ensured = schemas.add(schema_of("session::ensure", banyan::Function::response_schema));
            responses
                .json(200, "It was there already.", &ensured)
                .json(201, "It was made.", &if operation.or_function.is_some() { response } else { ensured })
                .header(201, "Location", "Where it is.")
        }
        Answer::Bytes => bytes(responses).problem(412, "The file does not have the ETag that was given."),
    };
    for function in std::iter::once(operation.function).chain(operation.or_function) {
        for (status, description) in refusals(function) {
            responses = responses.problem(*status, description);
        }
    }
    responses = responses.problem(400, "The request is not valid.");
    if matches!(operation.input, Input::Body | Input::File) {
        responses = responses.problem(413, "The body is too large.");
    }
    if operation.input == Input::File {
        responses = responses.problem(415, "The body wraps the file in a form.");
    }
    responses.finish(protection)
}

/// A file: all of it, a part, nothing because it is known, nothing because there is no such part.
fn bytes(responses: Responses) -> Responses {
    let mut responses = responses;
    for (status, description) in [(200, "The file's bytes."), (206, "The range of bytes that was asked for.")] {
        responses = responses
            .of_type(status, description, "*/*", json!({}))
            .header(status, "ETag", "The SHA-256 of the file's bytes.")
            .header(status, "Accept-Ranges", "`bytes`.")
            .header(status, "Content-Disposition", "The file's name, and whether it is safe to show.");
    }
    responses
        .header(206, "Content-Range", "Which part of how much.")
        .empty(304, "The file still has the ETag that was given.")
        .header(304, "ETag", "The SHA-256 of the file's bytes.")
        .problem(404, "There is no such attachment or session.")
        .problem(416, "The file has no such range.")
        .header(416, "Content-Range", "How many bytes there are.")
}

/// `HEAD` is answered as `GET` is, without the bytes and never in part.
fn head_of_attachment(paths: &mut Paths) {
    let Some(path) = paths.0.get_mut("/v1/sessions/{session_id}/attachments/{attachment_id}") else { return };
    let mut head = path["get"].clone();
    head["operationId"] = json!("headAttachment");
    head["summary"] = json!("What is known of a stored file, as headers.");
    for name in ["206", "416"] {
        head["responses"].as_object_mut().and_then(|responses| responses.remove(name));
    }
    if let Some(responses) = head["responses"].as_object_mut() {
        for response in responses.values_mut() {
            response.as_object_mut().and_then(|response| response.remove("content"));
        }
    }
    if let Some(parameters) = head["parameters"].as_array_mut() {
        parameters.retain(|parameter| !matches!(parameter["name"].as_str(), Some("Range" | "If-Range")));
    }
    path["head"] = head;
}
