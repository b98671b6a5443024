//! A session into goose: rows of its database, or a file that it imports.

use std::path::Path;

use jiff::Timestamp;
use rusqlite::{Connection, TransactionBehavior};
use serde_json::{Value, json};

use super::head::OWN_KEY;
use super::outgoing::Messages;
use super::{DATABASE, ID};
use crate::build::iso;
use crate::files::write_new;
use crate::sqlite::{self, Table};
use crate::{Destination, Outgoing, Problem, Written};

/// The newest form of the database that we know. A newer one is left to goose's own import.
const SCHEMA: i64 = 16;

/// Writes a session. Into the database if it is there and has a form that we know, else into a file to import: making the
/// database ourselves would keep goose from taking in the files of its older versions, which it does when it makes it.
pub(super) fn session(session: &Outgoing, to: &Destination) -> Result<Written, Problem> {
    let mut messages = Messages::of(session);
    messages.lost.dedup();
    let database = to.home.join(DATABASE);
    if database.is_file() {
        let mut connection = sqlite::open_to_add(&database)?;
        let failed = |error: rusqlite::Error| sqlite::problem(&database, &error);
        if is_known(&connection).map_err(failed)? {
            let id = insert(&mut connection, session, &messages, to).map_err(failed)?;
            let command = ["goose", "session", "--resume", "--session-id", &id].map(str::to_owned).to_vec();
            return Ok(Written { native_id: id, paths: vec![database], command, lost: messages.lost });
        }
    }
    import_file(session, messages, to)
}

fn is_known(connection: &Connection) -> rusqlite::Result<bool> {
    if !Table::of(connection, "schema_version")?.exists() {
        return Ok(false);
    }
    let version: Option<i64> =
        connection.query_row("SELECT max(version) FROM schema_version", [], |row| row.get(0))?;
    let (sessions, messages) = (Table::of(connection, "sessions")?, Table::of(connection, "messages")?);
    Ok(version.is_some_and(|version| version <= SCHEMA)
        && sessions.takes(&["id", "name", "working_dir", "created_at", "updated_at", "extension_data"])
        && messages.takes(&[
            "message_id",
            "session_id",
            "role",
            "content_json",
            "created_timestamp",
            "metadata_json",
        ]))
}

fn insert(
    connection: &mut Connection,
    session: &Outgoing,
    messages: &Messages,
    to: &Destination,
) -> rusqlite::Result<String> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let id = free_id(&transaction, session, to)?;
    let known = |key: &str| messages.session.get(key).cloned().unwrap_or_default();
    let (sessions, rows) = (Table::of(&transaction, "sessions")?, Table::of(&transaction, "messages")?);
    let mut row = vec![
        ("id", json!(id)),
        ("name", json!(session.meta.title)),
        ("user_set_name", json!(!session.meta.title.is_empty())),
        ("working_dir", json!(to.cwd)),
        ("created_at", json!(in_database(session.meta.created_at))),
        ("updated_at", json!(in_database(to.now_ms))),
        ("extension_data", extension_data(messages)),
    ];
    let more = [
        ("provider_name", "provider_name"),
        ("model_config_json", "model_config"),
        ("goose_mode", "goose_mode"),
        ("recipe_json", "recipe"),
        ("user_recipe_values_json", "user_recipe_values"),
    ];
    row.extend(more.map(|(column, key)| (column, known(key))).into_iter().filter(|(_, value)| !value.is_null()));
    sessions.insert(&transaction, &row)?;
    for message in &messages.messages {
        let of = |key: &str| message.get(key).cloned().unwrap_or_default();
        let created = of("created");
        let row = [
            ("message_id", of("id")),
            ("session_id", json!(id)),
            ("role", of("role")),
            ("content_json", of("content")),
            ("timestamp", json!(in_database(created.as_i64().unwrap_or_default() * 1000))),
            ("created_timestamp", created),
            ("metadata_json", of("metadata")),
            ("tokens", of("tokens")),
        ];
        rows.insert(&transaction, &row)?;
    }
    transaction.commit()?;
    Ok(id)
}

/// The session's own id if it is goose's and nobody has it, else the next one of today.
fn free_id(connection: &Connection, session: &Outgoing, to: &Destination) -> rusqlite::Result<String> {
    let is_free = |id: &str| {
        connection.query_row("SELECT count(*) = 0 FROM sessions WHERE id = ?1", [id], |row| row.get::<_, bool>(0))
    };
    if let Some(id) = session.native_id(ID)
        && is_free(id)?
    {
        return Ok(id.to_owned());
    }
    let day = in_database(to.now_ms)[..10].replace('-', "");
    for number in 1.. {
        let id = format!("{day}_{number}");
        if is_free(&id)? {
            return Ok(id);
        }
    }
    Ok(day)
}

fn import_file(session: &Outgoing, messages: Messages, to: &Destination) -> Result<Written, Problem> {
    let mut export = messages.session.clone();
    let title = &session.meta.title;
    let fallback = session.meta.session_id.as_str().to_owned();
    let id = session.native_id(ID).map_or(fallback, str::to_owned);
    let fields = [
        ("id", json!(id)),
        ("working_dir", json!(to.cwd)),
        ("name", json!(title)),
        ("user_set_name", json!(!title.is_empty())),
        ("created_at", json!(iso(session.meta.created_at))),
        ("updated_at", json!(iso(session.meta.updated_at))),
        ("extension_data", extension_data(&messages)),
        ("message_count", json!(messages.messages.len())),
        ("conversation", json!(messages.messages)),
    ];
    export.extend(fields.map(|(key, value)| (key.to_owned(), value)));
    let bytes = serde_json::to_vec_pretty(&export).map_err(|error| Problem::form(&to.home, error.to_string()))?;
    let path = free_path(&to.home, &id);
    write_new(&path, &bytes)?;
    let script = "goose session import \"$0\" && goose session --resume";
    let command = vec!["sh".to_owned(), "-c".to_owned(), script.to_owned(), path.display().to_string()];
    Ok(Written { native_id: id, paths: vec![path], command, lost: messages.lost })
}

fn free_path(folder: &Path, id: &str) -> std::path::PathBuf {
    let name: String = id.chars().map(|letter| if letter.is_alphanumeric() { letter } else { '_' }).collect();
    let mut path = folder.join(format!("{name}.import.json"));
    let mut number = 1;
    while path.exists() {
        number += 1;
        path = folder.join(format!("{name}_{number}.import.json"));
    }
    path
}

fn extension_data(messages: &Messages) -> Value {
    let mut data = messages.session.get("extension_data").cloned().unwrap_or_else(|| json!({}));
    data[OWN_KEY] = json!(messages.own);
    data
}

/// A time as the database has it.
fn in_database(at: i64) -> String {
    let at = Timestamp::from_millisecond(at).unwrap_or_default();
    at.strftime("%Y-%m-%d %H:%M:%S").to_string()
}
