//! Reading the messages of a path, back from its end or on from anywhere, at the cost of what is read.

use std::time::{SystemTime, UNIX_EPOCH};

use banyan::model::{EntryId, Error, Revision, SessionEntry, SessionId, SessionStatus};
use banyan::{Banyan, PathPage, PathRequest, PathState, Stretch};
use banyan_formats::history::{Disclosure, Entry, Options, Projected, Projector, Standing};

use crate::path::segment;

/// Whose history is read, and for whom.
#[derive(Clone)]
pub(crate) struct Reader {
    pub(crate) store: Banyan,
    pub(crate) session_id: SessionId,
    options: Options,
}

/// How many entries are read at once, at first and at most, and about how many bytes.
const FEW: usize = 32;
const MANY: usize = 256;
const BYTES: u64 = 1 << 20;

/// An entry that was read, and how often it had changed.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) entry: Entry,
    pub(crate) revision: Revision,
}

impl Reader {
    pub(crate) fn new(store: Banyan, session_id: SessionId, disclosure: Disclosure) -> Self {
        let attachments = format!("/v1/sessions/{}/attachments/", segment(session_id.as_str()));
        Self { store, session_id, options: Options { disclosure, attachments } }
    }

    pub(crate) fn state(&self) -> Result<PathState, Error> {
        self.store.path_state(&self.session_id)
    }

    pub(crate) fn projector(&self) -> Projector {
        Projector::new(self.options.clone())
    }

    fn page(&self, leaf: Option<&EntryId>, stretch: Stretch, entries: usize) -> Result<PathPage, Error> {
        let session_id = self.session_id.clone();
        self.store.path(&PathRequest { session_id, leaf: leaf.cloned(), stretch, entries, bytes: BYTES })
    }

    /// How often an entry of the path has changed.
    pub(crate) fn revision(&self, entry: &EntryId) -> Result<Revision, Error> {
        let page = self.page(None, Stretch::From(entry.clone()), 1)?;
        let entry = page.entries.first().map(known);
        Ok(entry.map(|known| known.revision).unwrap_or_default())
    }

    /// The message that has an entry, if it is in one that anybody sees.
    pub(crate) fn message_of(&self, entry: &EntryId, state: &PathState) -> Result<Option<Projected>, Error> {
        let mut ahead = Ahead::from_message_of(self, state.leaf.clone(), entry.clone())?;
        let holds = |message: &Projected| message.entries.contains(entry);
        while let Some(messages) = ahead.next()? {
            if let Some(found) = messages.into_iter().find(holds) {
                return Ok(Some(found));
            }
            // Whatever is finished after the entry does not have it.
            if ahead.passed().contains(entry) && !ahead.newest().is_some_and(holds) {
                return Ok(None);
            }
        }
        Ok(ahead.finish(state).filter(holds))
    }
}

/// What is going on with the newest message of a session.
pub(crate) fn standing(status: SessionStatus, updated_at: i64) -> Standing {
    Standing::of(status, updated_at, now_ms())
}

pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn known(entry: &SessionEntry) -> Known {
    let revision = match entry {
        SessionEntry::Message(entry) => entry.revision,
        SessionEntry::Custom(entry) => entry.revision,
    };
    Known { entry: Entry::from(entry), revision }
}

/// Messages from the end of a path back, some at a time.
pub(crate) struct Back<'a> {
    reader: &'a Reader,
    leaf: Option<EntryId>,
    /// Where what was read begins.
    edge: Stretch,
    more: bool,
    at_once: usize,
    /// What was read, and is not whole messages yet.
    rest: Vec<Known>,
    /// The newest message, which may go on.
    pub(crate) newest: Option<Newest>,
}

/// The end of a path: its last message, and the revisions of at least the entries of that.
pub(crate) struct Newest {
    pub(crate) projector: Projector,
    pub(crate) revisions: Vec<(EntryId, Revision)>,
}

impl Newest {
    /// The end of a path that has nothing on it.
    pub(crate) fn none(reader: &Reader) -> Self {
        Self { projector: reader.projector(), revisions: Vec::new() }
    }
}

