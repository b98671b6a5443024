//! OpenCode's database: its rows in the form of its export.

use std::collections::HashMap;
use std::path::Path;

use banyan_model::Object;
use serde_json::{Value, json};

use super::head::{Kin, Session};
use super::read::Reading;
use super::{ID, second};
use crate::sqlite::{self, Database};
use crate::{Mark, Problem, Sink, Source, session_id};

/// The columns of a session, and what the export calls them. Those with a dot are in an object.
const SESSION: &[(&str, &str)] = &[
    ("id", "id"),
    ("slug", "slug"),
    ("project_id", "projectID"),
    ("workspace_id", "workspaceID"),
    ("parent_id", "parentID"),
    ("directory", "directory"),
    ("path", "path"),
    ("title", "title"),
    ("agent", "agent"),
    ("model", "model"),
    ("version", "version"),
    ("metadata", "metadata"),
    ("permission", "permission"),
    ("revert", "revert"),
    ("time_created", "time.created"),
    ("time_updated", "time.updated"),
    ("time_compacting", "time.compacting"),
    ("time_archived", "time.archived"),
];

/// All sessions of a database.
pub(super) fn sources(path: &Path) -> Result<Vec<Source>, Problem> {
    let database = Database::open(path)?;
    let sessions = database.table("session")?;
    if !sessions.has("id") {
        return Err(Problem::form(path, "it has no table of sessions"));
    }
    let mut counted = vec!["0".to_owned()];
    for table in ["message", "part", "session_message"] {
        if database.table(table)?.has("session_id") {
            counted.push(format!("(SELECT count(*) FROM {table} WHERE session_id = session.id)"));
        }
    }
    // Every change is an event, and they are numbered.
    if database.table("event_sequence")?.has("seq") {
        counted.push("coalesce((SELECT seq FROM event_sequence WHERE aggregate_id = session.id), 0)".to_owned());
    }
    let columns = sessions.select(&["id", "time_updated"]);
    let counted = counted.join(" + ");
    let rows =
        database.all(&format!("SELECT {columns}, {counted} AS counted FROM session ORDER BY rowid"), &[])?;
    let source = |row: HashMap<String, Value>| {
        let changed = row.get("time_updated").and_then(Value::as_i64).unwrap_or_default();
        let stamp = sqlite::stamp(row.get("counted")?, changed);
        let key = row.get("id")?.as_str()?.to_owned();
        Some(Source { agent: ID, path: path.to_owned(), key: Some(key), stamp })
    };
    Ok(rows.into_iter().filter_map(source).collect())
}

/// Reads one session: what the first generation of tables has of it, then what the second has. Neither sees the other's.
pub(super) fn read(path: &Path, key: &str, mark: Option<&Mark>, sink: &mut dyn Sink) -> Result<Mark, Problem> {
    let database = Database::open(path)?;
    let session =
        session(&database, key)?.ok_or_else(|| Problem::form(path, format!("no session {key} in it")))?;
    let kin = kin(&database, &session, key)?;
    let mut reading = Reading::new(session, path, kin, mark, sink)?;
    let told = first(&database, key, &mut reading).and_then(|()| later(&database, key, &mut reading));
    if let Err(problem @ Problem::Form { .. }) = told {
        reading.note("", format!("the rest cannot be read: {problem}"), true);
    } else {
        told?;
    }
    reading.finish()
}

fn first(database: &Database, key: &str, reading: &mut Reading<'_>) -> Result<(), Problem> {
    let (messages, parts) = (database.table("message")?, database.table("part")?);
    if !messages.has("data") {
        return Ok(());
    }
    let columns = messages.select(&["id", "data"]);
    let sql = format!("SELECT {columns} FROM message WHERE session_id = ?1 ORDER BY time_created, id");
    let part_columns = parts.select(&["id", "data"]);
    let part_sql = format!("SELECT {part_columns} FROM part WHERE message_id = ?1 ORDER BY id");
    database.each::<Problem>(&sql, &[&key], |row| {
        let id = text(&row, "id");
        let mut list = Vec::new();
        if parts.has("data") {
            database.each::<Problem>(&part_sql, &[&id], |part| {
                let ids = [("id", text(&part, "id")), ("sessionID", key.to_owned()), ("messageID", id.clone())];
                list.push(with_ids(part.get("data"), &ids));
                Ok(())
            })?;
        }
        let info = with_ids(row.get("data"), &[("id", id.clone()), ("sessionID", key.to_owned())]);
        reading.take(json!({ "info": info, "parts": list }))
    })
}

