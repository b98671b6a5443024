//! The thread that keeps the index up to date.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};

use banyan_model::{CommitNo, Error, SessionId};
use banyan_search::{Room, SearchError, SearchIndex, SessionRecord, Writer};

use super::{Home, Search};
use crate::space::SpaceLevel;
use crate::store::Store;

/// Commands that only look at something are over by then, and cause no work.
const BEFORE_OPENING: Duration = Duration::from_millis(200);
/// What is written is found after about this time. More often costs more than it is worth.
pub(super) const EVERY: Duration = Duration::from_millis(250);
/// The same while very much is written. A step costs much however little is in it: threads, files, later merging.
const EVERY_WHILE_BUSY: Duration = Duration::from_secs(5);
/// More commits a second are very much.
const BUSY: f64 = 1000.0;
/// The same while entries come by the thousand, as they do when sessions are imported. What is not visible yet when a store is
/// closed is indexed again, so it is not too long.
const EVERY_WHILE_MANY: Duration = Duration::from_secs(2);
/// So many entries at a time.
const MANY: u64 = 10_000;
/// How long nothing is tried after a failure.
const AFTER_FAILURE: Duration = Duration::from_secs(5);
/// How often it is looked whether there is room again.
const AGAIN: Duration = Duration::from_millis(500);
/// So many sessions are remembered between batches.
const MOST_KNOWN: usize = 20_000;

/// Why the thread has to begin anew.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    #[error(transparent)]
    Index(#[from] SearchError),
    #[error("a session could not be read: {0}")]
    Session(#[from] Error),
    /// The store is being closed. What was begun is not committed, and done again next time.
    #[error("the store is being closed")]
    Stopped,
}

/// What the thread works with.
pub(super) struct Indexer {
    pub(super) search: Arc<Search>,
    pub(super) index: Arc<SearchIndex>,
    pub(super) writer: Writer,
    /// What the index remembers of sessions, newer than what can be read from it before the next commit.
    pub(super) known: HashMap<SessionId, Option<SessionRecord>>,
    /// Forks whose inherited entries are found in their base, by base, as far as that was noted after the last commit.
    pub(super) new_forks: HashMap<SessionId, HashSet<SessionId>>,
    /// The last commit that was looked at.
    pub(super) position: CommitNo,
    pub(super) complete: bool,
    /// Whether anything was changed since the last commit.
    pub(super) dirty: bool,
    /// How many entries were indexed since then.
    pub(super) indexed: u64,
    pub(super) committed_at: Instant,
    courtesy: Courtesy,
}

/// When the thread last let others go first, and how far they were.
struct Courtesy {
    since: Instant,
    heard: CommitNo,
    worked: Instant,
    /// Whether very much is being written.
    busy: bool,
}

/// Whether to go on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    GoOn,
    Stop,
}

