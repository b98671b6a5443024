//! One page of the list of sessions.

use std::cmp::Ordering;

use banyan_model::{ListOrder, Object, SessionId, SessionMeta, SessionStatus};
use rusqlite::Connection;

use crate::error::IndexError;
use crate::overlay::{Layers, View};
use crate::row::Row;
use crate::tags;
use crate::walk::Walk;

/// Which sessions are wanted.
#[derive(Clone, Copy, Debug)]
pub struct ListQuery<'a> {
    /// In which order. Sessions of the same time are ordered by id, in the same direction.
    pub order: ListOrder,
    /// Only what comes after this time and id, which need not be a session's.
    pub after: Option<(i64, &'a SessionId)>,
    /// Only sessions of this status.
    pub status: Option<SessionStatus>,
    /// Only sessions whose metadata has each of these keys with an equal value.
    pub metadata: Option<&'a Object>,
    /// How many at most.
    pub limit: usize,
}

/// The wanted sessions, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct ListPage {
    /// At most as many as asked for.
    pub sessions: Vec<SessionMeta>,
    /// Whether more come after the last of them.
    pub more: bool,
}

/// The time that an order goes by.
pub fn sort_key(order: ListOrder, meta: &SessionMeta) -> i64 {
    match order {
        ListOrder::CreatedAsc | ListOrder::CreatedDesc => meta.created_at,
        ListOrder::UpdatedDesc => meta.updated_at,
    }
}

impl ListQuery<'_> {
    /// The page, from what the database holds and what is not yet in it.
    pub(crate) fn page(&self, conn: &Connection, layers: &Layers) -> Result<ListPage, IndexError> {
        let most = self.limit.saturating_add(1);
        let noted = self.noted(layers);
        let mut noted = noted.into_iter().filter(|row| self.wants(&row.meta, row.known_metadata())).peekable();
        let mut sessions: Vec<SessionMeta> = Vec::with_capacity(most.min(1024));
        let mut walk = Walk::choose(self, conn)?;
        let mut stored = walk.sessions(self, conn, layers)?;
        while sessions.len() < most
            && let Some(meta) = stored.next()?
        {
            while let Some(row) = noted.next_if(|row| self.compare(&row.meta, &meta) == Ordering::Less) {
                sessions.push(row.meta.as_ref().clone());
            }
            sessions.push(meta);
        }
        sessions.extend(noted.take(most).map(|row| row.meta.as_ref().clone()));
        let more = sessions.len() > self.limit;
        sessions.truncate(self.limit);
        Ok(ListPage { sessions, more })
    }

    /// The noted sessions, in order. The caller filters as far as the page goes; order comes first because it is cheap.
    fn noted<'l>(&self, layers: &'l Layers) -> Vec<&'l Row> {
        let mut rows: Vec<(i64, &Row)> = layers
            .sessions()
            .filter_map(|session_id| match layers.view(session_id.as_str()) {
                View::Shown(row) => Some((sort_key(self.order, &row.meta), row)),
                _ => None,
            })
            .collect();
        rows.sort_unstable_by(|(a, row_a), (b, row_b)| {
            let ids = || row_a.meta.session_id.cmp(&row_b.meta.session_id);
            self.directed(a.cmp(b).then_with(ids))
        });
        rows.into_iter().map(|(_, row)| row).collect()
    }

    /// Whether a session belongs on this page or a later one.
    pub(crate) fn wants(&self, meta: &SessionMeta, known_metadata: Option<&Object>) -> bool {
        let key = (sort_key(self.order, meta), &meta.session_id);
        let after = self.after.is_none_or(|after| self.directed(after.cmp(&key)) == Ordering::Less);
        after && self.status.is_none_or(|status| meta.status == status) && self.wants_metadata(known_metadata)
    }

    fn wants_metadata(&self, stored: Option<&Object>) -> bool {
        self.metadata.is_none_or(|wanted| tags::matches(wanted, stored))
    }

    fn compare(&self, a: &SessionMeta, b: &SessionMeta) -> Ordering {
        let a = (sort_key(self.order, a), &a.session_id);
        let b = (sort_key(self.order, b), &b.session_id);
        self.directed(a.cmp(&b))
    }

    fn directed(&self, ascending: Ordering) -> Ordering {
        match self.order {
            ListOrder::CreatedAsc => ascending,
            ListOrder::CreatedDesc | ListOrder::UpdatedDesc => ascending.reverse(),
        }
    }
}
