//! Changing the index. Nothing is seen of it before it is committed.

use std::path::PathBuf;

use banyan_model::{CommitNo, EntryId, Object, SessionId};
use tantivy::{IndexWriter, TantivyDocument, Term};

use crate::background::in_background;
use crate::document::{self, Document, SessionNo, SessionRecord};
use crate::error::SearchError;
use crate::files;
use crate::index::{Payload, Progress, no_merging, session_term};
use crate::schema::{Fields, VERSION};

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
