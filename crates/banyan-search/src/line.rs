//! Where is looked: everywhere, in some sessions, or in one and those from which it has the beginning of its path.

use std::collections::HashMap;

use banyan_model::SessionId;
use tantivy::Searcher;

use crate::document::is_active;
use crate::error::SearchError;
use crate::index::SearchIndex;
use crate::rank::Numbers;

/// Where is looked.
pub(crate) enum Where {
    /// In every session.
    Everywhere,
    /// In the sessions with these numbers.
    In(Numbers),
    /// In one session.
    Line(Line),
}

/// A session and, when it is a fork of which the inherited entries are found elsewhere, the sessions where they are.
#[derive(Default)]
pub(crate) struct Line {
    links: Vec<Link>,
    /// Where in `links` the session with a number is.
    by_number: HashMap<u64, usize>,
}

struct Link {
    session_id: SessionId,
    number: u64,
    /// How far its active path is what the first one has inherited. The first one has all of its own.
    upto: Option<u64>,
}

impl Where {
    /// Whether an entry of a session is wanted, as far as its session and its place say.
    pub(crate) fn has(&self, session: u64, flags: u64, place: impl FnOnce() -> u64) -> bool {
        match self {
            Self::Everywhere => true,
            Self::In(numbers) => numbers.has(session),
            Self::Line(line) => match line.by_number.get(&session).and_then(|at| line.links.get(*at)) {
                Some(Link { upto: Some(upto), .. }) => is_active(flags) && place() <= *upto,
                Some(Link { upto: None, .. }) => true,
                None => false,
            },
        }
    }

    /// Which session of the line a number stands for.
    pub(crate) fn link_of(&self, session: u64) -> usize {
        match self {
            Self::Line(line) => line.by_number.get(&session).copied().unwrap_or(0),
            Self::Everywhere | Self::In(_) => 0,
        }
    }
}

impl Line {
    /// The number of the session that was asked about.
    pub(crate) fn own(&self) -> Option<u64> {
        self.links.first().map(|link| link.number)
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.links.iter().map(|link| link.number)
    }

    pub(crate) fn into_ids(self) -> Vec<SessionId> {
        self.links.into_iter().map(|link| link.session_id).collect()
    }
}

impl SearchIndex {
    /// Where the entries of a session are found; empty when there is no such session.
    pub(crate) fn line(&self, searcher: &Searcher, id: &SessionId) -> Result<Line, SearchError> {
        let mut line = Line::default();
        let mut next = self.session_in(searcher, id)?.map(|record| (id.clone(), None, record));
        while let Some((session_id, upto, record)) = next.take() {
            let number = record.number.0;
            // Only an index that is damaged could go in a circle.
            if line.by_number.insert(number, line.links.len()).is_some() {
                break;
            }
            line.links.push(Link { session_id, number, upto });
            let Some(base) = record.base else { break };
            // A place is the same in a fork and in its base, and no more is inherited through a fork than it has itself.
            let upto = upto.map_or(base.upto, |upto| base.upto.min(upto));
            let found = self.session_in(searcher, &base.session_id)?.filter(|record| record.born == base.born);
            next = found.map(|record| (base.session_id, Some(upto), record));
        }
        Ok(line)
    }
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
