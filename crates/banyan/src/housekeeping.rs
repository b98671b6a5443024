//! What is done aside from any call: the catalogue reaches its file, unused content goes.

use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use banyan_index::{Catalogue, FileKey, IndexError};
use banyan_log::SessionLog;

use crate::space::SpaceLevel;
use crate::store::Store;

/// How long the catalogue's file may be behind the catalogue.
const EVERY: Duration = Duration::from_millis(500);

/// Tells the housekeeper when to stop.
#[derive(Default)]
pub(crate) struct Errands {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Errands {
    pub(crate) fn stop(&self) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits a while; false when it is time to go.
    fn pause(&self) -> bool {
        let stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        if *stopped {
            return false;
        }
        let (stopped, _) = self.changed.wait_timeout(stopped, EVERY).unwrap_or_else(PoisonError::into_inner);
        !*stopped
    }
}

impl Store {
    pub(crate) fn start_housekeeper(self: &Arc<Self>) {
        let (store, errands) = (Arc::downgrade(self), Arc::clone(&self.errands));
        let spawned =
            thread::Builder::new().name("banyan-index".into()).spawn(move || keep_house(&store, &errands));
        *self.housekeeper.lock().unwrap_or_else(PoisonError::into_inner) = spawned.ok();
    }

    /// Asks the catalogue what a deletion needs. Where it has no room to write what was noted, the reserve makes some.
    pub(crate) fn with_reserve<T>(
        &self,
        ask: impl Fn(&Catalogue) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        match ask(&self.catalogue) {
            Err(IndexError::Full { .. }) => {
                self.log.spend_reserve();
                ask(&self.catalogue)
            }
            answer => answer,
        }
    }

    /// Removes blobs that no session uses any more.
    pub(crate) fn collect_garbage(&self) {
        const AT_ONCE: usize = 256;
        if self.holds.is_any() {
            return;
        }
        while let Ok(orphans) = self.catalogue.orphans(AT_ONCE) {
            if orphans.is_empty() {
                return;
            }
            let gone = |hash: &&blake3::Hash| {
                let unused = || self.catalogue.blob_users(hash).is_ok_and(|users| users == 0);
                self.log.remove_blob(&hash.to_hex(), &unused).is_ok()
            };
            let removed: Vec<_> = orphans.iter().filter(gone).copied().collect();
            // What could not be removed now is tried again when the store is opened next.
            if self.catalogue.collected(&removed).is_err() || removed.len() < orphans.len() {
                return;
            }
        }
    }

    /// Lets go of a deleted session's records once no fork reads them, and of its own base in turn.
    pub(crate) fn release_bases(&self, mut base: Option<FileKey>) {
        while let Some(key) = base {
            base = None;
            if self.holds.defer(&key) {
                return;
            }
            let Ok(born) = key.born.parse() else { return };
            let unused = self.catalogue.forks(&key).is_ok_and(|forks| forks.is_empty());
            if unused && self.log.is_retained(born) {
                base = self.catalogue.file(&key).ok().flatten().and_then(|row| row.file.base.clone());
                self.catalogue.release(&key);
                let _ = self.log.release(born);
            }
        }
    }
}

fn keep_house(store: &Weak<Store>, errands: &Errands) {
    while errands.pause() {
        let Some(store) = store.upgrade() else { return };
        store.watch_space();
        if store.catalogue.pending() > 0 && store.space.level() != SpaceLevel::Full {
            // A catalogue that cannot be written now is still right in memory.
            let _ = store.catalogue.flush();
        }
        store.erase_what_is_due();
    }
}
