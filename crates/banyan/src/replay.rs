//! The past as events: the same ids and payloads that subscribers saw when it happened.

mod account;
mod growth;
mod narrators;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use banyan_core::Born;
use banyan_core::filter;
use banyan_core::record::{self, Envelope, Head, Record, StoredRecord};
use banyan_core::state::{Place, SourceIx};
use banyan_index::Listing;
use banyan_log::{At, JournalEntry, JournalKind, Replay, SessionLog};
use banyan_model::{
    CommitNo, DeletedEvent, Error, Event, EventFilter, EventPayload, EventType, Position, SessionId,
};

use crate::access::Access;
use crate::bodies::Wanted;
use crate::hub;
use crate::store::Store;
use crate::tombstone::Tombstone;
pub(crate) use account::ReplayAccount;
pub use account::ReplayCost;
pub(crate) use growth::GrowthDetail;
use growth::{GrowthLines, Progress, Run};
pub(crate) use narrators::Narrators;
use narrators::Seed;

/// What is still to be told of the past.
pub(crate) struct Backlog {
    kind: BacklogKind,
    lines: GrowthLines,
    narrators: Narrators,
}

enum BacklogKind {
    /// Everything after a commit, over all sessions, up to another.
    Journal { after: CommitNo, upto: CommitNo },
    /// One session: the ends of its earlier lives, then the lines that it has now.
    Session { id: SessionId, born: Born, ends: Vec<JournalEntry>, lines: Lines },
}

/// The lines of a session that are still to be told.
struct Lines {
    places: VecDeque<Place>,
    after: CommitNo,
    upto: CommitNo,
    /// The line whose additions are being told, and the next of them.
    growth: Option<(Progress, usize)>,
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

/// How many commits or events are told at a time.
const AT_ONCE: usize = 1024;
/// About how many bytes of events are told at a time. A subscriber that reads slowly holds them.
const BYTES_AT_ONCE: usize = 1 << 20;

impl Backlog {
    /// Everything after a commit, over all sessions, up to another.
    pub(crate) fn journal(after: CommitNo, upto: CommitNo) -> Self {
        Self::of(BacklogKind::Journal { after, upto })
    }

    fn of(kind: BacklogKind) -> Self {
        Self { kind, lines: GrowthLines::default(), narrators: Narrators::default() }
    }
}

impl Store {
    /// The next events of a backlog. Those not asked for are left out.
    pub(crate) fn tell_more(
        &self,
        access: &Access,
        backlog: &mut Backlog,
        filters: &[EventFilter],
        detail: GrowthDetail,
    ) -> Result<More, Error> {
        let Backlog { kind, lines: growths, narrators } = backlog;
        // Growth that no filter lets through is not told revision by revision first.
        let updates = filters.iter().any(|filter| filter.event_type == EventType::MessageUpdated);
        let detail = if updates { detail } else { GrowthDetail::Joined };
        let mut events = match kind {
            BacklogKind::Journal { after, upto } => {
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
                let telling = Telling { filters, upto: *upto, detail };
                let (last, events) = self.tell_entries(access, &entries, &telling, growths, narrators)?;
                *after = last.unwrap_or(*after);
                events
            }
            BacklogKind::Session { ends, .. } if !ends.is_empty() => {
                std::mem::take(ends).iter().filter_map(|entry| deleted(entry, access, filters)).collect()
            }
            BacklogKind::Session { id, born, lines, .. } => {
                if lines.places.is_empty() && lines.growth.is_none() {
                    return Ok(More::Done);
                }
                self.tell_lines(id, *born, lines, detail, growths, narrators)?
            }
        };
        self.replays.made(bytes_of(&events));
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
        let mut places = VecDeque::new();
        self.log.scan(At::Live(id), 0, &mut |offset, line| {
            let Ok(Head { envelope: Some(envelope), kind, .. }) = Head::parse(line) else { return };
            let last = match &kind {
                record::HeadKind::Grew(grew) => grew.last_commit,
                _ => envelope.commit,
            };
            if last > after && envelope.commit <= upto {
                places.push_back(Place { source: SourceIx::OWN, offset, len: line.len() as u32 });
            }
        })?;
        if self.look(access, id, |state| state.born() == born)? != Some(true) {
            return Ok(None);
        }
        let mut ends = Vec::new();
        // From the beginning of what is kept, whatever that is.
        self.log.replay(CommitNo(0), upto, &mut |entry| {
            if matches!(entry.kind, JournalKind::Removed(_)) && entry.session == *id && entry.commit > after {
                ends.push(entry);
            }
            true
        })?;
        let lines = Lines { places, after, upto, growth: None };
        Ok(Some(Backlog::of(BacklogKind::Session { id: id.clone(), born, ends, lines })))
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
        if let JournalKind::Addition { offset, .. } = entry.kind {
            // An addition is one event; how the message was then need not be known.
            let covered = || -> Result<bool, Error> {
                let narrator = self.growth_narrator_at(&entry.session, entry.born, offset)?;
                Ok(narrator.is_some_and(|it| access.scope.covers(it.metadata().map(Arc::as_ref))))
            };
            return Ok((access.scope.is_everything() || covered()?).then_some(1));
        }
        let all = EventType::ALL.map(EventFilter::all);
        let telling = Telling { filters: &all, upto: commit, detail: GrowthDetail::Joined };
        let (mut growths, mut narrators) = Default::default();
        let (_, told) = self.tell_entries(access, &[entry], &telling, &mut growths, &mut narrators)?;
        // A commit is about one session.
        let covered = told.first().is_some_and(|event| access.scope.covers(event.metadata.as_deref()));
        Ok((covered || access.scope.is_everything()).then_some(told.len()))
    }

