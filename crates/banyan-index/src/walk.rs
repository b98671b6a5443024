//! A walk over one order of the database, along the label that leads past the fewest sessions.

use banyan_model::{ListOrder, SessionMeta};
use rusqlite::types::Value as SqlValue;
use rusqlite::{CachedStatement, Connection, params, params_from_iter};

use crate::decode;
use crate::error::IndexError;
use crate::list::ListQuery;
use crate::overlay::{Layers, View};
use crate::tags::{self, Pair, STATUSES, WIDE, status_bit, status_number, status_tag};

/// A walk that meets every wanted session once, in order, and few others.
pub(crate) struct Walk<'c> {
    statement: CachedStatement<'c>,
    bound: Vec<SqlValue>,
}

impl<'c> Walk<'c> {
    /// Chooses the rarest label that all wanted sessions have.
    pub(crate) fn choose(query: &ListQuery<'_>, conn: &'c Connection) -> Result<Self, IndexError> {
        let metadata = query.metadata.into_iter().flatten();
        let pairs: Vec<Pair> = metadata.map(|(key, value)| tags::pair(key, value)).collect();
        let status = query.status.map(status_number);
        let wanted: Vec<&[u8]> =
            status.map(status_tag).into_iter().chain(pairs.iter().map(Pair::as_slice)).collect();
        let (table, direction, beyond) = match query.order {
            ListOrder::CreatedAsc => ("by_created", "ASC", ">"),
            ListOrder::CreatedDesc => ("by_created", "DESC", "<"),
            ListOrder::UpdatedDesc => ("by_updated", "DESC", "<"),
        };
        let along = match rarest(conn, table, &wanted)? {
            // Every session has one of the statuses.
            None => STATUSES.map(status_tag).to_vec(),
            Some(0) if status.is_some() => vec![wanted[0]],
            // A wide session stands under its status, but under no pair.
            Some(rarest) => vec![wanted[rarest], WIDE],
        };
        let mut bound = Vec::with_capacity(7);
        let mut and = String::new();
        if let Some((key, id)) = query.after {
            bound.extend([SqlValue::from(key), SqlValue::from(id.as_str().to_owned())]);
            and = format!(" AND (at, id) {beyond} (?1, ?2)");
        }
        if wanted.len() > 1 {
            bound.push(SqlValue::from(tags::signature(&pairs) | status.map_or(0, status_bit)));
            and = format!("{and} AND signature & ?{place} = ?{place}", place = bound.len());
        }
        // Each arm is one stretch of the order; the database merges them as it goes.
        let mut arms = Vec::with_capacity(along.len());
        for tag in along {
            bound.push(SqlValue::from(tag.to_vec()));
            arms.push(format!("SELECT at, id, num FROM {table} WHERE tag = ?{}{and}", bound.len()));
        }
        let sql = format!("{} ORDER BY at {direction}, id {direction}", arms.join(" UNION ALL "));
        Ok(Self { statement: conn.prepare_cached(&sql)?, bound })
    }

    /// Starts.
    pub(crate) fn sessions<'a>(
        &'a mut self,
        query: &'a ListQuery<'a>,
        conn: &'a Connection,
        layers: &'a Layers,
    ) -> Result<Sessions<'a>, IndexError> {
        let entries = self.statement.query(params_from_iter(&self.bound))?;
        Ok(Sessions { entries, load: conn.prepare_cached(LOAD)?, query, layers })
    }
}

/// A label with fewer sessions than this is rare, less rare, rather common; the rest are common.
const STEPS: [i64; 3] = [64, 512, 4096];

/// How many labels are looked at.
const COMPARED: usize = 8;

/// Which label few sessions have, by steps; the first, when all are common.
fn rarest(conn: &Connection, table: &str, tags: &[&[u8]]) -> Result<Option<usize>, IndexError> {
    if tags.len() < 2 {
        return Ok(tags.first().map(|_| 0));
    }
    let sql = format!("SELECT 1 FROM {table} WHERE tag = ?1 LIMIT 1 OFFSET ?2");
    let mut statement = conn.prepare_cached(&sql)?;
    for step in STEPS {
        for (i, tag) in tags.iter().enumerate().take(COMPARED) {
            if !statement.exists(params![tag, step - 1])? {
                return Ok(Some(i));
            }
        }
    }
    Ok(Some(0))
}

/// The columns of [`decode::meta`], and then the incarnation.
const LOAD: &str = "SELECT id, title, description, status, status_reason, message_count, forked_from, created_at, \
                    updated_at, metadata, born FROM session WHERE num = ?1";

/// The wanted sessions among those that a walk meets, without those that changed since.
pub(crate) struct Sessions<'a> {
    entries: rusqlite::Rows<'a>,
    load: CachedStatement<'a>,
    query: &'a ListQuery<'a>,
    layers: &'a Layers,
}

impl Sessions<'_> {
    /// The next one.
    pub(crate) fn next(&mut self) -> Result<Option<SessionMeta>, IndexError> {
        while let Some(entry) = self.entries.next()? {
            let gone = match self.layers.view(entry.get_ref(1)?.as_str()?) {
                View::Unchanged => Vec::new(),
                View::GoneIfBorn(born) => born,
                View::Shown(_) | View::Gone => continue,
            };
            let num: i64 = entry.get(2)?;
            let mut rows = self.load.query([num])?;
            let Some(row) = rows.next()? else {
                return Err(IndexError::damaged(format!("session number {num} has no row")));
            };
            if !gone.is_empty() && gone.contains(&row.get_ref(10)?.as_str()?) {
                continue;
            }
            let meta = decode::meta(row)?;
            // Under the labels of a filter there is no session whose metadata is in doubt.
            if self.query.wants(&meta, meta.metadata.as_ref()) {
                return Ok(Some(meta));
            }
        }
        Ok(None)
    }
}
