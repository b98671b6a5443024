//! Replaying messages that grew, at a cost proportional to what is read.
//!
//! A live stream carries the whole message with each addition. Replayed like that, a line of many additions costs the square of
//! its length. A line is therefore read once and applied to the message addition by addition, and events are made of all
//! additions only while the allowance lasts. Otherwise a run of additions has two events: the first, and one that joins the
//! rest. A run that is followed by a newer revision of the same entry has none.

use std::collections::HashMap;

use banyan_core::Born;
use banyan_core::event::{GrowthNarrator, Narrator};
use banyan_core::record::{self, Envelope, Grew, Record, StoredRecord};
use banyan_core::state::{NodeIx, SessionState, Source};
use banyan_model::{CommitNo, Error, Event, Seq, SessionId};

use super::narrators::{Narrators, Seed};
use crate::access::Access;
use crate::bodies::{Body, Wanted};
use crate::hub;
use crate::store::Store;

/// How much of the growth of messages a replay repeats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum GrowthDetail {
    /// Each revision, while the allowance lasts.
    #[default]
    EachRevision,
    /// The first of a run of additions, and the rest as one.
    Joined,
}

/// What a replay keeps between its steps.
pub(crate) struct GrowthLines {
    lines: HashMap<LineKey, Progress>,
    /// About how many bytes the lines hold.
    held: usize,
    /// How many bytes of whole messages may still be made of additions, see [`ALLOWANCE`].
    allowance: usize,
}

/// A line of a session's file, by where it starts.
type LineKey = (Born, u64);

/// How far a line's additions are told.
pub(super) enum Progress {
    Telling {
        growth: Box<GrowthNarrator>,
        first: usize,
        last: usize,
        each: bool,
        bytes: usize,
    },
    /// Nothing is told before the last addition, and that only if `tells_last`.
    Skipping {
        last: usize,
        tells_last: bool,
    },
}

/// The additions of a line that a replay is about.
pub(super) struct Run<'a> {
    pub(super) id: &'a SessionId,
    pub(super) born: Born,
    /// The first addition to tell.
    pub(super) first: usize,
    pub(super) upto: CommitNo,
    pub(super) detail: GrowthDetail,
}

/// How many bytes of whole messages a replay may make of additions before it has read anything, and for each byte of the lines
/// that it reads.
const ALLOWANCE: usize = 12 << 20;
const ALLOWANCE_PER_BYTE: usize = 32;
/// How many bytes of lines that are told in part are held; one is always held, however large.
const MOST_HELD: usize = 8 << 20;
/// The least that is read of a line whose length is not known. Each further read is twice what is known.
const CHUNK: usize = 512;

impl Default for GrowthLines {
    fn default() -> Self {
        Self { lines: HashMap::new(), held: 0, allowance: ALLOWANCE }
    }
}

impl GrowthLines {
    fn take(&mut self, key: &LineKey, index: usize) -> Option<Progress> {
        let progress = self.lines.remove(key)?;
        self.held -= progress.bytes();
        let goes_on = match &progress {
            Progress::Telling { last, .. } => index <= *last,
            Progress::Skipping { last, tells_last } => index < *last || (index == *last && !tells_last),
        };
        goes_on.then_some(progress)
    }

    fn keep(&mut self, key: LineKey, progress: Progress) {
        self.held += progress.bytes();
        self.lines.insert(key, progress);
    }

    fn has_room_for(&self, bytes: usize) -> bool {
        self.held == 0 || self.held + bytes <= MOST_HELD
    }

    fn spend(&mut self, bytes: usize) {
        self.allowance = self.allowance.saturating_sub(bytes);
    }
}

impl Progress {
    fn bytes(&self) -> usize {
        match self {
            Self::Telling { bytes, .. } => *bytes,
            Self::Skipping { .. } => 0,
        }
    }

    /// The addition to tell after this one; `None` when the run is over.
    pub(super) fn next_after(&self, index: usize) -> Option<usize> {
        match self {
            Self::Telling { last, each: true, .. } if index < *last => Some(index + 1),
            Self::Telling { last, .. } if index < *last => Some(*last),
            Self::Telling { .. } | Self::Skipping { .. } => None,
        }
    }

