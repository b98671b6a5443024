//! Addresses beside functions and resources: live streams, keys, and what operators look at.

use banyan::model::EventType;
use serde_json::{Value, json};

use super::resources::in_path;
use super::responses::Responses;
use super::schemas::Schemas;
use super::{Paths, Protection, shapes};

pub(super) fn add(paths: &mut Paths, schemas: &mut Schemas, protection: Protection) {
    streams(paths, protection);
    keys(paths, schemas, protection);
    purge(paths, schemas, protection);
    health(paths, protection);
}

fn streams(paths: &mut Paths, protection: Protection) {
    let stream = "An endless stream of frames: `id:` the position to resume after, `event:` the type, `data:` the payload as one line of JSON.";
    let refused = |responses: Responses| responses.problem(400, "The filter or the position is not valid.");
    let all = Responses::new().of_type(200, stream, "text/event-stream", json!({}));
    let mut parameters = in_query();
    parameters.push(query("session_id", "Only this session.", json!({"type": "string"})));
    let snapshot = "1 sends the session as it is first, and then what follows. Needs `session_id`.";
    parameters.push(query("snapshot", snapshot, yes_or_no()));
    let everything = json!({
        "operationId": "streamEvents",
        "tags": ["Events"],
        "summary": "What happens in all sessions, or in those that are asked for.",
        "parameters": parameters,
        "responses": refused(all).finish(protection),
    });
    paths.add("/v1/events", "get", everything);
    let one = Responses::new()
        .of_type(200, stream, "text/event-stream", json!({}))
        .problem(404, "There is no such session.");
    let path = "/v1/sessions/{session_id}/events";
    let mut parameters = in_path(path);
    parameters.extend(in_query());
    let snapshot = "1 sends the session as it is first, and then what follows.";
    parameters.push(query("snapshot", snapshot, yes_or_no()));
    parameters.push(shapes::of_events());
    let of_session = json!({
        "operationId": "streamSessionEvents",
        "tags": ["Events"],
        "summary": "What happens in one session.",
        "parameters": parameters,
        "responses": refused(one).finish(protection),
    });
    paths.add(path, "get", of_session);
}

pub(super) fn yes_or_no() -> Value {
    json!({"type": "string", "enum": ["0", "1", "false", "true"]})
}

pub(super) fn query(name: &str, description: &str, schema: Value) -> Value {
    json!({"name": name, "in": "query", "description": description, "schema": schema})
}

fn in_query() -> Vec<Value> {
    let types = EventType::ALL.map(EventType::as_str);
    let last = json!({"name": "Last-Event-ID", "in": "header", "schema": {"type": "string"},
        "description": "The position of the last frame that was seen; wins over `after`."});
    let metadata = json!({"name": "metadata", "in": "query",
        "description": "Only sessions whose metadata holds each of these keys with exactly this value.",
        "content": {"application/json": {"schema": {"type": "object"}}}});
    let roles = json!({"name": "roles", "in": "query", "style": "form", "explode": false,
        "description": "Only messages of these roles.",
        "schema": {"type": "array", "items": {"$ref": "#/components/schemas/Role"}}});
    vec![
        query(
            "type",
            "Only events of this type; all when left out.",
            json!({"type": "array", "items": {"type": "string", "enum": types}}),
        ),
        roles,
        metadata,
        query(
            "after",
            "Begin after this position; `0` is the beginning, now when left out.",
            json!({"type": "string"}),
        ),
        query("deltas", "1 sends what was added to a message that grows in place of all of it.", yes_or_no()),
        last,
    ]
}

