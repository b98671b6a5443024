//! Room for the index: it grows only while its owner says that there is enough, and so never takes what the owner needs.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether files of the index may take a number of further bytes.
type MayTake = dyn Fn(u64) -> bool + Send + Sync;

/// What is asked before the index grows. A clone is the same one.
#[derive(Clone)]
pub struct Room(Arc<Inner>);

struct Inner {
    may_take: Box<MayTake>,
    refused: AtomicBool,
}

impl Room {
    /// Asks this before the index grows.
    pub fn new(may_take: impl Fn(u64) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner { may_take: Box::new(may_take), refused: AtomicBool::new(false) }))
    }

    /// Whether room was refused since this was called last, by the owner or by the disk.
    pub fn take_refusal(&self) -> bool {
        self.0.refused.swap(false, Ordering::AcqRel)
    }

    /// The same, without forgetting it.
    pub(crate) fn was_refused(&self) -> bool {
        self.0.refused.load(Ordering::Acquire)
    }

    pub(crate) fn has(&self, bytes: u64) -> bool {
        (self.0.may_take)(bytes)
    }

    /// Fails as a full disk does.
    pub(crate) fn expect(&self, bytes: u64) -> io::Result<()> {
        if self.has(bytes) { Ok(()) } else { self.note(Err(io::ErrorKind::StorageFull.into())) }
    }

    /// Notes when the disk itself is full.
    pub(crate) fn note<T>(&self, outcome: io::Result<T>) -> io::Result<T> {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        if outcome.as_ref().is_err_and(|error| matches!(error.kind(), StorageFull | QuotaExceeded)) {
            self.0.refused.store(true, Ordering::Release);
        }
        outcome
    }
}

impl Default for Room {
    /// There is always enough.
    fn default() -> Self {
        Self::new(|_| true)
    }
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Room")
    }
}
