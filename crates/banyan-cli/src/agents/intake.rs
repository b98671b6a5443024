//! What is read of one source, on its way into the store: piece by piece, so that memory is bounded however long a session is.

use banyan::batch::Batch;
use banyan::model::{EntryId, Error, GetRequest, LastTold, Object, SessionEntry, SessionId, SessionMeta};
use banyan_agents::{Head, Note, Sink};
use hashbrown::{HashMap, HashSet};

use super::Counts;
use super::ledger::Sessions;
use crate::calls::ask;
use crate::client::Client;
use crate::failure::Failure;

/// A piece has at most so many bytes and entries, or one entry.
const BYTES: usize = 4 << 20;
const ENTRIES: usize = 2000;
/// So many notes of a source are kept.
const NOTES: usize = 200;

/// Says what was told of a session from another source.
type Elsewhere<'a> = Box<dyn Fn(&SessionId) -> Option<LastTold> + 'a>;

/// Takes what a reader tells, and gives it to a store.
pub(crate) struct Intake<'a> {
    client: &'a dyn Client,
    dry_run: bool,
    /// LastTold before a piece is sent that is not the source's last one, so that a later reading knows what may have arrived.
    intends: Box<dyn FnMut(Sessions) -> Result<(), Failure> + 'a>,
    progress: Box<dyn FnMut(u64) + 'a>,
    /// What was told of a session from another source, which this one may have been until it was moved.
    elsewhere: Elsewhere<'a>,
    /// What was told before, and what may have been.
    before: Sessions,
    perhaps: Sessions,
    sessions: HashMap<SessionId, Open>,
    bytes: usize,
    entries: usize,
    pub(crate) notes: Vec<Note>,
    pub(crate) more_notes: u64,
    /// Why the store takes no more.
    pub(crate) failure: Option<Failure>,
}

/// A session that is being read.
struct Open {
    head: Head,
    /// What the store may have of it.
    told: Vec<LastTold>,
    pending: Vec<SessionEntry>,
    /// Where in `pending` an entry is.
    places: HashMap<EntryId, usize>,
    leaf: Option<EntryId>,
    /// Whether anything was told since the last piece.
    changed: bool,
    /// Whether it was deleted here, and stays so.
    gone: bool,
    counts: Counts,
}

/// What came of a source.
pub(crate) struct Outcome {
    /// Its sessions, and what was told of them.
    pub(crate) sessions: Sessions,
    /// The sessions that were read this time, with their titles.
    pub(crate) read: Vec<(SessionId, String, Counts)>,
    pub(crate) notes: Vec<Note>,
    pub(crate) more_notes: u64,
}

impl<'a> Intake<'a> {
    pub(crate) fn new(
        client: &'a dyn Client,
        (before, perhaps): (Sessions, Sessions),
        elsewhere: impl Fn(&SessionId) -> Option<LastTold> + 'a,
        dry_run: bool,
        intends: impl FnMut(Sessions) -> Result<(), Failure> + 'a,
        progress: impl FnMut(u64) + 'a,
    ) -> Self {
        Self {
            client,
            dry_run,
            intends: Box::new(intends),
            progress: Box::new(progress),
            elsewhere: Box::new(elsewhere),
            before,
            perhaps,
            sessions: HashMap::new(),
            bytes: 0,
            entries: 0,
            notes: Vec::new(),
            more_notes: 0,
            failure: None,
        }
    }

    /// Sends what is left.
    pub(crate) fn finish(mut self) -> Result<Outcome, Failure> {
        if self.send_all().is_err()
            && let Some(failure) = self.failure.take()
        {
            return Err(failure);
        }
        let mut sessions = std::mem::take(&mut self.before);
        let mut read = Vec::new();
        for (id, open) in self.sessions {
            sessions.insert(id.clone(), open.telling());
            read.push((id, open.head.title, open.counts));
        }
        read.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(Outcome { sessions, read, notes: self.notes, more_notes: self.more_notes })
    }

    fn session(&mut self, id: &SessionId) -> Result<&mut Open, Error> {
        let untold = || Error::invalid_request(format!("session `{id}` has entries before it is told what it is"));
        self.sessions.get_mut(id).ok_or_else(untold)
    }

    /// Sends everything that waits, when more is to come.
    fn make_room(&mut self) -> Result<(), Error> {
        if self.bytes < BYTES && self.entries < ENTRIES {
            return Ok(());
        }
        if !self.dry_run {
            let intended = self.sessions.iter().map(|(id, open)| (id.clone(), open.telling())).collect();
            let noted = (self.intends)(intended);
            self.keep_failure(noted)?;
        }
        self.send_all()
    }

