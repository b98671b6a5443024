//! The open database: one connection that writes, and as many that read as there are readers at once.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::error::IndexError;
use crate::schema;

/// Reading connections that are kept open between reads.
const MOST_IDLE: usize = 4;

/// Where the catalogue lives.
#[derive(Clone, Debug)]
pub(crate) enum Home {
    /// In this file.
    File(PathBuf),
    /// Nowhere but in this process.
    Memory,
}

/// An open, complete database.
pub(crate) struct Store {
    home: Home,
    writer: Mutex<Connection>,
    idle: Mutex<Vec<Connection>>,
}

impl Store {
    /// Opens an existing file.
    pub(crate) fn open(path: &Path) -> Result<Self, IndexError> {
        Ok(Self::new(Home::File(path.to_path_buf()), schema::writer(path)?))
    }

    /// Takes over a complete database that no file holds.
    pub(crate) fn in_memory(conn: Connection) -> Self {
        Self::new(Home::Memory, conn)
    }

    fn new(home: Home, writer: Connection) -> Self {
        Self { home, writer: Mutex::new(writer), idle: Mutex::default() }
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
        let Home::File(path) = &self.home else {
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

    /// Folds the write-ahead log into the file and empties it.
    pub(crate) fn settle(&self) -> Result<(), IndexError> {
        lock(&self.idle).clear();
        let conn = lock(&self.writer);
        conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))?;
        Ok(())
    }
}

/// Locks, also after a panic elsewhere: what these locks guard is whole between any two statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
