//! A session into OpenCode: rows of its database, or a file that it imports.

use std::path::Path;

use banyan_model::Object;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
use serde_json::{Value, json};

use super::outgoing::Messages;
use super::{DATABASE, ID, choice};
use crate::files::write_new;
use crate::sqlite::{self, Table};
use crate::{Destination, OWN, Outgoing, Problem, Written};

/// The version that is said to have written a session which OpenCode has not seen.
const VERSION: &str = "1.18.33";

/// Writes a session. Into the database if it has a form that we know and knows the directory, else into a file to import:
/// only OpenCode itself can say which project a directory is.
pub(super) fn session(session: &Outgoing, to: &Destination) -> Result<Written, Problem> {
    let mut messages = Messages::of(session, to);
    messages.lost.dedup();
    let database = to.home.join(DATABASE);
    if database.is_file() {
        let mut connection = sqlite::open_to_add(&database)?;
        let inserted = insert(&mut connection, session, &mut messages, to);
        if let Some(id) = inserted.map_err(|error| sqlite::problem(&database, &error))? {
            let command = ["opencode", "-s", &id].map(str::to_owned).to_vec();
            return Ok(Written { native_id: id, paths: vec![database], command, lost: messages.lost });
        }
    }
    let id = session.native_id(ID).map_or_else(|| messages.ids.session(), str::to_owned);
    let path = to.home.join(format!("{id}.import.json"));
    let (id, path) = if path.exists() {
        messages.rename();
        let id = messages.ids.session();
        (id.clone(), to.home.join(format!("{id}.import.json")))
    } else {
        (id, path)
    };
    let info = info(session, &mut messages, to, &id);
    let model = choice::model(session, to);
    for message in &mut messages.messages {
        // The import insists on it. In the database it is better left out: then the user's own choice counts.
        if message["info"]["role"] == "user" && message["info"].get("model").is_none() {
            message["info"]["model"] = model.clone();
        }
    }
    let export = json!({ "info": info, "messages": messages.messages });
    let bytes = serde_json::to_vec_pretty(&export).map_err(|error| Problem::form(&path, error.to_string()))?;
    write_new(&path, &bytes)?;
    let script = "opencode import \"$0\" && exec opencode -s \"$1\"";
    let command =
        vec!["sh".to_owned(), "-c".to_owned(), script.to_owned(), path.display().to_string(), id.clone()];
    Ok(Written { native_id: id, paths: vec![path], command, lost: messages.lost })
}

/// The session's own record, with the session's id in all messages.
fn info(session: &Outgoing, messages: &mut Messages, to: &Destination, id: &str) -> Object {
    for message in &mut messages.messages {
        message["info"]["sessionID"] = json!(id);
        for part in message.get_mut("parts").and_then(Value::as_array_mut).into_iter().flatten() {
            part["sessionID"] = json!(id);
            // Files that a function gave back have ids as well.
            let message_id = part["messageID"].clone();
            let files = part.pointer_mut("/state/attachments").and_then(Value::as_array_mut);
            for file in files.into_iter().flatten() {
                if file.get("id").is_none() {
                    file["id"] = json!(messages.ids.next("prt"));
                    file["messageID"] = message_id.clone();
                }
                file["sessionID"] = json!(id);
            }
        }
    }
    let mut info = messages.info.clone();
    let same_place = info.get("directory") == Some(&json!(to.cwd));
    for foreign in ["parentID", "workspaceID", "share", "revert"] {
        info.shift_remove(foreign);
    }
    if !same_place {
        info.shift_remove("path");
    }
    let known =
        |info: &Object, key: &str, otherwise: &str| info.get(key).cloned().unwrap_or_else(|| json!(otherwise));
    let mut metadata = info.get("metadata").filter(|metadata| metadata.is_object()).cloned().unwrap_or(json!({}));
    metadata[OWN] = json!(messages.own);
    let fields = [
        ("id", json!(id)),
        ("slug", known(&info, "slug", "from-banyan")),
        ("projectID", known(&info, "projectID", "global")),
        ("directory", json!(to.cwd)),
        ("title", json!(session.meta.title)),
        ("version", known(&info, "version", VERSION)),
        ("metadata", metadata),
        ("time", json!({ "created": session.meta.created_at, "updated": to.now_ms })),
    ];
    info.extend(fields.map(|(key, value)| (key.to_owned(), value)));
    info
}

