//! Telling what was committed: a second thread does it, so that the committer can flush the next batch meanwhile.
//!
//! What comes here is safe and visible in its files. It is told in commit order, and answered a little later.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::{Answer, Committed, Done};

/// A commit that is safe, and whom to tell.
pub(crate) struct Safe {
    pub(crate) done: Done,
    pub(crate) committed: Committed,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Finisher {
    work: Mutex<Work>,
    /// Told when a batch arrived, or no more will.
    arrived: Condvar,
    /// Told when nothing is left to do.
    settled: Condvar,
}

#[derive(Default)]
struct Work {
    batches: VecDeque<Vec<Safe>>,
    /// A batch is being told.
    busy: bool,
    /// The thread sleeps. Waking one that does not costs a system call.
    idle: bool,
    /// The committer waits for all of it to be told.
    awaited: bool,
    ended: bool,
}

/// So many commits are answered together, while the next ones are told.
const TOGETHER: usize = 64;

impl Finisher {
    /// Works until [`Finisher::end`] was called and everything is told.
    pub(crate) fn run(&self) {
        let mut work = self.lock();
        loop {
            if let Some(batch) = work.batches.pop_front() {
                work.busy = true;
                drop(work);
                tell(batch);
                work = self.lock();
                work.busy = false;
            } else if work.ended {
                return;
            } else {
                if work.awaited {
                    self.settled.notify_all();
                }
                work.idle = true;
                work = self.arrived.wait(work).unwrap_or_else(PoisonError::into_inner);
                work.idle = false;
            }
        }
    }

    /// Takes a batch, to be told after those before it.
    pub(crate) fn hand_over(&self, batch: Vec<Safe>) {
        let mut work = self.lock();
        work.batches.push_back(batch);
        let wake = std::mem::take(&mut work.idle);
        drop(work);
        if wake {
            self.arrived.notify_one();
        }
    }

    /// Whether everything is told.
    pub(crate) fn is_settled(&self) -> bool {
        self.lock().is_settled()
    }

    /// Waits until everything is told.
    pub(crate) fn settle(&self) {
        let mut work = self.lock();
        work.awaited = true;
        while !work.is_settled() {
            work = self.settled.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
        work.awaited = false;
    }

    /// Says that nothing more will come.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.arrived.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Work {
    fn is_settled(&self) -> bool {
        self.batches.is_empty() && !self.busy
    }
}

/// Tells commits in order, and answers them in groups.
pub(crate) fn tell(batch: Vec<Safe>) {
    let mut answers: Vec<Answer> = Vec::with_capacity(TOGETHER.min(batch.len()));
    for Safe { done, committed } in batch {
        answers.push(done(Ok(committed)));
        if answers.len() == TOGETHER {
            answers.drain(..).for_each(|answer| answer());
        }
    }
    answers.into_iter().for_each(|answer| answer());
}
