//! Committing a part of an import: what it puts belongs to nobody before the last one.

use std::sync::Arc;

use banyan_core::record::Record;
use banyan_log::{Answer, Commit, Committed, LogError, SessionLog};
use banyan_model::Error;
use tokio::sync::oneshot;

use super::{Change, ChangeKind, Held, Prepared, finish};
use crate::partial::Partial;
use crate::store::Store;

/// Which part of an import it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// More come, and nobody sees it before the last.
    Another,
    /// The session begins.
    Last,
}

/// What became of a part.
pub(crate) struct PartDone {
    pub(crate) outcome: Result<(), LogError>,
    /// The right to go on. After the last part it is spent.
    pub(crate) partial: Partial,
    _spent: (Prepared, Option<Committed>),
}

impl Store {
    /// Commits a part of an import; with the last one the session begins. What became of it is told with the right to go on.
    pub(crate) fn commit_part(
        self: &Arc<Self>,
        mut partial: Partial,
        records: Vec<Record>,
        time_ms: i64,
        part: Part,
    ) -> Result<oneshot::Receiver<PartDone>, Error> {
        let Some(held) = partial.held.take() else { return Err(Error::storage("the import has ended")) };
        let access = held.access.clone();
        let kind = ChangeKind::Import(std::mem::take(&mut partial.pinned));
        let (write, mut prepared) = match self.prepare(Change { held, records, time_ms, before: None, kind }) {
            Ok(prepared) => prepared,
            Err((error, held)) => {
                partial.held = Some(held);
                return Err(error);
            }
        };
        let (answer, answered) = oneshot::channel();
        let store = Arc::downgrade(self);
        let done = Box::new(move |outcome: Result<Committed, LogError>| {
            match (&outcome, store.upgrade()) {
                (Ok(_), _) if part == Part::Last => {
                    finish(&store, std::slice::from_mut(&mut prepared), &outcome, None)
                }
                (Ok(committed), Some(store)) => {
                    committed.writes.iter().for_each(|written| store.applied(&prepared, committed, written));
                    store.search.hear(committed.commit);
                }
                _ => {}
            }
            let session = Arc::clone(&prepared.session);
            partial.held = prepared.guard.take().map(|guard| Held { session, guard, access });
            partial.pinned = std::mem::take(&mut prepared.blobs);
            let (outcome, committed) = match outcome {
                Ok(committed) => (Ok(()), Some(committed)),
                Err(error) => (Err(error), None),
            };
            let done = PartDone { outcome, partial, _spent: (prepared, committed) };
            Box::new(move || drop(answer.send(done))) as Answer
        });
        self.log.append(Commit { writes: vec![write], removal: None, done });
        Ok(answered)
    }
}
