//! What is done aside from any call: the catalogue reaches its file, unused content goes.

use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use banyan_index::{Catalogue, IndexError};

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
}

fn keep_house(store: &Weak<Store>, errands: &Errands) {
    let mut swept = None;
    while errands.pause() {
        let Some(store) = store.upgrade() else { return };
        store.watch_space();
        swept = store.sweep_if_due(swept);
        store.distrust_after_return();
        if store.catalogue.is_damaged() {
            // What fails is tried again, and calls are refused until then.
            let _ = store.rebuild_damaged();
        }
        if store.catalogue.pending() > 0 && store.space.level() != SpaceLevel::Full {
            // A catalogue that cannot be written now is still right in memory.
            let _ = store.catalogue.flush();
        }
        store.erase_what_is_due();
    }
}
