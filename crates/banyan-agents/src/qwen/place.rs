//! What a chat's first line and its place say about it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;

use banyan_model::Object;
use serde_json::Value;

use super::ID;
use super::record::Line;
use crate::{OWN, Own, session_id};

/// What is known of a session from its file's place and first line.
pub(super) fn metadata_of(path: &Path, native: &str, line: &Line<'_>, record: &Object) -> Object {
    let mut metadata = Object::new();
    let mut put = |key: &str, value: String| metadata.insert(key.to_owned(), value.into());
    put("agent", ID.to_owned());
    put("native_id", native.to_owned());
    put("source", path.to_string_lossy().into_owned());
    if let Some(cwd) = record.get("cwd").and_then(Value::as_str) {
        put("cwd", cwd.to_owned());
    }
    if line.agent.is_some() {
        put("parent_session_id", parent_session(path, &line.session));
        if let Some(call) = call_of(path) {
            put("parent_call_id", call);
        }
    }
    metadata
}

/// The session that a sub-agent worked for: its own id there, or ours if we wrote it.
fn parent_session(path: &Path, session: &str) -> String {
    let native = || session_id(ID, session).to_string();
    let Some(project) = path.ancestors().find(|folder| folder.file_name() == Some(OsStr::new("subagents"))) else {
        return native();
    };
    let own = || -> Option<Own> {
        let file = File::open(project.parent()?.join("chats").join(format!("{session}.jsonl"))).ok()?;
        let mut first = String::new();
        BufReader::new(file).read_line(&mut first).ok()?;
        let first: Object = serde_json::from_str(&first).ok()?;
        serde_json::from_value(first.get(OWN)?.clone()).ok()
    };
    own().map_or_else(native, |own| own.session.to_string())
}

/// The call that started a sub-agent, which a file beside says.
fn call_of(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path.with_extension("meta.json")).ok()?;
    let meta: Object = serde_json::from_str(&text).ok()?;
    meta.get("toolUseId")?.as_str().map(str::to_owned)
}
