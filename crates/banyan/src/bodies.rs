//! Reading what entries say. The plan is made while the session's state is held; the reading is not.

use std::borrow::{Borrow, Cow};
use std::ops::Range;

use banyan_core::IdKey;
use banyan_core::record::{self, Head, HeadKind, Record, StoredRecord};
use banyan_core::state::{Line, NodeIx, Place, SessionState, Source, SourceIx, extend_text};
use banyan_log::{At, SessionLog};
use banyan_model::{
    AgentMessage, CustomEntry, CustomPayload, EntryId, Error, Json, MessageEntry, MessageItem, Origin, Raw,
    Revision, Seq, SessionEntry,
};

use crate::expected::Expected;
use crate::store::Store;

/// Where to find what an entry says.
#[derive(Clone)]
pub(crate) struct Wanted {
    pub(crate) entry_id: EntryId,
    pub(crate) parent_id: Option<EntryId>,
    pub(crate) timestamp: i64,
    pub(crate) revision: Revision,
    /// The full record; `None` when it is known to be lost, or not needed.
    pub(crate) full: Option<Line>,
    grown: Vec<Line>,
    origin: Option<Line>,
    /// The message of an entry that grows, which is known without reading. Few have one, and there may be very many entries.
    live: Option<Box<AgentMessage>>,
}

/// The same in few bytes, for an entry that one line says all of. Whoever walks through a session holds one for each of its entries.
#[derive(Clone)]
pub(crate) struct Brief {
    entry: IdKey,
    parent: Option<IdKey>,
    timestamp: i64,
    revision: Revision,
    full: Line,
    has_origin: bool,
}

/// What an entry says.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Message(Raw<AgentMessage>),
    Custom(CustomPayload),
}

/// An entry that was read.
pub(crate) struct Fetched {
    pub(crate) body: Body,
    pub(crate) origin: Option<Origin>,
}

/// What an entry says, as it stands in the log.
pub(crate) struct Spelled<'a> {
    /// The type of custom data; none of a message.
    pub(crate) custom_type: Option<Cow<'a, str>>,
    /// The JSON of the message or of the data.
    pub(crate) text: Cow<'a, str>,
    pub(crate) origin: Option<Cow<'a, str>>,
}

/// Lines that were read, as parts of longer stretches.
struct Lines {
    stretches: Vec<Vec<u8>>,
    /// The stretch that each line is in, and where.
    places: Vec<(usize, Range<usize>)>,
    /// How many were taken.
    taken: usize,
}

impl Lines {
    /// The next line, in the order in which they were asked for.
    fn take(&mut self) -> &[u8] {
        let place = self.places.get(self.taken);
        self.taken += 1;
        place.and_then(|(stretch, range)| self.stretches.get(*stretch)?.get(range.clone())).unwrap_or_default()
    }
}

/// Lines that are this close are read together.
const NEAR: u64 = 8 << 10;
/// So much is read at once, at most, unless a single line is longer.
const AT_ONCE: u64 = 4 << 20;

impl Wanted {
    pub(crate) fn of(state: &SessionState, ix: NodeIx) -> Self {
        Self { parent_id: state.parent_id(ix), ..Self::for_page(state, ix) }
    }

    /// The same for an item of a page, which does not say what it follows.
    pub(crate) fn for_page(state: &SessionState, ix: NodeIx) -> Self {
        let node = state.node(ix);
        let live = state.growing().filter(|growing| growing.node() == ix).and_then(|it| it.message());
        let live = live.map(|message| Box::new(message.clone()));
        let parts = if live.is_some() { None } else { state.body(ix) };
        let (full, grown) = parts.map_or((None, Vec::new()), |parts| (Some(parts.full), parts.grown));
        Self {
            entry_id: node.id(),
            parent_id: None,
            timestamp: node.timestamp(),
            revision: node.revision(),
            full,
            grown,
            origin: state.origin_line(ix),
            live,
        }
    }

