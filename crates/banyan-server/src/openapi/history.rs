//! The history of a session, at both of its addresses.

use serde_json::{Value, json};

use super::others::{query, yes_or_no};
use super::resources::in_path;
use super::responses::Responses;
use super::schemas::Schemas;
use super::{Paths, Protection};
use crate::history::ADDRESSES;

pub(super) fn add(paths: &mut Paths, schemas: &mut Schemas, protection: Protection) {
    let message = schemas.name("HistoryMessage", message());
    let posted = schemas.name("PostedHistoryMessage", posted_message());
    let answer = schemas.name("PostHistoryResponse", answer());
    for (path, suffix) in ADDRESSES.into_iter().zip(["", "AtRoot"]) {
        let mut parameters = in_path(path);
        parameters.extend(in_query());
        let get = json!({
            "operationId": format!("getHistory{suffix}"),
            "tags": ["History"],
            "summary": "A session as chat front ends read it: one message for each question and one for each answer.",
            "parameters": parameters,
            "responses": read(&message, protection),
        });
        paths.add(path, "get", get);
        let mut parameters = in_path(path);
        parameters.push(query("create", "1 makes the session when there is none.", yes_or_no()));
        let body = json!({"type": "array", "items": posted});
        let responses = Responses::new()
            .json(200, "What was added.", &answer)
            .problem(400, "The request is not valid.")
            .problem(404, "There is no such session.")
            .problem(409, "A message is there already and says something else.")
            .problem(413, "The body is too large.");
        let post = json!({
            "operationId": format!("postHistory{suffix}"),
            "tags": ["History"],
            "summary": "Take in messages as other systems write them; what is there already is not added again.",
            "parameters": parameters,
            "requestBody": {"required": true, "content": {"application/json": {"schema": body}}},
            "responses": responses.finish(protection),
        });
        paths.add(path, "post", post);
    }
}

fn read(message: &Value, protection: Protection) -> Value {
    let messages = json!({"type": "array", "items": message});
    let tag = "Names the state of the session that this was made of.";
    let responses = Responses::new()
        .json(200, "The messages, oldest first; with `stream=1` frames that go on.", &messages)
        .optional_header(200, "ETag", tag)
        .optional_header(200, "Link", "The pages before (`prev`) and after (`next`) this one, if there are any.")
        .empty(304, "The session still has the ETag that was given.")
        .header(304, "ETag", tag)
        .problem(400, "The query is not valid, or a cursor is not on the active path.")
        .problem(403, "Technical details were asked for, and the key may not see them.")
        .problem(404, "There is no such session.");
    let mut responses = responses.finish(protection);
    responses["200"]["content"]["text/event-stream"] = json!({});
    responses
}

fn in_query() -> Vec<Value> {
    let text = || json!({"type": "string"});
    let header = |name: &str, description: &str| json!({"name": name, "in": "header", "description": description, "schema": {"type": "string"}});
    vec![
        query("limit", "The newest so many messages, at most 500.", json!({"type": "integer", "minimum": 1})),
        query("before", "Only messages before this cursor.", text()),
        query("since", "Only messages after this cursor, or after this time in ISO 8601.", text()),
        query("cursor", "A page that a `Link` header leads to.", text()),
        query("technical_details", "1 adds what only operators see.", yes_or_no()),
        query("stream", "1 sends the messages as frames, and then what becomes of them.", yes_or_no()),
        query("deltas", "1 sends text that was added in place of the whole message. For streams.", yes_or_no()),
        query("after", "The `id` of the last frame that was seen. For streams.", text()),
        header("If-None-Match", "Answer 304 if the session still has this ETag. Not for streams."),
        header("Last-Event-ID", "The `id` of the last frame that was seen; wins over `after`. For streams."),
    ]
}

fn nullable(kind: &str, description: &str) -> Value {
    json!({"type": [kind, "null"], "description": description})
}

fn message() -> Value {
    let of_type = |description: &str| {
        json!({"type": "array", "description": description,
            "items": {"type": "object", "required": ["type"]}})
    };
    let properties = json!({
        "role": {"type": "string", "enum": ["user", "assistant"], "description": "Who speaks."},
        "text_content": nullable("string", "The text of a question."),
        "parts": {"type": "array", "items": {}, "description": "What there is to see, in the order in which it happened."},
        "activity_parts": of_type("The activities among the parts, as old front ends read them."),
        "response_text_main": nullable("string", "The text of an answer."),
        "timestamp": {"type": "string", "description": "When, in ISO 8601."},
        "interaction_id": {"type": "string", "minLength": 1, "description": "Pairs a question with its answer."},
        "processing_time_ms": nullable("number", "How long the answer took."),
        "processed_at": nullable("string", "When the answer was complete."),
        "model_used": nullable("string", "The model that answered."),
        "selection_mode": nullable("string", "How the model was chosen."),
        "is_welcome_message": {"type": "boolean", "description": "Whether it greets rather than answers."},
        "message_type": nullable("string", "`user_input` or `agent_response`."),
        "status": {"type": "string", "enum": ["complete", "streaming", "cancelled", "error", "interrupted"],
            "description": "How the message ended, if it did."},
    });
    let required: Vec<&String> = properties.as_object().into_iter().flat_map(|fields| fields.keys()).collect();
    json!({"type": "object", "description": "What a person said, or everything that an agent did about it.",
        "required": required, "properties": properties})
}

fn posted_message() -> Value {
    let properties = json!({
        "role": {"type": "string", "enum": ["user", "assistant"]},
        "interaction_id": {"type": "string", "minLength": 1},
        "timestamp": nullable("string", "When, in ISO 8601."),
        "created_at": nullable("string", "The same, where `timestamp` is missing."),
        "text_content": nullable("string", "The text of a question."),
        "parts": {"type": ["array", "null"], "items": {}},
        "activity_parts": {"type": ["array", "null"], "items": {}},
        "response_text_main": nullable("string", "The text of an answer."),
        "processing_time_ms": nullable("number", "How long the answer took."),
        "processed_at": nullable("string", "When the answer was complete."),
        "model_used": nullable("string", "The model that answered."),
        "selection_mode": nullable("string", "How the model was chosen."),
        "is_welcome_message": nullable("boolean", "Whether it greets rather than answers."),
        "message_type": nullable("string", "`user_input` or `agent_response`."),
        "status": {"type": ["string", "null"], "enum": ["complete", "streaming", "cancelled", "error", "interrupted", null]},
    });
    let with = |name: &str| json!({"required": [name], "properties": {name: {"type": "string"}}});
    json!({"type": "object", "description": "A history message in any dialect. Keys and parts that are not known are kept.",
        "required": ["role", "interaction_id"], "properties": properties,
        "anyOf": [with("timestamp"), with("created_at")]})
}

fn answer() -> Value {
    json!({"type": "object", "required": ["added", "messages"], "description": "What was added.", "properties": {
        "added": {"type": "integer", "minimum": 0, "description": "How many messages are new, or longer than they were."},
        "messages": {"type": "array", "items": {"type": "string"}, "description": "Their interactions, each once."},
    }})
}
