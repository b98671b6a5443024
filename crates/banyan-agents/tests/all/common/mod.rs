//! What the tests of all agents share.

#![allow(dead_code, unreachable_pub, reason = "each test program uses some of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

pub mod generate;
pub mod lines;
pub mod shown;
pub mod transcript;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use banyan_agents::{Head, Note, Outgoing, Sink};
use banyan_model::{EntryId, Error, SessionEntry, SessionId, SessionMeta};

/// Everything that a reading told, session by session, and a check that it was told in a proper order.
#[derive(Debug, Default)]
pub struct Collected {
    pub sessions: BTreeMap<String, Session>,
    pub notes: Vec<Note>,
    pub bytes: u64,
    /// The sessions whose heads this reading told.
    pub begun: BTreeSet<String>,
}

/// What was told of one session.
#[derive(Debug)]
pub struct Session {
    pub head: Head,
    pub entries: Vec<SessionEntry>,
    pub leaf: Option<EntryId>,
}

impl Sink for Collected {
    fn head(&mut self, head: &Head) -> Result<(), Error> {
        let id = head.session.as_str().to_owned();
        self.begun.insert(id.clone());
        let session = self.sessions.entry(id);
        session.and_modify(|session| session.head = head.clone()).or_insert_with(|| Session {
            head: head.clone(),
            entries: Vec::new(),
            leaf: None,
        });
        Ok(())
    }

    fn entry(&mut self, session: &SessionId, entry: SessionEntry) -> Result<(), Error> {
        assert!(self.begun.contains(session.as_str()), "a session is told before its entries, in each reading");
        let session = self.sessions.get_mut(session.as_str()).expect("a session that is told");
        if let Some(parent) = entry.parent_id() {
            assert!(session.entries.iter().any(|known| known.id() == parent), "{:?} has no parent yet", entry);
        }
        session.leaf = Some(entry.id().clone());
        match session.entries.iter_mut().find(|known| known.id() == entry.id()) {
            Some(known) => {
                assert!(known.revision() < entry.revision(), "{:?} is told twice", entry);
                *known = entry;
            }
            None => session.entries.push(entry),
        }
        Ok(())
    }

    fn leaf(&mut self, session: &SessionId, entry: &EntryId) -> Result<(), Error> {
        assert!(self.begun.contains(session.as_str()), "a session is told before its leaf, in each reading");
        self.sessions.get_mut(session.as_str()).expect("a session that is told").leaf = Some(entry.clone());
        Ok(())
    }

    fn knows(&mut self, session: &SessionId, entry: &EntryId) -> Result<bool, Error> {
        let session = self.sessions.get(session.as_str());
        Ok(session.is_some_and(|session| session.entries.iter().any(|known| known.id() == entry)))
    }

    fn note(&mut self, note: Note) {
        self.notes.push(note);
    }

    fn progress(&mut self, bytes: u64) {
        self.bytes += bytes;
    }
}

impl Collected {
    /// Another reading begins.
    pub fn begin(&mut self) {
        self.begun.clear();
    }
}

impl Session {
    /// The session as it goes out again.
    pub fn outgoing(&self) -> Outgoing {
        let head = &self.head;
        let meta = SessionMeta {
            session_id: head.session.clone(),
            title: head.title.clone(),
            description: String::new(),
            status: head.status,
            status_reason: None,
            metadata: Some(head.metadata.clone()),
            forked_from: head.forked_from.clone(),
            message_count: self.entries.len() as u64,
            created_at: head.created_at,
            updated_at: head.updated_at,
        };
        Outgoing { meta, entries: self.entries.clone(), leaf: self.leaf.clone() }
    }
}

/// Copies a folder of samples to where a test may change it.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target: PathBuf = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).unwrap();
        }
    }
}
