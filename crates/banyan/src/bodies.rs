//! Reading what entries say. The plan is made while the session's state is held; the reading is not.

use std::borrow::Borrow;
use std::ops::Range;
use std::sync::Arc;

use banyan_core::record::{self, Head, HeadKind, Record, StoredRecord};
use banyan_core::state::{NodeIx, Place, SessionState, Source, SourceIx, extend_text};
use banyan_log::{At, SessionLog};
use banyan_model::{
    AgentMessage, CustomEntry, CustomPayload, EntryId, Error, Json, MessageEntry, MessageItem, Object, Raw,
    Revision, Seq, SessionEntry,
};

use crate::store::Store;

/// Where to find what an entry says.
pub(crate) struct Wanted {
    pub(crate) entry_id: EntryId,
    parent_id: Option<EntryId>,
    timestamp: i64,
    revision: Revision,
    full: Option<Place>,
    grown: Vec<Place>,
    origin: Option<Place>,
    /// The message of an entry that grows, which is known without reading.
    live: Option<AgentMessage>,
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
    pub(crate) origin: Option<Object>,
}

/// A line that was read, as part of a longer stretch.
#[derive(Clone)]
struct Line {
    bytes: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl Line {
    fn get(&self) -> &[u8] {
        self.bytes.get(self.range.clone()).unwrap_or_default()
    }
}

/// Lines that are this close are read together.
const NEAR: u64 = 8 << 10;
/// So much is read at once, at most, unless a single line is longer.
const AT_ONCE: u64 = 4 << 20;

impl Wanted {
    pub(crate) fn of(state: &SessionState, ix: NodeIx) -> Self {
        let node = state.node(ix);
        let live = state.growing().filter(|growing| growing.node() == ix).and_then(|it| it.message()).cloned();
        let parts = if live.is_some() { None } else { state.body(ix) };
        let (full, grown) = parts.map_or((None, Vec::new()), |parts| (Some(parts.full), parts.grown));
        Self {
            entry_id: node.id(),
            parent_id: state.parent_id(ix),
            timestamp: node.timestamp(),
            revision: node.revision(),
            full,
            grown,
            origin: state.origin_place(ix),
            live,
        }
    }

    /// The same for an entry as it was right after a record.
    pub(crate) fn as_of(state: &SessionState, ix: NodeIx, seq: Seq) -> Self {
        let parts = state.body_parts_as_of(ix, seq);
        let (full, grown) = parts.map_or((None, Vec::new()), |parts| (Some(parts.full), parts.grown));
        Self { full, grown, live: None, ..Self::of(state, ix) }
    }

    /// How many bytes are to be read for it.
    pub(crate) fn bytes(&self) -> usize {
        self.full.iter().chain(&self.grown).map(|place| place.len as usize).sum()
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
    pub(crate) fn item(&self, fetched: Fetched) -> MessageItem {
        let (message, custom, origin) = match fetched.body {
            Body::Message(message) => (Some(message), None, fetched.origin),
            Body::Custom(custom) => (None, Some(custom), None),
        };
        MessageItem { entry_id: self.entry_id.clone(), message, custom, origin, elided: false }
    }
}

impl Store {
    /// Reads entries; `None` for one whose content is lost.
    pub(crate) fn fetch(
        &self,
        sources: &[Source],
        wanted: &[impl Borrow<Wanted>],
    ) -> Result<Vec<Option<Fetched>>, Error> {
        let places: Vec<Place> = wanted
            .iter()
            .map(Borrow::borrow)
            .flat_map(|it| it.full.into_iter().chain(it.grown.iter().copied()).chain(other_origin(it)))
            .collect();
        let mut lines = self.lines(sources, &places)?.into_iter();
        let mut fetched = Vec::with_capacity(wanted.len());
        for it in wanted.iter().map(Borrow::borrow) {
            let full = it.full.and_then(|_| lines.next());
            let grown: Vec<Line> = it.grown.iter().filter_map(|_| lines.next()).collect();
            let origin = other_origin(it).and_then(|_| lines.next());
            fetched.push(self.assemble(it, full, &grown, origin)?);
        }
        Ok(fetched)
    }

    /// Reads one entry.
    pub(crate) fn fetch_one(&self, sources: &[Source], wanted: &Wanted) -> Result<Option<Fetched>, Error> {
        Ok(self.fetch(sources, std::slice::from_ref(wanted))?.pop().flatten())
    }

