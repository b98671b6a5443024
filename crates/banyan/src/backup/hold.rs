//! Keeps what a backup or a check still has to read. While a hold is on, deleted sessions are kept as if forks read them, and no
//! content is removed. What was put off happens when the last hold ends.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use banyan_index::FileKey;
use banyan_model::CommitNo;

use crate::store::Store;

/// The holds on a store.
#[derive(Default)]
pub(crate) struct Holds {
    inner: Mutex<Inner>,
    /// Notified when no removal is under way.
    settled: Condvar,
}

#[derive(Default)]
struct Inner {
    holds: usize,
    /// Removals under way.
    removing: usize,
    /// Sessions that were removed while there was a hold, and by which commit.
    removed: Vec<(FileKey, CommitNo)>,
    /// Bases to be released when the last hold ends.
    bases: Vec<FileKey>,
}

/// Counts a removal that is under way.
pub(crate) struct RemovalPermit<'a> {
    holds: &'a Holds,
    is_held: bool,
}

impl RemovalPermit<'_> {
    /// Whether the session's records must be kept.
    pub(crate) fn is_held(&self) -> bool {
        self.is_held
    }
}

impl Drop for RemovalPermit<'_> {
    fn drop(&mut self) {
        let mut inner = self.holds.lock();
        inner.removing -= 1;
        if inner.removing == 0 {
            self.holds.settled.notify_all();
        }
    }
}

impl Holds {
    /// Begins a removal.
    pub(crate) fn begin_removal(&self) -> RemovalPermit<'_> {
        let mut inner = self.lock();
        inner.removing += 1;
        RemovalPermit { holds: self, is_held: inner.holds > 0 }
    }

    /// Notes a removal that was committed.
    pub(crate) fn note_removed(&self, key: &FileKey, commit: CommitNo) {
        let mut inner = self.lock();
        if inner.holds > 0 {
            inner.removed.push((key.clone(), commit));
        }
    }

    /// Whether there is a hold, which will release the base when it ends.
    pub(crate) fn defer(&self, base: &FileKey) -> bool {
        let mut inner = self.lock();
        if inner.holds > 0 {
            inner.bases.push(base.clone());
        }
        inner.holds > 0
    }

    /// Whether there is a hold.
    pub(crate) fn is_any(&self) -> bool {
        self.lock().holds > 0
    }

    /// Sessions that were removed after a commit while there was a hold.
    pub(crate) fn removed_after(&self, commit: CommitNo) -> Vec<FileKey> {
        let inner = self.lock();
        inner.removed.iter().filter(|(_, by)| *by > commit).map(|(key, _)| key.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A hold; it ends when this is dropped.
pub(crate) struct Hold(Arc<Store>);

impl Hold {
    /// Begins a hold. Waits for removals that were decided without it.
    pub(crate) fn begin(store: &Arc<Store>) -> Self {
        let holds = &store.holds;
        let mut inner = holds.lock();
        inner.holds += 1;
        while inner.removing > 0 {
            inner = holds.settled.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        drop(inner);
        Self(Arc::clone(store))
    }

    /// The store that is held.
    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.0
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut inner = self.0.holds.lock();
        inner.holds -= 1;
        if inner.holds > 0 {
            return;
        }
        let removed = std::mem::take(&mut inner.removed);
        let bases = std::mem::take(&mut inner.bases);
        drop(inner);
        for key in removed.into_iter().map(|(key, _)| key).chain(bases) {
            self.0.release_base(Some(key));
        }
        self.0.collect_garbage();
    }
}