/// Some messages, oldest first, and all entries that they were made of, seen or not.
pub(crate) struct Segment {
    pub(crate) messages: Vec<Projected>,
    pub(crate) entries: Vec<EntryId>,
}

impl<'a> Back<'a> {
    /// From the end of the path that a session has.
    pub(crate) fn from_end(reader: &'a Reader, state: &PathState) -> Self {
        let mut newest = Newest::none(reader);
        newest.projector.set_standing(standing(state.status, state.updated_at));
        Self { newest: Some(newest), ..Self::new(reader, state.leaf.clone(), Stretch::Newest) }
    }

    /// From right before an entry that begins a message.
    pub(crate) fn from_before(reader: &'a Reader, state: &PathState, entry: EntryId) -> Self {
        Self::new(reader, state.leaf.clone(), Stretch::Before(entry))
    }

    fn new(reader: &'a Reader, leaf: Option<EntryId>, edge: Stretch) -> Self {
        let more = leaf.is_some();
        Self { reader, leaf, edge, more, at_once: FEW, rest: Vec::new(), newest: None }
    }

    /// Reads so many entries first.
    pub(crate) fn expecting(mut self, messages: usize) -> Self {
        // One more, because the first one may belong to a message that begins before it.
        self.at_once = messages.saturating_add(1).clamp(FEW, MANY);
        self
    }

    /// Whether there is anything older.
    pub(crate) fn has_more(&self) -> bool {
        self.more || !self.rest.is_empty()
    }

    /// The messages right before those that were given already; none when there are no more.
    pub(crate) fn next(&mut self) -> Result<Option<Segment>, Error> {
        while self.more {
            self.read_more()?;
            let start = self.starts().next();
            if let Some(start) = start {
                let entries = self.rest.split_off(start);
                return Ok(Some(self.segment(entries)));
            }
        }
        let entries = std::mem::take(&mut self.rest);
        Ok(if entries.is_empty() { None } else { Some(self.segment(entries)) })
    }

    fn read_more(&mut self) -> Result<(), Error> {
        let page = self.reader.page(self.leaf.as_ref(), self.edge.clone(), self.at_once)?;
        self.at_once = (self.at_once * 2).min(MANY);
        self.rest.splice(0..0, page.entries.iter().map(known));
        self.more = page.next.is_some();
        if let Some(next) = page.next {
            self.edge = Stretch::Before(next);
        }
        Ok(())
    }

    /// The entries of the rest that a projector can begin with. When nothing comes before, the first is one of them.
    fn starts(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        let before = |at: usize| Some(&self.rest.get(at.checked_sub(1)?)?.entry);
        let is_start = move |at: usize| self.rest[at].entry.is_start(before(at)) || (at == 0 && !self.more);
        (0..self.rest.len()).filter(move |at| is_start(*at))
    }

    fn segment(&mut self, read: Vec<Known>) -> Segment {
        let entries: Vec<EntryId> = read.iter().map(|known| known.entry.id().clone()).collect();
        let messages = match self.newest.as_mut().filter(|newest| newest.revisions.is_empty()) {
            Some(newest) => {
                newest.revisions = entries.iter().cloned().zip(read.iter().map(|known| known.revision)).collect();
                let push = |known: Known| newest.projector.push(known.entry);
                let mut messages: Vec<Projected> = read.into_iter().filter_map(push).collect();
                messages.extend(newest.projector.open().cloned());
                messages
            }
            None => {
                let mut projector = self.reader.projector();
                let push = |known: Known| projector.push(known.entry);
                let mut messages: Vec<Projected> = read.into_iter().filter_map(push).collect();
                messages.extend(projector.close());
                messages
            }
        };
        Segment { messages, entries }
    }
}

/// Messages of a path from one on, some at a time.
pub(crate) struct Ahead {
    reader: Reader,
    leaf: Option<EntryId>,
    next: Option<Stretch>,
    /// What was read to find where to begin.
    first: Vec<Known>,
    projector: Projector,
    /// The entries of the newest message, and those that nobody sees after it.
    revisions: Vec<(EntryId, Revision)>,
    passed: Vec<EntryId>,
    at_once: usize,
}

