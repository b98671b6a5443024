//! Changing the index. Nothing is seen of it before it is committed.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use banyan_model::{CommitNo, EntryId, Object, SessionId};
use tantivy::{IndexWriter, TantivyDocument, Term};

use crate::background::in_background;
use crate::document::{self, Document, SessionNo, SessionRecord};
use crate::error::SearchError;
use crate::files;
use crate::index::{Payload, Progress, no_merging, session_term};
use crate::merging;
use crate::schema::{Fields, VERSION};

/// How long merges that are under way are waited for, and how often they are looked at.
const MERGING: Duration = Duration::from_secs(30);
const BETWEEN: Duration = Duration::from_millis(50);

/// What came of writing segments anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expunged {
    /// Segments that were written anew.
    pub segments: u64,
    /// How many bytes they had.
    pub bytes: u64,
    /// Segments that could not be.
    pub left: u64,
}

/// The one who writes to an index.
pub struct Writer {
    pub(crate) writer: IndexWriter,
    pub(crate) fields: Fields,
    pub(crate) progress: Progress,
    pub(crate) root: Option<PathBuf>,
    pub(crate) owner: String,
}

impl Writer {
    /// How far the index has come, with what is not committed yet.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// A number for a session that has none.
    pub fn new_number(&mut self) -> SessionNo {
        self.progress.next += 1;
        SessionNo(self.progress.next - 1)
    }

    /// Adds an entry that is not there.
    pub fn add(&self, entry: &Document) -> Result<(), SearchError> {
        let fields = self.fields;
        let mut document = TantivyDocument::default();
        document.add_text(fields.text, &entry.text);
        for tool in &entry.tools {
            document.add_text(fields.tool, document::tool_term(tool));
        }
        document.add_bytes(fields.key, &document::key(entry.session, &entry.entry_id));
        document.add_u64(fields.session, entry.session.0);
        document.add_u64(fields.flags, entry.flags());
        document.add_i64(fields.time, entry.timestamp);
        document.add_u64(fields.place, entry.place);
        document.add_text(fields.session_id, &entry.session_id);
        document.add_text(fields.entry_id, &entry.entry_id);
        self.writer.add_document(document)?;
        Ok(())
    }

    /// Takes an entry out.
    pub fn remove(&self, session: SessionNo, entry: &EntryId) {
        self.writer.delete_term(Term::from_field_bytes(self.fields.key, &document::key(session, entry)));
    }

    /// Takes all entries of a session out.
    pub fn clear(&self, session: SessionNo) {
        self.writer.delete_term(Term::from_field_u64(self.fields.session, session.0));
    }

    /// Remembers something of a session, and what its metadata says.
    pub fn put_session(
        &self,
        id: &SessionId,
        record: &SessionRecord,
        metadata: Option<&Object>,
    ) -> Result<(), SearchError> {
        self.forget_session(id);
        let mut document = TantivyDocument::default();
        document.add_text(self.fields.session_id, session_term(id));
        document.add_u64(self.fields.number, record.number.0);
        for label in document::labels(metadata) {
            document.add_text(self.fields.label, label);
        }
        if let Some(base) = &record.base {
            document.add_text(self.fields.base, &base.session_id);
        }
        let text = serde_json::to_string(record).map_err(|error| SearchError::Damaged(error.to_string()))?;
        document.add_text(self.fields.record, text);
        self.writer.add_document(document)?;
        Ok(())
    }

    /// Forgets a session. Its entries are another matter.
    pub fn forget_session(&self, id: &SessionId) {
        self.writer.delete_term(Term::from_field_text(self.fields.session_id, &session_term(id)));
    }

    /// Makes everything so far one step: an index that is opened again is as before it, or as after it.
    pub fn commit(&mut self, position: CommitNo, complete: bool) -> Result<(), SearchError> {
        self.progress = Progress { position, complete, ..self.progress };
        let payload = Payload { version: VERSION, owner: self.owner.clone(), progress: self.progress };
        let payload = serde_json::to_string(&payload).map_err(|error| SearchError::Damaged(error.to_string()))?;
        // A commit starts new threads in place of those that wrote.
        in_background(|| {
            let mut prepared = self.writer.prepare_commit()?;
            prepared.set_payload(&payload);
            prepared.commit()?;
            Ok(())
        })
    }

    /// Writes every segment anew that has deleted documents, so that nothing of them is left once the readers are
    /// refreshed and [`remove_unused`](Self::remove_unused) was called.
    pub fn expunge(&mut self) -> Result<Expunged, SearchError> {
        let mut expunged = Expunged::default();
        let began = Instant::now();
        loop {
            let segments = self.writer.index().searchable_segment_metas()?;
            let with_deletes: Vec<_> = segments.iter().filter(|segment| segment.num_deleted_docs() > 0).collect();
            expunged.left = 0;
            for segment in &with_deletes {
                let bytes = self.root.as_ref().map_or(0, |root| merging::size_of(segment, root));
                match self.writer.merge(&[segment.id()]).wait() {
                    Ok(_) => (expunged.segments, expunged.bytes) = (expunged.segments + 1, expunged.bytes + bytes),
                    // It is being merged with others already, and comes out of that without what was deleted.
                    Err(_) => expunged.left += 1,
                }
            }
            if with_deletes.is_empty() || began.elapsed() > MERGING {
                return Ok(expunged);
            }
            std::thread::sleep(BETWEEN);
        }
    }

    /// Removes the files of segments that nobody reads any more.
    pub fn remove_unused(&self) -> Result<(), SearchError> {
        self.writer.garbage_collect_files().wait()?;
        Ok(())
    }

    /// Ends writing. What was not committed is gone; the files are vouched for.
    pub fn close(self) -> Result<(), SearchError> {
        let Self { writer, root, .. } = self;
        writer.set_merge_policy(no_merging());
        writer.wait_merging_threads()?;
        match root {
            Some(root) => files::seal(&root).map_err(SearchError::io("sealing", &root)),
            None => Ok(()),
        }
    }
}
