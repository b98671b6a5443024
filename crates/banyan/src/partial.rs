//! An import that is too much for one commit: it is put part by part, and the session begins with the last one.
//!
//! Whoever lets go of it before, for whatever reason, takes back what was put. What a crash leaves goes when the store is opened
//! next, or when somebody else begins a session of that id.

use std::sync::{Arc, Weak};

use banyan_core::decide::{Ctx, Decision};
use banyan_core::state::SessionState;
use banyan_log::{BlobHash, Removal};
use banyan_model::{Error, SessionId};
use tokio::sync::oneshot;

use crate::access::Access;
use crate::block_on;
use crate::clock::now_ms;
use crate::commit::{End, Held, Part, PartDone, Telling};
use crate::store::Store;

/// A session that is being imported.
pub(crate) struct Partial {
    store: Weak<Store>,
    /// The right to change the session; not here while a part is being committed.
    pub(crate) held: Option<Held>,
    /// Content that the parts use. Nobody else keeps account of it before there is a session.
    pub(crate) pinned: Vec<BlobHash>,
}

impl Partial {
    pub(crate) fn new(store: &Arc<Store>, held: Held) -> Self {
        Self { store: Arc::downgrade(store), held: Some(held), pinned: Vec::new() }
    }

    /// Looks at what was put so far.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&SessionState) -> T) -> Option<T> {
        self.held.as_ref().map(|held| held.with_state(look))
    }

    /// Puts what is decided. The answer comes once it is safe.
    pub(crate) fn put<R>(
        self,
        store: &Arc<Store>,
        part: Part,
        decide: impl FnOnce(&SessionState, &mut Ctx<'_>) -> Result<Decision<R>, Error>,
    ) -> Result<(R, oneshot::Receiver<PartDone>), Error> {
        let Some(held) = &self.held else { return Err(Error::storage("the import has ended")) };
        // What cannot be written now is held until it can.
        let _ = store.log.write_out(held.id());
        let (Decision { records, response }, time_ms) = held.decide(store, decide)?;
        Ok((response, store.commit_part(self, records, time_ms, part)?))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        let (Some(held), Some(store)) = (self.held.take(), self.store.upgrade()) else { return };
        for hash in self.pinned.drain(..) {
            store.forget_content(&hash);
        }
        store.take_back(held);
    }
}

impl Store {
    /// Removes what an import put that has not ended.
    fn take_back(self: &Arc<Self>, held: Held) {
        let found = held.with_state(|state| {
            (state.is_importing() && !state.exists()).then(|| (state.session_id().clone(), state.born()))
        });
        let Some((session, born)) = found else { return self.let_go(held) };
        let removal = Removal { session, born, tombstone: Vec::new(), keep_for_forks: false, blobs: Vec::new() };
        // Nobody waits for it: whoever wants the session waits for the right to change it, which is given back after this.
        drop(self.begin_removal(held, removal, End { time_ms: now_ms(), telling: Telling::Nobody, token: None }));
    }

    /// Removes what imports left that a crash interrupted.
    pub(crate) fn take_back_all(self: &Arc<Self>, interrupted: &[SessionId]) {
        for id in interrupted {
            if self.log.has_lost_commits()
                && let Err(error) = self.log.copy_aside(id)
            {
                self.warn(&format!("session {id}: an import did not end, and stays: {error}"));
                continue;
            }
            // To hold it is enough.
            match block_on(self.hold_or_begin(Access::whole(), id)) {
                Ok(held) => self.let_go(held),
                Err(error) => self.warn(&format!("session {id}: an import did not end, and stays: {error}")),
            }
        }
    }
}
