//! What arrives on a WebSocket before a message of it is complete. The library that reads frames keeps it, so it is counted
//! where it leaves the socket.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::body::{ALLOWANCE, STEP};
use crate::budget::{Budget, Holder, Lease, Refusal};

/// See the module.
#[derive(Default)]
pub(crate) struct Intake {
    counts: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    budget: Option<(Arc<Budget>, Holder)>,
    /// Bytes since the last complete message, and those of them that came since the last look.
    unfinished: u64,
    recent: u64,
    lease: Option<Lease>,
    refusal: Option<Refusal>,
}

impl Intake {
    /// Counts from now on, at this budget.
    pub(crate) fn begin(&self, budget: Arc<Budget>, holder: Holder) {
        self.state().budget = Some((budget, holder));
        self.counts.store(true, Ordering::Relaxed);
    }

    /// Counts bytes that were read. Fails when the budget has no room for them.
    pub(crate) fn received(&self, bytes: usize) -> io::Result<()> {
        if !self.counts.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut state = self.state();
        state.unfinished += bytes as u64;
        state.recent += bytes as u64;
        state.cover().map_err(|refusal| {
            state.refusal = Some(refusal);
            io::Error::from(io::ErrorKind::QuotaExceeded)
        })
    }

    /// A message is complete. Returns the lease that it has.
    pub(crate) fn complete(&self) -> Option<Lease> {
        let mut state = self.state();
        (state.unfinished, state.recent) = (0, 0);
        state.lease.take()
    }

    /// How many bytes came since this was last called, if a message is incomplete.
    pub(crate) fn take_recent(&self) -> Option<u64> {
        let mut state = self.state();
        let recent = std::mem::take(&mut state.recent);
        (state.unfinished > 0).then_some(recent)
    }

    /// Why reading failed, if the budget had no room.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        self.state().refusal.take()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn cover(&mut self) -> Result<(), Refusal> {
        let covered = self.lease.as_ref().map_or(ALLOWANCE, Lease::amount);
        let Some((budget, holder)) = self.budget.as_ref().filter(|_| self.unfinished > covered) else {
            return Ok(());
        };
        match &mut self.lease {
            Some(lease) => lease.try_grow((self.unfinished - covered).next_multiple_of(STEP)),
            None => {
                self.lease = Some(budget.try_take(holder.clone(), self.unfinished.next_multiple_of(STEP))?);
                Ok(())
            }
        }
    }
}
