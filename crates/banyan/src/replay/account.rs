//! What replays cost, counted.

use std::sync::atomic::{AtomicU64, Ordering};

use banyan_log::{At, SessionLog};
use banyan_model::{Error, SessionId};

use crate::Banyan;
use crate::store::Store;

/// What the replays of a store have cost since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayCost {
    /// Bytes of sessions' records that were read.
    pub bytes_read: u64,
    /// Bytes of the events that were made of them.
    pub bytes_of_events: u64,
}

/// See [`ReplayCost`].
#[derive(Default)]
pub(crate) struct ReplayAccount {
    bytes_read: AtomicU64,
    bytes_of_events: AtomicU64,
}

impl Banyan {
    /// What replays have cost so far: of all subscriptions.
    pub fn replay_cost(&self) -> ReplayCost {
        let account = &self.store.replays;
        ReplayCost {
            bytes_read: account.bytes_read.load(Ordering::Relaxed),
            bytes_of_events: account.bytes_of_events.load(Ordering::Relaxed),
        }
    }
}

impl ReplayAccount {
    pub(super) fn read(&self, bytes: usize) {
        self.bytes_read.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn made(&self, bytes: usize) {
        self.bytes_of_events.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl Store {
    /// Reads a part of a session's records for a replay. Nothing is locked meanwhile.
    pub(super) fn read_past(&self, id: &SessionId, offset: u64, len: usize) -> Result<Vec<u8>, Error> {
        let bytes = self.log.read(At::Live(id), offset, len)?;
        self.replays.read(bytes.len());
        Ok(bytes)
    }
}
