//! Goose's database: its rows in the form of its export.

use std::collections::HashMap;
use std::path::Path;

use banyan_model::{Object, SessionId};
use serde_json::{Value, json};

use super::ID;
use super::head::{self, Session};
use super::read::Reading;
use crate::sqlite::{self, Database};
use crate::{Mark, Problem, Sink, Source};

const SESSION: &[&str] = &[
    "id",
    "working_dir",
    "name",
    "description",
    "user_set_name",
    "session_type",
    "created_at",
    "updated_at",
    "extension_data",
    "schedule_id",
    "recipe_json",
    "user_recipe_values_json",
    "provider_name",
    "model_config_json",
    "goose_mode",
    "archived_at",
    "project_id",
    "parent_session_id",
];
const MESSAGE: &[&str] = &["message_id", "role", "created_timestamp", "content_json", "metadata_json", "tokens"];

/// All sessions of a database.
pub(super) fn sources(path: &Path) -> Result<Vec<Source>, Problem> {
    let database = Database::open(path)?;
    let (sessions, messages) = (database.table("sessions")?, database.table("messages")?);
    if !sessions.has("id") {
        return Err(Problem::form(path, "it has no table of sessions"));
    }
    let counted = if messages.has("session_id") {
        "(SELECT count(*) + coalesce(max(rowid), 0) FROM messages WHERE session_id = sessions.id)"
    } else {
        "0"
    };
    let columns = sessions.select(&["id", "updated_at", "name"]);
    let rows =
        database.all(&format!("SELECT {columns}, {counted} AS counted FROM sessions ORDER BY rowid"), &[])?;
    let source = |row: HashMap<String, Value>| {
        let changed = row.get("updated_at").and_then(Value::as_str).and_then(head::time).unwrap_or_default();
        let name = row.get("name").and_then(Value::as_str).map_or(0, trace_of);
        let size = row.get("counted").and_then(Value::as_u64).unwrap_or_default();
        let stamp = sqlite::stamp(&json!(size), changed.wrapping_add(name));
        let key = row.get("id")?.as_str()?.to_owned();
        Some(Source { agent: ID, path: path.to_owned(), key: Some(key), stamp })
    };
    Ok(rows.into_iter().filter_map(source).collect())
}

/// A number below a second that changes with a name: a new name does not change `updated_at`, whose unit is the second.
fn trace_of(name: &str) -> i64 {
    i64::from(blake3::hash(name.as_bytes()).as_bytes()[0])
}

/// Reads one session.
pub(super) fn read(path: &Path, key: &str, mark: Option<&Mark>, sink: &mut dyn Sink) -> Result<Mark, Problem> {
    let database = Database::open(path)?;
    let session =
        session(&database, key)?.ok_or_else(|| Problem::form(path, format!("no session {key} in it")))?;
    let parent = match session.text("parent_session_id") {
        Some(parent) => self::parent(&database, parent, key)?,
        None => None,
    };
    let mut reading = Reading::new(session, path, parent, mark, sink)?;
    let messages = database.table("messages")?;
    let columns = messages.select(MESSAGE);
    let order = if messages.has("created_timestamp") { "created_timestamp, rowid" } else { "rowid" };
    let sql = format!("SELECT {columns} FROM messages WHERE session_id = ?1 ORDER BY {order}");
    let told = database.each::<Problem>(&sql, &[&key], |row| reading.take(record(row)));
    if let Err(problem @ Problem::Form { .. }) = told {
        reading.note("", format!("the rest cannot be read: {problem}"), true);
    } else {
        told?;
    }
    reading.finish()
}

fn session(database: &Database, key: &str) -> Result<Option<Session>, Problem> {
    let columns = database.table("sessions")?.select(SESSION);
    let row = database.all(&format!("SELECT {columns} FROM sessions WHERE id = ?1"), &[&key])?.into_iter().next();
    let Some(mut row) = row else { return Ok(None) };
    let mut record = Object::new();
    for column in SESSION {
        let value = row.remove(*column).unwrap_or_default();
        let (name, value) = match (column.strip_suffix("_json"), value) {
            (Some(name), value) => (name, parsed(value)),
            (None, value) if *column == "extension_data" => (*column, parsed(value)),
            (None, value) if *column == "user_set_name" => (*column, json!(value.as_i64() == Some(1))),
            (None, value) => (*column, value),
        };
        if !value.is_null() {
            record.insert(name.to_owned(), value);
        }
    }
    Ok(Some(Session::new(record)))
}

/// The session that another was started by, and the call that did it.
fn parent(database: &Database, parent: &str, child: &str) -> Result<Option<(SessionId, Option<String>)>, Problem> {
    let Some(session) = session(database, parent)? else { return Ok(None) };
    let sql = "SELECT content_json FROM messages WHERE session_id = ?1 AND instr(content_json, ?2)";
    let mention = format!("\"subagent_session_id\":\"{child}\"");
    let mut call = None;
    for row in database.all(sql, &[&parent, &mention])? {
        let content = row.into_values().next().map(parsed).unwrap_or_default();
        let items = content.as_array().map(Vec::as_slice).unwrap_or_default();
        let item = items
            .iter()
            .find(|item| item.pointer("/toolResult/value/_meta/subagent_session_id") == Some(&json!(child)));
        call = item.and_then(|item| item.get("id")?.as_str()).map(str::to_owned).or(call);
    }
    Ok(Some((session.id(), call)))
}

/// A row in the form of the export.
fn record(mut row: HashMap<String, Value>) -> Value {
    let mut record = Object::new();
    for (column, key) in [("message_id", "id"), ("role", "role"), ("created_timestamp", "created")] {
        record.insert(key.to_owned(), row.remove(column).unwrap_or_default());
    }
    for (column, key) in [("content_json", "content"), ("metadata_json", "metadata")] {
        record.insert(key.to_owned(), row.remove(column).map(parsed).unwrap_or_default());
    }
    record.extend(
        row.remove("tokens").filter(|tokens| !tokens.is_null()).map(|tokens| ("tokens".to_owned(), tokens)),
    );
    Value::Object(record)
}

/// What a column of JSON says; the text itself if it is none.
fn parsed(value: Value) -> Value {
    match value {
        Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        other => other,
    }
}
