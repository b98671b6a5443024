//! The past as events: the same ids and payloads that subscribers saw when it happened.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use banyan_core::Born;
use banyan_core::event::Narrator;
use banyan_core::filter;
use banyan_core::record::{self, Envelope, Grew, Head, Record, StoredRecord};
use banyan_core::state::{Place, SessionState, SourceIx};
use banyan_index::Listing;
use banyan_log::{At, JournalEntry, JournalKind, Replay, SessionLog};
use banyan_model::{
    CommitNo, DeletedEvent, EntryId, Error, Event, EventFilter, EventPayload, EventType, Position, Seq,
    SessionEntry, SessionId,
};

use crate::access::Access;
use crate::bodies::Wanted;
use crate::hub;
use crate::store::Store;
use crate::tombstone::Tombstone;

/// What is still to be told of the past.
pub(crate) enum Backlog {
    /// Everything after a commit, over all sessions, up to another.
    Journal { after: CommitNo, upto: CommitNo },
    /// One session: the ends of its earlier lives, then the lines that it has now.
    Session { id: SessionId, born: Born, ends: Vec<JournalEntry>, lines: Lines },
}

/// The lines of a session that are still to be told.
pub(crate) struct Lines {
    places: VecDeque<Place>,
    /// How many additions of the first line were told.
    additions: usize,
    /// It knows the session as it was before the first line.
    narrator: Box<Narrator>,
}

/// What came of asking for more of the past.
pub(crate) enum More {
    /// Some of it; there may be more.
    Some(Vec<Event>),
    /// There is nothing left.
    Done,
    /// The order is no longer kept that far back.
    Forgotten,
}

/// How many commits or lines are told at a time.
const AT_ONCE: usize = 256;
/// About how many bytes of events are told at a time. A subscriber that reads slowly holds them.
const BYTES_AT_ONCE: usize = 1 << 20;
/// How many additions to a line are told at a time. Each is the whole message again.
const ADDITIONS_AT_ONCE: usize = 32;

impl Store {
    /// The next events of a backlog. Those not asked for are left out.
    pub(crate) fn tell_more(
        &self,
        access: &Access,
        backlog: &mut Backlog,
        filters: &[EventFilter],
    ) -> Result<More, Error> {
        let mut events = match backlog {
            Backlog::Journal { after, upto } => {
                let mut entries = Vec::new();
                let replayed = self.log.replay(*after, *upto, &mut |entry| {
                    entries.push(entry);
                    entries.len() < AT_ONCE
                })?;
                if let Replay::Forgotten(_) = replayed {
                    return Ok(More::Forgotten);
                }
                if entries.is_empty() {
                    return Ok(More::Done);
                }
                let (last, events) = self.tell_entries(access, &entries, filters)?;
                *after = last.unwrap_or(*after);
                events
            }
            Backlog::Session { ends, .. } if !ends.is_empty() => {
                std::mem::take(ends).iter().filter_map(|entry| deleted(entry, access, filters)).collect()
            }
            Backlog::Session { id, born, lines, .. } => {
                if lines.places.is_empty() {
                    return Ok(More::Done);
                }
                self.tell_lines(id, *born, lines)?
            }
        };
        events.retain(|event| filters.iter().any(|filter| filter::event_matches(filter, event)));
        Ok(More::Some(events))
    }

