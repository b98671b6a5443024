//! Looking at every session: for an index that is new, or that was left behind.

use std::collections::HashSet;
use std::sync::Arc;

use banyan_index::{IndexError, Standing};
use banyan_model::{CommitNo, Error, SessionId};

use super::indexer::{EVERY, Indexer, Next, Trouble};
use crate::store::Store;

impl Indexer {
    /// Puts every session into the index that is not there, or is newer. What is committed meanwhile is followed as
    /// always. When it is interrupted it goes on later, where it was.
    pub(super) fn sweep(&mut self, store: &Arc<Store>) -> Result<Next, Trouble> {
        let mut sessions: Vec<(SessionId, String, CommitNo)> = Vec::new();
        let listed = store.catalogue.files(|seen| {
            if seen.standing == Standing::Listed {
                sessions.push((seen.key.session_id, seen.key.born, seen.commit));
            }
        });
        listed.map_err(storage)?;
        if sessions.len() > 1 {
            store.progress.begin("Making the search index", sessions.len() as u64);
        }
        for (done, (id, born, commit)) in sessions.iter().enumerate() {
            if self.search.stopped() {
                store.progress.end();
                // What is done so far is kept.
                self.commit()?;
                return Ok(Next::Stop);
            }
            let record = self.record(id)?;
            if record.is_none_or(|record| record.born != *born || record.commit < *commit) {
                self.index_anew_or_skip(store, id)?;
            }
            // Without anything new to be found, larger steps make for less to merge.
            let due = if self.position < self.search.heard() { self.due() } else { EVERY * 16 };
            if self.committed_at.elapsed() > due {
                self.follow_meanwhile(store)?;
                store.progress.step(done as u64 + 1);
            }
        }
        self.forget_missing(store, sessions.into_iter().map(|(id, ..)| id).collect())?;
        store.progress.end();
        self.complete = true;
        self.dirty = true;
        self.commit()?;
        store.settle_search_marks();
        Ok(Next::GoOn)
    }

    fn follow_meanwhile(&mut self, store: &Arc<Store>) -> Result<(), Trouble> {
        while self.position < self.search.heard() {
            if !self.batch(store)? {
                // Sessions that are not swept yet are no loss; the others are met again.
                self.position = self.search.heard();
            }
        }
        self.dirty = true;
        self.commit()
    }

    /// Forgets sessions that are not there any more.
    fn forget_missing(&mut self, store: &Arc<Store>, listed: HashSet<SessionId>) -> Result<(), Trouble> {
        let mut missing = Vec::new();
        self.index.sessions(|id, _| {
            if !listed.contains(&id) {
                missing.push(id);
            }
        })?;
        for id in missing {
            if store.catalogue.get(&id).map_err(storage)?.is_none() {
                self.forget(&id)?;
                self.look_at_forks(store, &id, 0)?;
            }
        }
        Ok(())
    }
}

pub(super) fn storage(error: IndexError) -> Trouble {
    Trouble::Session(Error::storage(error.to_string()))
}