/// Adds the rows; gives the id, or none if the database is not one that we can add to.
fn insert(
    connection: &mut Connection,
    session: &Outgoing,
    messages: &mut Messages,
    to: &Destination,
) -> rusqlite::Result<Option<String>> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let tables = ["session", "message", "part"].map(|name| Table::of(&transaction, name));
    let [sessions, rows, parts] = tables;
    let (sessions, rows, parts) = (sessions?, rows?, parts?);
    let is_known = sessions.takes(&[
        "id",
        "project_id",
        "slug",
        "directory",
        "title",
        "version",
        "metadata",
        "time_created",
        "time_updated",
    ]) && rows.takes(&["id", "session_id", "time_created", "time_updated", "data"])
        && parts.takes(&["id", "message_id", "session_id", "time_created", "time_updated", "data"]);
    if !is_known {
        return Ok(None);
    }
    let Some(project) = project(&transaction, &to.cwd)? else { return Ok(None) };
    let id = match session.native_id(ID) {
        Some(id) if is_free(&transaction, "session", id)? && all_free(&transaction, messages)? => id.to_owned(),
        Some(_) => {
            messages.rename();
            messages.ids.session()
        }
        None => messages.ids.session(),
    };
    let info = info(session, messages, to, &id);
    let of = |key: &str| info.get(key).cloned().unwrap_or_default();
    let (created, updated) = (of("time")["created"].clone(), of("time")["updated"].clone());
    let mut row = vec![
        ("id", json!(id)),
        ("project_id", json!(project)),
        ("slug", of("slug")),
        ("directory", of("directory")),
        ("title", of("title")),
        ("version", of("version")),
        ("metadata", of("metadata")),
        ("time_created", created),
        ("time_updated", updated),
    ];
    let more = ["path", "permission", "agent", "model"].map(|key| (key, of(key)));
    row.extend(more.into_iter().filter(|(_, value)| !value.is_null()));
    sessions.insert(&transaction, &row)?;
    let mut latest = 0;
    for message in &messages.messages {
        let at = message.pointer("/info/time/created").and_then(Value::as_i64).unwrap_or_default();
        latest = latest.max(at);
        let row = |value: &Value, without: &[&str]| {
            let mut data = value.as_object().cloned().unwrap_or_default();
            without.iter().for_each(|key| drop(data.shift_remove(*key)));
            (value.get("id").cloned().unwrap_or_default(), Value::Object(data))
        };
        let (message_id, data) = row(&message["info"], &["id", "sessionID"]);
        let time = [("time_created", json!(latest)), ("time_updated", json!(latest))];
        let ids = [("id", message_id.clone()), ("session_id", json!(id)), ("data", data)];
        rows.insert(&transaction, &[ids.to_vec(), time.to_vec()].concat())?;
        for part in message.get("parts").and_then(Value::as_array).into_iter().flatten() {
            let (part_id, data) = row(part, &["id", "sessionID", "messageID"]);
            let message_id = ("message_id", message_id.clone());
            let ids = [("id", part_id), message_id, ("session_id", json!(id)), ("data", data)];
            parts.insert(&transaction, &[ids.to_vec(), time.to_vec()].concat())?;
        }
    }
    transaction.commit()?;
    Ok(Some(id))
}

fn is_free(connection: &Connection, table: &str, id: &str) -> rusqlite::Result<bool> {
    let sql = format!("SELECT count(*) = 0 FROM {table} WHERE id = ?1");
    connection.query_row(&sql, [id], |row| row.get(0))
}

fn all_free(connection: &Connection, messages: &Messages) -> rusqlite::Result<bool> {
    for message in &messages.messages {
        let id = message.pointer("/info/id").and_then(Value::as_str).unwrap_or_default();
        if !is_free(connection, "message", id)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The project that a directory belongs to, if OpenCode has been there.
fn project(connection: &Connection, directory: &Path) -> rusqlite::Result<Option<String>> {
    if !Table::of(connection, "project")?.has("worktree") {
        return Ok(None);
    }
    for folder in directory.ancestors().filter(|folder| folder.parent().is_some()) {
        let Some(folder) = folder.to_str() else { continue };
        let found = connection
            .query_row("SELECT id FROM project WHERE worktree = ?1", [folder], |row| row.get(0))
            .optional()?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}
