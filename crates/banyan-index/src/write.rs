//! Bringing noted changes into the tables.

use banyan_model::SessionId;
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::IndexError;
use crate::overlay::{Change, Changes};
use crate::row::{Row, Standing};
use crate::seal::RowSum;
use crate::tags::{ANY_STATUS, Labels, status_bit, status_number, status_tag};

/// Applies all changes within the transaction of the caller.
pub(crate) fn apply(tx: &Connection, mut changes: Vec<(SessionId, Changes)>) -> Result<(), IndexError> {
    // Neighbours in the tables are then written one after the other.
    changes.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    let mut listed = 0;
    for (session_id, changes) in &changes {
        for change in changes.oldest_first() {
            listed += match change {
                Change::Put(row) => put(tx, row)?,
                Change::Forget => forget(tx, session_id)?,
                Change::Release(born) => release(tx, session_id, born)?,
            };
        }
    }
    if listed != 0 {
        tx.prepare_cached("UPDATE mark SET value = value + ?1 WHERE name = 'sessions'")?.execute([listed])?;
    }
    Ok(())
}

/// Writes the row of a file, over the one with that number if it has one; answers the number. The orders are not touched.
pub(crate) fn store(tx: &Connection, num: Option<i64>, row: &Row, labels: &Labels) -> Result<i64, IndexError> {
    let (file, meta) = (&row.file, &row.meta);
    let id = file.key.session_id.as_str();
    let metadata = meta.metadata.as_ref().map(serde_json::to_string).transpose();
    let metadata = metadata.map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    let stem = Some(file.stem.as_str()).filter(|stem| *stem != id);
    let mut sum = RowSum::default();
    sum.text(Some(id)).text(Some(&file.key.born)).number(i64::from(row.standing == Standing::Retained));
    sum.number(status_number(meta.status)).number(meta.created_at).number(meta.updated_at);
    sum.number(meta.message_count.cast_signed()).number(row.commit.get().cast_signed());
    sum.number(row.length.cast_signed()).number(row.modified.cast_signed()).text(stem);
    sum.text(file.base.as_ref().map(|base| base.session_id.as_str()));
    sum.text(file.base.as_ref().map(|base| base.born.as_str()));
    sum.bytes(Some(labels.pairs.as_flattened())).number(labels.signature);
    sum.text(Some(&meta.title)).text(Some(&meta.description)).text(meta.status_reason.as_deref());
    sum.text(meta.forked_from.as_ref().map(SessionId::as_str)).text(metadata.as_deref());
    let stored = params![
        num,
        id,
        file.key.born,
        row.standing == Standing::Retained,
        status_number(meta.status),
        meta.created_at,
        meta.updated_at,
        meta.message_count.cast_signed(),
        row.commit.get().cast_signed(),
        row.length.cast_signed(),
        row.modified.cast_signed(),
        stem,
        file.base.as_ref().map(|base| base.session_id.as_str()),
        file.base.as_ref().map(|base| base.born.as_str()),
        labels.pairs.as_flattened(),
        labels.signature,
        meta.title,
        meta.description,
        meta.status_reason,
        meta.forked_from.as_ref().map(SessionId::as_str),
        metadata,
        sum.get(),
    ];
    tx.prepare_cached(
        "INSERT INTO session (num, id, born, hidden, status, created_at, updated_at, message_count, commit_no, length, \
         modified, stem, base_id, base_born, pairs, signature, title, description, status_reason, forked_from, metadata, sum) \
         VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22) \
         ON CONFLICT (num) DO UPDATE SET hidden = ?4, status = ?5, created_at = ?6, updated_at = ?7, \
         message_count = ?8, commit_no = ?9, length = ?10, modified = ?11, stem = ?12, base_id = ?13, \
         base_born = ?14, pairs = ?15, signature = ?16, title = ?17, description = ?18, status_reason = ?19, \
         forked_from = ?20, metadata = ?21, sum = ?22",
    )?
    .execute(stored)?;
    Ok(num.unwrap_or_else(|| tx.last_insert_rowid()))
}