pub(super) fn run(store: &Weak<Store>, search: &Arc<Search>) {
    if !search.pause(BEFORE_OPENING) {
        return;
    }
    let asked = store.clone();
    let room = Room::new(move |bytes| asked.upgrade().is_none_or(|store| store.may_derive(bytes)));
    loop {
        let outcome = catch_unwind(AssertUnwindSafe(|| follow(store, search, &room)));
        let why = match outcome {
            Ok(Ok(())) => return,
            Ok(Err(trouble)) => trouble.to_string(),
            // A reader of damaged files can run past their end.
            Err(_) => "the search index is damaged".to_owned(),
        };
        let is_short = || store.upgrade().is_some_and(|store| !store.may_derive(0));
        if room.take_refusal() || search.takes_no_room() || is_short() {
            if wait_for_room(store, search) == Next::Stop {
                return;
            }
            continue;
        }
        let Some(store) = store.upgrade() else { return };
        store.warn(&format!("search stopped and begins anew: {why}"));
        drop(store);
        let mut inner = search.lock();
        (inner.index, inner.complete, inner.failed) = (None, false, Some(why));
        drop(inner);
        // Not `pause`: a search that waits must not make this turn without end.
        let until = Instant::now() + AFTER_FAILURE;
        while Instant::now() < until {
            if search.stopped() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Waits until the disk has room for the index again. What is in it is found meanwhile; on a full disk it is removed.
fn wait_for_room(store: &Weak<Store>, search: &Arc<Search>) -> Next {
    let index = {
        let mut inner = search.lock();
        inner.complete = false;
        inner.failed = Some("the disk is short of room; the index is made when there is more".to_owned());
        inner.index.clone()
    };
    if let Some(index) = index {
        // What cannot be removed now goes with the next step.
        let _ = index.remove_leftovers();
    }
    loop {
        let Some(store) = store.upgrade() else { return Next::Stop };
        if store.may_index_again() {
            search.lock().give_room_back = false;
            store.note_given_back(0);
            return Next::GoOn;
        }
        if let (SpaceLevel::Full, Home::Directory(root)) = (store.space.level(), &search.home)
            && root.exists()
        {
            search.lock().index = None;
            let bytes = files_in(root);
            if std::fs::remove_dir_all(root).is_ok() {
                store.note_given_back(bytes);
            }
        }
        drop(store);
        let inner = search.lock();
        if inner.stopped {
            return Next::Stop;
        }
        let _ = search.changed.wait_timeout(inner, AGAIN).unwrap_or_else(PoisonError::into_inner);
        if search.stopped() {
            return Next::Stop;
        }
    }
}

/// How many bytes the files in a directory have.
fn files_in(root: &Path) -> u64 {
    let files = std::fs::read_dir(root).into_iter().flatten().flatten();
    files.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}

fn follow(store: &Weak<Store>, search: &Arc<Search>, room: &Room) -> Result<(), Trouble> {
    let mut indexer = open(store, search, room)?;
    let outcome = loop {
        let Some(store) = store.upgrade() else { break Ok(()) };
        if search.takes_no_room() {
            break Err(Trouble::Index(SearchError::Full("it was given up to make room".to_owned())));
        }
        let doubtful = search.lock().doubtful;
        if doubtful {
            indexer.complete = false;
            let mut inner = search.lock();
            (inner.complete, inner.doubtful) = (false, false);
        }
        // Before the step, so that it includes every deletion that came before the request.
        let asked = search.lock().expunge_asked;
        let step = if indexer.complete { indexer.catch_up(&store) } else { indexer.sweep(&store) };
        let step = step
            .and_then(|next| if next == Next::GoOn { indexer.expunge(asked).map(|()| next) } else { Ok(next) });
        drop(store);
        match step {
            Ok(Next::GoOn) => {}
            Ok(Next::Stop) | Err(Trouble::Stopped) => break Ok(()),
            Err(trouble) => break Err(trouble),
        }
        if !indexer.search.sleep(indexer.position) {
            break Ok(());
        }
        let since = indexer.committed_at.elapsed();
        if since < EVERY && !indexer.search.pause(EVERY.saturating_sub(since)) {
            break Ok(());
        }
    };
    outcome?;
    indexer.search.lock().index = None;
    Ok(indexer.writer.close()?)
}

fn open(store: &Weak<Store>, search: &Arc<Search>, room: &Room) -> Result<Indexer, Trouble> {
    let heard = search.heard();
    let (index, progress) = match &search.home {
        Home::Directory(root) => {
            let Some(owner) = store.upgrade().map(|store| store.log.directory_id().to_string()) else {
                return Err(Trouble::Stopped);
            };
            let mut opened = SearchIndex::open(root, &owner, room)?;
            // An index that has seen more than there is was copied here, or everything else is older.
            if let Some(progress) = opened.progress.filter(|progress| progress.position > heard) {
                if let Some(store) = store.upgrade() {
                    let (position, heard) = (progress.position.0, heard.0);
                    store.warn(&format!(
                        "the search index is made anew: it speaks for commit {position}, and the last one here is {heard}"
                    ));
                }
                drop(opened);
                std::fs::remove_dir_all(root).map_err(|cause| SearchError::Io {
                    doing: "clearing",
                    path: root.clone(),
                    cause,
                })?;
                opened = SearchIndex::open(root, &owner, room)?;
            }
            if let (Some(why), Some(store)) = (&opened.replaced, store.upgrade()) {
                store.warn(&format!("the search index is made anew: {why}"));
            }
            (opened.index, opened.progress)
        }
        Home::Memory | Home::Nowhere => (SearchIndex::in_memory()?, None),
    };
    let index = Arc::new(index);
    let writer = index.writer(progress)?;
    let complete = progress.is_some_and(|progress| progress.complete);
    let position = progress.map_or(heard, |progress| progress.position);
    let mut inner = search.lock();
    (inner.index, inner.failed) = (Some(Arc::clone(&index)), None);
    (inner.visible, inner.complete) = (position, complete);
    drop(inner);
    search.changed.notify_all();
    Ok(Indexer {
        search: Arc::clone(search),
        index,
        writer,
        known: HashMap::new(),
        new_forks: HashMap::new(),
        position,
        complete,
        dirty: progress.is_none(),
        indexed: 0,
        committed_at: Instant::now(),
        courtesy: Courtesy { since: Instant::now(), heard, worked: Instant::now(), busy: false },
    })
}

impl Indexer {
    /// Looks at everything that was committed, and at marked sessions. Makes it visible.
    fn catch_up(&mut self, store: &Arc<Store>) -> Result<Next, Trouble> {
        if self.look_at_marked(store)? == Next::Stop {
            return Ok(Next::Stop);
        }
        while self.position < self.search.heard() {
            if self.search.stopped() {
                return Ok(Next::Stop);
            }
            if !self.batch(store)? {
                // The journal does not go back that far: the sessions themselves say what is new.
                self.complete = false;
                self.position = self.search.heard();
                return self.sweep(store);
            }
            if self.committed_at.elapsed() > self.due() {
                self.commit()?;
            }
        }
        self.commit()?;
        Ok(Next::GoOn)
    }

    pub(super) fn look_at_marked(&mut self, store: &Arc<Store>) -> Result<Next, Trouble> {
        let marked: HashSet<SessionId> = self.search.lock().marks.clone();
        for id in &marked {
            if self.search.stopped() {
                return Ok(Next::Stop);
            }
            self.index_anew_or_skip(store, id)?;
        }
        if !marked.is_empty() {
            self.dirty = true;
            self.commit()?;
            self.search.lock().marks.retain(|id| !marked.contains(id));
            store.settle_search_marks();
            self.search.changed.notify_all();
        }
        Ok(Next::GoOn)
    }

    /// Makes everything so far visible.
    pub(super) fn commit(&mut self) -> Result<(), Trouble> {
        // A position alone is not worth a step, unless it would be far behind when the store is opened again.
        if self.dirty || self.position.0 > self.writer.progress().position.0 + 10_000 {
            self.writer.commit(self.position, self.complete)?;
            self.index.refresh()?;
            self.dirty = false;
            self.indexed = 0;
            self.new_forks.clear();
            if self.known.len() > MOST_KNOWN {
                self.known.clear();
            }
        }
        self.committed_at = Instant::now();
        let mut inner = self.search.lock();
        (inner.visible, inner.complete) = (self.position, self.complete);
        drop(inner);
        self.search.changed.notify_all();
        Ok(())
    }

    /// Writes segments anew that have documents of deleted sessions, if that was requested up to this number.
    fn expunge(&mut self, asked: u64) -> Result<(), Trouble> {
        if asked <= self.search.lock().expunge_done.0 {
            return Ok(());
        }
        let expunged = self.writer.expunge()?;
        self.index.refresh()?;
        self.writer.remove_unused()?;
        self.search.lock().expunge_done = (asked, expunged);
        self.search.changed.notify_all();
        Ok(())
    }

    /// After which time what is new is made visible while there is more to come.
    pub(super) fn due(&self) -> Duration {
        if self.search.awaited() {
            EVERY * 2
        } else if self.courtesy.busy {
            EVERY_WHILE_BUSY
        } else if self.indexed > MANY {
            EVERY_WHILE_MANY
        } else {
            EVERY * 2
        }
    }

    /// Lets writers go first. While very much is written, this thread works a small part of the time, and catches up
    /// later. It does not run at a lower priority instead: it would be stopped while it holds what a writer waits for.
    pub(super) fn let_others_go_first(&mut self) {
        const A_WHILE: Duration = Duration::from_millis(3);
        const SHARE: u32 = 80;
        /// After so long it is looked at again whether very much is written.
        const LONGEST: Duration = Duration::from_secs(1);
        let worked = self.courtesy.worked.elapsed();
        if worked < A_WHILE {
            return;
        }
        let commits = self.search.heard().0.saturating_sub(self.courtesy.heard.0) as f64;
        self.courtesy.busy = commits / self.courtesy.since.elapsed().as_secs_f64() > BUSY;
        if self.courtesy.busy {
            self.search.pause((worked * SHARE).min(LONGEST));
        }
        if self.courtesy.since.elapsed() > EVERY {
            // As of after the pause: what was written during it says nothing of whether there is more to come.
            (self.courtesy.since, self.courtesy.heard) = (Instant::now(), self.search.heard());
        }
        self.courtesy.worked = Instant::now();
    }

    /// What the index remembers of a session.
    pub(super) fn record(&mut self, id: &SessionId) -> Result<Option<SessionRecord>, Trouble> {
        if let Some(known) = self.known.get(id) {
            return Ok(known.clone());
        }
        let record = self.index.session(id)?;
        self.known.insert(id.clone(), record.clone());
        Ok(record)
    }
}