    /// The event of an addition, if it has one.
    pub(super) fn tell(&mut self, index: usize, lines: &mut GrowthLines) -> Result<Option<Event>, Error> {
        let Self::Telling { growth, first, last, each, .. } = self else { return Ok(None) };
        if !*each && index != *first && index != *last {
            return Ok(None);
        }
        let event = growth.tell_through(index)?;
        lines.spend(event.as_ref().map_or(0, hub::size_of));
        Ok(event)
    }
}

impl Store {
    /// The event of one addition in the order over all sessions. `run.first` is its index.
    pub(super) fn tell_addition(
        &self,
        run: &Run<'_>,
        offset: u64,
        lines: &mut GrowthLines,
        narrators: &mut Narrators,
    ) -> Result<Option<Event>, Error> {
        let (key, index) = ((run.born, offset), run.first);
        let mut progress = match lines.take(&key, index) {
            Some(progress) => progress,
            None => {
                let line = self.read_open_line(run.id, offset)?;
                match parse_growth(&line) {
                    Some((envelope, grew)) => {
                        self.begin_growth(run, envelope, grew, line.len(), lines, narrators)?
                    }
                    // What cannot be read once is not read again for each addition.
                    None => Progress::Skipping { last: usize::MAX, tells_last: false },
                }
            }
        };
        let event = progress.tell(index, lines)?;
        match progress {
            Progress::Telling { growth, last, .. } if index >= last => narrators.keep_growing(run.id, *growth),
            Progress::Telling { last, each: false, bytes, .. } if !lines.has_room_for(bytes) => {
                lines.keep(key, Progress::Skipping { last, tells_last: true });
            }
            Progress::Skipping { last, .. } if index >= last => {}
            progress => lines.keep(key, progress),
        }
        Ok(event)
    }

    /// Prepares telling the additions of a line from `run.first` on. The state is locked only to find out where things are.
    pub(super) fn begin_growth(
        &self,
        run: &Run<'_>,
        envelope: Envelope,
        grew: Grew,
        bytes: usize,
        lines: &mut GrowthLines,
        narrators: &mut Narrators,
    ) -> Result<Progress, Error> {
        lines.allowance = lines.allowance.saturating_add(bytes.saturating_mul(ALLOWANCE_PER_BYTE));
        let count = grew.additions_up_to(envelope.commit, run.upto);
        let Some(last) = count.checked_sub(1).filter(|last| run.first <= *last) else {
            return Ok(Progress::Skipping { last: run.first, tells_last: false });
        };
        let skipped = Progress::Skipping { last, tells_last: false };
        let narrator = narrators.take(run.id, run.born, envelope.seq);
        let found = self.look(Access::whole(), run.id, |state| {
            let ix = state.find(&grew.entry_id).filter(|_| state.born() == run.born)?;
            let seed = narrator.is_none().then(|| Seed::before(state, envelope.seq));
            Some(Found::of(state, ix, seed, envelope.seq, &grew, last))
        })?;
        let Some(mut found) = found.flatten() else { return Ok(skipped) };
        let mut narrator = match (narrator, found.seed.take()) {
            (Some(narrator), _) => narrator,
            (None, Some(seed)) => self.narrator_from(seed)?,
            (None, None) => return Ok(skipped),
        };
        let known = narrator.take_growing(&grew.entry_id);
        let each = run.detail == GrowthDetail::EachRevision
            && bytes_of_each(&found, &grew, run.first, last) <= lines.allowance
            && lines.has_room_for(bytes + found.weight);
        if !each && found.has_newer {
            narrators.put(run.id, run.born, envelope.seq, narrator);
            return Ok(skipped);
        }
        let message = match known {
            Some(message) => Some(message),
            None => match self.fetch_one(&found.sources, &found.before)?.map(|fetched| fetched.body) {
                Some(Body::Message(message)) => {
                    self.replays.read(found.before.bytes());
                    lines.spend(message.get().len());
                    message.parse().ok()
                }
                Some(Body::Custom(_)) | None => None,
            },
        };
        // By now the id may be another's, who would be told of what is not theirs. What is lost cannot be told.
        let Some(message) = message.filter(|_| self.is_still(run.id, run.born)) else { return Ok(skipped) };
        let mut growth = narrator.growth(envelope, grew, message);
        growth.skip_to(run.first);
        narrators.put(run.id, run.born, envelope.seq, narrator);
        let bytes = bytes + found.weight;
        Ok(Progress::Telling { growth: Box::new(growth), first: run.first, last, each, bytes })
    }