/// The labels that a row is found under, apart from its status. A retained file is not found.
pub(crate) fn row_labels(row: &Row) -> Labels {
    match row.standing {
        Standing::Listed => Labels::of(row.known_metadata()),
        Standing::Retained => Labels::default(),
    }
}

/// Says that the file refers to these blobs.
pub(crate) fn use_blobs(tx: &Connection, num: i64, blobs: &[blake3::Hash]) -> Result<(), IndexError> {
    for hash in blobs {
        let hash = hash.as_bytes().as_slice();
        tx.prepare_cached("INSERT OR IGNORE INTO blob_use (hash, num) VALUES (?1, ?2)")?
            .execute(params![hash, num])?;
        tx.prepare_cached("DELETE FROM orphan WHERE hash = ?1")?.execute([hash])?;
    }
    Ok(())
}

/// What the tables have of a file, as far as they must be changed when it is.
struct Known {
    num: i64,
    born: String,
    /// None for a retained file.
    place: Option<Place>,
}

/// Where a listed session stands in the orders.
struct Place {
    status: i64,
    created_at: i64,
    updated_at: i64,
    labels: Labels,
}

/// A session's entry in an order.
#[derive(Clone, Copy, PartialEq)]
struct Entry<'a> {
    tag: &'a [u8],
    at: i64,
    signature: i64,
}

impl Place {
    fn of(row: &Row, labels: Labels) -> Option<Self> {
        let meta = &row.meta;
        match row.standing {
            Standing::Listed => Some(Self {
                status: status_number(meta.status),
                created_at: meta.created_at,
                updated_at: meta.updated_at,
                labels,
            }),
            Standing::Retained => None,
        }
    }

    /// Every change moves the entries in this order, so their signatures can tell the status as well.
    fn by_updated(&self) -> Vec<Entry<'_>> {
        self.entries(self.updated_at, status_bit(self.status))
    }

    /// A change of status leaves the entries under pairs as they are, so their signatures allow any.
    fn by_created(&self) -> Vec<Entry<'_>> {
        self.entries(self.created_at, ANY_STATUS)
    }

    fn entries(&self, at: i64, bits: i64) -> Vec<Entry<'_>> {
        let signature = self.labels.signature | bits;
        let tags = std::iter::once(status_tag(self.status)).chain(self.labels.tags());
        tags.map(|tag| Entry { tag, at, signature }).collect()
    }
}

/// Brings a row in; answers how many more sessions are listed.
fn put(tx: &Connection, row: &Row) -> Result<i64, IndexError> {
    let key = &row.file.key;
    let mut difference = 0;
    let known = match (row.standing, find_listed(tx, &key.session_id)?) {
        (_, Some(known)) if known.born == key.born => Some(known),
        (Standing::Listed, Some(other)) => {
            // An id has one listed incarnation. This one's end was not noted, but it ended.
            remove(tx, &other, &key.session_id)?;
            difference -= 1;
            find_hidden(tx, &key.session_id, &key.born)?
        }
        _ => find_hidden(tx, &key.session_id, &key.born)?,
    };
    let labels = row_labels(row);
    let num = store(tx, known.as_ref().map(|known| known.num), row, &labels)?;
    let before = known.and_then(|known| known.place);
    let after = Place::of(row, labels);
    difference += i64::from(after.is_some()) - i64::from(before.is_some());
    reorder(tx, &key.session_id, num, before.as_ref(), after.as_ref())?;
    use_blobs(tx, num, &row.blobs)?;
    Ok(difference)
}

/// Removes the listed file of a session, if there is one.
fn forget(tx: &Connection, session_id: &SessionId) -> Result<i64, IndexError> {
    let Some(known) = find_listed(tx, session_id)? else {
        return Ok(0);
    };
    remove(tx, &known, session_id)?;
    Ok(-1)
}

/// Removes a retained file, if it is there.
fn release(tx: &Connection, session_id: &SessionId, born: &str) -> Result<i64, IndexError> {
    if let Some(known) = find_hidden(tx, session_id, born)? {
        remove(tx, &known, session_id)?;
    }
    Ok(0)
}

