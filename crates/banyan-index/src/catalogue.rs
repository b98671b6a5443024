//! The catalogue: what is noted of every session file, and the questions that it answers.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use banyan_model::{CommitNo, SessionId};
use rusqlite::OptionalExtension;

use crate::decode;
use crate::error::IndexError;
use crate::list::{ListPage, ListQuery};
use crate::open::{Opened, building, discard, open_store};
use crate::overlay::{Change, Overlay, View};
use crate::rebuild::{Sink, build};
use crate::row::{FileKey, Row, SeenFile};
use crate::schema::CHECK_APPLIED;
use crate::seal::{self, Seal};
use crate::store::{Home, Store, lock};
use crate::write;

/// The list of all sessions, derived from the session files and quick to ask.
///
/// Changes are *noted*, which costs no more than a map, and reach the database with the next *flush*. What was noted
/// counts at once: every answer includes it.
pub struct Catalogue {
    home: RwLock<Home>,
    overlay: Mutex<Overlay>,
    /// Held by the flush that is under way, so that the layers reach the database in their order.
    flush: Mutex<()>,
    /// None until it is built.
    store: RwLock<Option<Store>>,
    /// Damage was met since it was built.
    damaged: AtomicBool,
}

impl Catalogue {
    /// Opens the catalogue in this file, whose folder must exist. `owner` names the directory that it is of.
    pub fn open(path: &Path, owner: &str) -> Result<Opened, IndexError> {
        let owner = Arc::from(owner);
        let home = Home::File(path.to_path_buf(), Arc::clone(&owner));
        Ok(match open_store(path, &owner)? {
            Ok(store) => Opened::Ready(Self::new(home, Some(store))),
            Err(reason) => Opened::Rebuild(Self::new(home, None), reason),
        })
    }

    /// An empty catalogue that no file holds.
    pub fn in_memory() -> Result<Self, IndexError> {
        let store = build::<IndexError>(&Home::Memory, |_| Ok(CommitNo(0)))?;
        Ok(Self::new(Home::Memory, Some(store)))
    }

    /// One that no file holds, and in which there is nothing yet; [`Catalogue::rebuild`] comes first.
    pub fn unbuilt_in_memory() -> Self {
        Self::new(Home::Memory, None)
    }

    fn new(home: Home, store: Option<Store>) -> Self {
        Self {
            home: RwLock::new(home),
            overlay: Mutex::default(),
            flush: Mutex::default(),
            store: RwLock::new(store),
            damaged: AtomicBool::new(false),
        }
    }

    /// Notes how a file is now. Rows of one session must be noted in the order of their commits.
    pub fn note(&self, row: Row) {
        let session_id = row.file.key.session_id.clone();
        lock(&self.overlay).note(&session_id, Change::Put(row));
    }

    /// Notes that a session is deleted and its file gone. A file that stays for its forks is noted as retained instead.
    pub fn forget(&self, session_id: &SessionId) {
        lock(&self.overlay).note(session_id, Change::Forget);
    }

    /// Notes that a retained file is gone.
    pub fn release(&self, key: &FileKey) {
        lock(&self.overlay).note(&key.session_id, Change::Release(key.born.clone()));
    }

    /// About how many sessions have changes that are not in the database.
    pub fn pending(&self) -> usize {
        lock(&self.overlay).len()
    }

    /// Brings all that is noted into the database, in one transaction. On an error it stays noted.
    pub fn flush(&self) -> Result<(), IndexError> {
        self.flush_to(None)
    }

    /// Flushes, and remembers that the database includes all commits up to this one. The caller has noted them all.
    pub fn flush_through(&self, commit: CommitNo) -> Result<(), IndexError> {
        self.flush_to(Some(commit))
    }

    /// The commit up to which the database includes everything.
    pub fn applied(&self) -> Result<CommitNo, IndexError> {
        self.mark("applied").map(CommitNo)
    }

    /// Makes what was flushed survive a power cut.
    pub fn sync(&self) -> Result<(), IndexError> {
        self.with_store(Store::sync)
    }

    /// Empties the database's write-ahead log, which takes room and holds what was deleted since. False while a reader
    /// keeps it from that.
    pub fn shrink(&self) -> Result<bool, IndexError> {
        self.with_store(Store::settle)
    }

    /// Flushes, closes and seals the file; a damaged one is removed. Later calls fail as if nothing were built.
    pub fn close(&self) -> Result<(), IndexError> {
        let written = self.flush().and_then(|()| self.with_store(Store::settle)).map(drop);
        self.put_store(None);
        match &*self.home.read().unwrap_or_else(PoisonError::into_inner) {
            Home::File(path, _) if self.is_damaged() => discard(path),
            Home::File(path, owner) => written.and_then(|()| seal::put(path, owner)),
            Home::Memory => written,
        }
    }

