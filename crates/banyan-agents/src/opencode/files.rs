//! The folder of JSON files that OpenCode kept before it had a database: one file a session, a message and a part.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::ID;
use super::head::{Kin, Session};
use super::read::Reading;
use crate::files::{files_below, sources_of};
use crate::{Mark, Problem, Sink, Source, Stamp};

/// Whether a folder is the one that has the files.
pub(super) fn is_storage(path: &Path) -> bool {
    path.join("session").is_dir() && path.join("message").is_dir()
}

/// Whether a file is `storage/session/PROJECT/SESSION.json`.
pub(super) fn is_session_file(path: &Path) -> bool {
    let is_session = path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("ses_"));
    is_session && storage(path).is_some_and(is_storage)
}

fn storage(session: &Path) -> Option<&Path> {
    session.parent()?.parent()?.parent()
}

/// All sessions of a storage.
pub(super) fn sources(storage: &Path) -> Result<Vec<Source>, Problem> {
    let files = files_below(&storage.join("session"), &|path| is_session_file(path))?;
    Ok(sources_of(ID, files, stamp))
}

/// A session is its file, its messages and their parts. Folders change when a file comes or goes.
pub(super) fn stamp(path: &Path) -> io::Result<Stamp> {
    let mut all = Stamp::of_file(path)?;
    // What is gone by now, or cannot be looked at, says nothing.
    let stamp = |path: &Path| Stamp::of_file(path).unwrap_or_default();
    for message in messages(path).unwrap_or_default() {
        all = all.and(stamp(&message)).and(stamp(&parts_of(path, &message)));
    }
    Ok(all)
}

/// Reads one session.
pub(super) fn read(path: &Path, mark: Option<&Mark>, sink: &mut dyn Sink) -> Result<Mark, Problem> {
    let Value::Object(info) = json_of(path)? else { return Err(Problem::form(path, "it is not a session")) };
    let mut reading = Reading::new(Session::new(info), path, Kin::default(), mark, sink)?;
    let mut records = Vec::new();
    for message in messages(path)? {
        match json_of(&message) {
            Ok(info) => {
                let at = info.pointer("/time/created").and_then(Value::as_i64).unwrap_or_default();
                records.push((at, message, info));
            }
            Err(problem) => reading.note(&name(&message), problem.to_string(), true),
        }
    }
    records.sort_by_key(|(at, ..)| *at);
    for (_, message, info) in records {
        let mut parts = Vec::new();
        for part in files_below(&parts_of(path, &message), &is_json)? {
            match json_of(&part) {
                Ok(part) => parts.push(part),
                Err(problem) => reading.note(&name(&part), problem.to_string(), true),
            }
        }
        reading.take(json!({ "info": info, "parts": parts }))?;
    }
    reading.finish()
}

fn messages(session: &Path) -> Result<Vec<PathBuf>, Problem> {
    let (Some(storage), Some(id)) = (storage(session), session.file_stem()) else { return Ok(Vec::new()) };
    files_below(&storage.join("message").join(id), &is_json)
}

fn parts_of(session: &Path, message: &Path) -> PathBuf {
    let storage = storage(session).unwrap_or(session);
    storage.join("part").join(message.file_stem().unwrap_or_default())
}

fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "json")
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn json_of(path: &Path) -> Result<Value, Problem> {
    let bytes = std::fs::read(path).map_err(|error| Problem::io(path, error))?;
    serde_json::from_slice(&bytes).map_err(|error| Problem::form(path, error.to_string()))
}
