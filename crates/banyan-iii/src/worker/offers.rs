//! What the worker offers to the bus: its functions, its kinds of trigger, and its own binding to the configuration.

use banyan::Function;
use banyan::model::EventType;
use serde_json::{Value, json};

use super::bindings::FEED;
use crate::link::{function_frame, trigger_frame, trigger_type_frame};

/// The id that the configuration worker knows this worker's settings by.
pub(super) const CONFIGURATION: &str = "session-manager";
/// What the configuration worker calls when they change.
pub(super) const ON_CONFIG_CHANGE: &str = "session::on-config-change";
/// What the configuration worker calls it when they are gone; for all that it can tell, they may just be unreadable.
pub(super) const DELETED: &str = "configuration:deleted";
/// Says what became of the last change.
pub(super) const CONFIG_STATUS: &str = "session::config-status";

/// The functions that only a Banyan has.
const TELLING: [&str; 2] = ["session::store::look", "session::store::commit"];

/// How a function's schemas are told. Both ways say the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// As they are.
    Plainly,
    /// Each as one piece of text inside another one, which is copied faster than its many objects.
    AsText,
}

/// What stands beside a schema that is told as text.
const CALLED_OFTEN: &str = "Called often at the moment, so its schema is the text of `$comment`: engines copy schemas with every call, \
    object by object. It is told plainly again after ten seconds of calm.";

/// The offer of one function of the table, as a frame.
pub(super) fn function(id: &str, told: Told) -> Option<String> {
    let mut all = banyan::functions().iter().chain(banyan::store_functions());
    all.find(|function| function.id == id).map(|function| frame(function, told))
}

fn frame(function: &Function, told: Told) -> String {
    let (request, response) = (function.request_schema(), function.response_schema());
    let (request, response) = match told {
        Told::Plainly => (request, response),
        Told::AsText => (as_text(&request), as_text(&response)),
    };
    function_frame(function.id, function.description, &request, &response)
}

fn as_text(schema: &Value) -> Value {
    let mut told = json!({"description": CALLED_OFTEN, "$comment": schema.to_string()});
    // Whoever only looks at what kind of value it is need not read the text.
    if let Some(kind) = schema.get("type") {
        told["type"] = kind.clone();
    }
    told
}

/// Every offer, as frames. `binding` is the id of the worker's own binding.
pub(super) fn frames(binding: &str) -> Vec<String> {
    let mut frames: Vec<String> = EventType::ALL
        .into_iter()
        .map(|kind| {
            let (config, payload) = (kind.config_schema(), kind.payload_schema());
            trigger_type_frame(kind.as_str(), described(kind), Some(&config), Some(&payload))
        })
        .collect();
    frames.push(trigger_type_frame(
        FEED,
        "Internal: every event, for other instances that store through this one. Bind the six session::* types instead.",
        None,
        None,
    ));
    // Who finds any function of the store protocol here finds these, and knows what this is.
    let (first, others): (Vec<_>, Vec<_>) =
        banyan::store_functions().iter().partition(|function| TELLING.contains(&function.id));
    let functions = first.into_iter().chain(banyan::functions()).chain(others);
    frames.extend(functions.map(|function| frame(function, Told::Plainly)));
    frames.push(function_frame(
        CONFIG_STATUS,
        "What became of the last change of the configuration, and how many changes were refused since the start.",
        &json!({"title": "ConfigStatusRequest", "type": "object"}),
        &config_status_schema(),
    ));
    frames.push(function_frame(
        ON_CONFIG_CHANGE,
        "Internal: read the configuration again, and apply it.",
        &json!({
            "title": "OnConfigChangeEvent",
            "type": "object",
            "properties": {"id": {"type": ["string", "null"], "default": null}}
        }),
        &json!({
            "title": "OnConfigChangeResponse",
            "type": "object",
            "properties": {"ok": {"type": "boolean"}},
            "required": ["ok"]
        }),
    ));
    let kinds = ["configuration:updated", "configuration:registered", DELETED];
    let wanted = json!({"configuration_id": CONFIGURATION, "event_types": kinds});
    frames.push(trigger_frame(binding, "configuration", ON_CONFIG_CHANGE, &wanted));
    frames
}

fn described(kind: EventType) -> &'static str {
    match kind {
        EventType::Created => "A session began: created, ensured or forked.",
        EventType::MessageAdded => "An entry was appended to a session.",
        EventType::MessageUpdated => "A message's content changed, for example because a reply is being streamed.",
        EventType::StatusChanged => "A session's status changed: idle, working, done or error.",
        EventType::MetaUpdated => "A session's title, description or metadata was set.",
        EventType::Deleted => "A session was deleted, with everything in it.",
    }
}

fn config_status_schema() -> Value {
    json!({
        "title": "ReloadStatus",
        "type": "object",
        "definitions": {"ReloadOutcome": {"type": "string", "enum": ["applied", "rejected"]}},
        "properties": {
            "last_outcome": {"$ref": "#/definitions/ReloadOutcome"},
            "last_error": {"type": ["string", "null"]},
            "rejected_reloads": {"type": "integer", "format": "uint64", "minimum": 0}
        },
        "required": ["last_outcome", "rejected_reloads"]
    })
}
