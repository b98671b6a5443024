//! How one session is listed, seen through a filter.

use banyan_model::{Object, SessionId};
use rusqlite::params;

use crate::catalogue::Catalogue;
use crate::decode;
use crate::error::IndexError;
use crate::overlay::View;
use crate::store::lock;
use crate::tags::{self, Pair};

/// How a session is listed, seen through a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// Its metadata has each wanted key with an equal value.
    Matching,
    /// It is listed, and the filter leaves it out.
    Other,
    /// No session of this id is listed.
    Absent,
}

/// What is not yet in the database says of a session.
enum Noted {
    Is(Listing),
    /// The row in the database stands, unless it is of one of these incarnations.
    Stands(Vec<String>),
}

impl Catalogue {
    /// How a session is listed, seen through a filter. Whoever asks cannot tell from the time it takes whether a session
    /// that does not match is there: both are looked for in the same places, and a title or metadata that does not
    /// match is not read.
    pub fn listing(&self, session_id: &SessionId, wanted: &Object) -> Result<Listing, IndexError> {
        let noted = self.noted(session_id, wanted);
        if let Noted::Is(Listing::Matching) = noted {
            return Ok(Listing::Matching);
        }
        let stored = self.stored(session_id, wanted)?;
        Ok(match (noted, stored) {
            (Noted::Is(listing), _) => listing,
            (Noted::Stands(gone), Some((born, _))) if gone.contains(&born) => Listing::Absent,
            (Noted::Stands(_), Some((_, true))) => Listing::Matching,
            (Noted::Stands(_), Some((_, false))) => Listing::Other,
            (Noted::Stands(_), None) => Listing::Absent,
        })
    }

    fn noted(&self, session_id: &SessionId, wanted: &Object) -> Noted {
        match lock(self.overlay()).view(session_id.as_str()) {
            View::Shown(row) if tags::matches(wanted, row.known_metadata()) => Noted::Is(Listing::Matching),
            View::Shown(_) => Noted::Is(Listing::Other),
            View::Gone => Noted::Is(Listing::Absent),
            View::GoneIfBorn(born) => Noted::Stands(born.into_iter().map(str::to_owned).collect()),
            View::Unchanged => Noted::Stands(Vec::new()),
        }
    }

    /// The incarnation in the database, and whether it matches.
    fn stored(&self, session_id: &SessionId, wanted: &Object) -> Result<Option<(String, bool)>, IndexError> {
        let pairs: Vec<Pair> = wanted.iter().map(|(key, value)| tags::pair(key, value)).collect();
        let signature = tags::signature(&pairs);
        let sql = "SELECT born, signature & ?2 = ?2, pairs, metadata FROM session WHERE id = ?1 AND hidden = 0";
        self.with_store(|store| {
            store.read(|conn| {
                let mut statement = conn.prepare_cached(sql)?;
                let mut rows = statement.query(params![session_id.as_str(), signature])?;
                let Some(row) = rows.next()? else { return Ok(None) };
                let born: String = row.get(0)?;
                let stored: &[Pair] = row.get_ref(2)?.as_blob()?.as_chunks().0;
                // A session with very many keys has no pairs, and its signature has every bit.
                let may_match =
                    row.get(1)? && (stored.is_empty() || pairs.iter().all(|pair| stored.contains(pair)));
                let matches = may_match && tags::matches(wanted, decode::metadata(row, 3)?.as_ref());
                Ok(Some((born, matches)))
            })
        })
    }
}
