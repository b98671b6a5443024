//! The store: sessions in memory, the log under them, the catalogue beside them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use banyan_core::limits::Limits;
use banyan_index::Catalogue;
use banyan_log::{FsLog, SessionLog};
use banyan_model::{CommitNo, Error};

use crate::access::Access;
use crate::backup::Holds;
use crate::damage::DamagedEntries;
use crate::erasure::Erasure;
use crate::housekeeping::Errands;
use crate::hub::{Bounds, Hub};
use crate::leaf_watch::LeafWatches;
use crate::progress::Progress;
use crate::recent::Recent;
use crate::replay::ReplayAccount;
use crate::search::Search;
use crate::sessions::Sessions;
use crate::space::{DiskSpace, SpaceWatch};
use crate::store_protocol::Tokens;

/// A session database. Cloning it is cheap and gives the same one; [`Banyan::with_access`] gives one that may do less.
#[derive(Clone)]
pub struct Banyan {
    pub(crate) store: Arc<Store>,
    pub(crate) access: Arc<Access>,
}

/// What all clones share.
pub(crate) struct Store {
    pub(crate) log: FsLog,
    pub(crate) catalogue: Catalogue,
    /// Held while a damaged catalogue is rebuilt.
    pub(crate) rebuilding: Mutex<()>,
    pub(crate) sessions: Sessions,
    pub(crate) recent: Recent,
    pub(crate) replays: ReplayAccount,
    pub(crate) damaged: DamagedEntries,
    pub(crate) hub: Arc<Hub>,
    pub(crate) leaf_watches: Arc<LeafWatches>,
    /// Commits that other instances asked for lately.
    pub(crate) tokens: Tokens,
    /// Held while it is found out whether a context of the Open Context Protocol has a session yet.
    pub(crate) new_contexts: tokio::sync::Mutex<()>,
    pub(crate) settings: Settings,
    pub(crate) progress: Box<dyn Progress>,
    pub(crate) housekeeper: Mutex<Option<JoinHandle<()>>>,
    pub(crate) errands: Arc<Errands>,
    pub(crate) space: SpaceWatch,
    pub(crate) erasure: Erasure,
    pub(crate) search: Arc<Search>,
    pub(crate) closed: AtomicBool,
    pub(crate) holds: Holds,
}

/// What of the options is asked for later.
pub(crate) struct Settings {
    /// How much one call may ask for. It can change while the store is open.
    pub(crate) limits: RwLock<Limits>,
    pub(crate) blob_threshold: usize,
    pub(crate) bounds: Bounds,
    /// Whether things are done that no caller asked for.
    pub(crate) works_alone: bool,
    /// How long unused content is kept aside.
    pub(crate) aside_for: Duration,
    pub(crate) may_block: fn(&mut dyn FnMut()),
    pub(crate) purpose: Purpose,
}

/// What the store was opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To work with it; what a crash left torn is mended on the way.
    Work,
    /// To look at it, and leave everything as it is.
    Inspection,
}

impl Banyan {
    /// Finishes what is under way, and leaves session files that hold everything. Calls after this are refused, on every
    /// handle: whoever gives handles to others decides when.
    pub fn close(&self) -> Result<(), Error> {
        self.store.settle_all();
        // An import that was given up takes back its parts when the last of them is safe. Closing says what fails.
        let _ = self.store.log.flush();
        self.store.close()
    }

    /// Makes everything acknowledged so far survive a power cut, whatever the durability chosen.
    pub fn flush(&self) -> Result<(), Error> {
        Ok(self.store.log.flush()?)
    }

    /// The last commit, of whatever session.
    pub fn head(&self) -> CommitNo {
        self.store.log.head()
    }

    /// How much one call may ask for from now on.
    pub fn set_limits(&self, limits: Limits) {
        *self.store.settings.limits.write().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    /// How much one call may ask for.
    pub fn limits(&self) -> Limits {
        self.store.settings.limits()
    }

    /// How many bytes of events wait for subscribers, over all of them.
    pub fn waiting_event_bytes(&self) -> usize {
        self.store.hub.waiting()
    }

    /// How much room there is on the disk.
    pub fn disk_space(&self) -> DiskSpace {
        self.store.disk_space()
    }

    /// Why writing has stopped until the store is opened again, if it has.
    pub fn poisoned(&self) -> Option<String> {
        self.store.log.poisoned()
    }
}

impl Settings {
    pub(crate) fn limits(&self) -> Limits {
        *self.limits.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    fn close(&self) -> Result<(), Error> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.errands.stop();
        self.search.stop();
        let housekeeper = self.housekeeper.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The housekeeper itself may be the last to hold the store.
        if let Some(housekeeper) = housekeeper
            && housekeeper.thread().id() != std::thread::current().id()
        {
            let _ = housekeeper.join();
        }
        self.hub.close();
        self.distrust_after_return();
        self.collect_garbage();
        let closed = self.log.close();
        if closed.is_ok() && self.settings.purpose == Purpose::Work {
            self.save_images();
            self.note_closed();
        }
        self.note_clean_close();
        Ok(closed?)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.close();
    }
}