    /// Tells commits, up to the one that is returned. Of sessions out of scope nothing is read.
    fn tell_entries(
        &self,
        access: &Access,
        entries: &[JournalEntry],
        telling: &Telling<'_>,
        growths: &mut GrowthLines,
        narrators: &mut Narrators,
    ) -> Result<(Option<CommitNo>, Vec<Event>), Error> {
        let (mut events, mut bytes) = (Vec::new(), 0);
        let mut last = None;
        let mut reached = Reached::by(self, access);
        for id in telling.filters.iter().filter_map(|filter| filter.session_id.as_ref()) {
            // Asked of every name alike, so that another's session takes as long as one that does not exist.
            reached.has(id)?;
        }
        for entry in entries {
            if bytes > BYTES_AT_ONCE {
                break;
            }
            last = Some(entry.commit);
            let wanted = |filter: &EventFilter| filter.session_id.as_ref().is_none_or(|id| *id == entry.session);
            if !telling.filters.iter().any(wanted) {
                continue;
            }
            let before = events.len();
            match &entry.kind {
                JournalKind::Removed(_) => events.extend(deleted(entry, access, telling.filters)),
                JournalKind::Lines { offset, len } if reached.has_lines_of(entry)? => {
                    let place = Place { source: SourceIx::OWN, offset: *offset, len: *len };
                    let told = self.tell_range(&entry.session, entry.born, place, narrators)?;
                    // A line of another commit is not what was written there.
                    events.extend(told.into_iter().filter(|event| event.position.commit == entry.commit));
                }
                JournalKind::Addition { offset, index } if reached.has_lines_of(entry)? => {
                    let run = telling.run(&entry.session, entry.born, *index as usize);
                    events.extend(self.tell_addition(&run, *offset, growths, narrators)?);
                }
                JournalKind::Lines { .. } | JournalKind::Addition { .. } => {}
            }
            bytes += bytes_of(&events[before..]);
        }
        Ok((last, events))
    }

    /// Whether a commit's records are those of the session that has the id now.
    fn is_live(&self, entry: &JournalEntry) -> Result<bool, Error> {
        Ok(self.look(Access::whole(), &entry.session, |state| state.born() == entry.born)?.unwrap_or(false))
    }

    /// Tells the lines of one commit.
    pub(crate) fn tell_range(
        &self,
        id: &SessionId,
        born: Born,
        range: Place,
        narrators: &mut Narrators,
    ) -> Result<Vec<Event>, Error> {
        let bytes = self.read_past(id, range.offset, range.len as usize)?;
        let mut events = Vec::new();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if let Some((envelope, record)) = own_record(line) {
                events.extend(self.tell_record(id, born, envelope, record, narrators)?);
            }
        }
        Ok(events)
    }

