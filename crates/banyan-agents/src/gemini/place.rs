//! What the place of a chat says about it: the project's directory, and whose sub-agent it is.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use banyan_model::Object;
use memchr::memmem;
use serde_json::Value;

use super::ID;
use super::message::{Told, own};
use super::tree::Kind;
use crate::lines::without_bom;
use crate::session_id;

/// The first line that says which session a file holds.
pub(super) fn metadata_in(path: &Path) -> Option<Object> {
    lines_with(path, "\"sessionId\"").find(|record| record.get("sessionId").is_some_and(Value::is_string))
}

/// Whether anybody said anything in a chat. Every start of the agent leaves a file with nothing but its own context, and a resume
/// one that has the id of the session which goes on elsewhere.
pub(super) fn is_a_conversation(path: &Path) -> bool {
    let said = |record: &Object| Told::of(record, "", 0).is_some_and(|told| told.kind != Kind::Beside);
    lines_with(path, "\"type\"").any(|record| {
        let list = record.get("$set").and_then(|set| set.get("messages")?.as_array()).map(Vec::as_slice);
        said(&record) || list.unwrap_or_default().iter().filter_map(Value::as_object).any(said)
    })
}

/// What is known of a session from its file's place and first line.
pub(super) fn metadata_of(path: &Path, native: &str, record: &Object) -> Object {
    let mut metadata = Object::new();
    let mut put = |key: &str, value: String| metadata.insert(key.to_owned(), value.into());
    put("agent", ID.to_owned());
    put("native_id", native.to_owned());
    put("source", path.to_string_lossy().into_owned());
    let first = record.get("directories").and_then(|directories| directories.get(0)).and_then(Value::as_str);
    if let Some(cwd) = first.map(str::to_owned).or_else(|| project_root(path)) {
        put("cwd", cwd);
    }
    if let Some(parent) = parent_of(path) {
        let (session, call) = called_by(path, &parent, native);
        put("parent_session_id", session);
        if let Some(call) = call {
            put("parent_call_id", call);
        }
    }
    metadata
}

/// The directory that the project's folder is for.
fn project_root(path: &Path) -> Option<String> {
    let chats = path.ancestors().find(|folder| folder.file_name() == Some(OsStr::new("chats")))?;
    let root = fs::read_to_string(chats.parent()?.join(".project_root")).ok()?;
    Some(root.trim().to_owned()).filter(|root| !root.is_empty())
}

/// A sub-agent's file lies in a folder that is named after the session which called it.
fn parent_of(path: &Path) -> Option<String> {
    let folder = path.parent()?;
    let is_chats = folder.parent()?.file_name() == Some(OsStr::new("chats"));
    if is_chats { folder.file_name()?.to_str().map(str::to_owned) } else { None }
}

/// The session that called a sub-agent, and the call, if the session is here.
fn called_by(path: &Path, parent: &str, child: &str) -> (String, Option<String>) {
    let unknown = session_id(ID, parent).to_string();
    let Some(file) = file_of(path, parent) else { return (unknown, None) };
    let session =
        metadata_in(&file).and_then(|record| own(&record)).map_or(unknown, |own| own.session.to_string());
    let call = lines_with(&file, child).find_map(|record| {
        let calls = record.get("toolCalls")?.as_array()?;
        let call = calls.iter().find(|call| call.get("agentId").and_then(Value::as_str) == Some(child))?;
        call.get("id")?.as_str().map(str::to_owned)
    });
    (session, call)
}

fn file_of(path: &Path, session: &str) -> Option<PathBuf> {
    let chats = path.parent()?.parent()?;
    let short = session.get(..8)?;
    let named = |file: &PathBuf| file.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with(short));
    fs::read_dir(chats)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|file| file.is_file() && named(file))
}

/// The records of a file that have a word in them.
fn lines_with(path: &Path, word: &str) -> impl Iterator<Item = Object> {
    let word = word.to_owned();
    let reader = File::open(path).ok().map(BufReader::new);
    let lines = reader.into_iter().flat_map(|reader| reader.split(b'\n').map_while(Result::ok));
    lines.filter_map(move |line| {
        memmem::find(&line, word.as_bytes())?;
        serde_json::from_slice(without_bom(&line)).ok()
    })
}