fn later(database: &Database, key: &str, reading: &mut Reading<'_>) -> Result<(), Problem> {
    let messages = database.table("session_message")?;
    if !messages.has("data") {
        return Ok(());
    }
    let columns = messages.select(&["id", "type", "seq", "data"]);
    let sql = format!("SELECT {columns} FROM session_message WHERE session_id = ?1 ORDER BY seq, id");
    database.each::<Problem>(&sql, &[&key], |row| {
        let record = with_ids(row.get("data"), &[("id", text(&row, "id")), ("type", text(&row, "type"))]);
        second::take(reading, record)
    })
}

fn session(database: &Database, key: &str) -> Result<Option<Session>, Problem> {
    let columns: Vec<&str> = SESSION.iter().map(|(column, _)| *column).collect();
    let columns = database.table("session")?.select(&columns);
    let row = database.all(&format!("SELECT {columns} FROM session WHERE id = ?1"), &[&key])?.into_iter().next();
    let Some(mut row) = row else { return Ok(None) };
    let mut info = Object::new();
    for (column, name) in SESSION {
        let value = row.remove(*column).unwrap_or_default();
        let value =
            if ["model", "metadata", "permission", "revert"].contains(column) { parsed(&value) } else { value };
        if value.is_null() {
            continue;
        }
        match name.split_once('.') {
            Some((object, name)) => {
                let object = info.entry(object).or_insert_with(|| json!({}));
                object[name] = value;
            }
            None => drop(info.insert((*name).to_owned(), value)),
        }
    }
    Ok(Some(Session::new(info)))
}

/// Which call started a sub-agent, and what a session was forked from. OpenCode does not say the latter: a fork has the title
/// of the other with a number, and messages of the same times.
fn kin(database: &Database, session: &Session, key: &str) -> Result<Kin, Problem> {
    let mut kin = Kin::default();
    if let Some(parent) = session.text("parentID") {
        let sql = "SELECT data FROM part WHERE session_id = ?1 AND instr(data, ?2)";
        for row in database.all(sql, &[&parent, &key])? {
            let part = row.get("data").map(parsed).unwrap_or_default();
            let child = part.pointer("/state/metadata/sessionId").and_then(Value::as_str);
            if child == Some(key) {
                kin.parent_call = part.get("callID").and_then(Value::as_str).map(str::to_owned);
            }
        }
    }
    let forked = session.text("title").and_then(|title| title.rsplit_once(" (fork #"));
    if let Some((title, _)) = forked {
        let begun = "(SELECT min(time_created) FROM message WHERE session_id = ";
        let sql = format!(
            "SELECT id FROM session WHERE id <> ?1 AND (title = ?2 OR title LIKE ?2 || ' (fork #%') AND time_created < ?3
             AND {begun}session.id) = {begun}?1) ORDER BY time_created DESC LIMIT 1"
        );
        let rows = database.all(&sql, &[&key, &title, &session.time("created").unwrap_or_default()])?;
        kin.forked_from = rows.first().map(|row| session_id(ID, &text(row, "id")));
    }
    Ok(kin)
}

fn text(row: &HashMap<String, Value>, column: &str) -> String {
    row.get(column).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// What a column of JSON says, with the ids that have columns of their own.
fn with_ids(data: Option<&Value>, ids: &[(&str, String)]) -> Value {
    let mut record = match data.map(parsed) {
        Some(Value::Object(record)) => record,
        other => Object::from_iter([("unreadable".to_owned(), other.unwrap_or_default())]),
    };
    record.extend(ids.iter().map(|(key, id)| ((*key).to_owned(), json!(id))));
    Value::Object(record)
}

fn parsed(value: &Value) -> Value {
    match value {
        Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| value.clone()),
        other => other.clone(),
    }
}
