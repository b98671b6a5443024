//! Sessions as files.

use banyan::export::Target;
use banyan::model::{ImportResponse, schema_of};
use serde_json::json;

use super::others::{query, yes_or_no};
use super::resources::in_path;
use super::responses::Responses;
use super::schemas::Schemas;
use super::{Paths, Protection};
use crate::portable::{EXPORT, IMPORT};

pub(super) fn add(paths: &mut Paths, schemas: &mut Schemas, protection: Protection) {
    let mut parameters = in_path(EXPORT);
    let names = Target::ALL.map(Target::as_str);
    let mut to = query("to", "What the session is written as.", json!({"type": "string", "enum": names}));
    to["required"] = json!(true);
    parameters.push(to);
    parameters.push(query(
        "redact",
        "1 takes out what looks like a secret, and lists it at the end.",
        yes_or_no(),
    ));
    parameters.push(query(
        "plain",
        "1 leaves the session's own records out of an OPA archive: only what everybody can read is in it.",
        yes_or_no(),
    ));
    let mut responses = Responses::new()
        .of_type(200, "The file.", "application/octet-stream", json!({}))
        .problem(400, "The query is not valid.")
        .problem(404, "There is no such session.")
        .finish(protection);
    let content: serde_json::Map<_, _> = Target::ALL
        .map(|target| {
            let is_json = target.media_type() == "application/json";
            let schema = if is_json { json!({"type": "object"}) } else { json!({"type": "string"}) };
            (target.media_type().to_owned(), json!({"schema": schema}))
        })
        .into_iter()
        .collect();
    responses["200"]["content"] = content.into();
    let export = json!({
        "operationId": "exportSession",
        "tags": ["Files"],
        "summary": "A session as a file, with all its branches.",
        "parameters": parameters,
        "responses": responses,
    });
    paths.add(EXPORT, "get", export);

    let answer = schemas.add(schema_of::<ImportResponse>());
    let responses = Responses::new()
        .json(200, "What was taken, what was made up and what found no place.", &answer)
        .problem(400, "The file is none that can be imported.")
        .problem(404, "The session of that id is somebody else's.")
        .problem(409, "The session changed meanwhile.")
        .problem(413, "The body is too large.");
    let file = json!({"schema": {"type": "string", "format": "binary"}});
    let import = json!({
        "operationId": "importSessions",
        "tags": ["Files"],
        "summary": "Take in a file: an OPA archive, a session log or an OCP context. It is taken whole or not at all. The same file twice changes nothing.",
        "parameters": [query("dry_run", "1 changes nothing, and tells what would be done.", yes_or_no())],
        "requestBody": {"required": true, "content": {"application/octet-stream": file}},
        "responses": responses.finish(protection),
    });
    paths.add(IMPORT, "post", import);
}
