//! The sessions that are in memory: one object each, however many callers.

use hashbrown::{DefaultHashBuilder, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use banyan_core::state::SessionState;
use banyan_index::SessionFile;
use banyan_model::SessionId;

/// A session in memory.
pub(crate) struct Session {
    pub(crate) id: SessionId,
    /// Held from the decision to the commit, so that a session's calls happen one after another.
    pub(crate) writer: Arc<tokio::sync::Mutex<()>>,
    loaded: RwLock<Loaded>,
    used: AtomicU64,
    entries: AtomicUsize,
    /// What the catalogue calls the session's file.
    file: Mutex<Option<Arc<SessionFile>>>,
    /// How much of the session's file the image of its tree covers.
    image_covers: AtomicU64,
}

/// What is known of a session.
pub(crate) enum Loaded {
    /// Nobody looked yet.
    NotYet,
    /// There is no such session. Its file may have lines all the same, which a session that begins now comes after.
    Absent(Option<Box<SessionState>>),
    /// Here it is.
    Present(Box<SessionState>),
}

impl Loaded {
    /// The state that a change starts from, if there is one.
    pub(crate) fn state(&self) -> Option<&SessionState> {
        match self {
            Self::NotYet => None,
            Self::Absent(lines) => lines.as_deref(),
            Self::Present(state) => Some(state),
        }
    }
}

impl Session {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Loaded> {
        self.loaded.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same, unless that would have to wait.
    pub(crate) fn try_read(&self) -> Option<RwLockReadGuard<'_, Loaded>> {
        match self.loaded.try_read() {
            Ok(loaded) => Some(loaded),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Loaded> {
        self.loaded.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn image_covers(&self) -> u64 {
        self.image_covers.load(Ordering::Relaxed)
    }

    pub(crate) fn set_image_covers(&self, covered: u64) {
        self.image_covers.store(covered, Ordering::Relaxed);
    }

    /// What the catalogue calls the session's file, made once.
    pub(crate) fn catalogued(&self, make: impl FnOnce() -> SessionFile) -> Arc<SessionFile> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(file.get_or_insert_with(|| Arc::new(make())))
    }

    /// Forgets that, because the session ended; the next one of this id is another.
    pub(crate) fn forget_file(&self) {
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

const SHARDS: usize = 16;

/// All sessions in memory. Looking one up takes the lock of one shard only.
pub(crate) struct Sessions {
    shards: [Mutex<HashMap<SessionId, Arc<Session>>>; SHARDS],
    hasher: DefaultHashBuilder,
    clock: AtomicU64,
    count: AtomicUsize,
    entries: AtomicUsize,
    most: usize,
    most_entries: usize,
}

impl Sessions {
    pub(crate) fn new(most: usize, most_entries: usize) -> Self {
        Self {
            shards: Default::default(),
            hasher: DefaultHashBuilder::default(),
            clock: AtomicU64::new(0),
            count: AtomicUsize::new(0),
            entries: AtomicUsize::new(0),
            most,
            most_entries,
        }
    }

    /// The object for an id, loaded or not.
    pub(crate) fn get(&self, id: &SessionId) -> Arc<Session> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let session = {
            let mut shard = self.shard(id);
            if let Some(session) = shard.get(id) {
                session.used.store(now, Ordering::Relaxed);
                return Arc::clone(session);
            }
            let session = Arc::new(Session {
                id: id.clone(),
                writer: Arc::default(),
                loaded: RwLock::new(Loaded::NotYet),
                used: AtomicU64::new(now),
                entries: AtomicUsize::new(0),
                file: Mutex::default(),
                image_covers: AtomicU64::new(0),
            });
            shard.insert(id.clone(), Arc::clone(&session));
            session
        };
        self.count.fetch_add(1, Ordering::Relaxed);
        self.make_room();
        session
    }

    /// The object for an id, if there is one.
    pub(crate) fn peek(&self, id: &SessionId) -> Option<Arc<Session>> {
        self.shard(id).get(id).cloned()
    }

    /// Forgets an object that stands for no session, unless somebody is about to make it one.
    pub(crate) fn forget_absent(&self, session: Arc<Session>) {
        let id = session.id.clone();
        let mut shard = self.shard(&id);
        // Ours and the shard's own.
        if Arc::strong_count(&session) == 2
            && matches!(*session.read(), Loaded::Absent(_))
            && shard.get(&id).is_some_and(|kept| Arc::ptr_eq(kept, &session))
        {
            shard.remove(&id);
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Says how large a session is by now.
    pub(crate) fn weigh(&self, session: &Session, entries: usize) {
        let before = session.entries.swap(entries, Ordering::Relaxed);
        self.entries.fetch_add(entries, Ordering::Relaxed);
        self.entries.fetch_sub(before, Ordering::Relaxed);
    }

    /// Every session in memory, by id.
    pub(crate) fn all(&self) -> Vec<Arc<Session>> {
        let shards = self.shards.iter();
        let mut all: Vec<_> = shards.flat_map(|shard| lock(shard).values().cloned().collect::<Vec<_>>()).collect();
        all.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        all
    }

    /// Lets go of the sessions that were used longest ago, when there are too many.
    fn make_room(&self) {
        let crowded = |most: usize, entries: usize| {
            self.count.load(Ordering::Relaxed) > most || self.entries.load(Ordering::Relaxed) > entries
        };
        if !crowded(self.most, self.most_entries) {
            return;
        }
        let mut idle: Vec<(u64, SessionId)> = Vec::new();
        for shard in &self.shards {
            let shard = lock(shard);
            let unused = shard.values().filter(|session| Arc::strong_count(session) == 1);
            idle.extend(unused.map(|session| (session.used.load(Ordering::Relaxed), session.id.clone())));
        }
        idle.sort_unstable();
        for (_, id) in idle {
            // A little below the limit, so that the next one need not look again.
            if !crowded(self.most - self.most / 8, self.most_entries - self.most_entries / 8) {
                return;
            }
            let mut shard = self.shard(&id);
            if shard.get(&id).is_some_and(|session| Arc::strong_count(session) == 1)
                && let Some(session) = shard.remove(&id)
            {
                self.count.fetch_sub(1, Ordering::Relaxed);
                self.entries.fetch_sub(session.entries.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
    }

    fn shard(&self, id: &SessionId) -> MutexGuard<'_, HashMap<SessionId, Arc<Session>>> {
        use std::hash::BuildHasher;
        lock(&self.shards[self.hasher.hash_one(id) as usize % SHARDS])
    }
}

fn lock(shard: &Mutex<HashMap<SessionId, Arc<Session>>>) -> MutexGuard<'_, HashMap<SessionId, Arc<Session>>> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}
