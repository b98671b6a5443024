//! `POST /v1/call/{function_id}`, one address for each function.

use banyan::{Effect, functions};
use serde_json::{Value, json};

use super::responses::Responses;
use super::schemas::Schemas;
use super::{Paths, Protection};

pub(super) fn add(paths: &mut Paths, schemas: &mut Schemas, protection: Protection) {
    for function in functions() {
        let schema = function.request_schema();
        let optional = schema["required"].as_array().is_none_or(Vec::is_empty);
        let (request, response) = (schemas.add(schema), schemas.add(function.response_schema()));
        let mut responses = Responses::new().json(200, "What the function gives.", &response);
        responses = responses.problem(400, "The request is not valid.");
        for (status, description) in refusals(function.id) {
            responses = responses.problem(*status, description);
        }
        let operation = json!({
            "operationId": operation_id(function.id),
            "tags": ["Calls"],
            "summary": function.description,
            "requestBody": {"required": !optional, "content": {"application/json": {"schema": request}}},
            "responses": responses.problem(413, "The body is too large.").finish(protection),
            "x-banyan-effect": if function.effect == Effect::Reads { "reads" } else { "writes" },
        });
        paths.add(&format!("/v1/call/{}", function.id), "post", operation);
    }
}

/// What a function can refuse besides a request that is not valid.
pub(super) fn refusals(function: &str) -> &'static [(u16, &'static str)] {
    match function {
        "session::create" | "session::ensure" | "session::list" => &[],
        // Nothing is found where nothing is: that is an answer.
        "session::get" | "session::delete" | "session::get-message" | "session::get-attachment" => &[],
        "session::append" => {
            &[(404, "There is no such session or entry."), (409, "The active leaf is not the expected one.")]
        }
        "session::delete-attachment" => {
            &[(404, "There is no such session."), (409, "A message uses the attachment.")]
        }
        _ => &[(404, "There is no such session or entry.")],
    }
}

/// `session::append-many` as the name of a function in a program: `callSessionAppendMany`.
fn operation_id(function: &str) -> Value {
    let words = function.split([':', '-']).filter(|word| !word.is_empty());
    let name: String = words.map(|word| word[..1].to_ascii_uppercase() + &word[1..]).collect();
    json!(format!("call{name}"))
}
