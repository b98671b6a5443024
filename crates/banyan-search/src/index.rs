//! The index: opened or made anew, written by one, read by all.

use std::fs;
use std::path::{Path, PathBuf};

use banyan_model::{CommitNo, SessionId};
use serde::{Deserialize, Serialize};
use tantivy::collector::DocSetCollector;
use tantivy::directory::RamDirectory;
use tantivy::indexer::{LogMergePolicy, NoMergePolicy};
use tantivy::query::TermQuery;
use tantivy::schema::{IndexRecordOption, Value};
use tantivy::{Index, IndexReader, IndexSettings, IndexWriter, ReloadPolicy, Searcher, TantivyDocument, Term};

use crate::background::in_background;
use crate::document::SessionRecord;
use crate::error::SearchError;
use crate::files::{self, Files, create_private_dir};
use crate::merging::Merging;
use crate::room::Room;
use crate::schema::{Fields, VERSION, schema};
use crate::tokens::{WORDS, WordTokenizer};
use crate::writer::Writer;

/// A full-text index of entries.
pub struct SearchIndex {
    pub(crate) index: Index,
    pub(crate) reader: IndexReader,
    pub(crate) fields: Fields,
    root: Option<PathBuf>,
    room: Room,
    owner: String,
}

/// How far an index has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The last commit that was looked at.
    pub position: CommitNo,
    /// Whether everything up to there is in the index; otherwise sessions are missing that were written before.
    pub complete: bool,
    /// The number of the next session.
    pub next: u64,
}

/// What the index keeps beside its documents.
#[derive(Serialize, Deserialize)]
pub(crate) struct Payload {
    pub(crate) version: u32,
    /// What names the directory that the index is of.
    pub(crate) owner: String,
    #[serde(flatten)]
    pub(crate) progress: Progress,
}

/// An index, and whether it had to be made.
pub struct Opened {
    /// The index.
    pub index: SearchIndex,
    /// How far it has come; `None` when it is new.
    pub progress: Option<Progress>,
    /// Why the one that was there could not be used.
    pub replaced: Option<String>,
}

impl SearchIndex {
    /// Opens the index in a directory; `owner` names the data directory. One that is missing, foreign, another owner's, damaged
    /// or of another version is made anew, empty.
    pub fn open(root: &Path, owner: &str, room: &Room) -> Result<Opened, SearchError> {
        create_private_dir(root).map_err(SearchError::io("making", root))?;
        let replaced = match Self::open_existing(root, owner, room) {
            Ok(Some((index, progress))) => return Ok(Opened { index, progress: Some(progress), replaced: None }),
            Ok(None) => None,
            // It is as it was, and opened when there is room.
            Err(why) if room.was_refused() => return Err(SearchError::Full(why.to_string())),
            Err(why) => Some(why.to_string()),
        };
        fs::remove_dir_all(root).map_err(SearchError::io("clearing", root))?;
        create_private_dir(root).map_err(SearchError::io("making", root))?;
        let made = Index::create(Files::open(root, room)?, schema().0, IndexSettings::default())?;
        Ok(Opened { index: Self::on(made, Some(root.to_owned()), owner, room)?, progress: None, replaced })
    }

    /// An index in memory, which ends with the process.
    pub fn in_memory() -> Result<Self, SearchError> {
        let made = Index::create(RamDirectory::create(), schema().0, IndexSettings::default())?;
        Self::on(made, None, "", &Room::default())
    }

    fn open_existing(root: &Path, owner: &str, room: &Room) -> Result<Option<(Self, Progress)>, SearchError> {
        let files = Files::open(root, room)?;
        if !Index::exists(&files).map_err(tantivy::TantivyError::from)? {
            return Ok(None);
        }
        let sealed = files::is_sealed(root);
        let index = Index::open(files)?;
        if index.schema() != schema().0 {
            return Err(SearchError::Damaged("it was made for something else".to_owned()));
        }
        // Whoever made it ended before anything was in it, as a short command does.
        let Some(payload) = index.load_metas()?.payload else { return Ok(None) };
        let Ok(Payload { version: VERSION, owner: named, progress }) = serde_json::from_str(&payload) else {
            return Err(SearchError::Damaged("it is of another version".to_owned()));
        };
        if named != owner {
            return Err(SearchError::Damaged("it is another directory's".to_owned()));
        }
        if !sealed && let Some(file) = index.validate_checksum()?.iter().next() {
            return Err(SearchError::Damaged(format!("{} is not as it was written", file.display())));
        }
        Ok(Some((Self::on(index, Some(root.to_owned()), owner, room)?, progress)))
    }