    /// The same for an entry as it was right after a record.
    pub(crate) fn as_of(state: &SessionState, ix: NodeIx, seq: Seq) -> Self {
        let parts = state.body_parts_as_of(ix, seq);
        let (full, grown) = parts.map_or((None, Vec::new()), |parts| (Some(parts.full), parts.grown));
        Self { full, grown, live: None, ..Self::of(state, ix) }
    }

    /// The same in few bytes, if it can be said so.
    pub(crate) fn brief(&self) -> Option<Brief> {
        let is_one_line = self.live.is_none() && self.grown.is_empty();
        let full = self.full.filter(|full| is_one_line && self.origin.is_none_or(|origin| origin == *full))?;
        Some(Brief {
            entry: IdKey::of(self.entry_id.as_str()),
            parent: self.parent_id.as_ref().map(|id| IdKey::of(id.as_str())),
            timestamp: self.timestamp,
            revision: self.revision,
            full,
            has_origin: self.origin.is_some(),
        })
    }

    /// The line that says it all, if there is one.
    fn plain(&self) -> Option<Place> {
        let full = self.full.filter(|_| self.live.is_none() && self.grown.is_empty() && self.origin.is_none());
        full.map(|line| line.place)
    }

    /// Whether one line says all of it.
    fn is_one_line(&self) -> bool {
        self.full.is_some() && self.live.is_none() && self.grown.is_empty() && other_origin(self).is_none()
    }

    /// The lines that say it.
    pub(crate) fn lines(&self) -> impl Iterator<Item = Line> + '_ {
        self.full.into_iter().chain(self.grown.iter().copied()).chain(other_origin(self))
    }

    fn places(&self) -> impl Iterator<Item = Place> + '_ {
        self.lines().map(|line| line.place)
    }

    /// True when it is known to be damaged without reading it.
    pub(crate) fn is_lost(&self) -> bool {
        self.full.is_none() && self.live.is_none()
    }

    /// How many bytes are to be read for it.
    pub(crate) fn bytes(&self) -> usize {
        self.full.iter().chain(&self.grown).map(|line| line.place.len as usize).sum()
    }

    /// The entry as the contract shows it.
    pub(crate) fn entry(&self, fetched: Fetched) -> SessionEntry {
        let (id, parent_id) = (self.entry_id.clone(), self.parent_id.clone());
        let (timestamp, revision, origin) = (self.timestamp, self.revision, fetched.origin);
        match fetched.body {
            Body::Message(message) => {
                SessionEntry::Message(MessageEntry { id, parent_id, timestamp, revision, origin, message })
            }
            Body::Custom(CustomPayload { custom_type, data }) => {
                SessionEntry::Custom(CustomEntry { id, parent_id, timestamp, revision, origin, custom_type, data })
            }
        }
    }

    /// The entry as one item of a page.
    pub(crate) fn item(self, fetched: Fetched) -> MessageItem {
        let (message, custom, origin) = match fetched.body {
            Body::Message(message) => (Some(message), None, fetched.origin.as_ref().map(Origin::object)),
            Body::Custom(custom) => (None, Some(custom), None),
        };
        MessageItem { entry_id: self.entry_id, message, custom, origin, elided: false }
    }
}

impl<'a> Spelled<'a> {
    fn message(text: &'a str) -> Self {
        Self { custom_type: None, text: Cow::Borrowed(text), origin: None }
    }

    fn of(fetched: &'a Fetched) -> Self {
        let origin = fetched.origin.as_ref().map(|origin| Cow::Borrowed(origin.text()));
        match &fetched.body {
            Body::Message(message) => Self { origin, ..Self::message(message.get()) },
            Body::Custom(custom) => Self {
                custom_type: Some(Cow::Borrowed(&custom.custom_type)),
                text: Cow::Borrowed(custom.data.get()),
                origin,
            },
        }
    }

    fn into_fetched(self) -> Fetched {
        // What we stored is as we write JSON, and a checksum says that it still is.
        let body = match self.custom_type {
            None => Body::Message(Raw::vouched(&self.text)),
            Some(custom_type) => Body::Custom(CustomPayload {
                custom_type: custom_type.into_owned(),
                data: Json::from_written(&self.text),
            }),
        };
        Fetched { body, origin: self.origin.and_then(|origin| Origin::stored(&origin)) }
    }
}

