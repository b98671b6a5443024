//! The open database: one connection that writes, and as many that read as there are readers at once.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::error::IndexError;
use crate::schema;

/// Reading connections that are kept open between reads.
const MOST_IDLE: usize = 4;

/// Where the catalogue lives.
#[derive(Clone, Debug)]
pub(crate) enum Home {
    /// In this file, of this directory.
    File(PathBuf, Owner),
    /// Nowhere but in this process.
    Memory,
}

/// What names the directory that a catalogue belongs to.
pub(crate) type Owner = Arc<str>;

/// An open, complete database.
pub(crate) struct Store {
    home: Home,
    writer: Arc<Mutex<Connection>>,
    idle: Mutex<Vec<Connection>>,
}

impl Store {
    /// Opens an existing file.
    pub(crate) fn open(path: &Path, owner: &Owner) -> Result<Self, IndexError> {
        Ok(Self::new(Home::File(path.to_path_buf(), Arc::clone(owner)), schema::writer(path)?))
    }

    /// Takes over a complete database that no file holds.
    pub(crate) fn in_memory(conn: Connection) -> Self {
        Self::new(Home::Memory, conn)
    }

    fn new(home: Home, writer: Connection) -> Self {
        Self { home, writer: Arc::new(Mutex::new(writer)), idle: Mutex::default() }
    }

    /// Runs one writing transaction; all of it counts, or on an error nothing.
    pub(crate) fn write<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        let mut conn = lock(&self.writer);
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = work(&tx)?;
        tx.commit()?;
        Ok(done)
    }

    /// Runs reads that all see the same moment. A file's readers do not wait for its writer.
    pub(crate) fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        let Home::File(path, _) = &self.home else {
            return work(&lock(&self.writer));
        };
        let idle = lock(&self.idle).pop();
        let mut conn = match idle {
            Some(conn) => conn,
            None => schema::reader(path)?,
        };
        let tx = conn.transaction()?;
        let done = work(&tx)?;
        tx.finish()?;
        let mut idle = lock(&self.idle);
        if idle.len() < MOST_IDLE {
            idle.push(conn);
        }
        Ok(done)
    }

    /// Makes all that was written survive a power cut.
    pub(crate) fn sync(&self) -> Result<(), IndexError> {
        if let Home::Memory = self.home {
            return Ok(());
        }
        let conn = lock(&self.writer);
        // A commit in this mode flushes the write-ahead log, and with it all earlier commits that are still in it.
        conn.pragma_update(None, "synchronous", "FULL")?;
        let synced = conn.execute("UPDATE mark SET value = value + 1 WHERE name = 'synced'", ());
        conn.pragma_update(None, "synchronous", "NORMAL")?;
        synced?;
        Ok(())
    }

    /// Folds the write-ahead log into the file and empties it. False while a reader needs it.
    pub(crate) fn settle(&self) -> Result<bool, IndexError> {
        lock(&self.idle).clear();
        let conn = lock(&self.writer);
        let busy: i64 = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get(0))?;
        Ok(busy == 0)
    }
}

/// Databases in memory that nobody uses any more. Making the tables and reading the statements takes longer than most
/// of them are used for, so the next one is one of these, emptied.
static SPARE: Mutex<Vec<Arc<Mutex<Connection>>>> = Mutex::new(Vec::new());

const MOST_SPARE: usize = 8;

/// A spare database holds at most so many pages, for it keeps their memory.
const MOST_SPARE_PAGES: i64 = 256;

/// An empty database in memory with all tables and indexes, if one is to be had.
pub(crate) fn spare() -> Option<Connection> {
    let conn = Arc::into_inner(lock(&SPARE).pop()?)?.into_inner().ok()?;
    schema::empty(&conn).is_ok().then_some(conn)
}

impl Drop for Store {
    fn drop(&mut self) {
        let Home::Memory = self.home else { return };
        let pages = lock(&self.writer).pragma_query_value(None, "page_count", |row| row.get::<_, i64>(0));
        let mut spare = lock(&SPARE);
        if spare.len() < MOST_SPARE && pages.is_ok_and(|pages| pages <= MOST_SPARE_PAGES) {
            spare.push(Arc::clone(&self.writer));
        }
    }
}

/// Locks, also after a panic elsewhere: what these locks guard is whole between any two statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