    /// The lines of a session after a commit, ready to be told. `None` when there is no such session in the scope.
    pub(crate) fn session_backlog(
        &self,
        access: &Access,
        id: &SessionId,
        after: CommitNo,
        upto: CommitNo,
    ) -> Result<Option<Backlog>, Error> {
        let Some(born) = self.look(access, id, |state| state.born())? else { return Ok(None) };
        let mut lines = VecDeque::new();
        let mut first = None;
        self.log.scan(At::Live(id), 0, &mut |offset, line| {
            let Ok(Head { envelope: Some(envelope), kind, .. }) = Head::parse(line) else { return };
            let last = match &kind {
                record::HeadKind::Grew(grew) => grew.last_commit,
                _ => envelope.commit,
            };
            if last > after {
                first.get_or_insert(envelope.seq);
                lines.push_back(Place { source: SourceIx::OWN, offset, len: line.len() as u32 });
            }
        })?;
        let narrator = self.look(access, id, |state| {
            (state.born() == born).then(|| self.narrator_at(state, first.unwrap_or(state.next_seq())))
        })?;
        let Some(narrator) = narrator.flatten().transpose()? else { return Ok(None) };
        let mut ends = Vec::new();
        // From the beginning of what is kept, whatever that is.
        self.log.replay(CommitNo(0), upto, &mut |entry| {
            if matches!(entry.kind, JournalKind::Removed(_)) && entry.session == *id && entry.commit > after {
                ends.push(entry);
            }
            true
        })?;
        let lines = Lines { places: lines, additions: 0, narrator: Box::new(narrator) };
        Ok(Some(Backlog::Session { id: id.clone(), born, ends, lines }))
    }

    /// How many events a commit made, or `None` when that cannot be told any more, or is out of scope.
    pub(crate) fn events_in(&self, access: &Access, commit: CommitNo) -> Result<Option<usize>, Error> {
        let mut found = None;
        self.log.replay(CommitNo(commit.0 - 1), commit, &mut |entry| {
            found = Some(entry);
            false
        })?;
        let Some(entry) = found.filter(|entry| entry.commit == commit) else { return Ok(None) };
        if !matches!(entry.kind, JournalKind::Removed(_)) && !Reached::by(self, access).has_lines_of(&entry)? {
            return Ok(None);
        }
        let all = EventType::ALL.map(EventFilter::all);
        let (_, told) = self.tell_entries(access, &[entry], &all)?;
        // A commit is about one session.
        let covered = told.first().is_some_and(|event| access.scope.covers(event.metadata.as_deref()));
        Ok((covered || access.scope.is_everything()).then_some(told.len()))
    }

    /// Tells commits, up to the one that is returned. Of sessions out of scope nothing is read.
    fn tell_entries(
        &self,
        access: &Access,
        entries: &[JournalEntry],
        filters: &[EventFilter],
    ) -> Result<(Option<CommitNo>, Vec<Event>), Error> {
        let mut events = Vec::new();
        let mut line: Option<Additions> = None;
        let mut last = None;
        let mut reached = Reached::by(self, access);
        for id in filters.iter().filter_map(|filter| filter.session_id.as_ref()) {
            // Asked of every name alike, so that another's session takes as long as one that does not exist.
            reached.has(id)?;
        }
        for entry in entries {
            if bytes_of(&events) > BYTES_AT_ONCE {
                break;
            }
            last = Some(entry.commit);
            let wanted = |filter: &EventFilter| filter.session_id.as_ref().is_none_or(|id| *id == entry.session);
            if !filters.iter().any(wanted) {
                continue;
            }
            match &entry.kind {
                JournalKind::Removed(_) => events.extend(deleted(entry, access, filters)),
                JournalKind::Lines { offset, len } if reached.has_lines_of(entry)? => {
                    let place = Place { source: SourceIx::OWN, offset: *offset, len: *len };
                    events.extend(self.tell_range(&entry.session, entry.born, place)?);
                }
                JournalKind::Addition { offset, index } if reached.has_lines_of(entry)? => {
                    let known = |line: &Additions| line.begin_with(entry.born, *offset, *index);
                    if !line.as_ref().is_some_and(known) {
                        let told = self.tell_open_line(&entry.session, entry.born, *offset, *index as usize)?;
                        line =
                            Some(Additions { born: entry.born, offset: *offset, next: *index, told: told.into() });
                    }
                    events.extend(line.as_mut().and_then(Additions::take));
                }
                JournalKind::Lines { .. } | JournalKind::Addition { .. } => {}
            }
        }
        Ok((last, events))
    }

