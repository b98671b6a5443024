//! Opening a store: the log recovers, the catalogue catches up, work begins.

use std::path::Path;
use std::sync::Arc;

use banyan_index::{Catalogue, IndexError, Opened, RebuildReason};
use banyan_log::disk::{Disk, MemDisk, OsDisk, private};
use banyan_log::{FsLog, LogError, Recovered, SessionLog};
use banyan_model::Error;

use crate::backup::Holds;
use crate::damage::DamagedEntries;
use crate::erasure::Erasure;
use crate::hub::Hub;
use crate::recent::Recent;
use crate::replay::ReplayAccount;
use crate::search::{Home, Search};
use crate::sessions::Sessions;
use crate::space::SpaceWatch;
use crate::store::{Purpose, Settings, Store};
use crate::store_protocol::Tokens;
use crate::{Banyan, Options, SearchIndexing};

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The log could not be opened.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The catalogue could not be opened or rebuilt.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A session could not be read.
    #[error(transparent)]
    Session(#[from] Error),
}

/// Where the catalogue is, within a data directory.
pub(crate) const CATALOGUE: &str = ".banyan/index/catalogue.sqlite";

/// Where the search index is, beside the catalogue.
const SEARCH: &str = "search";

impl Banyan {
    /// Opens a data directory, and makes it when it is not there. One process owns a directory at a time.
    pub fn open(dir: impl AsRef<Path>, options: Options) -> Result<Self, OpenError> {
        let disk = Arc::new(OsDisk::new(dir.as_ref().to_owned()));
        Self::open_on(disk, Some(&dir.as_ref().join(CATALOGUE)), options)
    }

    /// A store in memory, which ends with the process.
    pub fn in_memory(options: Options) -> Result<Self, OpenError> {
        Self::open_on(Arc::new(MemDisk::new()), None, options)
    }

    /// Opens a store on any disk, with its catalogue in a file or in memory. For simulations.
    pub fn open_on(disk: Arc<dyn Disk>, catalogue: Option<&Path>, options: Options) -> Result<Self, OpenError> {
        let log_options = banyan_log::Options { durability: options.durability, ..options.log.clone() };
        let (log, recovered) = FsLog::open(disk, log_options)?;
        let index_dir = catalogue.and_then(Path::parent);
        let (catalogue, rebuild) = match catalogue {
            Some(path) => open_catalogue(path, &log),
            None => (Catalogue::unbuilt_in_memory(), Some(None)),
        };
        let home = match index_dir {
            _ if !options.log.background || options.search == SearchIndexing::Off => Home::Nowhere,
            Some(dir) => Home::Directory(dir.join(SEARCH)),
            None => Home::Memory,
        };
        let store = Store::new(log, catalogue, home, options, Purpose::Work);
        store.catch_up(&recovered, rebuild)?;
        Ok(Self { store, access: Arc::default() })
    }
}

/// Opens the catalogue, or says that it must be rebuilt, and why if that is worth a warning. One that cannot be opened at
/// all is in memory: it never keeps a store from being opened.
fn open_catalogue(path: &Path, log: &FsLog) -> (Catalogue, Option<Option<String>>) {
    let opened = match path.parent().map_or(Ok(()), private::create_dir_all) {
        Ok(()) => Catalogue::open(path, &log.directory_id().to_string()),
        Err(error) => {
            return (Catalogue::unbuilt_in_memory(), Some(Some(format!("its folder cannot be made: {error}"))));
        }
    };
    match opened {
        Ok(Opened::Ready(catalogue)) => {
            // Newer than all that there is: it was copied here, or everything else is older.
            let reason = match catalogue.applied() {
                Ok(applied) if applied > log.head() => Some(Some(format!(
                    "it speaks for commit {}, and the last one here is {}",
                    applied.0,
                    log.head().0
                ))),
                Ok(_) => None,
                Err(error) => Some(Some(error.to_string())),
            };
            (catalogue, reason)
        }
        Ok(Opened::Rebuild(catalogue, RebuildReason::Missing)) => (catalogue, Some(None)),
        Ok(Opened::Rebuild(catalogue, reason)) => (catalogue, Some(Some(reason.to_string()))),
        Err(IndexError::Full { .. }) => (Catalogue::unbuilt_in_memory(), Some(None)),
        Err(error) => {
            (Catalogue::unbuilt_in_memory(), Some(Some(format!("{error}; it is in memory until the next start"))))
        }
    }
}

