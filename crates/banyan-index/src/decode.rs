//! A row of the `session` table as the types of this crate, and back.

use std::sync::Arc;

use banyan_model::{CommitNo, Object, SessionId, SessionMeta, SessionStatus};
use rusqlite::Row as SqlRow;
use rusqlite::types::ValueRef;

use crate::error::IndexError;
use crate::row::{FileKey, MetadataTrust, Row, SeenFile, SessionFile, Standing};
use crate::seal::{Placed, RowSum};

/// The columns of [`row`], in its order; those of [`meta`] come first.
pub(crate) const ROW: &str = "id, title, description, status, status_reason, message_count, forked_from, created_at, \
                              updated_at, metadata, born, hidden, coalesce(stem, id), base_id, base_born, length, \
                              modified, commit_no, signature";

/// The numbers of the file of incarnation `?1`, `?2`. Each half has its own index.
pub(crate) const FILE_NUMBERS: &str = "SELECT num FROM session WHERE id = ?1 AND born = ?2 AND hidden = 0 UNION ALL \
                                       SELECT num FROM session WHERE id = ?1 AND born = ?2 AND hidden = 1";

/// The columns of [`seen_file`], in its order.
pub(crate) const SEEN_FILE: &str = "coalesce(stem, id), id, born, hidden, length, modified, commit_no";

/// The columns that a row's checksum covers, in its order.
pub(crate) const SUMMED: &str = "id, born, hidden, status, created_at, updated_at, message_count, commit_no, length, \
                                 modified, stem, base_id, base_born, pairs, signature, title, description, \
                                 status_reason, forked_from, metadata";

/// The checksum that a row should have, from the columns [`SUMMED`], of which the first is the `first` one.
pub(crate) fn row_sum(row: &SqlRow<'_>, first: usize) -> Result<i64, IndexError> {
    let mut sum = RowSum::default();
    for column in first..first + 20 {
        match row.get_ref(column)? {
            ValueRef::Null => sum.bytes(None),
            ValueRef::Integer(number) => sum.number(number),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => sum.bytes(Some(bytes)),
            ValueRef::Real(_) => return Err(IndexError::damaged("a row has a number of another kind")),
        };
    }
    Ok(sum.get())
}

/// Where a row's session stands in the orders, from the same columns.
pub(crate) fn placed<'a>(row: &'a SqlRow<'_>, first: usize) -> Result<Placed<'a>, IndexError> {
    Ok(Placed {
        id: row.get_ref(first)?.as_str()?,
        hidden: row.get(first + 2)?,
        status: row.get(first + 3)?,
        created_at: row.get(first + 4)?,
        updated_at: row.get(first + 5)?,
        pairs: row.get_ref(first + 13)?.as_blob()?.as_chunks().0.to_vec(),
        signature: row.get(first + 14)?,
    })
}

/// Reads the metadata record from the first ten columns.
pub(crate) fn meta(row: &SqlRow<'_>) -> Result<SessionMeta, IndexError> {
    Ok(SessionMeta {
        session_id: text_id(row, 0)?,
        title: row.get(1)?,
        description: row.get(2)?,
        status: status(row.get(3)?)?,
        status_reason: row.get(4)?,
        message_count: row.get::<_, i64>(5)?.cast_unsigned(),
        forked_from: row.get::<_, Option<String>>(6)?.map(SessionId::from),
        created_at: row.get(7)?,
        updated_at: row.get(8)?,
        metadata: metadata(row, 9)?,
    })
}

/// Reads [`ROW`].
pub(crate) fn row(row: &SqlRow<'_>) -> Result<Row, IndexError> {
    let base = match (row.get::<_, Option<String>>(13)?, row.get::<_, Option<String>>(14)?) {
        (Some(id), Some(born)) => Some(FileKey { session_id: SessionId::from(id), born }),
        _ => None,
    };
    let key = FileKey { session_id: text_id(row, 0)?, born: row.get(10)? };
    let (standing, meta) = (standing(row.get(11)?), meta(row)?);
    let labelled = row.get::<_, i64>(18)? != 0 || meta.metadata.as_ref().is_none_or(Object::is_empty);
    // A listed session with metadata has labels, unless its metadata is in doubt.
    let in_doubt = standing == Standing::Listed && !labelled;
    Ok(Row {
        file: Arc::new(SessionFile { key, stem: row.get(12)?, base }),
        standing,
        meta: Arc::new(meta),
        trust: if in_doubt { MetadataTrust::InDoubt } else { MetadataTrust::Known },
        length: row.get::<_, i64>(15)?.cast_unsigned(),
        modified: row.get::<_, i64>(16)?.cast_unsigned(),
        commit: CommitNo(row.get::<_, i64>(17)?.cast_unsigned()),
        blobs: Vec::new(),
    })
}

/// Reads [`SEEN_FILE`].
pub(crate) fn seen_file(row: &SqlRow<'_>) -> Result<SeenFile, IndexError> {
    Ok(SeenFile {
        stem: row.get(0)?,
        key: FileKey { session_id: text_id(row, 1)?, born: row.get(2)? },
        standing: standing(row.get(3)?),
        length: row.get::<_, i64>(4)?.cast_unsigned(),
        modified: row.get::<_, i64>(5)?.cast_unsigned(),
        commit: CommitNo(row.get::<_, i64>(6)?.cast_unsigned()),
    })
}

/// Reads an incarnation from two neighbouring columns.
pub(crate) fn file_key(row: &SqlRow<'_>, column: usize) -> Result<FileKey, IndexError> {
    Ok(FileKey { session_id: text_id(row, column)?, born: row.get(column + 1)? })
}

/// Reads a session id.
pub(crate) fn text_id(row: &SqlRow<'_>, column: usize) -> Result<SessionId, IndexError> {
    Ok(SessionId::from(row.get::<_, String>(column)?))
}

/// Reads metadata.
pub(crate) fn metadata(row: &SqlRow<'_>, column: usize) -> Result<Option<Object>, IndexError> {
    let Some(text) = row.get_ref(column)?.as_str_or_null()? else {
        return Ok(None);
    };
    let object = serde_json::from_str(text)
        .map_err(|error| IndexError::damaged(format!("a session's metadata is no JSON object: {error}")))?;
    Ok(Some(object))
}

/// Reads a blob's hash.
pub(crate) fn hash(row: &SqlRow<'_>, column: usize) -> Result<blake3::Hash, IndexError> {
    let bytes: [u8; 32] = row.get(column)?;
    Ok(blake3::Hash::from_bytes(bytes))
}

/// The status of a number of [`crate::tags::status_number`].
pub(crate) fn status(number: i64) -> Result<SessionStatus, IndexError> {
    Ok(match number {
        0 => SessionStatus::Idle,
        1 => SessionStatus::Working,
        2 => SessionStatus::Done,
        3 => SessionStatus::Error,
        _ => {
            return Err(IndexError::damaged(format!("a session has the status number {number}")));
        }
    })
}

fn standing(hidden: i64) -> Standing {
    if hidden == 0 { Standing::Listed } else { Standing::Retained }
}