    fn send_all(&mut self) -> Result<(), Error> {
        (self.bytes, self.entries) = (0, 0);
        let mut ids: Vec<SessionId> = self.sessions.keys().cloned().collect();
        ids.sort();
        for id in ids {
            self.send(&id)?;
        }
        Ok(())
    }

    fn send(&mut self, id: &SessionId) -> Result<(), Error> {
        let Some(open) = self.sessions.get_mut(id).filter(|open| open.changed && !open.gone) else {
            return Ok(());
        };
        open.changed = false;
        open.places.clear();
        let entries = std::mem::take(&mut open.pending);
        let telling = open.telling();
        if self.dry_run {
            let counted = open.counts.dry_run(self.client, id, &entries, open.told.is_empty());
            return self.keep_failure(counted);
        }
        let (meta, leaf) = (meta_of(&open.head), open.leaf.clone());
        let mut piece = Batch { meta, told: std::mem::take(&mut open.told), leaf, entries };
        let was_told = !piece.told.is_empty();
        let moved = reattach(&piece.told, &mut piece.entries, |entry| self.client.has_entry(id, entry));
        let moved = self.keep_failure(moved)?;
        if moved > 0 {
            let what =
                format!("{moved} entries of {id} follow none that is there, and were put after the one before");
            self.note(Note { place: String::new(), what, lost: false });
        }
        let taken = self.client.take(piece);
        let Some(open) = self.sessions.get_mut(id) else { return Ok(()) };
        open.told = vec![telling];
        match taken {
            Ok(taken) => open.counts.add(&taken),
            Err(failure) if was_told && failure.is("session/not_found") => {
                open.gone = true;
                let what = format!("session {id} was deleted here and is left out; --again takes it anew");
                self.note(Note { place: String::new(), what, lost: false });
            }
            Err(failure) => return self.keep_failure(Err(failure)),
        }
        Ok(())
    }

    fn exists(&mut self, session: &SessionId) -> Result<bool, Error> {
        let found = ask(self.client, &GetRequest { session_id: session.clone() });
        Ok(self.keep_failure(found)?.is_some())
    }

    /// Remembers why the store takes no more; the reader only has to stop.
    fn keep_failure<T>(&mut self, result: Result<T, Failure>) -> Result<T, Error> {
        result.map_err(|failure| {
            self.failure = Some(failure);
            Error::storage("the store takes no more")
        })
    }
}

impl Open {
    fn telling(&self) -> LastTold {
        let Head { title, status, metadata, .. } = &self.head;
        LastTold { title: title.clone(), status: *status, metadata: metadata.clone(), leaf: self.leaf.clone() }
    }
}

impl Sink for Intake<'_> {
    fn head(&mut self, head: &Head) -> Result<(), Error> {
        if let Some(open) = self.sessions.get_mut(&head.session) {
            if open.head != *head {
                open.head = head.clone();
                open.changed = true;
            }
            return Ok(());
        }
        let before = self.before.get(&head.session).cloned().or_else(|| (self.elsewhere)(&head.session));
        let mut told: Vec<LastTold> = before.into_iter().collect();
        if let Some(perhaps) = self.perhaps.remove(&head.session) {
            // What may never have arrived is nothing that can have been deleted.
            let arrived = !told.is_empty() || self.exists(&head.session)?;
            told.extend(arrived.then_some(perhaps));
        }
        let open = Open {
            head: head.clone(),
            leaf: told.last().and_then(|told| told.leaf.clone()),
            told,
            pending: Vec::new(),
            places: HashMap::new(),
            changed: true,
            gone: false,
            counts: Counts::default(),
        };
        self.sessions.insert(head.session.clone(), open);
        Ok(())
    }

    fn entry(&mut self, session: &SessionId, entry: SessionEntry) -> Result<(), Error> {
        let size = size_of(&entry);
        let open = self.session(session)?;
        if open.gone {
            return Ok(());
        }
        open.changed = true;
        open.leaf = Some(entry.id().clone());
        match open.places.get(entry.id()).copied() {
            Some(at) if open.pending[at].revision() < entry.revision() => open.pending[at] = entry,
            Some(_) => return Ok(()),
            None => {
                open.places.insert(entry.id().clone(), open.pending.len());
                open.pending.push(entry);
                self.entries += 1;
            }
        }
        self.bytes += size;
        self.make_room()
    }

    fn leaf(&mut self, session: &SessionId, entry: &EntryId) -> Result<(), Error> {
        let open = self.session(session)?;
        if open.leaf.as_ref() != Some(entry) {
            open.leaf = Some(entry.clone());
            open.changed = true;
        }
        Ok(())
    }

    fn knows(&mut self, session: &SessionId, entry: &EntryId) -> Result<bool, Error> {
        if let Some(open) = self.sessions.get(session)
            && (open.gone || open.places.contains_key(entry))
        {
            return Ok(true);
        }
        let known = self.client.has_entry(session, entry);
        self.keep_failure(known)
    }

    fn note(&mut self, note: Note) {
        if self.notes.len() < NOTES {
            self.notes.push(note);
        } else {
            self.more_notes += 1;
        }
    }

    fn progress(&mut self, bytes: u64) {
        (self.progress)(bytes);
    }
}

