//! Building a catalogue anew, as fast as the disk allows.
//!
//! The rows go into a new file; the orders and indexes follow in one sorted pass each, and only the complete file takes
//! the catalogue's name. So a crash at any moment leaves no catalogue, and never half of one.

use std::fs::File;
use std::path::Path;

use banyan_model::CommitNo;
use rusqlite::{Connection, OptionalExtension};

use crate::error::IndexError;
use crate::open::{building, discard};
use crate::row::Row;
use crate::schema;
use crate::store::{self, Home, Store};
use crate::tags::ANY_STATUS;
use crate::write;

/// Takes the rows of a rebuild.
pub struct Sink {
    conn: Connection,
    rows: u64,
    /// The most pairs that a row had.
    most_pairs: usize,
}

impl Sink {
    /// Adds a file, with all the blobs that it refers to. A session may be listed once only.
    pub fn put(&mut self, row: &Row) -> Result<(), IndexError> {
        let labels = write::row_labels(row);
        let num = write::store(&self.conn, None, row, &labels).map_err(|error| in_two_rows(row, error))?;
        write::use_blobs(&self.conn, num, &row.blobs)?;
        self.rows += 1;
        self.most_pairs = self.most_pairs.max(labels.pairs.len());
        Ok(())
    }

    /// How many files were added.
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

/// Builds a store in its home, where no other is. The rows include all commits up to the one that `fill` answers.
pub(crate) fn build<E: From<IndexError>>(
    home: &Home,
    fill: impl FnOnce(&mut Sink) -> Result<CommitNo, E>,
) -> Result<Store, E> {
    let conn = match home {
        Home::File(path, _) => {
            discard(&building(path))?;
            schema::builder(&building(path))?
        }
        Home::Memory => store::spare().map_or_else(schema::memory_builder, Ok)?,
    };
    conn.execute_batch("BEGIN").map_err(IndexError::from)?;
    let mut sink = Sink { conn, rows: 0, most_pairs: 0 };
    let applied = fill(&mut sink)?;
    complete(&sink, applied, home)?;
    let conn = sink.conn;
    Ok(match home {
        Home::File(path, owner) => {
            drop(conn);
            publish(path)?;
            Store::open(path, owner)?
        }
        Home::Memory => Store::in_memory(conn),
    })
}

fn complete(sink: &Sink, applied: CommitNo, home: &Home) -> Result<(), IndexError> {
    let conn = &sink.conn;
    fill_order(sink, "by_updated", "updated_at", "1 << status")?;
    fill_order(sink, "by_created", "created_at", &ANY_STATUS.to_string())?;
    conn.execute_batch(schema::INDEXES).map_err(|error| twice(conn, error))?;
    let count = "UPDATE mark SET value = (SELECT count(*) FROM session WHERE hidden = 0) WHERE name = 'sessions'";
    conn.prepare_cached(count)?.execute(())?;
    let apply = "UPDATE mark SET value = ?1 WHERE name = 'applied'";
    conn.prepare_cached(apply)?.execute([applied.get().cast_signed()])?;
    conn.prepare_cached(schema::CHECK_APPLIED)?.execute(())?;
    if let Home::File(_, owner) = home {
        conn.prepare_cached("INSERT OR REPLACE INTO state VALUES ('owner', ?1)")?.execute([owner.as_ref()])?;
    }
    conn.execute_batch("COMMIT")?;
    Ok(())
}

/// Gives every listed session its entries in one order.
fn fill_order(sink: &Sink, order: &str, at: &str, bits: &str) -> Result<(), IndexError> {
    let Sink { conn, most_pairs, .. } = sink;
    // `n` numbers the pairs of a session, which are eight bytes each.
    let sql = format!(
        "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1) \
         INSERT INTO {order} (tag, at, id, num, signature) \
         SELECT CASE status WHEN 0 THEN x'00' WHEN 1 THEN x'01' WHEN 2 THEN x'02' ELSE x'03' END, {at}, id, num, \
         signature | ({bits}) FROM session WHERE hidden = 0 \
         UNION ALL \
         SELECT substr(pairs, 1 + 8 * i, 8), {at}, id, num, signature | ({bits}) \
         FROM session CROSS JOIN n ON 8 * i < length(pairs) WHERE hidden = 0 \
         UNION ALL \
         SELECT x'ff', {at}, id, num, signature | ({bits}) \
         FROM session WHERE hidden = 0 AND pairs = x'' AND signature <> 0 \
         ORDER BY 1, 2, 3"
    );
    let filled = conn.prepare_cached(&sql).and_then(|mut fill| fill.execute([*most_pairs as i64]));
    filled.map(drop).map_err(|error| twice(conn, error))
}

/// Names the session whose row breaks a uniqueness, where the indexes are there already.
fn in_two_rows(row: &Row, error: IndexError) -> IndexError {
    match &error {
        IndexError::Database(cause) if is_twice(cause) => {
            IndexError::Twice { session_id: row.file.key.session_id.to_string() }
        }
        _ => error,
    }
}

fn is_twice(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation)
}

/// Names the session behind a broken uniqueness.
fn twice(conn: &Connection, error: rusqlite::Error) -> IndexError {
    if !is_twice(&error) {
        return error.into();
    }
    let sql = "SELECT id FROM session GROUP BY id, CASE hidden WHEN 0 THEN '' ELSE born END HAVING count(*) > 1";
    match conn.query_row(sql, (), |row| row.get(0)).optional() {
        Ok(Some(session_id)) => IndexError::Twice { session_id },
        _ => error.into(),
    }
}

/// Gives the complete file its name, so that it is whole under that name after a power cut too.
fn publish(path: &Path) -> Result<(), IndexError> {
    let built = building(path);
    File::open(&built).and_then(|file| file.sync_all()).map_err(IndexError::io("flush", &built))?;
    std::fs::rename(&built, path).map_err(IndexError::io("name", &built))?;
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(IndexError::io("flush", folder))?;
    }
    Ok(())
}