impl Store {
    fn new(log: FsLog, catalogue: Catalogue, home: Home, options: Options, purpose: Purpose) -> Arc<Self> {
        Arc::new(Self {
            log,
            catalogue,
            rebuilding: std::sync::Mutex::default(),
            sessions: Sessions::new(options.cached()),
            recent: Recent::new(options.cached_bytes),
            replays: ReplayAccount::default(),
            hub: Arc::new(Hub::new(options.waiting_event_bytes)),
            damaged: DamagedEntries::default(),
            leaf_watches: Arc::default(),
            tokens: Tokens::default(),
            new_contexts: tokio::sync::Mutex::default(),
            settings: Settings {
                limits: std::sync::RwLock::new(options.limits),
                blob_threshold: options.blob_threshold,
                bounds: options.bounds(),
                works_alone: options.log.background,
                aside_for: options.aside_for,
                may_block: options.may_block,
                purpose,
            },
            progress: options.progress,
            housekeeper: std::sync::Mutex::default(),
            errands: Arc::default(),
            erasure: Erasure::new(options.erase_after),
            space: SpaceWatch::new(options.low_mark),
            search: Arc::new(Search::new(home)),
            closed: std::sync::atomic::AtomicBool::new(false),
            holds: Holds::default(),
        })
    }

    /// A store that is only looked at: nothing is started or mended, and no catalogue is opened.
    pub(crate) fn for_reading(log: FsLog, options: Options) -> Result<Arc<Self>, OpenError> {
        Ok(Self::new(log, Catalogue::in_memory()?, Home::Nowhere, options, Purpose::Inspection))
    }

    fn catch_up(
        self: &Arc<Self>,
        recovered: &Recovered,
        rebuild: Option<Option<String>>,
    ) -> Result<(), OpenError> {
        for warning in recovered.warnings.iter().chain(&recovered.notes) {
            self.warn(warning);
        }
        let known = self.log.head();
        let compared = match &rebuild {
            Some(reason) => {
                if let Some(reason) = reason {
                    self.warn(&format!("the catalogue is rebuilt: {reason}"));
                }
                self.compare_files()?;
                self.rebuild_catalogue(recovered)
            }
            None => self.reconcile(recovered),
        };
        let compared = match compared {
            Err(OpenError::Index(error @ (IndexError::Damaged { .. } | IndexError::Database(_)))) => {
                self.warn(&format!("the catalogue is rebuilt: {error}"));
                self.compare_files()?;
                self.rebuild_catalogue(recovered)
            }
            compared => compared,
        };
        let compared = match compared {
            Err(OpenError::Index(error)) => {
                let reason = match error {
                    IndexError::Full { .. } => "the disk is full".to_owned(),
                    error => error.to_string(),
                };
                self.warn(&format!(
                    "{reason}: until there is room, and the next start, the list of sessions is in memory only"
                ));
                // A file that cannot be removed either is no reason to stop.
                let _ = self.catalogue.move_to_memory();
                self.rebuild_catalogue(recovered)?
            }
            compared => compared?,
        };
        self.log.raise_head(self.catalogue.applied()?);
        if compared.changed_outside {
            self.log.end_resuming()?;
        } else if self.log.head() > known {
            self.log.keep_head()?;
        }
        self.restore_search_marks();
        let store = Arc::downgrade(self);
        self.log.start(Box::new(move |through| match store.upgrade() {
            Some(store) => store.catalogue_through(through),
            None => Ok(()),
        }))?;
        self.fill_register()?;
        self.log.end_checks();
        self.hub.begin(self.log.head());
        self.take_back_all(&compared.interrupted);
        // A call that a crash interrupted may have stored content and committed nothing.
        let was_closed = self.was_closed();
        if recovered.commits > 0 || !was_closed {
            self.log.remove_unfinished_content()?;
            self.set_unused_aside()?;
        }
        if self.settings.works_alone {
            if recovered.commits > 0 {
                // There may have been deletions among them, or before.
                self.erasure.note();
            }
            self.start_housekeeper();
            self.start_search();
        }
        Ok(())
    }

    /// The catalogue is durable up to a commit, so that the log may let go of it.
    fn catalogue_through(&self, through: banyan_model::CommitNo) -> Result<(), LogError> {
        match self.catalogue.flush_through(through).and_then(|()| self.catalogue.sync()) {
            // A damaged catalogue is rebuilt from the session files when the store is opened next.
            Ok(()) | Err(IndexError::Damaged { .. }) => Ok(()),
            Err(error) => Err(LogError::Full(error.to_string())),
        }
    }

    pub(crate) fn warn(&self, warning: &str) {
        self.progress.warn(warning);
    }
}