    /// Reads a line that may still be open, from where it starts.
    fn read_open_line(&self, id: &SessionId, offset: u64) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        loop {
            let more = self.read_past(id, offset + bytes.len() as u64, CHUNK.max(2 * bytes.len()))?;
            let end = more.iter().position(|byte| *byte == b'\n');
            bytes.extend_from_slice(&more[..end.map_or(more.len(), |end| end + 1)]);
            if end.is_some() || more.is_empty() {
                return Ok(bytes);
            }
        }
    }

    /// The metadata that a session had when a line was begun, in the outer `Some` if the line can be read.
    pub(super) fn growth_narrator_at(
        &self,
        id: &SessionId,
        born: Born,
        offset: u64,
    ) -> Result<Option<Narrator>, Error> {
        let Some((envelope, _)) = parse_growth(&self.read_open_line(id, offset)?) else { return Ok(None) };
        let seed = self.look(Access::whole(), id, |state| {
            (state.born() == born).then(|| Seed::before(state, envelope.seq))
        })?;
        let Some(seed) = seed.flatten() else { return Ok(None) };
        let narrator = self.narrator_from(seed)?;
        Ok(Some(narrator).filter(|_| self.is_still(id, born)))
    }

    /// Whether an incarnation of a session is still the one that has the id.
    pub(super) fn is_still(&self, id: &SessionId, born: Born) -> bool {
        let same = self.look(Access::whole(), id, |state| state.born() == born);
        same.is_ok_and(|same| same == Some(true))
    }
}

/// What the state knows of a line's entry.
struct Found {
    seed: Option<Seed>,
    /// The message before the line.
    before: Wanted,
    sources: Vec<Source>,
    /// About how long the message is now.
    weight: usize,
    /// Whether a newer revision is told to everyone who is told this one.
    has_newer: bool,
}

impl Found {
    fn of(state: &SessionState, ix: NodeIx, seed: Option<Seed>, seq: Seq, grew: &Grew, last: usize) -> Self {
        let node = state.node(ix);
        let metas_since = state.metas_before(Seq(u64::MAX)).count() - state.metas_before(seq).count();
        Self {
            seed,
            before: Wanted::as_of(state, ix, Seq(seq.0.saturating_sub(1))),
            sources: state.sources().to_vec(),
            weight: usize::try_from(node.weight()).unwrap_or(usize::MAX),
            // Who filters by metadata may not be told the newer one when that has changed.
            has_newer: node.revision() > grew.revision_after(last) && metas_since == 0,
        }
    }
}

/// About how many bytes the events of these additions have, when each holds the whole message, or more.
fn bytes_of_each(found: &Found, grew: &Grew, first: usize, last: usize) -> usize {
    let texts = grew.adds.iter().map(|add| add.text.len());
    // The message before the line is not longer than the lines that it is read from.
    let mut length = found.weight.saturating_sub(texts.clone().sum()).min(found.before.bytes());
    let mut bytes = length;
    for (index, text) in texts.enumerate().take(last + 1) {
        length += text;
        if index >= first {
            bytes = bytes.saturating_add(length);
        }
    }
    bytes
}

/// A `grew` line, closed or still open.
pub(super) fn parse_growth(line: &[u8]) -> Option<(Envelope, Grew)> {
    let stored = record::parse_full(line).ok().or_else(|| record::parse_full_open(line).ok())?;
    match (stored.envelope, stored.record) {
        (Some(envelope), StoredRecord::Own(Record::Grew(grew))) => Some((envelope, grew)),
        _ => None,
    }
}
