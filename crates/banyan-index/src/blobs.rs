//! Which files refer to which blobs, and which blobs nobody refers to any more.
//!
//! A blob becomes an *orphan* when its last file goes. That is remembered until the owner says that it was collected,
//! over a restart too, so no blob is left behind when the process ends in between.

use rusqlite::Params;

use crate::catalogue::Catalogue;
use crate::decode;
use crate::error::IndexError;
use crate::row::FileKey;

impl Catalogue {
    /// How many files, listed or retained, refer to a blob.
    pub fn blob_users(&self, hash: &blake3::Hash) -> Result<u64, IndexError> {
        self.flush()?;
        self.with_store(|store| {
            store.read(|conn| {
                let mut statement = conn.prepare_cached("SELECT count(*) FROM blob_use WHERE hash = ?1")?;
                let users: i64 = statement.query_row([hash.as_bytes().as_slice()], |row| row.get(0))?;
                Ok(users.cast_unsigned())
            })
        })
    }

    /// The blobs that a file refers to.
    pub fn blobs_of(&self, key: &FileKey) -> Result<Vec<blake3::Hash>, IndexError> {
        let sql = format!("SELECT hash FROM blob_use WHERE num IN ({}) ORDER BY hash", decode::FILE_NUMBERS);
        self.hashes(&sql, [key.session_id.as_str(), key.born.as_str()])
    }

    /// Blobs, at most `limit`, that lost their last file. The owner removes them while no commit can refer to one anew,
    /// and then says so with [`Catalogue::collected`].
    pub fn orphans(&self, limit: usize) -> Result<Vec<blake3::Hash>, IndexError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.hashes("SELECT hash FROM orphan ORDER BY hash LIMIT ?1", [limit])
    }

    /// Forgets orphans, which are removed or in use again.
    pub fn collected(&self, hashes: &[blake3::Hash]) -> Result<(), IndexError> {
        self.with_store(|store| {
            store.write(|tx| {
                let mut statement = tx.prepare_cached("DELETE FROM orphan WHERE hash = ?1")?;
                for hash in hashes {
                    statement.execute([hash.as_bytes().as_slice()])?;
                }
                Ok(())
            })
        })
    }

    /// Says that a file refers to a blob no more.
    pub fn stop_using(&self, key: &FileKey, hash: &blake3::Hash) -> Result<(), IndexError> {
        self.flush()?;
        self.with_store(|store| {
            store.write(|tx| {
                let hash = hash.as_bytes().as_slice();
                let sql = format!("DELETE FROM blob_use WHERE hash = ?3 AND num IN ({})", decode::FILE_NUMBERS);
                tx.prepare_cached(&sql)?.execute((key.session_id.as_str(), key.born.as_str(), hash))?;
                let sql = "INSERT OR IGNORE INTO orphan (hash) SELECT ?1 \
                           WHERE NOT EXISTS (SELECT 1 FROM blob_use WHERE hash = ?1)";
                tx.prepare_cached(sql)?.execute([hash])?;
                Ok(())
            })
        })
    }

    fn hashes(&self, sql: &str, bound: impl Params) -> Result<Vec<blake3::Hash>, IndexError> {
        self.flush()?;
        self.with_store(|store| {
            store.read(|conn| {
                let mut statement = conn.prepare_cached(sql)?;
                let mut rows = statement.query(bound)?;
                let mut hashes = Vec::new();
                while let Some(row) = rows.next()? {
                    hashes.push(decode::hash(row, 0)?);
                }
                Ok(hashes)
            })
        })
    }
}
