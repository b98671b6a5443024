//! Bytes of deleted sessions leave the disk: what the write-ahead log, the catalogue, the register of files and the search
//! index still have of them is removed on a timer, or when it is asked for.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use banyan_log::ClearedLog;
use banyan_model::Error;
use serde::{Deserialize, Serialize};

use crate::Banyan;
use crate::search::Expunging;
use crate::store::Store;

/// After which time the bytes of a deleted session are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EraseAfter {
    /// Its text, from the write-ahead log.
    pub log: Duration,
    /// What is derived: from the catalogue, the register of files and the search index.
    pub derived: Duration,
}

impl Default for EraseAfter {
    fn default() -> Self {
        Self { log: Duration::from_secs(30), derived: Duration::from_secs(300) }
    }
}

/// What [`Banyan::purge`] removed, and what it could not reach.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purged {
    /// Segments of the write-ahead log that were removed.
    pub log_segments: u64,
    /// Their bytes.
    pub log_bytes: u64,
    /// Segments of the search index that were written anew without what was deleted.
    pub search_segments: u64,
    /// The bytes that they had.
    pub search_bytes: u64,
    /// Content and records of deleted sessions that were kept, and that no session uses.
    pub content: u64,
    /// Their bytes.
    pub content_bytes: u64,
    /// What may still hold bytes of deleted sessions.
    pub not_reached: Vec<NotReached>,
}

/// Something that may still hold bytes of deleted sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotReached {
    /// A file or directory, relative to the data directory.
    pub path: String,
    /// Why it stays as it is.
    pub reason: String,
}

/// A purge waits this long for the index to be written anew, which goes on after that.
const EXPUNGING: Duration = Duration::from_secs(45);

/// Writing the index anew takes at most this part of the time.
const EXPUNGING_SHARE: u32 = 50;

/// What is to be done, and since when.
pub(crate) struct Erasure {
    after: EraseAfter,
    due: Mutex<Due>,
}

#[derive(Default)]
struct Due {
    log: Option<Instant>,
    derived: Option<Instant>,
    index: Option<Instant>,
    /// The index was asked to remove what was deleted.
    expunging: Option<(Expunging, Instant)>,
    /// It is not asked again before.
    not_before: Option<Instant>,
}

impl Erasure {
    pub(crate) fn new(after: EraseAfter) -> Self {
        Self { after, due: Mutex::default() }
    }

    /// Notes that a session was deleted.
    pub(crate) fn note(&self) {
        let now = Instant::now();
        let mut due = self.lock();
        due.log.get_or_insert(now);
        due.derived.get_or_insert(now);
        due.index.get_or_insert(now);
    }

    fn lock(&self) -> MutexGuard<'_, Due> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a task whose time has come.
    fn take(&self, task: impl FnOnce(&mut Due) -> &mut Option<Instant>, after: Duration) -> bool {
        let mut due = self.lock();
        task(&mut due).take_if(|since| since.elapsed() >= after).is_some()
    }

    /// Puts a task back that could not be done. It is tried again after the same time.
    fn put_back(&self, task: impl FnOnce(&mut Due) -> &mut Option<Instant>) {
        task(&mut self.lock()).get_or_insert_with(Instant::now);
    }
}

impl Banyan {
    /// Removes the bytes of deleted sessions that are still on the disk, and says which could not be.
    pub fn purge(&self) -> Result<Purged, Error> {
        self.access.must_do_everything()?;
        self.store.purge()
    }
}

impl Store {
    /// Removes what is due.
    pub(crate) fn erase_what_is_due(&self) {
        let erasure = &self.erasure;
        if erasure.take(|due| &mut due.log, erasure.after.log) && self.log.clear_log().is_err() {
            erasure.put_back(|due| &mut due.log);
        }
        if erasure.take(|due| &mut due.derived, erasure.after.derived) && !matches!(self.erase_rows(), Ok(true)) {
            erasure.put_back(|due| &mut due.derived);
        }
        self.erase_from_index();
    }

    fn erase_from_index(&self) {
        let mut due = self.erasure.lock();
        if let Some((expunging, began)) = due.expunging {
            let Some(outcome) = self.search.expunged(expunging, Duration::ZERO) else { return };
            due.expunging = None;
            due.not_before = Some(Instant::now() + began.elapsed() * EXPUNGING_SHARE);
            if outcome.left > 0 {
                due.index.get_or_insert_with(Instant::now);
            }
        }
        let waits = due.not_before.is_some_and(|until| Instant::now() < until);
        if !waits && due.index.is_some_and(|since| since.elapsed() >= self.erasure.after.derived) {
            due.index = None;
            due.expunging = self.search.expunge().map(|expunging| (expunging, Instant::now()));
        }
    }

    /// Removes what catalogue and register have of deleted sessions. False while somebody reads the catalogue.
    fn erase_rows(&self) -> Result<bool, Error> {
        self.catalogue.flush()?;
        let shrunk = self.catalogue.shrink()?;
        self.log.compact_register()?;
        Ok(shrunk)
    }

    fn purge(&self) -> Result<Purged, Error> {
        let ClearedLog { segments, bytes } = self.log.clear_log()?;
        self.set_unused_aside()?;
        let swept = self.sweep(Duration::ZERO)?;
        let mut purged = Purged {
            log_segments: segments,
            log_bytes: bytes,
            content: swept.removed.len() as u64,
            content_bytes: swept.bytes,
            ..Purged::default()
        };
        let mut not_reached = |path: &str, reason: String| {
            purged.not_reached.push(NotReached { path: path.to_owned(), reason });
        };
        if !swept.is_complete() {
            let reason = format!(
                "content is removed only when all session files can be read: {}; see `banyan verify`",
                swept.unreadable.join("; ")
            );
            not_reached(".banyan/aside", reason);
        }
        if !self.erase_rows()? {
            not_reached(".banyan/index/catalogue.sqlite-wal", "the catalogue is being read; try again".to_owned());
        }
        for path in self.log.set_aside()? {
            not_reached(&path, "it is damaged and kept; remove it by hand once it is of no use".to_owned());
        }
        for born in self.log.retained() {
            not_reached(&format!(".banyan/bases/{born}.jsonl"), "forks of the deleted session read it".to_owned());
        }
        let expunged = match self.search.expunge() {
            Some(expunging) => self.search.expunged(expunging, EXPUNGING),
            None if self.search.is_elsewhere() => Some(Default::default()),
            None => None,
        };
        match expunged {
            Some(expunged) if expunged.left == 0 => {}
            Some(_) => not_reached(".banyan/index/search", "parts of it are being merged; try again".to_owned()),
            None => not_reached(
                ".banyan/index/search",
                "it is still being written anew, or has no room for that; try again".to_owned(),
            ),
        }
        let expunged = expunged.unwrap_or_default();
        (purged.search_segments, purged.search_bytes) = (expunged.segments, expunged.bytes);
        Ok(purged)
    }
}
