//! Backups and checks of everything.

use serde_json::json;

use super::responses::Responses;
use super::{Paths, Protection};
use crate::backup::{BACKUP, VERIFY};

pub(super) fn add(paths: &mut Paths, protection: Protection) {
    let stream = "What the destination does not have, as of one commit. `banyan backup` writes it to a directory.";
    let responses = Responses::new()
        .of_type(200, stream, "application/octet-stream", json!({}))
        .problem(400, "What the destination has cannot be read, or is of another directory.")
        .problem(403, "The key has a scope or may only read.");
    let have = json!({"schema": {"type": "string", "format": "binary"}});
    let backup = json!({
        "operationId": "backup",
        "tags": ["Server"],
        "summary": "Everything, as of one commit, for `banyan backup`. The body says what the destination has already.",
        "requestBody": {"required": true, "content": {"application/x-ndjson": have}},
        "responses": responses.finish(protection),
    });
    paths.add(BACKUP, "post", backup);
    let lines = "Lines of JSON: `begin` and `done` tell the progress, and the last line is `report` or `error`.";
    let responses = Responses::new()
        .of_type(200, lines, "application/x-ndjson", json!({"schema": {"type": "string"}}))
        .problem(403, "The key has a scope or may only read.");
    let verify = json!({
        "operationId": "verify",
        "tags": ["Server"],
        "summary": "Reads everything and reports damage, while the server works. Nothing is changed.",
        "responses": responses.finish(protection),
    });
    paths.add(VERIFY, "get", verify);
}
