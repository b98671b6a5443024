//! The tables, and how a connection to them is set up.
//!
//! `by_updated` and `by_created` hold the listed sessions in two orders, each of them once under every label that it is
//! found by (see [`crate::tags`]). So a page of any list is a walk over neighbours.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::error::IndexError;

/// Says in a database's header that it is a catalogue ("Bnyn").
pub(crate) const APPLICATION_ID: i32 = 0x426e_796e;

/// The form of the tables. Another number means another form, which is rebuilt and never converted.
pub(crate) const VERSION: i32 = 2;

/// The tables that hold rows.
pub(crate) const TABLES: &str = "
CREATE TABLE session (
    num INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    born TEXT NOT NULL,
    hidden INTEGER NOT NULL,
    status INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    message_count INTEGER NOT NULL,
    commit_no INTEGER NOT NULL,
    length INTEGER NOT NULL,
    modified INTEGER NOT NULL,
    stem TEXT,              -- NULL when it is the id
    base_id TEXT,
    base_born TEXT,
    pairs BLOB NOT NULL,    -- eight bytes each; none when hidden
    signature INTEGER NOT NULL,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    status_reason TEXT,
    forked_from TEXT,
    metadata TEXT,          -- JSON
    sum INTEGER NOT NULL    -- CRC-32C over the other columns, apart from num
) STRICT;
CREATE TABLE by_updated (
    tag BLOB, at INTEGER, id TEXT, num INTEGER NOT NULL, signature INTEGER NOT NULL,
    PRIMARY KEY (tag, at, id)
) WITHOUT ROWID, STRICT;
CREATE TABLE by_created (
    tag BLOB, at INTEGER, id TEXT, num INTEGER NOT NULL, signature INTEGER NOT NULL,
    PRIMARY KEY (tag, at, id)
) WITHOUT ROWID, STRICT;
CREATE TABLE blob_use (hash BLOB, num INTEGER, PRIMARY KEY (hash, num)) WITHOUT ROWID, STRICT;
CREATE TABLE orphan (hash BLOB PRIMARY KEY) WITHOUT ROWID, STRICT;
CREATE TABLE mark (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID, STRICT;
CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID, STRICT;
INSERT INTO mark VALUES ('applied', 0), ('applied_check', -1), ('sessions', 0), ('synced', 0);
";

/// The indexes, apart from the tables because a rebuild makes them last. A database in memory that is used again has them.
pub(crate) const INDEXES: &str = "
CREATE UNIQUE INDEX IF NOT EXISTS session_listed ON session (id) WHERE hidden = 0;
CREATE UNIQUE INDEX IF NOT EXISTS session_hidden ON session (id, born) WHERE hidden = 1;
CREATE INDEX IF NOT EXISTS session_base ON session (base_id, base_born) WHERE base_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS blob_use_by_file ON blob_use (num, hash);
";

/// Takes everything out of the tables.
const EMPTY: [&str; 8] = [
    "DELETE FROM session",
    "DELETE FROM by_updated",
    "DELETE FROM by_created",
    "DELETE FROM blob_use",
    "DELETE FROM orphan",
    "DELETE FROM state",
    "UPDATE mark SET value = 0",
    "UPDATE mark SET value = -1 WHERE name = 'applied_check'",
];

/// Reads one row of each table, so that a file without one of them is known at once.
pub(crate) const PROBES: [&str; 5] = [
    "SELECT num, id, pairs, metadata, sum FROM session LIMIT 1",
    "SELECT tag, at, id, num, signature FROM by_updated LIMIT 1",
    "SELECT tag, at, id, num, signature FROM by_created LIMIT 1",
    "SELECT hash, num FROM blob_use LIMIT 1",
    "SELECT value FROM state, orphan LIMIT 1",
];

const WRITER_CACHE_KIB: i32 = 32 * 1024;
const READER_CACHE_KIB: i32 = 8 * 1024;

/// The write-ahead log is folded into the database when it has this many pages (8 MiB). Rarely, because it
/// writes each page once however often it was changed meanwhile, and waits for the disk.
const CHECKPOINT_PAGES: i32 = 2 * 1024;

/// Keeps the complement of the mark `applied`, so that damage of either is known.
pub(crate) const CHECK_APPLIED: &str =
    "UPDATE mark SET value = (SELECT ~value FROM mark WHERE name = 'applied') WHERE name = 'applied_check'";

/// Room for every shape of walk beside the fixed statements.
const STATEMENTS: usize = 128;

/// Opens an existing file to write to it.
pub(crate) fn writer(path: &Path) -> Result<Connection, IndexError> {
    let conn = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE, WRITER_CACHE_KIB)?;
    conn.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    conn.pragma_update(None, "synchronous", "NORMAL")?;
    conn.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    // What is deleted is overwritten, also in pages that are free.
    conn.pragma_update_and_check(None, "secure_delete", true, |_| Ok(()))?;
    conn.pragma_update_and_check(None, "journal_size_limit", 128 << 20, |_| Ok(()))?;
    Ok(conn)
}

/// Opens an existing file to read from it only.
pub(crate) fn reader(path: &Path) -> Result<Connection, IndexError> {
    let conn = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE, READER_CACHE_KIB)?;
    conn.pragma_update(None, "query_only", true)?;
    Ok(conn)
}

/// Makes a new file to fill. It is worth nothing until it is complete, so nothing guards it against a crash.
pub(crate) fn builder(path: &Path) -> Result<Connection, IndexError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let conn = connect(path, flags, WRITER_CACHE_KIB)?;
    conn.pragma_update_and_check(None, "journal_mode", "OFF", |_| Ok(()))?;
    conn.pragma_update(None, "synchronous", "OFF")?;
    conn.pragma_update(None, "application_id", APPLICATION_ID)?;
    conn.pragma_update(None, "user_version", VERSION)?;
    conn.execute_batch(TABLES)?;
    Ok(conn)
}

/// Makes a database that lives as long as its connection, to fill.
pub(crate) fn memory_builder() -> Result<Connection, IndexError> {
    let conn = Connection::open_in_memory()?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    conn.execute_batch(TABLES)?;
    Ok(conn)
}

/// Makes a database as if its tables had just been made, save that it has indexes.
pub(crate) fn empty(conn: &Connection) -> Result<(), IndexError> {
    let tx = conn.unchecked_transaction()?;
    for statement in EMPTY {
        tx.prepare_cached(statement)?.execute(())?;
    }
    Ok(tx.commit()?)
}

/// Makes an empty file that only its owner may read. The files that the database puts beside it are made like it. What goes wrong is
/// told when the database opens it.
pub(crate) fn create_private(path: &Path) {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let _ = options.open(path);
}

fn connect(path: &Path, flags: OpenFlags, cache_kib: i32) -> Result<Connection, IndexError> {
    if flags.contains(OpenFlags::SQLITE_OPEN_CREATE) {
        create_private(path);
    }
    let conn = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(Duration::from_secs(5))?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    conn.pragma_update(None, "cache_size", -cache_kib)?;
    conn.pragma_update(None, "cell_size_check", true)?;
    Ok(conn)
}