/// Puts entries whose parents are nowhere after the entry before them; before the first one is what was told last. `has` says whether
/// the store has an entry. Gives how many there were. Whoever follows an entry of the same piece, as nearly all do, costs no question.
fn reattach(
    told: &[LastTold],
    entries: &mut [SessionEntry],
    has: impl Fn(&EntryId) -> Result<bool, Failure>,
) -> Result<u64, Failure> {
    let mut there: HashSet<EntryId> = HashSet::with_capacity(entries.len());
    let (mut last, mut moved): (Option<EntryId>, u64) = (None, 0);
    for entry in entries {
        let is_there = |parent: &&EntryId| last.as_ref() == Some(*parent) || there.contains(*parent);
        if let Some(parent) = entry.parent_id().filter(|parent| !is_there(parent)) {
            if has(parent)? {
                there.insert(parent.clone());
            } else {
                moved += 1;
                if last.is_none() {
                    last = told_leaf(told, &has)?;
                }
                match entry {
                    SessionEntry::Message(entry) => entry.parent_id.clone_from(&last),
                    SessionEntry::Custom(entry) => entry.parent_id.clone_from(&last),
                }
            }
        }
        there.insert(entry.id().clone());
        last = Some(entry.id().clone());
    }
    Ok(moved)
}

/// The leaf that was told last, if the store has it.
fn told_leaf(
    told: &[LastTold],
    has: impl Fn(&EntryId) -> Result<bool, Failure>,
) -> Result<Option<EntryId>, Failure> {
    for leaf in told.iter().rev().filter_map(|told| told.leaf.as_ref()) {
        if has(leaf)? {
            return Ok(Some(leaf.clone()));
        }
    }
    Ok(None)
}

fn meta_of(head: &Head) -> SessionMeta {
    SessionMeta {
        session_id: head.session.clone(),
        title: head.title.clone(),
        description: String::new(),
        status: head.status,
        status_reason: None,
        metadata: Some(head.metadata.clone()).filter(|metadata: &Object| !metadata.is_empty()),
        forked_from: head.forked_from.clone(),
        message_count: 0,
        created_at: head.created_at,
        updated_at: head.updated_at,
    }
}

/// About how many bytes an entry takes.
fn size_of(entry: &SessionEntry) -> usize {
    const BESIDES: usize = 256;
    match entry {
        SessionEntry::Message(entry) => entry.message.get().len() + BESIDES,
        SessionEntry::Custom(entry) => entry.data.get().len() + BESIDES,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use banyan::model::{CustomEntry, Json, Revision};

    use super::*;

    fn entry(id: &str, parent: Option<&str>) -> SessionEntry {
        let parent_id = parent.map(EntryId::from);
        let (custom_type, data) = ("noted".to_owned(), Json::null());
        let (timestamp, revision, origin) = (1, Revision::default(), None);
        SessionEntry::Custom(CustomEntry {
            id: id.into(),
            parent_id,
            timestamp,
            revision,
            origin,
            custom_type,
            data,
        })
    }

    fn told(leaf: &str) -> LastTold {
        LastTold { leaf: Some(leaf.into()), ..LastTold::default() }
    }

    fn parents(entries: &[SessionEntry]) -> Vec<Option<&str>> {
        entries.iter().map(|entry| entry.parent_id().map(EntryId::as_str)).collect()
    }

    #[test]
    fn what_follows_nothing_goes_after_the_one_before_and_the_first_after_what_was_told_last() {
        let stored = |id: &EntryId| Ok(["first", "leaf"].contains(&id.as_str()));
        let mut entries = [entry("a", Some("lost")), entry("b", Some("gone")), entry("c", Some("first"))];
        assert_eq!(reattach(&[told("leaf"), told("never arrived")], &mut entries, stored).unwrap(), 2);
        assert_eq!(parents(&entries), [Some("leaf"), Some("a"), Some("first")]);
        let mut entries = [entry("a", Some("lost"))];
        assert_eq!(reattach(&[], &mut entries, stored).unwrap(), 1);
        assert_eq!(parents(&entries), [None]);
    }
}