impl From<&Brief> for Wanted {
    fn from(brief: &Brief) -> Self {
        Self {
            entry_id: brief.entry.to_entry_id(),
            parent_id: brief.parent.as_ref().map(IdKey::to_entry_id),
            timestamp: brief.timestamp,
            revision: brief.revision,
            full: Some(brief.full),
            grown: Vec::new(),
            origin: brief.has_origin.then_some(brief.full),
            live: None,
        }
    }
}

impl Store {
    /// Reads entries; `None` for one whose content is lost, which is noted.
    pub(crate) fn fetch(
        &self,
        sources: &[Source],
        wanted: &[impl Borrow<Wanted>],
    ) -> Result<Vec<Option<Fetched>>, Error> {
        let fetched = self.read_entries(sources, wanted)?;
        let lost = wanted.iter().zip(&fetched).filter(|(_, fetched)| fetched.is_none());
        self.note_damaged(sources, lost.map(|(wanted, _)| wanted.borrow()));
        Ok(fetched)
    }

    fn read_entries(
        &self,
        sources: &[Source],
        wanted: &[impl Borrow<Wanted>],
    ) -> Result<Vec<Option<Fetched>>, Error> {
        let wanted = || wanted.iter().map(Borrow::borrow);
        let recent = |it: &Wanted| {
            let message = self.recent.get(sources, it.plain()?)?;
            Some(Fetched { body: Body::Message(message), origin: None })
        };
        let mut fetched: Vec<Option<Fetched>> = wanted().map(recent).collect();
        let missing = wanted().zip(&fetched).filter(|(_, found)| found.is_none()).map(|(it, _)| it);
        let mut lines = self.lines(sources, &missing.flat_map(Wanted::places).collect::<Vec<_>>())?;
        for (it, found) in wanted().zip(&mut fetched).filter(|(_, found)| found.is_none()) {
            *found = self.assemble(sources, it, &mut lines)?;
            if let (Some(place), Some(Fetched { body: Body::Message(message), .. })) = (it.plain(), &found) {
                self.recent.keep(sources, place, message);
            }
        }
        Ok(fetched)
    }

