//! Sessions as this bridge left them, so that who streams into one need not look at it before each token.
//!
//! A commit says what it expects the session to be, so one that is based on what is no longer so fails and is decided
//! again. Nothing is ever answered from here alone.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Ask, Seen};

/// See the module.
#[derive(Default)]
pub(super) struct Recent(Mutex<VecDeque<Seen>>);

/// So many sessions are remembered, each with at most one message.
const MOST: usize = 64;
/// A session to which more entries than this were added is looked at again.
const MOST_ENTRIES: usize = 1024;

impl Recent {
    /// A session as it was left, if that is enough for what is asked.
    pub(super) fn take(&self, ask: &Ask) -> Option<Seen> {
        let mut all = self.lock();
        let at = all.iter().position(|seen| *seen.state.session_id() == ask.session_id)?;
        let seen = all.remove(at)?;
        let knows_message = match (&ask.message, &seen.message) {
            (Some(asked), Some((known, _))) => asked == known,
            (asked, _) => asked.is_none(),
        };
        let only_that = ask.entries.is_empty() && ask.fork_at.is_none() && ask.attachment_id.is_none();
        (knows_message && only_that).then_some(seen)
    }

    pub(super) fn keep(&self, seen: Seen) {
        if seen.state.nodes().len() > MOST_ENTRIES {
            return;
        }
        let mut all = self.lock();
        all.push_back(seen);
        if all.len() > MOST {
            all.pop_front();
        }
    }

    pub(super) fn forget(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
