//! Forks cost the index what they add: what they inherit is found in their base, while it can be.
//!
//! Such a fork is called light. It is light while its base is there, is found by the same metadata, has the fork point on
//! its active path, and says everything as it was when it was forked; and while all of that is on the fork's own active
//! path, unchanged. Whatever ends this makes the fork whole: all that it shows is indexed once more, as its own.

use std::collections::HashSet;
use std::sync::Arc;

use banyan_model::SessionId;
use banyan_search::Base;

use super::batch::skip_unreadable;
use super::indexer::{Indexer, Trouble};
use super::outline::{Outline, View};
use super::sweep::storage;
use crate::access::Access;
use crate::store::Store;

/// So many sessions are asked for what one shows, at most, besides itself. The next fork in the line is whole.
const MOST_LINKS: u64 = 64;
/// A line of forks that is longer than this is taken to be damaged.
const MOST_BASES: usize = 100_000;

impl Indexer {
    /// Where the index finds what a session inherits; `None` when it must be indexed with the session.
    pub(super) fn base_of(&mut self, store: &Store, outline: &Outline) -> Result<Option<Base>, Trouble> {
        let Some(heritage) = &outline.heritage else { return Ok(None) };
        let (id, born) = (&heritage.base.session_id, heritage.base.born);
        let Some(record) = self.record(id)? else { return Ok(None) };
        let links = record.base.as_ref().map_or(0, |base| base.links) + 1;
        if record.born != born.to_string() || record.labels != outline.labels || links > MOST_LINKS {
            return Ok(None);
        }
        let upto = store.look(Access::whole(), id, |state| {
            if state.born() == born { heritage.found_in(state, &record) } else { None }
        })?;
        Ok(upto.flatten().map(|upto| Base { session_id: id.clone(), born: record.born, upto, links }))
    }

    /// The sessions from which a fork has its beginning and that the index will come to later, nearest first.
    pub(super) fn bases_to_come(&mut self, store: &Store, id: &SessionId) -> Result<Vec<SessionId>, Trouble> {
        let mut bases = Vec::new();
        let mut row = store.catalogue.get(id).map_err(storage)?;
        while let Some(base) = row.and_then(|row| row.file.base.clone()) {
            row = store.catalogue.get(&base.session_id).map_err(storage)?.filter(|row| row.file.key == base);
            let Some(found) = &row else { break };
            let record = self.record(&base.session_id)?.filter(|record| record.born == base.born);
            // What is newer than a complete index is told by the journal.
            if record.is_some_and(|record| self.complete || record.commit >= found.commit)
                || bases.len() > MOST_BASES
            {
                break;
            }
            bases.push(base.session_id);
        }
        Ok(bases)
    }

    /// Looks at the light forks of a session of which the first entries are as they were, and nothing is known of the
    /// others. Forks that do not find all they inherit any more are indexed anew, and so on with their forks.
    pub(super) fn look_at_forks(&mut self, store: &Arc<Store>, id: &SessionId, kept: u64) -> Result<(), Trouble> {
        let mut forks = self.light_forks(id, kept)?;
        while let Some(fork) = forks.pop() {
            self.let_others_go_first();
            if self.search.stopped() {
                return Err(Trouble::Stopped);
            }
            let outcome = match self.look_at_fork(store, &fork) {
                Ok(Look::Same) => continue,
                Ok(Look::Anew) => Ok(()),
                Err(trouble) => Err(trouble),
            };
            if outcome.is_err() {
                self.forget(&fork)?;
            }
            skip_unreadable(store, &fork, outcome)?;
            forks.extend(self.light_forks(&fork, 0)?);
        }
        Ok(())
    }

    fn look_at_fork(&mut self, store: &Arc<Store>, fork: &SessionId) -> Result<Look, Trouble> {
        let base = match View::of(store, fork)?.look(store, Outline::of)? {
            Some(outline) => self.base_of(store, &outline)?,
            None => None,
        };
        if base.is_some() && self.record(fork)?.is_some_and(|record| record.base == base) {
            return Ok(Look::Same);
        }
        self.index_alone(store, fork)?;
        Ok(Look::Anew)
    }

    /// The light forks of a session that have more of it than its first entries.
    fn light_forks(&mut self, id: &SessionId, kept: u64) -> Result<Vec<SessionId>, Trouble> {
        let mut forks: HashSet<SessionId> = self.index.forks_of(id)?.into_iter().collect();
        forks.extend(self.new_forks.get(id).into_iter().flatten().cloned());
        let mut light = Vec::new();
        for fork in forks {
            let base = self.record(&fork)?.and_then(|record| record.base);
            if base.is_some_and(|base| base.session_id == *id && base.upto >= kept) {
                light.push(fork);
            }
        }
        light.sort_unstable();
        Ok(light)
    }
}

/// Whether a fork is in the index as it was.
enum Look {
    Same,
    Anew,
}
