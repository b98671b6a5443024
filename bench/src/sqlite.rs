//! The peer: SQLite as people use it for sessions, write-ahead log on, every transaction flushed.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, params};

use crate::session;
use crate::workbench::Outcome;
use crate::writers::{Done, While, as_threads};

/// Opens a database with an empty table of entries. There is no index to keep up, which favours it.
pub(crate) fn open(dir: &Path) -> Outcome<Connection> {
    let conn = Connection::open(dir.join("peer.sqlite"))?;
    conn.busy_timeout(Duration::from_secs(60))?;
    conn.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.execute_batch(
        "CREATE TABLE IF NOT EXISTS entry (id INTEGER PRIMARY KEY, session INTEGER NOT NULL, body TEXT NOT NULL)",
    )?;
    Ok(conn)
}

/// Writes one row, which is a transaction of its own unless one is open.
pub(crate) fn insert(conn: &Connection, session: usize, body: &str) -> Outcome<()> {
    conn.prepare_cached("INSERT INTO entry (session, body) VALUES (?, ?)")?
        .execute(params![session as i64, body])?;
    Ok(())
}

/// What a writer writes: the same message that Banyan gets, as JSON already.
pub(crate) fn body(writer: usize) -> Outcome<String> {
    Ok(serde_json::to_string(&session::user(session::text(writer, 1024)))?)
}

/// All writers share one connection, behind a lock.
pub(crate) fn one_connection(dir: &Path, time: While) -> Outcome<Done> {
    let conn = Arc::new(Mutex::new(open(dir)?));
    as_threads(time, |writer| {
        let (conn, body) = (Arc::clone(&conn), body(writer)?);
        Ok(move || insert(&conn.lock().unwrap_or_else(PoisonError::into_inner), writer, &body))
    })
}

/// A connection for each writer; SQLite itself makes them wait for one another.
pub(crate) fn connection_each(dir: &Path, time: While) -> Outcome<Done> {
    as_threads(time, |writer| {
        let (conn, body) = (open(dir)?, body(writer)?);
        Ok(move || insert(&conn, writer, &body))
    })
}