    /// Gives what entries say to `visit`, in their order, without making copies of it; none for one whose content is lost or a
    /// record that an agent kept for itself. For those who look at very many entries once.
    pub(crate) fn each_spelled<E: From<Error>>(
        &self,
        sources: &[Source],
        wanted: &[&Wanted],
        mut visit: impl FnMut(usize, Option<Spelled<'_>>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut lines =
            self.lines(sources, &wanted.iter().copied().flat_map(Wanted::places).collect::<Vec<_>>())?;
        for (at, it) in wanted.iter().enumerate() {
            if it.is_one_line() {
                let line = lines.take();
                if record::holds_kept_record(line) {
                    visit(at, None)?;
                    continue;
                }
                let spelled = match it.full {
                    Some(full) => self.spelled_in(line, &Expected::of(sources, it, full))?,
                    None => None,
                };
                if spelled.is_none() {
                    self.note_damaged(sources, std::iter::once(*it));
                }
                visit(at, spelled)?;
            } else {
                let fetched = self.assemble(sources, it, &mut lines)?;
                if fetched.is_none() {
                    self.note_damaged(sources, std::iter::once(*it));
                }
                visit(at, fetched.as_ref().map(Spelled::of))?;
            }
        }
        Ok(())
    }

    /// The entry as it came from elsewhere; `None` if it is not put by one record, or if that is damaged.
    pub(crate) fn put_in(&self, sources: &[Source], wanted: &Wanted) -> Result<Option<record::EntryPut>, Error> {
        let Some(full) = wanted.full.filter(|_| wanted.grown.is_empty()) else { return Ok(None) };
        let mut lines = self.lines(sources, &[full.place])?;
        let Ok(stored) = record::parse_full(lines.take()) else { return Ok(None) };
        Ok(match (stored.envelope, stored.record) {
            (Some(envelope), StoredRecord::Own(Record::EntryPut(put))) => {
                let expected = Expected::of(sources, wanted, full);
                Some(put).filter(|put| expected.is(Some(envelope.seq), Some(put.entry_id.as_str())))
            }
            _ => None,
        })
    }

    /// Reads one entry.
    pub(crate) fn fetch_one(&self, sources: &[Source], wanted: &Wanted) -> Result<Option<Fetched>, Error> {
        Ok(self.fetch(sources, std::slice::from_ref(wanted))?.pop().flatten())
    }

    /// Makes an entry of its lines, which come next.
    fn assemble(&self, sources: &[Source], wanted: &Wanted, lines: &mut Lines) -> Result<Option<Fetched>, Error> {
        let expected = |line: Line| Expected::of(sources, wanted, line);
        let full = match wanted.full {
            Some(full) => self.spelled_in(lines.take(), &expected(full))?.map(Spelled::into_fetched),
            None => None,
        };
        let grown: Vec<Option<Vec<Addition>>> =
            wanted.grown.iter().map(|line| additions(lines.take(), &expected(*line))).collect();
        let mut origin = other_origin(wanted).and_then(|line| origin_in(lines.take(), &expected(line)));
        if let Some(message) = &wanted.live {
            return Ok(Some(Fetched { body: Body::Message(Raw::of(message.as_ref())?), origin }));
        }
        let Some(Fetched { mut body, origin: own_origin }) = full else { return Ok(None) };
        if wanted.origin.is_some() && wanted.origin == wanted.full {
            origin = own_origin;
        }
        if let Body::Message(message) = &mut body
            && !grown.is_empty()
        {
            let Some(additions) = grown.into_iter().collect::<Option<Vec<_>>>() else { return Ok(None) };
            *message = grow(message, additions.into_iter().flatten())?;
        }
        Ok(Some(Fetched { body, origin }))
    }

    /// What a full record says. `None` when it, or content that it names, is damaged, or when another record is in its place.
    fn spelled_in<'a>(&self, line: &'a [u8], expected: &Expected<'_>) -> Result<Option<Spelled<'a>>, Error> {
        if let Some(plain) = record::plain_message(line) {
            let is_right = expected.is(Some(plain.seq), Some(plain.entry_id));
            return Ok(is_right.then(|| Spelled::message(plain.message)));
        }
        let Ok(head) = Head::parse(line) else { return Ok(None) };
        if !expected.is_head(&head) {
            return Ok(None);
        }
        if let HeadKind::Legacy(_) = head.kind {
            return Ok(legacy_body(line));
        }
        let Some(text) = record::body_text(line, &head) else { return Ok(None) };
        let text = if head.blobs.is_empty() {
            Cow::Borrowed(text)
        } else {
            match record::whole_body(text, &head.blobs, |blob| self.blob(&blob.hash)) {
                Ok(text) => Cow::Owned(text),
                Err(_) => return Ok(None),
            }
        };
        let origin = head.origin.and_then(|place| std::str::from_utf8(line.get(place)?).ok()).map(Cow::Borrowed);
        let custom_type = match head.kind {
            HeadKind::Custom { custom_type, .. } => Some(Cow::Owned(custom_type.into_owned())),
            HeadKind::EntryPut(entry) if !entry.kind.is_message() => {
                Some(Cow::Owned(entry.custom_type.unwrap_or_default()))
            }
            HeadKind::Message { .. }
            | HeadKind::Updated { .. }
            | HeadKind::Settled { .. }
            | HeadKind::EntryPut(_) => None,
            _ => return Ok(None),
        };
        Ok(Some(Spelled { custom_type, text, origin }))
    }

    /// Content by its hash.
    pub(crate) fn blob(&self, hash: &str) -> Result<Vec<u8>, Error> {
        self.log
            .get_blob(hash)?
            .ok_or_else(|| Error::storage(format!("content {hash} is missing or damaged; run `banyan verify`")))
    }

    /// The bytes at each place, in the order asked for. What is near each other is read together.
    fn lines(&self, sources: &[Source], places: &[Place]) -> Result<Lines, Error> {
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_unstable_by_key(|at| (places[*at].source, places[*at].offset));
        let mut lines = Lines { stretches: Vec::new(), places: vec![(0, 0..0); places.len()], taken: 0 };
        let mut rest = order.as_slice();
        while let Some(first) = rest.first() {
            let start = places[*first];
            let mut end = start.offset + u64::from(start.len);
            let together = rest
                .iter()
                .take_while(|at| {
                    let next = places[**at];
                    let fits = next.source == start.source
                        && next.offset <= end + NEAR
                        && next.offset + u64::from(next.len) <= start.offset + AT_ONCE.max(u64::from(start.len));
                    if fits {
                        end = end.max(next.offset + u64::from(next.len));
                    }
                    fits
                })
                .count()
                .max(1);
            for at in &rest[..together] {
                let from = (places[*at].offset - start.offset) as usize;
                lines.places[*at] = (lines.stretches.len(), from..from + places[*at].len as usize);
            }
            let len = (end - start.offset) as usize;
            lines.stretches.push(self.read_source(sources, start.source, start.offset, len)?);
            rest = &rest[together..];
        }
        Ok(lines)
    }

    /// The bytes at a place.
    pub(crate) fn read_place(&self, sources: &[Source], place: Place) -> Result<Vec<u8>, Error> {
        self.read_source(sources, place.source, place.offset, place.len as usize)
    }

    fn read_source(
        &self,
        sources: &[Source],
        source: SourceIx,
        offset: u64,
        len: usize,
    ) -> Result<Vec<u8>, Error> {
        let Some(file) = sources.get(usize::from(source.0)) else { return Ok(Vec::new()) };
        let at = match source {
            SourceIx::OWN => At::Live(&file.session_id),
            _ => At::Incarnation(&file.session_id, file.born),
        };
        Ok(self.log.read(at, offset, len)?)
    }
}

/// The line that an entry's origin is on, when it is another than its content's.
fn other_origin(wanted: &Wanted) -> Option<Line> {
    wanted.origin.filter(|line| wanted.live.is_some() || Some(*line) != wanted.full)
}

/// The origin on a line.
fn origin_in(line: &[u8], expected: &Expected<'_>) -> Option<Origin> {
    Head::parse(line).ok().filter(|head| expected.is_head(head))?.origin(line)
}

/// Text that a block of a message got.
type Addition = (u32, String);

fn grow(
    message: &Raw<AgentMessage>,
    additions: impl Iterator<Item = Addition>,
) -> Result<Raw<AgentMessage>, Error> {
    let mut message = message.parse()?;
    for (block, text) in additions {
        extend_text(&mut message, block, &text);
    }
    Raw::of(&message)
}

/// What a line adds to a message, whether the line is closed or still open.
fn additions(line: &[u8], expected: &Expected<'_>) -> Option<Vec<Addition>> {
    let stored = record::parse_full(line).ok().or_else(|| record::parse_full_open(line).ok())?;
    match stored.record {
        StoredRecord::Own(Record::Grew(grew))
            if expected.is(stored.envelope.map(|envelope| envelope.seq), Some(grew.entry_id.as_str())) =>
        {
            Some(grew.adds.into_iter().map(|add| (grew.block, add.text)).collect())
        }
        _ => None,
    }
}

fn legacy_body(line: &[u8]) -> Option<Spelled<'static>> {
    use banyan_core::record::LegacyRecord as L;
    let stored = record::parse_full(line).ok()?;
    let entry = match stored.record {
        StoredRecord::Legacy(L::Entry(entry) | L::Append(entry, _)) => entry,
        _ => return None,
    };
    let owned = |text: &str| Cow::Owned(text.to_owned());
    let (custom_type, text) = match &entry {
        SessionEntry::Message(entry) => (None, owned(entry.message.get())),
        SessionEntry::Custom(entry) => (Some(owned(&entry.custom_type)), owned(entry.data.get())),
    };
    Some(Spelled { custom_type, text, origin: entry.origin().map(|origin| owned(origin.text())) })
}