    /// Whether damage was met, so that it must be rebuilt.
    pub fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Acquire)
    }

    /// Notes that it does not say what the session files say: it is rebuilt when it is opened next, at the latest.
    pub fn distrust(&self) {
        self.damaged.store(true, Ordering::Release);
    }

    /// What is wrong with the file of a closed catalogue, if that can be told. Changes nothing.
    pub fn check_file(path: &Path, owner: &str) -> Option<String> {
        match seal::check(path, owner) {
            Ok(Seal::Holds | Seal::Absent) => None,
            Ok(Seal::Broken(reason)) => Some(reason),
            Ok(Seal::OtherOwner) => Some("it is another directory's".to_owned()),
            Err(error) => Some(error.to_string()),
        }
    }

    /// Replaces all that the database holds by the rows that `fill` puts; it answers the commit up to which they include
    /// everything. What is noted stays noted and counts afterwards. Until the end other questions fail with
    /// [`IndexError::Unbuilt`]; when `fill` fails, that stays so.
    pub fn rebuild<E: From<IndexError>>(
        &self,
        fill: impl FnOnce(&mut Sink) -> Result<CommitNo, E>,
    ) -> Result<(), E> {
        self.put_store(None);
        let home = self.home.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Home::File(path, _) = &home {
            discard(path)?;
        }
        let store = build(&home, fill)?;
        self.damaged.store(false, Ordering::Release);
        self.put_store(Some(store));
        Ok(())
    }

    /// Gives up its file, which makes room, and has none from now on; [`Catalogue::rebuild`] comes next.
    pub fn move_to_memory(&self) -> Result<(), IndexError> {
        self.put_store(None);
        let before =
            std::mem::replace(&mut *self.home.write().unwrap_or_else(PoisonError::into_inner), Home::Memory);
        match before {
            Home::File(path, _) => discard(&building(&path)).and_then(|()| discard(&path)),
            Home::Memory => Ok(()),
        }
    }

    /// One page of the list.
    pub fn list(&self, query: &ListQuery<'_>) -> Result<ListPage, IndexError> {
        // The layers are taken first: what a flush brings into the database in between is then seen twice, as the same
        // row or a newer one, and never missed.
        let layers = lock(&self.overlay).layers();
        self.with_store(|store| store.read(|conn| query.page(conn, &layers)))
    }

    /// The listed file of a session.
    pub fn get(&self, session_id: &SessionId) -> Result<Option<Row>, IndexError> {
        let layers = lock(&self.overlay).layers();
        let gone = match layers.view(session_id.as_str()) {
            View::Shown(row) => {
                return Ok(Some(Row { blobs: Vec::new(), ..row.clone() }));
            }
            View::Gone => return Ok(None),
            View::GoneIfBorn(born) => born,
            View::Unchanged => Vec::new(),
        };
        let sql = format!("SELECT {} FROM session WHERE id = ?1 AND hidden = 0", decode::ROW);
        let found = self.one_row(&sql, [session_id.as_str()])?;
        Ok(found.filter(|row| !gone.contains(&row.file.key.born.as_str())))
    }

    /// The file of one incarnation, listed or retained.
    pub fn file(&self, key: &FileKey) -> Result<Option<Row>, IndexError> {
        self.flush()?;
        let sql = format!("SELECT {} FROM session WHERE num IN ({})", decode::ROW, decode::FILE_NUMBERS);
        self.one_row(&sql, [key.session_id.as_str(), key.born.as_str()])
    }

    /// How many sessions are listed.
    pub fn count(&self) -> Result<u64, IndexError> {
        self.flush()?;
        self.mark("sessions")
    }

    /// Shows every file that the catalogue knows, in no particular order.
    pub fn files(&self, mut show: impl FnMut(SeenFile)) -> Result<(), IndexError> {
        self.flush()?;
        self.with_store(|store| {
            store.read(|conn| {
                let mut statement = conn.prepare_cached(&format!("SELECT {} FROM session", decode::SEEN_FILE))?;
                let mut rows = statement.query(())?;
                while let Some(row) = rows.next()? {
                    show(decode::seen_file(row)?);
                }
                Ok(())
            })
        })
    }

    /// The forks that have this incarnation as their base, retained ones included.
    pub fn forks(&self, base: &FileKey) -> Result<Vec<FileKey>, IndexError> {
        self.flush()?;
        let sql = "SELECT id, born FROM session WHERE base_id = ?1 AND base_born = ?2 ORDER BY num";
        self.with_store(|store| {
            store.read(|conn| {
                let mut statement = conn.prepare_cached(sql)?;
                let mut rows = statement.query([base.session_id.as_str(), base.born.as_str()])?;
                let mut forks = Vec::new();
                while let Some(row) = rows.next()? {
                    forks.push(decode::file_key(row, 0)?);
                }
                Ok(forks)
            })
        })
    }

    /// The file, by the id it had, that some fork names as its base of this birth. Looks through all rows.
    pub fn base_born(&self, born: &str) -> Result<Option<FileKey>, IndexError> {
        self.flush()?;
        self.with_store(|store| {
            store.read(|conn| {
                let sql = "SELECT base_id, base_born FROM session WHERE base_born = ?1 LIMIT 1";
                let mut statement = conn.prepare_cached(sql)?;
                let mut rows = statement.query([born])?;
                match rows.next()? {
                    Some(row) => Ok(Some(decode::file_key(row, 0)?)),
                    None => Ok(None),
                }
            })
        })
    }

    /// What the owner keeps beside the rows, such as the time of the directory when it was last compared.
    pub fn state(&self, name: &str) -> Result<Option<String>, IndexError> {
        self.with_store(|store| {
            store.read(|conn| {
                let mut statement = conn.prepare_cached("SELECT value FROM state WHERE name = ?1")?;
                Ok(statement.query_row([name], |row| row.get(0)).optional()?)
            })
        })
    }

    /// Keeps a value under a name. It is gone after a rebuild.
    pub fn set_state(&self, name: &str, value: &str) -> Result<(), IndexError> {
        self.with_store(|store| {
            store.write(|tx| {
                tx.execute("INSERT OR REPLACE INTO state (name, value) VALUES (?1, ?2)", [name, value])?;
                Ok(())
            })
        })
    }

    /// Takes a value away for good: not even a power cut brings it back.
    pub fn take_state(&self, name: &str) -> Result<Option<String>, IndexError> {
        if self.state(name)?.is_none() {
            return Ok(None);
        }
        self.with_store(|store| {
            let taken = store.write(|tx| {
                let mut statement = tx.prepare_cached("DELETE FROM state WHERE name = ?1 RETURNING value")?;
                Ok(statement.query_row([name], |row| row.get(0)).optional()?)
            })?;
            store.sync()?;
            Ok(taken)
        })
    }

    pub(crate) fn with_store<T>(
        &self,
        ask: impl FnOnce(&Store) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        let store = self.store.read().unwrap_or_else(PoisonError::into_inner);
        let answer = ask(store.as_ref().ok_or(IndexError::Unbuilt)?);
        if matches!(answer, Err(IndexError::Damaged { .. })) {
            self.distrust();
        }
        answer
    }

    pub(crate) fn overlay(&self) -> &Mutex<Overlay> {
        &self.overlay
    }

    /// Waits until nobody uses the old store; its connections are closed before this returns.
    fn put_store(&self, store: Option<Store>) {
        *self.store.write().unwrap_or_else(PoisonError::into_inner) = store;
    }

    fn flush_to(&self, commit: Option<CommitNo>) -> Result<(), IndexError> {
        let _only = lock(&self.flush);
        self.with_store(|store| {
            let layers = lock(&self.overlay).begin_flush();
            if layers.is_empty() && commit.is_none() {
                return Ok(());
            }
            let written = store.write(|tx| {
                write::apply(tx, layers.folded())?;
                if let Some(commit) = commit {
                    tx.prepare_cached("UPDATE mark SET value = max(value, ?1) WHERE name = 'applied'")?
                        .execute([commit.get().cast_signed()])?;
                    tx.prepare_cached(CHECK_APPLIED)?.execute(())?;
                }
                Ok(())
            });
            match &written {
                Ok(()) => lock(&self.overlay).flushed(),
                Err(_) => lock(&self.overlay).not_flushed(),
            }
            written
        })
    }

    fn mark(&self, name: &str) -> Result<u64, IndexError> {
        self.with_store(|store| {
            store.read(|conn| {
                let mut statement = conn.prepare_cached("SELECT value FROM mark WHERE name = ?1")?;
                let value: i64 = statement.query_row([name], |row| row.get(0))?;
                Ok(value.cast_unsigned())
            })
        })
    }

    fn one_row(&self, sql: &str, bound: impl rusqlite::Params) -> Result<Option<Row>, IndexError> {
        self.with_store(|store| {
            store.read(|conn| {
                let mut statement = conn.prepare_cached(sql)?;
                let mut rows = statement.query(bound)?;
                rows.next()?.map(decode::row).transpose()
            })
        })
    }
}
