//! Places for subscriptions, over all connections.
//!
//! Whoever went away without a word is noticed when something is sent, which may take two keep-alives: a peer that has closed
//! answers the first with a reset, and only the next one fails. So before anybody is refused everyone is sent a comment, twice.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// See the module.
pub(crate) struct Places {
    free: Arc<Semaphore>,
    most: usize,
    nudge: watch::Sender<()>,
    nudged_at: Mutex<Option<Instant>>,
}

/// How long those who went away may take to be noticed.
const NOTICED: Duration = Duration::from_millis(100);
/// Refusals that follow each other more closely send no comments.
const AGAIN: Duration = Duration::from_secs(1);

impl Places {
    pub(crate) fn new(most: usize) -> Self {
        let most = most.min(Semaphore::MAX_PERMITS);
        Self {
            free: Arc::new(Semaphore::new(most)),
            most,
            nudge: watch::Sender::default(),
            nudged_at: Mutex::default(),
        }
    }

    /// How many are taken.
    pub(crate) fn taken(&self) -> usize {
        self.most.saturating_sub(self.free.available_permits())
    }

    /// Takes a place, if there is one.
    pub(super) async fn take(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(&self.free).try_acquire_owned() {
            return Some(place);
        }
        if !self.may_nudge() {
            return None;
        }
        for _ in 0..2 {
            self.nudge.send_replace(());
            if let Ok(place) = tokio::time::timeout(NOTICED, Arc::clone(&self.free).acquire_owned()).await {
                return place.ok();
            }
        }
        None
    }

    /// Tells when a comment is to be sent.
    pub(super) fn nudges(&self) -> watch::Receiver<()> {
        self.nudge.subscribe()
    }

    fn may_nudge(&self) -> bool {
        let mut nudged_at = self.nudged_at.lock().unwrap_or_else(PoisonError::into_inner);
        let may = nudged_at.is_none_or(|at| at.elapsed() >= AGAIN);
        if may {
            *nudged_at = Some(Instant::now());
        }
        may
    }
}
