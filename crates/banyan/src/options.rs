//! How a store behaves.

use std::time::Duration;

use banyan_core::limits::Limits;
use banyan_log::Durability;

use crate::erasure::EraseAfter;
use crate::hub::Bounds;
use crate::progress::Progress;
use crate::sessions::SessionsBounds;

/// How a store behaves. `Options::default()` is what most want.
pub struct Options {
    /// When an answer leaves.
    pub durability: Durability,
    /// How much one call may ask for.
    pub limits: Limits,
    /// A string of this many bytes or more is stored once, by its content.
    pub blob_threshold: usize,
    /// How many sessions are kept in memory when nobody uses them.
    pub cached_sessions: usize,
    /// How many entries, over all sessions, are kept in memory when nobody uses them.
    pub cached_entries: usize,
    /// Maximum number of bytes kept in memory for all sessions that are not in use: entries, ids and metadata.
    pub cached_session_bytes: usize,
    /// How many bytes of messages are kept in memory after they were read.
    pub cached_bytes: usize,
    /// How many events a subscriber may be behind before it is told that it lagged.
    pub subscriber_events: usize,
    /// How many bytes of events a subscriber may be behind.
    pub subscriber_bytes: usize,
    /// How many bytes of events may wait for all subscribers together. Those for whom most waits lag when it is more. An event
    /// that waits for several counts once.
    pub waiting_event_bytes: usize,
    /// How long content that no session uses any more is kept aside before it is removed.
    pub aside_for: Duration,
    /// Whether what sessions say can be searched.
    pub search: SearchIndexing,
    /// The disk is short when fewer bytes are free. `None` is a twentieth of the file system, and 1 GiB at most.
    pub low_mark: Option<u64>,
    /// After which time the bytes of deleted sessions are removed from files that others use, too.
    pub erase_after: EraseAfter,
    /// The write-ahead log's settings.
    pub log: banyan_log::Options,
    /// Runs what may take a while and nobody could foresee, such as bringing a large session into memory. A program whose
    /// threads have others to serve can let those be served meanwhile; by default it is just run.
    pub may_block: fn(&mut dyn FnMut()),
    /// Hears about work that takes a while.
    pub progress: Box<dyn Progress>,
}

/// Whether what sessions say can be searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SearchIndexing {
    /// An index follows the log, on a thread of its own. A store in memory has none before the first search.
    #[default]
    Following,
    /// There is no index, and searches are refused.
    Off,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Synced,
            limits: Limits::default(),
            blob_threshold: banyan_core::blobs::DEFAULT_THRESHOLD,
            cached_sessions: 4096,
            cached_entries: 1_000_000,
            cached_session_bytes: 256 << 20,
            cached_bytes: 32 << 20,
            subscriber_events: 1024,
            subscriber_bytes: 32 << 20,
            waiting_event_bytes: 256 << 20,
            aside_for: Duration::from_secs(24 * 60 * 60),
            search: SearchIndexing::Following,
            low_mark: None,
            erase_after: EraseAfter::default(),
            log: banyan_log::Options::default(),
            may_block: |work| work(),
            progress: Box::new(()),
        }
    }
}

impl Options {
    pub(crate) fn cached(&self) -> SessionsBounds {
        SessionsBounds {
            sessions: self.cached_sessions,
            entries: self.cached_entries,
            bytes: self.cached_session_bytes,
        }
    }

    pub(crate) fn bounds(&self) -> Bounds {
        Bounds { events: self.subscriber_events, bytes: self.subscriber_bytes }
    }
}