    /// Whether a commit's records are those of the session that has the id now.
    fn is_live(&self, entry: &JournalEntry) -> Result<bool, Error> {
        Ok(self.look(Access::whole(), &entry.session, |state| state.born() == entry.born)?.unwrap_or(false))
    }

    /// Tells the lines of one commit.
    pub(crate) fn tell_range(&self, id: &SessionId, born: Born, range: Place) -> Result<Vec<Event>, Error> {
        let bytes = self.log.read(At::Live(id), range.offset, range.len as usize)?;
        let mut narrator = None;
        let mut events = Vec::new();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            events.extend(self.tell_line(id, born, line, &mut narrator, 0..usize::MAX)?);
        }
        Ok(events)
    }

    /// Tells some additions of a line that may still be open, from one on.
    fn tell_open_line(&self, id: &SessionId, born: Born, offset: u64, from: usize) -> Result<Vec<Event>, Error> {
        let mut bytes = Vec::new();
        loop {
            let more = self.log.read(At::Live(id), offset + bytes.len() as u64, 4096.max(bytes.len()))?;
            let end = more.iter().position(|byte| *byte == b'\n');
            bytes.extend_from_slice(&more[..end.map_or(more.len(), |end| end + 1)]);
            if end.is_some() || more.is_empty() {
                return self.tell_line(id, born, &bytes, &mut None, from..from + ADDITIONS_AT_ONCE);
            }
        }
    }

    fn tell_lines(&self, id: &SessionId, born: Born, lines: &mut Lines) -> Result<Vec<Event>, Error> {
        let mut events = Vec::new();
        while let Some(place) = lines.places.front()
            && events.len() < AT_ONCE
            && bytes_of(&events) <= BYTES_AT_ONCE
        {
            let line = self.log.read(At::Live(id), place.offset, place.len as usize)?;
            let additions = lines.additions..lines.additions + ADDITIONS_AT_ONCE;
            let mut narrator = Some(Narrator::clone(&lines.narrator));
            let told = self.tell_line(id, born, &line, &mut narrator, additions)?;
            if told.len() < ADDITIONS_AT_ONCE {
                lines.places.pop_front();
                lines.additions = 0;
                lines.narrator = narrator.map_or_else(|| lines.narrator.clone(), Box::new);
            } else {
                lines.additions += ADDITIONS_AT_ONCE;
            }
            events.extend(told);
        }
        Ok(events)
    }

    /// Tells one line. A line that cannot be read is passed over: damage is told elsewhere. So is one whose session has
    /// ended: by now the id may be another's, who would be told of what is not theirs.
    fn tell_line(
        &self,
        id: &SessionId,
        born: Born,
        line: &[u8],
        narrator: &mut Option<Narrator>,
        additions: Range<usize>,
    ) -> Result<Vec<Event>, Error> {
        let Some(stored) = record::parse_full(line).ok().or_else(|| record::parse_full_open(line).ok()) else {
            return Ok(Vec::new());
        };
        let (Some(envelope), StoredRecord::Own(record)) = (stored.envelope, stored.record) else {
            return Ok(Vec::new());
        };
        let mut record = record;
        if record.put_back_blobs(|blob| self.blob(&blob.hash)).is_err() {
            return Ok(Vec::new());
        }
        let told = self.look(Access::whole(), id, |state| {
            if state.born() != born {
                return Ok(Vec::new());
            }
            if narrator.is_none() {
                *narrator = Some(self.narrator_at(state, envelope.seq)?);
            }
            *narrator = narrator.take().map(|narrator| narrator.with_additions(additions));
            match narrator {
                Some(narrator) => self.narrate(state, narrator, envelope, &record),
                None => Ok(Vec::new()),
            }
        })?;
        told.unwrap_or_else(|| Ok(Vec::new()))
    }

    fn narrate(
        &self,
        state: &SessionState,
        narrator: &mut Narrator,
        envelope: Envelope,
        record: &Record,
    ) -> Result<Vec<Event>, Error> {
        if let Record::Grew(Grew { entry_id, .. }) = record
            && state.find(entry_id).is_none()
        {
            return Ok(Vec::new());
        }
        let told = narrator.tell(envelope, record, &mut |id, seq| self.entry_as_of(state, id, seq));
        // What a lost message said cannot be told again.
        Ok(told.unwrap_or_default())
    }

    fn entry_as_of(&self, state: &SessionState, id: &EntryId, seq: Seq) -> Result<SessionEntry, Error> {
        let missing = || Error::entry_not_found(state.session_id(), id);
        let ix = state.find(id).ok_or_else(missing)?;
        let wanted = Wanted::as_of(state, ix, seq);
        let fetched = self.fetch_one(state.sources(), &wanted)?.ok_or_else(missing)?;
        Ok(wanted.entry(fetched))
    }

    /// A narrator that knows the session as it was just before a record.
    fn narrator_at(&self, state: &SessionState, seq: Seq) -> Result<Narrator, Error> {
        let status = state.status_before(seq);
        if state.metas_before(Seq(u64::MAX)).nth(1).is_none() {
            return Ok(Narrator::of(state).with_status(status));
        }
        let mut narrator = Narrator::new(state.session_id().clone()).with_status(status);
        for place in state.metas_before(seq) {
            let line = self.log.read(At::Live(state.session_id()), place.offset, place.len as usize)?;
            if let Ok(stored) = record::parse_full(&line) {
                narrator.learn(&stored.record);
            }
        }
        Ok(narrator)
    }
}

