//! Search: a full-text index that follows the log.
//!
//! A thread of its own ([`indexer`]) reads what was committed from the journal, by position, and looks at the sessions
//! that it names. Writers tell it only that there is something new, so they never wait for it, and there is no queue that
//! could run over. Searches ([`ask`]) read what the thread has made visible.

mod ask;
mod batch;
mod forks;
mod indexer;
mod marks;
mod outline;
mod session;
mod sweep;
mod text;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use banyan_model::{CommitNo, Error, SessionId};
use banyan_search::{Expunged, SearchIndex};

use crate::store::Store;

/// Where the index is kept.
pub(crate) enum Home {
    /// In a directory.
    Directory(PathBuf),
    /// In memory, from the first search on.
    Memory,
    /// Nowhere: this store is not searched.
    Nowhere,
}

/// A request to remove the text of deleted sessions from the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expunging(u64);

/// What writers, searches and the indexing thread share.
pub(crate) struct Search {
    home: Home,
    /// The last commit that is in the sessions' states.
    heard: AtomicU64,
    /// Whether the thread waits for a commit, and wants to be woken by it.
    asleep: AtomicBool,
    inner: Mutex<Inner>,
    changed: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Inner {
    index: Option<Arc<SearchIndex>>,
    /// Everything up to this commit can be found, if nothing is missing.
    visible: CommitNo,
    complete: bool,
    /// Sessions that changed in another way than by a commit.
    marks: HashSet<SessionId>,
    /// Whether all sessions are to be compared with the index.
    doubtful: bool,
    /// How many wait for the thread to catch up.
    waiting: usize,
    started: bool,
    stopped: bool,
    /// The disk is full, and the index is to make room.
    give_room_back: bool,
    /// How often it was asked that the text of deleted sessions be removed, and what came of it the last time.
    expunge_asked: u64,
    expunge_done: (u64, Expunged),
    /// Why there is no index, when making it failed.
    failed: Option<String>,
}

impl Search {
    pub(crate) fn new(home: Home) -> Self {
        Self {
            home,
            heard: AtomicU64::new(0),
            asleep: AtomicBool::new(false),
            inner: Mutex::default(),
            changed: Condvar::new(),
            thread: Mutex::default(),
        }
    }

    /// Says that everything up to a commit is in the sessions' states. Commits are heard in their order.
    pub(crate) fn hear(&self, commit: CommitNo) {
        self.heard.store(commit.0, Ordering::SeqCst);
        if self.asleep.swap(false, Ordering::SeqCst) {
            // Whoever sets `asleep` holds the lock until it waits, so this cannot come between the two.
            drop(self.lock());
            self.changed.notify_all();
        }
    }

    /// Has sessions looked at whose files are not as their commits made them.
    fn mark_all(&self, sessions: Vec<SessionId>) {
        if !matches!(self.home, Home::Nowhere) {
            self.lock().marks.extend(sessions);
            self.asleep.store(false, Ordering::SeqCst);
            self.changed.notify_all();
        }
    }

    /// The sessions that are marked, in order.
    fn marks(&self) -> Vec<SessionId> {
        let mut marks: Vec<SessionId> = self.lock().marks.iter().cloned().collect();
        marks.sort_unstable();
        marks
    }

    /// Says that it is not known what happened to the sessions.
    pub(crate) fn doubt(&self) {
        self.lock().doubtful = true;
        self.asleep.store(false, Ordering::SeqCst);
        self.changed.notify_all();
    }

    /// Gives the room back that the index has, until there is enough.
    pub(crate) fn give_room_back(&self) {
        self.lock().give_room_back = true;
        self.asleep.store(false, Ordering::SeqCst);
        self.changed.notify_all();
    }

    fn takes_no_room(&self) -> bool {
        self.lock().give_room_back
    }

    /// Asks for the text of deleted sessions to be removed from the index. `None` while
    /// nothing is indexed.
    pub(crate) fn expunge(&self) -> Option<Expunging> {
        let mut inner = self.lock();
        if !inner.started || inner.stopped {
            return None;
        }
        inner.expunge_asked += 1;
        let number = inner.expunge_asked;
        drop(inner);
        self.asleep.store(false, Ordering::SeqCst);
        self.changed.notify_all();
        Some(Expunging(number))
    }

