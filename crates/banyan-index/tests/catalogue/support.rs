//! Short ways to say which sessions there are.

use std::path::Path;
use std::sync::Arc;

use banyan_index::{
    Catalogue, FileKey, IndexError, ListQuery, MetadataTrust, Opened, RebuildReason, Row, SessionFile, Standing,
};
use banyan_model::{CommitNo, ListOrder, Object, SessionId, SessionMeta, SessionStatus};
use serde_json::Value;

/// The directory that the catalogues of these tests are of.
pub(crate) const OWNER: &str = "0123456789abcdef";

/// A listed session of its first incarnation, with everything else plain.
pub(crate) fn session(id: &str) -> Row {
    file(id, "b1")
}

/// A listed session of this incarnation.
pub(crate) fn file(id: &str, born: &str) -> Row {
    let meta = SessionMeta {
        session_id: SessionId::from(id),
        title: format!("The title of {id}"),
        description: String::new(),
        status: SessionStatus::Idle,
        status_reason: None,
        metadata: None,
        forked_from: None,
        message_count: 0,
        created_at: 0,
        updated_at: 0,
    };
    Row {
        trust: MetadataTrust::Known,
        file: Arc::new(SessionFile { key: key(id, born), stem: id.to_owned(), base: None }),
        standing: Standing::Listed,
        meta: Arc::new(meta),
        length: 100,
        modified: 200,
        commit: CommitNo(1),
        blobs: Vec::new(),
    }
}

pub(crate) fn key(id: &str, born: &str) -> FileKey {
    FileKey { session_id: SessionId::from(id), born: born.to_owned() }
}

/// The same row with another metadata record.
pub(crate) fn with_meta(mut row: Row, change: impl FnOnce(&mut SessionMeta)) -> Row {
    change(Arc::make_mut(&mut row.meta));
    row
}

/// The same row as a fork.
pub(crate) fn with_base(mut row: Row, base: FileKey) -> Row {
    let meta = Arc::make_mut(&mut row.meta);
    meta.forked_from = Some(base.session_id.clone());
    Arc::make_mut(&mut row.file).base = Some(base);
    row
}

/// The same row, retained under the name that its file then has.
pub(crate) fn retained(mut row: Row) -> Row {
    let file = Arc::make_mut(&mut row.file);
    file.stem = format!("{}.{}", file.stem, file.key.born);
    row.standing = Standing::Retained;
    row
}

pub(crate) fn with_blobs(mut row: Row, blobs: &[&str]) -> Row {
    row.blobs = blobs.iter().map(|text| blob(text)).collect();
    row
}

pub(crate) fn blob(text: &str) -> blake3::Hash {
    blake3::hash(text.as_bytes())
}

pub(crate) fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}

/// Every listed session, most recently changed first.
pub(crate) const ALL: ListQuery<'static> =
    ListQuery { order: ListOrder::UpdatedDesc, after: None, status: None, metadata: None, limit: 1000 };

/// The ids that a query answers.
pub(crate) fn ids(catalogue: &Catalogue, query: &ListQuery<'_>) -> Vec<String> {
    let page = catalogue.list(query).unwrap();
    page.sessions.iter().map(|meta| meta.session_id.to_string()).collect()
}

/// Opens a catalogue that must be ready.
pub(crate) fn ready(path: &Path) -> Catalogue {
    match Catalogue::open(path, OWNER).unwrap() {
        Opened::Ready(catalogue) => catalogue,
        Opened::Rebuild(_, reason) => panic!("not ready: {reason}"),
    }
}

/// Opens a catalogue that must be rebuilt.
pub(crate) fn unready(path: &Path) -> (Catalogue, RebuildReason) {
    match Catalogue::open(path, OWNER).unwrap() {
        Opened::Ready(_) => panic!("ready"),
        Opened::Rebuild(catalogue, reason) => (catalogue, reason),
    }
}

/// Rebuilds from these rows.
pub(crate) fn rebuild(catalogue: &Catalogue, rows: &[Row]) {
    catalogue
        .rebuild::<IndexError>(|sink| {
            rows.iter().try_for_each(|row| sink.put(row))?;
            Ok(CommitNo(7))
        })
        .unwrap();
}