/// Which sessions an access reaches, asked once for each.
struct Reached<'a> {
    store: &'a Store,
    access: &'a Access,
    known: HashMap<SessionId, bool>,
}

impl<'a> Reached<'a> {
    fn by(store: &'a Store, access: &'a Access) -> Self {
        Self { store, access, known: HashMap::new() }
    }

    fn has(&mut self, id: &SessionId) -> Result<bool, Error> {
        if self.access.scope.is_everything() {
            return Ok(true);
        }
        if let Some(known) = self.known.get(id) {
            return Ok(*known);
        }
        let reached = self.store.listing(self.access, id)? == Listing::Matching;
        self.known.insert(id.clone(), reached);
        Ok(reached)
    }

    /// Whether a commit's lines are there to be told: of a session in scope, and of the one that has the id now.
    fn has_lines_of(&mut self, entry: &JournalEntry) -> Result<bool, Error> {
        Ok(self.has(&entry.session)? && self.store.is_live(entry)?)
    }
}

/// Additions to a line that were told together, as far as they are not taken yet.
struct Additions {
    born: Born,
    offset: u64,
    next: u32,
    told: VecDeque<Event>,
}

impl Additions {
    fn begin_with(&self, born: Born, offset: u64, index: u32) -> bool {
        (self.born, self.offset, self.next) == (born, offset, index) && !self.told.is_empty()
    }

    fn take(&mut self) -> Option<Event> {
        self.next += 1;
        self.told.pop_front()
    }
}

fn bytes_of(events: &[Event]) -> usize {
    events.iter().map(hub::size_of).sum()
}

/// The end of a session. Its metadata is what is asked about, as far as the session had it.
fn deleted(entry: &JournalEntry, access: &Access, filters: &[EventFilter]) -> Option<Event> {
    let JournalKind::Removed(tombstone) = &entry.kind else { return None };
    let tombstone = Tombstone::parse(tombstone)?;
    let asked = filters.iter().filter_map(|filter| filter.metadata.as_ref()).chain([access.scope.pairs()]);
    let metadata = tombstone.metadata_among(entry.born, asked);
    let payload = DeletedEvent { session_id: entry.session.clone(), timestamp: tombstone.timestamp };
    let position = Position::new(entry.commit, 0);
    Some(Event::new(position, EventPayload::Deleted(payload), None, Some(Arc::new(metadata))))
}