    /// Waits until what was asked for by [`expunge`](Self::expunge) is done. `None` when it is not within the time.
    pub(crate) fn expunged(&self, Expunging(number): Expunging, at_most: Duration) -> Option<Expunged> {
        let until = Instant::now() + at_most;
        let mut inner = self.lock();
        while inner.expunge_done.0 < number {
            let left = until.checked_duration_since(Instant::now()).filter(|_| !inner.stopped)?;
            inner = self.changed.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Some(inner.expunge_done.1)
    }

    /// Whether there is no index in files.
    pub(crate) fn is_elsewhere(&self) -> bool {
        !matches!(self.home, Home::Directory(_))
    }

    /// Ends the thread, and waits for it.
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The thread itself may be the last to hold the store.
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
        self.lock().index = None;
    }

    /// The last commit that can be found with everything before it.
    fn visible(&self) -> CommitNo {
        let inner = self.lock();
        if inner.complete { inner.visible } else { CommitNo(0) }
    }

    fn heard(&self) -> CommitNo {
        CommitNo(self.heard.load(Ordering::SeqCst))
    }

    fn stopped(&self) -> bool {
        self.lock().stopped
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the thread is told to stop, somebody waits for it, or the time is over. False when it is to stop.
    fn pause(&self, at_most: Duration) -> bool {
        let until = Instant::now() + at_most;
        let mut inner = self.lock();
        while !inner.stopped && inner.waiting == 0 {
            let Some(left) = until.checked_duration_since(Instant::now()) else { break };
            inner = self.changed.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        !inner.stopped
    }

    /// Whether a search waits for what was written before it.
    fn awaited(&self) -> bool {
        self.lock().waiting > 0
    }

    /// Waits until there is something to do after a commit. False when it is to stop.
    fn sleep(&self, done: CommitNo) -> bool {
        let mut inner = self.lock();
        loop {
            self.asleep.store(true, Ordering::SeqCst);
            let expunge = inner.expunge_asked > inner.expunge_done.0;
            let other = expunge || inner.give_room_back;
            if inner.stopped || self.heard() > done || !inner.marks.is_empty() || inner.doubtful || other {
                self.asleep.store(false, Ordering::SeqCst);
                return !inner.stopped;
            }
            inner = self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The index, once it is there; and whether everything was found in it that was committed before, after waiting for
    /// that as long as was asked for.
    fn ready(&self, wait: Duration) -> Result<(Arc<SearchIndex>, bool), Error> {
        /// An index opens in a moment, unless it must be checked after a crash.
        const TO_OPEN: Duration = Duration::from_secs(10);
        let wanted = self.heard();
        let begun = Instant::now();
        let mut inner = self.lock();
        inner.waiting += 1;
        self.changed.notify_all();
        let outcome = loop {
            if inner.stopped {
                break Err(Error::storage("the store is closed"));
            }
            let caught_up = inner.complete && inner.visible >= wanted && inner.marks.is_empty() && !inner.doubtful;
            let patience = if inner.index.is_some() { wait } else { wait.max(TO_OPEN) };
            let left = patience.checked_sub(begun.elapsed()).filter(|left| !left.is_zero());
            match (&inner.index, left) {
                (Some(index), _) if caught_up => break Ok((Arc::clone(index), true)),
                (Some(index), None) => break Ok((Arc::clone(index), false)),
                (None, None) => {
                    let why = inner.failed.clone().unwrap_or_else(|| "it is still being opened".to_owned());
                    break Err(Error::storage(format!("there is no search index: {why}")));
                }
                (_, Some(left)) => {
                    inner = self.changed.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        };
        inner.waiting -= 1;
        outcome
    }
}

impl Store {
    /// Begins to follow the log, from where the index stopped.
    pub(crate) fn start_search(self: &Arc<Self>) {
        use banyan_log::SessionLog;
        self.search.hear(self.log.head());
        if matches!(self.search.home, Home::Directory(_)) {
            self.begin_indexing();
        }
    }

    /// Starts the thread, once.
    fn begin_indexing(self: &Arc<Self>) {
        if std::mem::replace(&mut self.search.lock().started, true) {
            return;
        }
        let (store, search) = (Arc::downgrade(self), Arc::clone(&self.search));
        let spawned =
            std::thread::Builder::new().name("banyan-search".into()).spawn(move || indexer::run(&store, &search));
        *self.search.thread.lock().unwrap_or_else(PoisonError::into_inner) = spawned.ok();
    }
}