    fn on(index: Index, root: Option<PathBuf>, owner: &str, room: &Room) -> Result<Self, SearchError> {
        index.tokenizers().register(WORDS, WordTokenizer);
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let (owner, room) = (owner.to_owned(), room.clone());
        Ok(Self { index, reader, fields: schema().1, root, owner, room })
    }

    /// The one who writes to the index. Its threads run behind all others, and share no lock with them.
    pub fn writer(&self, progress: Option<Progress>) -> Result<Writer, SearchError> {
        // One thread cuts words, another has read what comes next.
        let writer: IndexWriter = in_background(|| Ok(self.index.writer_with_num_threads(1, WRITER_BYTES)?))?;
        let mut usual = LogMergePolicy::default();
        usual.set_del_docs_ratio_before_merge(0.3);
        writer.set_merge_policy(Box::new(Merging { usual, room: self.room.clone(), root: self.root.clone() }));
        let progress = progress.unwrap_or(Progress { position: CommitNo(0), complete: false, next: 0 });
        Ok(Writer { writer, fields: self.fields, progress, root: self.root.clone(), owner: self.owner.clone() })
    }

    /// Removes files that a step left which could not be finished. Nobody writes to the index meanwhile.
    pub fn remove_leftovers(&self) -> Result<(), SearchError> {
        let writer: IndexWriter = in_background(|| Ok(self.index.writer_with_num_threads(1, WRITER_BYTES)?))?;
        writer.garbage_collect_files().wait()?;
        Ok(())
    }

    /// Makes what was committed visible to searches.
    pub fn refresh(&self) -> Result<(), SearchError> {
        Ok(self.reader.reload()?)
    }

    /// What the index remembers of a session.
    pub fn session(&self, id: &SessionId) -> Result<Option<SessionRecord>, SearchError> {
        self.session_in(&self.reader.searcher(), id)
    }

    /// The same as of one moment.
    pub(crate) fn session_in(
        &self,
        searcher: &Searcher,
        id: &SessionId,
    ) -> Result<Option<SessionRecord>, SearchError> {
        let term = Term::from_field_text(self.fields.session_id, &session_term(id));
        let query = TermQuery::new(term, IndexRecordOption::Basic);
        let found = searcher.search(&query, &DocSetCollector)?;
        let Some(at) = found.into_iter().next() else { return Ok(None) };
        record_in(&searcher.doc(at)?, self.fields).map(Some)
    }

    /// The forks of which the inherited entries are found in this session.
    pub fn forks_of(&self, id: &SessionId) -> Result<Vec<SessionId>, SearchError> {
        let searcher = self.reader.searcher();
        let query = TermQuery::new(Term::from_field_text(self.fields.base, id.as_str()), IndexRecordOption::Basic);
        let mut forks = Vec::new();
        for at in searcher.search(&query, &DocSetCollector)? {
            forks.push(id_in(&searcher.doc(at)?, self.fields));
        }
        Ok(forks)
    }

    /// Every session that the index knows.
    pub fn sessions(&self, mut visit: impl FnMut(SessionId, SessionRecord)) -> Result<(), SearchError> {
        let searcher: Searcher = self.reader.searcher();
        for (ord, segment) in searcher.segment_readers().iter().enumerate() {
            let numbers = segment.fast_fields().u64(crate::schema::NUMBER)?;
            for doc in segment.doc_ids_alive().filter(|doc| numbers.first(*doc).is_some()) {
                let stored: TantivyDocument = searcher.doc(tantivy::DocAddress::new(ord as u32, doc))?;
                visit(id_in(&stored, self.fields), record_in(&stored, self.fields)?);
            }
        }
        Ok(())
    }

