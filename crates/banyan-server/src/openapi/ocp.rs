//! Sessions as contexts of the Open Context Protocol, and what the protocol wants to be told of every operation.

use serde_json::{Value, json};

use super::resources::in_path;
use super::responses::Responses;
use super::schemas::Schemas;
use super::{Paths, Protection};
use crate::ocp::CONTEXT;

pub(super) fn add(paths: &mut Paths, schemas: &mut Schemas, protection: Protection) {
    let context = schemas.name("OcpContext", schema());
    let responses = Responses::new()
        .json(
            200,
            "The context, with all of the session's actions and tool calls, and none of its secrets.",
            &context,
        )
        .problem(404, "There is no such session.");
    let get = json!({
        "operationId": "getOcpContext",
        "tags": ["Files"],
        "summary": "A session as a context of the Open Context Protocol.",
        "parameters": in_path(CONTEXT),
        "responses": responses.finish(protection),
        "x-ocp-enhanced-response": {"context": context},
    });
    paths.add(CONTEXT, "get", get);
    let ignored = "What of the context was left out, and why.";
    let responses = Responses::new()
        .json(200, "The context as it is now.", &context)
        .optional_header(200, "Banyan-OCP-Ignored", ignored)
        .problem(400, "The body is no context.")
        .problem(404, "There is no such session.")
        .problem(409, "The session has another context, or the context another session.")
        .problem(413, "The body is too large.");
    let put = json!({
        "operationId": "putOcpContext",
        "tags": ["Files"],
        "summary": "Put a context into a session. Actions are added, each once; of the rest the newer one decides.",
        "parameters": in_path(CONTEXT),
        "requestBody": {"required": true, "content": {"application/json": {"schema": given()}}},
        "responses": responses.finish(protection),
        "x-ocp-enhanced-response": {"context": context},
    });
    paths.add(CONTEXT, "put", put);
}

/// Says of the whole document that contexts are understood.
pub(super) fn introduce(info: &mut Value) {
    info["x-ocp-enabled"] = json!(true);
    info["x-ocp-context-aware"] = json!(true);
    info["x-ocp-version"] = json!(banyan_formats::ocp::VERSION);
    // Every type of agent is understood; these are the ones that the protocol's own libraries begin with.
    info["x-ocp-agent-types"] = json!(["generic_agent", "ai_agent", "ide_coding_assistant"]);
}

/// Says of every operation that takes a key that it takes contexts, too, and answers with them.
pub(super) fn advertise(paths: &mut Paths) {
    let context = json!({
        "enhances_with": ["conversation_history", "session"],
        "updates_context": ["current_goal", "context_summary", "error_context", "recent_changes", "history"],
        "requires_context": false,
    });
    for (path, operations) in &mut paths.0 {
        let Some(operations) = operations.as_object_mut().filter(|_| path.starts_with("/v1/")) else { continue };
        for operation in operations.values_mut() {
            operation["x-ocp-context"] = context.clone();
            let responses = operation["responses"].as_object_mut().into_iter().flatten();
            for (_, response) in responses.filter(|(status, _)| status.starts_with('2')) {
                response["x-ocp-context-updated"] = json!(true);
            }
        }
    }
}

/// What is taken: whatever names a context. What does not fit is left out and named.
fn given() -> Value {
    json!({
        "type": "object",
        "description": "A context. What does not fit the protocol's schema is kept aside or left out, and the answer says so.",
        "required": ["context_id"],
        "properties": {"context_id": {"type": "string"}},
    })
}

/// The protocol's own schema.
fn schema() -> Value {
    let text = json!({"type": "string"});
    let maybe = json!({"type": ["string", "null"]});
    let time = json!({"type": "string", "format": "date-time"});
    json!({
        "type": "object",
        "description": "A context of the Open Context Protocol.",
        "required": ["context_id", "agent_type", "created_at", "last_updated"],
        "additionalProperties": false,
        "properties": {
            "context_id": {"type": "string", "pattern": "^ocp-[a-f0-9]{8,}$"},
            "agent_type": text,
            "user": maybe,
            "workspace": maybe,
            "current_file": maybe,
            "session": {
                "type": "object",
                "description": "What the agent counts. `history_total` and `history_dropped` say how much a header had no room for.",
                "required": ["start_time", "interaction_count", "agent_type"],
                "properties": {
                    "start_time": time,
                    "interaction_count": {"type": "integer", "minimum": 0},
                    "agent_type": text,
                },
            },
            "history": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["timestamp", "action"],
                    "additionalProperties": false,
                    "properties": {
                        "timestamp": time,
                        "action": text,
                        "api_endpoint": maybe,
                        "result": maybe,
                        "metadata": {"type": "object"},
                    },
                },
            },
            "current_goal": maybe,
            "context_summary": maybe,
            "error_context": maybe,
            "recent_changes": {"type": "array", "items": text, "maxItems": 10},
            "api_specs": {
                "type": "object",
                "additionalProperties": false,
                "patternProperties": {"^[a-zA-Z0-9_-]+$": {"type": "string", "format": "uri"}},
            },
            "created_at": time,
            "last_updated": time,
        },
    })
}