    fn assemble(
        &self,
        wanted: &Wanted,
        full: Option<Line>,
        grown: &[Line],
        origin: Option<Line>,
    ) -> Result<Option<Fetched>, Error> {
        let mut found_origin =
            origin.and_then(|line| Head::parse(line.get()).ok().and_then(|head| head.origin(line.get())));
        if let Some(message) = &wanted.live {
            let message = Raw::of(message)?;
            return Ok(Some(Fetched { body: Body::Message(message), origin: found_origin }));
        }
        let Some(line) = full else { return Ok(None) };
        let Some((body, own_origin)) = self.body_in(line.get())? else { return Ok(None) };
        if wanted.origin.is_some() && wanted.origin == wanted.full {
            found_origin = own_origin;
        }
        let body = match body {
            Body::Message(message) if !grown.is_empty() => match grow(&message, grown)? {
                Some(grown) => Body::Message(grown),
                None => return Ok(None),
            },
            other => other,
        };
        Ok(Some(Fetched { body, origin: found_origin }))
    }

    /// What a full record says, and its origin. `None` when it, or content that it names, is damaged.
    pub(crate) fn body_in(&self, line: &[u8]) -> Result<Option<(Body, Option<Object>)>, Error> {
        let Ok(head) = Head::parse(line) else { return Ok(None) };
        let origin = head.origin(line);
        if let HeadKind::Legacy(_) = head.kind {
            return Ok(legacy_body(line));
        }
        let Some(text) = record::body_text(line, &head) else { return Ok(None) };
        let text = if head.blobs.is_empty() {
            text.to_owned()
        } else {
            match record::whole_body(text, &head.blobs, |blob| self.blob(&blob.hash)) {
                Ok(text) => text,
                Err(_) => return Ok(None),
            }
        };
        let body = match &head.kind {
            HeadKind::Custom { custom_type, .. } => {
                let data = Json::from_text(&text)?;
                Body::Custom(CustomPayload { custom_type: custom_type.clone().into_owned(), data })
            }
            HeadKind::Message { .. } | HeadKind::Updated { .. } | HeadKind::Settled { .. } => {
                Body::Message(Raw::from_text(text)?)
            }
            _ => return Ok(None),
        };
        Ok(Some((body, origin)))
    }

    /// Content by its hash.
    pub(crate) fn blob(&self, hash: &str) -> Result<Vec<u8>, Error> {
        self.log
            .get_blob(hash)?
            .ok_or_else(|| Error::storage(format!("content {hash} is missing or damaged; run `banyan verify`")))
    }

    /// The bytes at each place, in the order asked for. What is near each other is read together.
    fn lines(&self, sources: &[Source], places: &[Place]) -> Result<Vec<Line>, Error> {
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_unstable_by_key(|at| (places[*at].source, places[*at].offset));
        let empty = Line { bytes: Arc::default(), range: 0..0 };
        let mut lines = vec![empty; places.len()];
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
            let len = (end - start.offset) as usize;
            let bytes = Arc::new(self.read_source(sources, start.source, start.offset, len)?);
            for at in &rest[..together] {
                let from = (places[*at].offset - start.offset) as usize;
                lines[*at] = Line { bytes: Arc::clone(&bytes), range: from..from + places[*at].len as usize };
            }
            rest = &rest[together..];
        }
        Ok(lines)
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
fn other_origin(wanted: &Wanted) -> Option<Place> {
    wanted.origin.filter(|place| wanted.live.is_some() || Some(*place) != wanted.full)
}

fn grow(message: &Raw<AgentMessage>, lines: &[Line]) -> Result<Option<Raw<AgentMessage>>, Error> {
    let mut message = message.parse()?;
    for line in lines {
        let Some(adds) = additions(line.get()) else { return Ok(None) };
        for (block, text) in adds {
            extend_text(&mut message, block, &text);
        }
    }
    Ok(Some(Raw::of(&message)?))
}

/// What a line adds to a message, whether the line is closed or still open.
pub(crate) fn additions(line: &[u8]) -> Option<Vec<(u32, String)>> {
    let stored = record::parse_full(line).ok().or_else(|| record::parse_full_open(line).ok())?;
    match stored.record {
        StoredRecord::Own(Record::Grew(grew)) => {
            Some(grew.adds.into_iter().map(|add| (grew.block, add.text)).collect())
        }
        _ => None,
    }
}

fn legacy_body(line: &[u8]) -> Option<(Body, Option<Object>)> {
    use banyan_core::record::LegacyRecord as L;
    let stored = record::parse_full(line).ok()?;
    let entry = match stored.record {
        StoredRecord::Legacy(L::Entry(entry) | L::Append(entry, _)) => entry,
        _ => return None,
    };
    Some(match entry {
        SessionEntry::Message(entry) => (Body::Message(entry.message), entry.origin),
        SessionEntry::Custom(entry) => {
            (Body::Custom(CustomPayload { custom_type: entry.custom_type, data: entry.data }), entry.origin)
        }
    })
}
