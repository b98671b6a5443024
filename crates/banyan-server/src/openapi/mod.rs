//! `/openapi.json`: what there is to call, written from the function table, the resource API's own list and the types of both.

mod backup;
mod calls;
mod history;
mod ocp;
mod others;
mod portable;
mod resources;
mod responses;
mod schemas;
mod shapes;

use std::sync::LazyLock;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use serde_json::{Map, Value, json};

use crate::app::Shared;
use schemas::Schemas;

/// `GET /openapi.json`.
pub(crate) async fn document(State(app): State<Shared>) -> Response {
    static OPEN: LazyLock<Bytes> = LazyLock::new(|| written(Protection::Open));
    static KEYED: LazyLock<Bytes> = LazyLock::new(|| written(Protection::Keyed));
    let document = if app.open() { OPEN.clone() } else { KEYED.clone() };
    let mut response = document.into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Whether a key is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protection {
    Open,
    Keyed,
}

fn written(protection: Protection) -> Bytes {
    serde_json::to_vec(&build(protection)).unwrap_or_default().into()
}

fn build(protection: Protection) -> Value {
    let mut schemas = Schemas::new();
    let mut paths = Paths::default();
    resources::add(&mut paths, &mut schemas, protection);
    history::add(&mut paths, &mut schemas, protection);
    portable::add(&mut paths, &mut schemas, protection);
    backup::add(&mut paths, protection);
    ocp::add(&mut paths, &mut schemas, protection);
    others::add(&mut paths, &mut schemas, protection);
    calls::add(&mut paths, &mut schemas, protection);
    ocp::advertise(&mut paths);
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Banyan",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The session database for AI agents: a durable, reactive, branching store of typed conversation entries.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [
            {"name": "Sessions", "description": "Sessions as a whole."},
            {"name": "Messages", "description": "Messages and other entries of a session."},
            {"name": "Branches", "description": "The tree of a session, the path that is active, and forks."},
            {"name": "Attachments", "description": "Files beside the conversation."},
            {"name": "History", "description": "Sessions as chat front ends read them, page by page and live."},
            {"name": "Files", "description": "Sessions as files that others read and write."},
            {"name": "Events", "description": "Live streams that resume. The WebSocket at `/v1/ws` carries calls and several subscriptions on one connection, as JSON text frames."},
            {"name": "Server", "description": "Keys, health and metrics."},
            {"name": "Calls", "description": "Every function of the table, by its id."},
        ],
        "paths": paths.0,
        "components": {
            "schemas": schemas.finish(),
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "A key made with `banyan key create`."},
                "key_in_query": {
                    "type": "apiKey", "in": "query", "name": "access_token",
                    "description": "The same key, from where no header can be set: EventSource and WebSocket.",
                },
            },
        },
    });
    ocp::introduce(&mut document["info"]);
    // A server without keys takes everyone who reaches loopback for its owner, and asks for nothing.
    if protection == Protection::Keyed {
        document["security"] = json!([{"key": []}, {"key_in_query": []}]);
    }
    document
}

/// The operations by address and method.
#[derive(Default)]
struct Paths(Map<String, Value>);

impl Paths {
    fn add(&mut self, path: &str, verb: &str, operation: Value) {
        let methods = self.0.entry(path).or_insert_with(|| json!({}));
        methods[verb] = operation;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::collections::HashSet;

    use super::*;

    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
                fields.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        for protection in [Protection::Open, Protection::Keyed] {
            let document = build(protection);
            let mut found = Vec::new();
            references(&document, &mut found);
            assert!(found.len() > 100);
            for reference in found {
                assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
            }
        }
    }

    #[test]
    fn every_operation_has_a_name_of_its_own_a_summary_and_a_tag() {
        let document = build(Protection::Open);
        let mut names = HashSet::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (verb, operation) in methods.as_object().unwrap() {
                let name = operation["operationId"].as_str().unwrap_or_default();
                assert!(names.insert(name.to_owned()) && !name.is_empty(), "{verb} {path}: {name}");
                assert!(operation["summary"].as_str().is_some_and(|it| it.ends_with('.')), "{verb} {path}");
                assert!(operation["tags"][0].is_string(), "{verb} {path}");
            }
        }
    }

    #[test]
    fn every_function_is_there_as_a_call_and_as_a_resource() {
        let document = build(Protection::Open);
        for function in banyan::functions() {
            assert!(document["paths"][format!("/v1/call/{}", function.id)]["post"].is_object(), "{}", function.id);
            let served = |operation: &crate::resources::Operation| {
                operation.function == function.id || operation.or_function == Some(function.id)
            };
            assert!(crate::resources::operations().any(served), "{}", function.id);
        }
    }
}
