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
    bytes: AtomicUsize,
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
    bytes: AtomicUsize,
    most: SessionsBounds,
}

/// How much is kept in memory when nobody uses it: sessions, and over all of them entries and bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionsBounds {
    pub(crate) sessions: usize,
    pub(crate) entries: usize,
    pub(crate) bytes: usize,
}

impl SessionsBounds {
    /// A little less, so that after making room the next session need not look again.
    fn eased(self) -> Self {
        let eased = |most: usize| most - most / 8;
        Self { sessions: eased(self.sessions), entries: eased(self.entries), bytes: eased(self.bytes) }
    }
}

impl Sessions {
    pub(crate) fn new(most: SessionsBounds) -> Self {
        Self {
            shards: Default::default(),
            hasher: DefaultHashBuilder::default(),
            clock: AtomicU64::new(0),
            count: AtomicUsize::new(0),
            entries: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            most,
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
                bytes: AtomicUsize::new(0),
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

    /// Says how large a session is by now; `None` when it is not there any more.
    pub(crate) fn weigh(&self, session: &Session, state: Option<&SessionState>) {
        let entries = state.map_or(0, |state| state.nodes().len());
        let bytes = state.map_or(0, SessionState::memory);
        for (now, own, all) in [(entries, &session.entries, &self.entries), (bytes, &session.bytes, &self.bytes)] {
            let before = own.swap(now, Ordering::Relaxed);
            if now != before {
                all.fetch_add(now, Ordering::Relaxed);
                all.fetch_sub(before, Ordering::Relaxed);
            }
        }
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
        let crowded = |most: SessionsBounds| {
            self.count.load(Ordering::Relaxed) > most.sessions
                || self.entries.load(Ordering::Relaxed) > most.entries
                || self.bytes.load(Ordering::Relaxed) > most.bytes
        };
        if !crowded(self.most) {
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
            if !crowded(self.most.eased()) {
                return;
            }
            let mut shard = self.shard(&id);
            if shard.get(&id).is_some_and(|session| Arc::strong_count(session) == 1)
                && let Some(session) = shard.remove(&id)
            {
                self.count.fetch_sub(1, Ordering::Relaxed);
                self.entries.fetch_sub(session.entries.load(Ordering::Relaxed), Ordering::Relaxed);
                self.bytes.fetch_sub(session.bytes.load(Ordering::Relaxed), Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::sync::atomic::Ordering;

    use serde_json::json;

    use crate::{Banyan, Options, SearchIndexing, block_on};

    #[test]
    fn sessions_with_much_metadata_are_not_kept_beyond_the_bound_in_bytes() {
        const MOST: usize = 1 << 20;
        let options = Options { cached_session_bytes: MOST, search: SearchIndexing::Off, ..Options::default() };
        let store = Banyan::in_memory(options).unwrap();
        let metadata = json!({"note": "x".repeat(10_000)});
        for number in 0..200 {
            let request = json!({"session_id": format!("s{number}"), "metadata": metadata}).to_string();
            block_on(store.call("session::ensure", request.as_bytes())).unwrap();
        }
        let sessions = &store.store.sessions;
        // The one that was used last may come on top.
        let (count, bytes) = (sessions.all().len(), sessions.bytes.load(Ordering::Relaxed));
        assert!(bytes <= MOST + 100_000, "{bytes} bytes for {count} sessions");
        assert!(bytes >= count.saturating_sub(1) * 10_000, "{bytes} bytes for {count} sessions");
        assert!(count < 100, "{count} sessions are kept");
        let request = json!({"session_id": "s0"}).to_string();
        let answer = block_on(store.call("session::get", request.as_bytes())).unwrap();
        assert!(answer.contains("xxx"), "one that was let go is read again");
    }
}
