//! A session into Cline 3.x: a manifest and a file of messages, in a folder of their own.

use std::path::Path;

use serde_json::{Value, json};

use super::outgoing::Messages;
use super::{ID, MESSAGES};
use crate::build::iso;
use crate::files::{files_below, write_new};
use crate::{Destination, OWN, Outgoing, Own, Problem, Step, Story, Written};

/// The version that is said to have written a session which Cline has not seen.
const VERSION: &str = "3.0.65";

/// Writes a session.
pub(super) fn session(session: &Outgoing, to: &Destination) -> Result<Written, Problem> {
    let mut messages = Messages::of(session);
    messages.lost.dedup();
    let sessions = to.home.join("sessions");
    let id = free_id(session, &sessions, to.now_ms, messages.record.is_some());
    let folder = sessions.join(&id);
    let (manifest_path, messages_path) =
        (folder.join(format!("{id}.json")), folder.join(format!("{id}{MESSAGES}")));
    let (record_entry, record) = messages.record.take().unzip();
    let record = record.unwrap_or_default();
    let own = json!(Own { session: session.meta.session_id.clone(), entry: record_entry, made_up: false });
    let mut file = record.get("file").cloned().unwrap_or_else(|| json!({ "version": 1, "agent": "lead" }));
    file["updated_at"] = json!(iso(session.meta.updated_at));
    file["sessionId"] = json!(id);
    if file["origin"]["parentThreadId"].is_string() || file.get("origin").is_none_or(Value::is_null) {
        // A sub-agent is resumed as a session of its own.
        file["agent"] = json!("lead");
        file["origin"] = json!({ "source": "cli", "mode": "user", "version": VERSION });
    }
    file["origin"]["sessionId"] = json!(id);
    file["messages"] = json!(messages.messages);
    let mut manifest = record.get("manifest").filter(|manifest| manifest.get("session_id").is_some()).cloned();
    let manifest = manifest.get_or_insert_with(|| new_manifest(session, to, &sessions));
    for (key, value) in [
        ("session_id", json!(id)),
        ("cwd", json!(to.cwd)),
        ("workspace_root", json!(to.cwd)),
        ("messages_path", json!(std::path::absolute(&messages_path).unwrap_or(messages_path.clone()))),
    ] {
        manifest[key] = value;
    }
    manifest["metadata"]["title"] = json!(session.meta.title);
    manifest["metadata"][OWN] = own;
    let bytes = |value: &Value| {
        serde_json::to_vec_pretty(value).map_err(|error| Problem::form(&folder, error.to_string()))
    };
    write_new(&messages_path, &bytes(&file)?)?;
    write_new(&manifest_path, &bytes(manifest)?)?;
    let command = ["cline", "--id", &id].map(str::to_owned).to_vec();
    Ok(Written { native_id: id, paths: vec![messages_path, manifest_path], command, lost: messages.lost })
}

/// The session's own id if it is Cline's and nobody has it, else one that begins with the time.
fn free_id(session: &Outgoing, sessions: &Path, now: i64, of_cline: bool) -> String {
    let known = session.native_id(ID).filter(|id| of_cline && !id.contains("__")).map(str::to_owned);
    let is_free = |id: &String| !sessions.join(id).exists();
    known.filter(is_free).unwrap_or_else(|| {
        let mut number = 0;
        loop {
            let seed = format!("{} {now} {number}", session.meta.session_id.as_str());
            let hash = blake3::hash(seed.as_bytes()).to_hex();
            let id = format!("{now}_{}", &hash[..5]);
            if is_free(&id) {
                return id;
            }
            number += 1;
        }
    })
}

/// A manifest for a session that Cline has not seen. Cline goes on with the provider and the model that it names, so they are
/// those of the user's newest session, if there is one.
fn new_manifest(session: &Outgoing, to: &Destination, sessions: &Path) -> Value {
    let newest = newest_manifest(sessions);
    let of = |key: &str, otherwise: &str| {
        let used = newest.as_ref().and_then(|newest| newest.get(key)?.as_str());
        used.or_else(|| session.metadata(key)).unwrap_or(otherwise).to_owned()
    };
    let prompt = Story::of(session).steps.iter().find_map(|step| match step {
        Step::User { content, .. } => content.iter().find_map(|block| match block {
            banyan_model::ContentBlock::Text(text) => Some(text.text.clone()),
            _ => None,
        }),
        Step::Assistant { .. } => None,
    });
    json!({
        "version": 1, "session_id": "", "source": "cli", "pid": std::process::id(),
        "started_at": iso(session.meta.created_at), "ended_at": iso(to.now_ms), "exit_code": 0, "status": "completed",
        "interactive": false, "provider": of("provider", "cline"), "model": of("model", "unknown"),
        "cwd": "", "workspace_root": "", "enable_tools": true, "enable_spawn": true, "enable_teams": true,
        "prompt": prompt.unwrap_or_default(),
        "metadata": { "sessionHistoryOrigin": { "mode": "user", "version": VERSION } },
    })
}

fn newest_manifest(sessions: &Path) -> Option<Value> {
    let is_manifest = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.ends_with(".json") && !name.ends_with(MESSAGES)
    };
    // Their names begin with the time.
    let newest = files_below(sessions, &is_manifest).ok()?.into_iter().next_back()?;
    serde_json::from_str(&std::fs::read_to_string(newest).ok()?).ok()
}