    /// How many documents there are: one for each entry, and one for each session.
    pub fn len(&self) -> u64 {
        self.reader.searcher().num_docs()
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// About how much is held in memory before it is written.
const WRITER_BYTES: usize = 40 << 20;

/// Stands before the id in a session's own document, so that only that is found by it.
const OWN: char = '\u{1}';

pub(crate) fn session_term(id: &SessionId) -> String {
    format!("{OWN}{id}")
}

/// The id that a session's own document is about.
fn id_in(stored: &TantivyDocument, fields: Fields) -> SessionId {
    let id = stored.get_first(fields.session_id).and_then(|value| value.as_str()).unwrap_or_default();
    SessionId::from(id.strip_prefix(OWN).unwrap_or(id))
}

fn record_in(stored: &TantivyDocument, fields: Fields) -> Result<SessionRecord, SearchError> {
    let text = stored.get_first(fields.record).and_then(|value| value.as_str()).unwrap_or_default();
    serde_json::from_str(text).map_err(|error| SearchError::Damaged(error.to_string()))
}

/// Stops merging, so that whoever closes does not wait for it.
pub(crate) fn no_merging() -> Box<NoMergePolicy> {
    Box::new(NoMergePolicy)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn an_index_that_nothing_was_put_into_is_no_damage_and_one_of_another_version_is() {
        let dir = tempfile::tempdir().unwrap();
        let made = SearchIndex::open(dir.path(), "owner", &Room::default()).unwrap();
        assert_eq!((made.progress, made.replaced), (None, None));
        drop(made.index);
        let again = SearchIndex::open(dir.path(), "owner", &Room::default()).unwrap();
        assert_eq!((again.progress, again.replaced), (None, None));
        let mut writer: IndexWriter = again.index.index.writer_with_num_threads(1, WRITER_BYTES).unwrap();
        let mut commit = writer.prepare_commit().unwrap();
        commit.set_payload("{}");
        commit.commit().unwrap();
        drop((writer, again.index));
        assert!(
            SearchIndex::open(dir.path(), "owner", &Room::default())
                .unwrap()
                .replaced
                .is_some_and(|why| why.contains("another version"))
        );
    }

    #[test]
    fn a_step_for_which_there_is_no_room_leaves_the_index_as_it_was() {
        use std::sync::Arc;
        use std::sync::atomic::{AtomicBool, Ordering};
        let dir = tempfile::tempdir().unwrap();
        let has_room = Arc::new(AtomicBool::new(true));
        let asked = Arc::clone(&has_room);
        let room = Room::new(move |_| asked.load(Ordering::SeqCst));
        let record = |number| SessionRecord {
            number: crate::SessionNo(number),
            born: "b".to_owned(),
            leaf: None,
            path: 0,
            labels: crate::labels_of(None),
            commit: CommitNo(1),
            seen: CommitNo(1),
            base: None,
        };
        let opened = SearchIndex::open(dir.path(), "owner", &room).unwrap();
        let mut writer = opened.index.writer(None).unwrap();
        writer.put_session(&SessionId::from("first"), &record(0), None).unwrap();
        writer.commit(CommitNo(1), true).unwrap();
        has_room.store(false, Ordering::SeqCst);
        assert!(!room.take_refusal());
        let second = writer
            .put_session(&SessionId::from("second"), &record(1), None)
            .and_then(|()| writer.commit(CommitNo(2), true));
        assert!(second.is_err() && room.take_refusal());
        drop(writer);
        opened.index.remove_leftovers().unwrap();
        drop(opened);
        has_room.store(true, Ordering::SeqCst);
        let again = SearchIndex::open(dir.path(), "owner", &room).unwrap();
        assert_eq!(again.replaced, None);
        assert_eq!(again.progress.map(|progress| progress.position), Some(CommitNo(1)));
        assert!(again.index.session(&SessionId::from("first")).unwrap().is_some());
    }
}