    fn tell_lines(
        &self,
        id: &SessionId,
        born: Born,
        lines: &mut Lines,
        detail: GrowthDetail,
        growths: &mut GrowthLines,
        narrators: &mut Narrators,
    ) -> Result<Vec<Event>, Error> {
        let (mut events, mut bytes) = (Vec::new(), 0);
        while events.len() < AT_ONCE && bytes <= BYTES_AT_ONCE {
            let before = events.len();
            if let Some((mut progress, index)) = lines.growth.take() {
                events.extend(progress.tell(index, growths)?);
                match (progress.next_after(index), progress) {
                    (Some(next), progress) => lines.growth = Some((progress, next)),
                    (None, Progress::Telling { growth, .. }) => narrators.keep_growing(id, *growth),
                    (None, Progress::Skipping { .. }) => {}
                }
            } else if let Some(place) = lines.places.pop_front() {
                let line = self.read_past(id, place.offset, place.len as usize)?;
                match own_record(&line) {
                    Some((envelope, Record::Grew(grew))) => {
                        let first = grew.additions_up_to(envelope.commit, lines.after);
                        let run = Run { id, born, first, upto: lines.upto, detail };
                        let begun = self.begin_growth(&run, envelope, grew, line.len(), growths, narrators)?;
                        lines.growth = Some((begun, first));
                    }
                    Some((envelope, record)) => {
                        events.extend(self.tell_record(id, born, envelope, record, narrators)?);
                    }
                    None => {}
                }
            } else {
                break;
            }
            bytes += bytes_of(&events[before..]);
        }
        Ok(events)
    }

    /// Tells one record. One that cannot be read is passed over: damage is reported elsewhere. So is one whose session has
    /// ended: by now the id may be another's, who would be told of what is not theirs.
    fn tell_record(
        &self,
        id: &SessionId,
        born: Born,
        envelope: Envelope,
        mut record: Record,
        narrators: &mut Narrators,
    ) -> Result<Vec<Event>, Error> {
        // A settled message has no event.
        let is_told = !matches!(record, Record::Settled(_));
        if is_told && record.put_back_blobs(|blob| self.blob(&blob.hash)).is_err() {
            return Ok(Vec::new());
        }
        let narrator = narrators.take(id, born, envelope.seq);
        let found = self.look(Access::whole(), id, |state| {
            (state.born() == born).then(|| {
                let seed = narrator.is_none().then(|| Seed::before(state, envelope.seq));
                let entry = match &record {
                    Record::Adopted(adopted) => state.find(&adopted.entry_id),
                    _ => None,
                };
                let entry = entry.map(|ix| Wanted::as_of(state, ix, envelope.seq));
                (seed, entry.map(|entry| (entry, state.sources().to_vec())))
            })
        })?;
        let Some((seed, entry)) = found.flatten() else { return Ok(Vec::new()) };
        let reads = entry.is_some() || seed.as_ref().is_some_and(Seed::reads);
        let mut narrator = match (narrator, seed) {
            (Some(narrator), _) => narrator,
            (None, Some(seed)) => self.narrator_from(seed)?,
            (None, None) => return Ok(Vec::new()),
        };
        let told = narrator.tell(envelope, &record, &mut |entry_id, _| {
            let missing = || Error::entry_not_found(id, entry_id);
            let (wanted, sources) = entry.as_ref().ok_or_else(missing)?;
            let fetched = self.fetch_one(sources, wanted)?.ok_or_else(missing)?;
            Ok(wanted.entry(fetched))
        });
        if reads && !self.is_still(id, born) {
            return Ok(Vec::new());
        }
        narrators.put(id, born, envelope.seq, narrator);
        // What a lost message said cannot be told again.
        Ok(told.unwrap_or_default())
    }
}

/// Which of the past a subscriber is told.
struct Telling<'a> {
    filters: &'a [EventFilter],
    upto: CommitNo,
    detail: GrowthDetail,
}

impl Telling<'_> {
    fn run<'a>(&self, id: &'a SessionId, born: Born, first: usize) -> Run<'a> {
        Run { id, born, first, upto: self.upto, detail: self.detail }
    }
}

/// A record of ours, with its envelope. A line that is still open has one, too.
fn own_record(line: &[u8]) -> Option<(Envelope, Record)> {
    let stored = record::parse_full(line).ok().or_else(|| record::parse_full_open(line).ok())?;
    match (stored.envelope, stored.record) {
        (Some(envelope), StoredRecord::Own(record)) => Some((envelope, record)),
        _ => None,
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
