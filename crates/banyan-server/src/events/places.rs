//! Places for subscriptions, over all connections.
//!
//! Whoever went away without a word is noticed when something is sent, which may take two keep-alives: a peer that has closed
//! answers the first with a reset, and only the next one fails. So before anybody is refused everyone is sent a comment, twice.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::budget::{Budget, Holder, Lease, Refusal, Refusals, Subject};

/// See the module.
pub(crate) struct Places {
    budget: Arc<Budget>,
    nudge: watch::Sender<()>,
    nudged_at: Mutex<Option<Instant>>,
}

/// How long those who went away may take to be noticed.
const NOTICED: Duration = Duration::from_millis(100);
/// Refusals that follow each other more closely send no comments.
const AGAIN: Duration = Duration::from_secs(1);

impl Places {
    pub(crate) fn new(most: usize, refusals: Refusals) -> Self {
        let subject = Subject {
            label: "subscriptions",
            setting: "limits.subscriptions",
            what: "subscriptions",
            code: "events/too_many_subscriptions",
        };
        Self {
            budget: Budget::new(subject, most as u64, refusals),
            nudge: watch::Sender::default(),
            nudged_at: Mutex::default(),
        }
    }

    /// The budget of all places.
    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// Takes a place if the budget's rule allows it, after those who went away were noticed.
    pub(super) async fn take(&self, holder: Holder) -> Result<Lease, Refusal> {
        let mut taken = self.budget.try_take(holder.clone(), 1);
        if taken.is_ok() || !self.may_nudge() {
            return taken;
        }
        for _ in 0..2 {
            self.nudge.send_replace(());
            taken = self.budget.take_within(holder.clone(), 1, NOTICED).await;
            if taken.is_ok() {
                break;
            }
        }
        taken
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
