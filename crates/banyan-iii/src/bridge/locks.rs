//! One call at a time on each session, so that two calls of one bridge do not fight each other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use banyan::model::SessionId;
use tokio::sync::OwnedMutexGuard;

/// The sessions that calls are under way for.
#[derive(Default)]
pub(super) struct Locks(Mutex<HashMap<SessionId, Arc<tokio::sync::Mutex<()>>>>);

/// The right to change a session. Dropping it gives it back.
pub(super) struct Lock<'a> {
    locks: &'a Locks,
    id: SessionId,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Locks {
    pub(super) async fn take(&self, id: &SessionId) -> Lock<'_> {
        let lock = Arc::clone(self.lock().entry(id.clone()).or_default());
        let mut held = Lock { locks: self, id: id.clone(), guard: None };
        held.guard = Some(lock.lock_owned().await);
        held
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<tokio::sync::Mutex<()>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        let mut locks = self.locks.lock();
        self.guard = None;
        // Only the map has it: nobody waits.
        if locks.get(&self.id).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            locks.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_second_call_waits_for_the_first_and_nothing_is_left_behind() {
        let locks = Locks::default();
        let first = locks.take(&"s".into()).now_or_never().unwrap();
        assert!(locks.take(&"s".into()).now_or_never().is_none());
        assert!(locks.take(&"other".into()).now_or_never().is_some());
        drop(first);
        assert!(locks.take(&"s".into()).now_or_never().is_some());
        assert!(locks.lock().is_empty());
    }
}
