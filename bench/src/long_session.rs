//! A session of 100,000 entries of 1 KiB, in a directory of its own, closed.

use std::path::{Path, PathBuf};

use banyan::block_on;
use banyan_model::{EntryId, MessagesTailRequest, SessionId};

use crate::session;
use crate::workbench::Outcome;

pub(crate) const ENTRIES: usize = 100_000;

/// See the module.
pub(crate) struct LongSession {
    pub(crate) dir: PathBuf,
    pub(crate) id: SessionId,
    pub(crate) last_entry: EntryId,
    /// Length of its file.
    pub(crate) bytes: u64,
}

impl LongSession {
    pub(crate) fn make(dir: &Path) -> Outcome<Self> {
        let store = session::open_buffered(dir)?;
        let id = session::create(&store)?;
        session::fill(&store, &id, ENTRIES)?;
        let tail = block_on(store.messages_tail(tail(&id, 1)))?;
        let last_entry = tail.messages.last().ok_or("the long session is empty")?.entry_id.clone();
        store.close()?;
        let bytes = std::fs::metadata(file(dir, &id))?.len();
        Ok(Self { dir: dir.to_owned(), id, last_entry, bytes })
    }
}

/// Asks for the newest page.
pub(crate) fn tail(session: &SessionId, limit: usize) -> MessagesTailRequest {
    MessagesTailRequest {
        session_id: session.clone(),
        limit: Some(limit),
        bytes: None,
        before_entry_id: None,
        until_entry_id: None,
        include_custom: None,
        include_image_data: None,
    }
}

/// Where the file of a session is whose id the store made.
pub(crate) fn file(dir: &Path, session: &SessionId) -> PathBuf {
    dir.join(format!("{session}.jsonl"))
}