impl Ahead {
    /// From the beginning of the path to a leaf.
    pub(crate) fn from_beginning(reader: &Reader, leaf: Option<EntryId>) -> Self {
        let next = if leaf.is_some() { Some(Stretch::Oldest) } else { None };
        Self::new(reader, leaf, next, Vec::new())
    }

    /// From the message that has an entry, or from one before it.
    pub(crate) fn from_message_of(reader: &Reader, leaf: Option<EntryId>, entry: EntryId) -> Result<Self, Error> {
        let page = reader.page(leaf.as_ref(), Stretch::From(entry.clone()), 1)?;
        let mut first: Vec<Known> = page.entries.iter().map(known).collect();
        if !first.first().is_some_and(|known| known.entry.is_start(None)) {
            let mut back = Back::new(reader, leaf.clone(), Stretch::Before(entry.clone()));
            let mut start = None;
            while back.more && start.is_none() {
                back.read_more()?;
                start = back.starts().next_back();
            }
            back.rest.drain(..start.unwrap_or_default());
            first.splice(0..0, back.rest);
        }
        Ok(Self::new(reader, leaf, Some(Stretch::After(entry)), first))
    }

    fn new(reader: &Reader, leaf: Option<EntryId>, next: Option<Stretch>, first: Vec<Known>) -> Self {
        let projector = reader.projector();
        let (reader, revisions, passed) = (reader.clone(), Vec::new(), Vec::new());
        Self { reader, leaf, next, first, projector, revisions, passed, at_once: FEW }
    }

    /// The next messages that are over; none at the end. The newest message is not among them.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<Projected>>, Error> {
        let mut read = std::mem::take(&mut self.first);
        if read.is_empty() {
            let Some(stretch) = self.next.take() else { return Ok(None) };
            let page = self.reader.page(self.leaf.as_ref(), stretch, self.at_once)?;
            self.at_once = (self.at_once * 2).min(MANY);
            self.next = page.next.map(Stretch::After);
            read = page.entries.iter().map(known).collect();
        }
        self.passed = read.iter().map(|known| known.entry.id().clone()).collect();
        let mut messages = Vec::new();
        for known in read {
            let id = known.entry.id().clone();
            if let Some(finished) = self.projector.push(known.entry) {
                messages.push(finished);
                self.revisions.clear();
            }
            self.revisions.push((id, known.revision));
        }
        Ok(Some(messages))
    }

    /// The entries that were read last.
    pub(crate) fn passed(&self) -> &[EntryId] {
        &self.passed
    }

    /// The newest message so far.
    fn newest(&mut self) -> Option<&Projected> {
        self.projector.open()
    }

    /// The newest message, at the end of the path.
    pub(crate) fn finish(self, state: &PathState) -> Option<Projected> {
        self.into_newest(state).projector.finish()
    }

    /// The end of the path, which may go on.
    pub(crate) fn into_newest(mut self, state: &PathState) -> Newest {
        self.projector.set_standing(standing(state.status, state.updated_at));
        Newest { projector: self.projector, revisions: self.revisions }
    }
}

#[cfg(test)]
mod tests {
    use banyan_formats::history::ABANDONED_AFTER_MS;

    use super::*;

    #[test]
    fn a_session_that_is_worked_on_in_silence_was_left_alone() {
        let now = now_ms();
        for (status, updated_at, expected) in [
            (SessionStatus::Working, now, Standing::Running),
            (SessionStatus::Working, now - ABANDONED_AFTER_MS + 60_000, Standing::Running),
            (SessionStatus::Working, now - ABANDONED_AFTER_MS - 1, Standing::Abandoned),
            (SessionStatus::Error, 0, Standing::Failed),
            (SessionStatus::Idle, 0, Standing::Over),
            (SessionStatus::Done, now, Standing::Over),
        ] {
            assert_eq!(standing(status, updated_at), expected, "{status:?} {updated_at}");
        }
    }
}