fn keys(paths: &mut Paths, schemas: &mut Schemas, protection: Protection) {
    let properties = json!({
        "name": {"type": "string", "pattern": "\\S", "description": "What people call it."},
        "scope": {"type": "object", "propertyNames": {"minLength": 1}, "additionalProperties": {"anyOf": [
            {"type": "string", "minLength": 1}, {"type": "boolean"},
            {"type": "integer", "minimum": 1 - (1_i64 << 53), "maximum": (1_i64 << 53) - 1},
        ]}, "description": "The metadata that a session must carry for the key to see it; all sessions when empty."},
        "read_only": {"type": "boolean", "description": "Whether it may only look."},
        "requests_per_second": {"type": ["integer", "null"], "minimum": 1, "maximum": u32::MAX,
            "description": "The most requests a second; the server's own limit when it is left out."},
    });
    let new = schemas.name(
        "NewKey",
        json!({"type": "object", "description": "What a new key is to be like.", "required": ["name"], "additionalProperties": false,
            "properties": properties}),
    );
    let mut known = properties;
    known["id"] = json!({"type": "string", "description": "What it is listed and removed by."});
    known["created_at"] = json!({"type": "integer", "format": "int64", "description": "When it was made, in milliseconds since 1970."});
    known["key"] = json!({"type": "string", "description": "The secret. It is told once, when the key is made."});
    let key = schemas.name(
        "Key",
        json!({"type": "object", "description": "A key.", "required": ["id", "name", "scope", "read_only", "created_at"],
            "properties": known}),
    );
    let keys = json!({"type": "object", "required": ["keys"], "properties": {
        "keys": {"type": "array", "items": key},
        "refused": {
            "type": "array", "description": "Keys that are not accepted; left out when there are none.",
            "items": {"type": "object", "required": ["id", "reason"], "properties": {
                "id": {"type": "string", "description": "What the key is removed by."},
                "reason": {"type": "string"},
            }},
        },
    }});
    let list = json!({
        "operationId": "listKeys", "tags": ["Server"], "summary": "The keys that there are, without their secrets.",
        "responses": Responses::new().json(200, "The keys.", &keys).finish(protection),
    });
    paths.add("/v1/keys", "get", list);
    let made =
        Responses::new().json(201, "The key, with its secret.", &key).problem(400, "The request is not valid.");
    let create = json!({
        "operationId": "createKey", "tags": ["Server"], "summary": "Make a key. The first one ends the time in which nobody needs one.",
        "requestBody": {"required": true, "content": {"application/json": {"schema": new}}},
        "responses": made.problem(413, "The body is too large.").finish(protection),
    });
    paths.add("/v1/keys", "post", create);
    let removed = Responses::new().empty(204, "The key is gone.").problem(404, "There is no such key.");
    let remove = json!({
        "operationId": "removeKey", "tags": ["Server"], "summary": "Remove a key. Streams that were opened with it end.",
        "parameters": in_path("/v1/keys/{key_id}"),
        "responses": removed.finish(protection),
    });
    paths.add("/v1/keys/{key_id}", "delete", remove);
}

fn purge(paths: &mut Paths, schemas: &mut Schemas, protection: Protection) {
    let number = |about: &str| json!({"type": "integer", "minimum": 0, "description": about});
    let not_reached = json!({"type": "object", "required": ["path", "reason"], "properties": {
        "path": {"type": "string", "description": "A file or directory, relative to the data directory."},
        "reason": {"type": "string", "description": "Why it stays as it is."}}});
    let purged = schemas.name(
        "Purged",
        json!({"type": "object", "description": "What was removed of deleted sessions, and what could not be.",
            "required": ["log_segments", "log_bytes", "search_segments", "search_bytes", "content", "content_bytes", "not_reached"],
            "properties": {
                "log_segments": number("Segments of the write-ahead log that were removed."),
                "log_bytes": number("Their bytes."),
                "search_segments": number("Segments of the search index that were written anew without what was deleted."),
                "search_bytes": number("The bytes that they had."),
                "content": number("Files of content and of kept records that no session uses, and that were removed."),
                "content_bytes": number("Their bytes."),
                "not_reached": {"type": "array", "items": not_reached,
                    "description": "What may still hold bytes of deleted sessions."}}}),
    );
    let responses = Responses::new()
        .json(200, "It is done.", &purged)
        .problem(503, "The disk is full, or writing has failed.");
    let operation = json!({
        "operationId": "purge", "tags": ["Server"],
        "summary": "Remove the bytes of deleted sessions from the disk now, in place of later.",
        "responses": responses.finish(protection),
    });
    paths.add("/v1/purge", "post", operation);
}

fn health(paths: &mut Paths, protection: Protection) {
    let text = json!({"schema": {"type": "string"}});
    let mut add = |path: &str, id: &str, summary: &str, responses: Responses| {
        let operation = json!({"operationId": id, "tags": ["Server"], "summary": summary, "security": [],
            "responses": responses.finish(protection)});
        paths.add(path, "get", operation);
    };
    let ok = || Responses::new().of_type(200, "It does.", "text/plain", text.clone());
    add("/healthz", "getHealth", "Whether the server answers.", ok());
    let ready = ok().problem(503, "It takes no work: it stops, writing has failed, or the disk is full.");
    add("/readyz", "getReadiness", "Whether the server takes work.", ready);
    let metrics = Responses::new().of_type(
        200,
        "Counters and gauges.",
        "application/openmetrics-text",
        json!({"schema": {"type": "string"}}),
    );
    let operation = json!({"operationId": "getMetrics", "tags": ["Server"], "summary": "What Prometheus reads.",
        "responses": metrics.finish(protection)});
    paths.add("/metrics", "get", operation);
}