fn remove(tx: &Connection, known: &Known, session_id: &SessionId) -> Result<(), IndexError> {
    reorder(tx, session_id, known.num, known.place.as_ref(), None)?;
    tx.prepare_cached("DELETE FROM session WHERE num = ?1")?.execute([known.num])?;
    tx.prepare_cached(
        "INSERT OR IGNORE INTO orphan (hash) SELECT hash FROM blob_use AS mine WHERE num = ?1 \
         AND NOT EXISTS (SELECT 1 FROM blob_use WHERE hash = mine.hash AND num <> ?1)",
    )?
    .execute([known.num])?;
    tx.prepare_cached("DELETE FROM blob_use WHERE num = ?1")?.execute([known.num])?;
    Ok(())
}

/// The statements that change one order.
struct Order {
    insert: &'static str,
    change: &'static str,
    delete: &'static str,
}

const BY_UPDATED: Order = Order {
    insert: "INSERT INTO by_updated (tag, at, id, num, signature) VALUES (?1, ?2, ?3, ?4, ?5)",
    change: "UPDATE by_updated SET at = ?4, signature = ?5 WHERE tag = ?1 AND at = ?2 AND id = ?3",
    delete: "DELETE FROM by_updated WHERE tag = ?1 AND at = ?2 AND id = ?3",
};

const BY_CREATED: Order = Order {
    insert: "INSERT INTO by_created (tag, at, id, num, signature) VALUES (?1, ?2, ?3, ?4, ?5)",
    change: "UPDATE by_created SET at = ?4, signature = ?5 WHERE tag = ?1 AND at = ?2 AND id = ?3",
    delete: "DELETE FROM by_created WHERE tag = ?1 AND at = ?2 AND id = ?3",
};

/// Moves a session in both orders from where it was to where it is now.
fn reorder(
    tx: &Connection,
    session_id: &SessionId,
    num: i64,
    before: Option<&Place>,
    after: Option<&Place>,
) -> Result<(), IndexError> {
    let both = |entries: fn(&Place) -> Vec<Entry<'_>>| {
        (before.map(entries).unwrap_or_default(), after.map(entries).unwrap_or_default())
    };
    let id = session_id.as_str();
    for (order, (old, new)) in [(BY_UPDATED, both(Place::by_updated)), (BY_CREATED, both(Place::by_created))] {
        for old in &old {
            let place = (old.tag, old.at, id);
            match new.iter().find(|new| new.tag == old.tag) {
                Some(new) if new == old => 0,
                Some(new) => tx.prepare_cached(order.change)?.execute(params![
                    place.0,
                    place.1,
                    place.2,
                    new.at,
                    new.signature
                ])?,
                None => tx.prepare_cached(order.delete)?.execute(place)?,
            };
        }
        for new in new.iter().filter(|new| old.iter().all(|old| old.tag != new.tag)) {
            tx.prepare_cached(order.insert)?.execute(params![new.tag, new.at, id, num, new.signature])?;
        }
    }
    Ok(())
}

fn find_listed(tx: &Connection, session_id: &SessionId) -> Result<Option<Known>, IndexError> {
    let sql = "SELECT num, born, status, created_at, updated_at, pairs, signature FROM session \
               WHERE id = ?1 AND hidden = 0";
    let found = tx.prepare_cached(sql)?.query_row([session_id.as_str()], |row| {
        let pairs = row.get_ref(5)?.as_blob()?.as_chunks().0.to_vec();
        let place = Place {
            status: row.get(2)?,
            created_at: row.get(3)?,
            updated_at: row.get(4)?,
            labels: Labels { pairs, signature: row.get(6)? },
        };
        Ok(Known { num: row.get(0)?, born: row.get(1)?, place: Some(place) })
    });
    Ok(found.optional()?)
}

fn find_hidden(tx: &Connection, session_id: &SessionId, born: &str) -> Result<Option<Known>, IndexError> {
    let sql = "SELECT num FROM session WHERE id = ?1 AND born = ?2 AND hidden = 1";
    let found = tx.prepare_cached(sql)?.query_row([session_id.as_str(), born], |row| {
        Ok(Known { num: row.get(0)?, born: born.to_owned(), place: None })
    });
    Ok(found.optional()?)
}
