//! Narrators of the sessions that a replay is about. A narrator knows title, metadata and status as they were; each is made of
//! the records before, so it is kept and used for the next record of its session.

use std::collections::HashMap;

use banyan_core::Born;
use banyan_core::event::{GrowthNarrator, Narrator};
use banyan_core::record;
use banyan_core::state::{Line, SessionState};
use banyan_model::{Error, Seq, SessionId};

use crate::store::Store;

/// See the module.
#[derive(Default)]
pub(crate) struct Narrators(HashMap<SessionId, Known>);

struct Known {
    born: Born,
    /// The record that it can tell next.
    next: Seq,
    narrator: Narrator,
}

/// What a narrator is made of, found while the state is locked and read afterwards.
pub(super) struct Seed {
    narrator: Narrator,
    session_id: SessionId,
    /// The lines that say title, description and metadata, unless the narrator knows them.
    metas: Vec<Line>,
}

/// Maximum number of sessions whose narrators are kept.
const MOST: usize = 32;

impl Narrators {
    /// The narrator for a record, if it told the one before.
    pub(super) fn take(&mut self, id: &SessionId, born: Born, seq: Seq) -> Option<Narrator> {
        let known = self.0.remove(id)?;
        (known.born == born && known.next == seq).then_some(known.narrator)
    }

    /// Keeps a narrator that told a record.
    pub(super) fn put(&mut self, id: &SessionId, born: Born, told: Seq, narrator: Narrator) {
        if self.0.len() >= MOST {
            self.0.clear();
        }
        self.0.insert(id.clone(), Known { born, next: told.next(), narrator });
    }

    /// Keeps the message of an entry for the session's next record.
    pub(super) fn keep_growing(&mut self, id: &SessionId, growth: GrowthNarrator) {
        if let Some(known) = self.0.get_mut(id).filter(|known| growth.ended_before(known.next)) {
            known.narrator.keep_growing(growth);
        }
    }
}

impl Seed {
    /// For the session as it was just before a record.
    pub(super) fn before(state: &SessionState, seq: Seq) -> Self {
        let (session_id, status) = (state.session_id().clone(), state.status_before(seq));
        if state.metas_before(Seq(u64::MAX)).nth(1).is_none() {
            return Self { narrator: Narrator::of(state).with_status(status), session_id, metas: Vec::new() };
        }
        let narrator = Narrator::new(session_id.clone()).with_status(status);
        Self { narrator, session_id, metas: state.metas_before(seq).collect() }
    }

    /// Whether making a narrator reads the session's file.
    pub(super) fn reads(&self) -> bool {
        !self.metas.is_empty()
    }
}

impl Store {
    /// Makes a narrator.
    pub(super) fn narrator_from(&self, seed: Seed) -> Result<Narrator, Error> {
        let Seed { mut narrator, session_id, metas } = seed;
        for Line { place, seq } in metas {
            let line = self.read_past(&session_id, place.offset, place.len as usize)?;
            if let Ok(stored) = record::parse_full(&line)
                && stored.envelope.is_none_or(|envelope| envelope.seq == seq)
            {
                narrator.learn(&stored.record);
            }
        }
        Ok(narrator)
    }
}
