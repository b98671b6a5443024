//! Entries whose content turns out to be damaged when it is read: each is counted, and logged once.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use banyan_core::Born;
use banyan_core::page;
use banyan_core::record::Head;
use banyan_core::state::{Line, Place, SessionState, Source};
use banyan_model::{CustomEntry, DamagedEntry, Error, Json, SessionEntry};

use crate::Banyan;
use crate::access::Access;
use crate::bodies::Wanted;
use crate::expected::Expected;
use crate::sessions::Loaded;
use crate::store::Store;

/// The type of the custom entry that stands in for a damaged one wherever a whole session is shown or exported.
pub const DAMAGED: &str = page::DAMAGED;

/// How many damaged entries are remembered, so that each is counted and logged once.
const MOST: usize = 1 << 16;

/// The damaged entries that this process has met, by the place of their full record.
#[derive(Default)]
pub(crate) struct DamagedEntries {
    met: Mutex<HashSet<(Born, u64, Met)>>,
    count: AtomicUsize,
}

/// When an entry was found to be damaged.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Met {
    /// When its session was loaded. The place may be that of a line which only names the entry.
    Loading,
    /// When it was read.
    Reading,
}

impl DamagedEntries {
    /// How many were met. Beyond 65,536 they are not counted.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// True when the entry with this full record was read and found to be damaged.
    pub(crate) fn has(&self, sources: &[Source], place: Place) -> bool {
        key(sources, place, Met::Reading).is_some_and(|key| self.met().contains(&key))
    }

    /// Remembers an entry; false when it was met before, or when there is no room for more.
    fn add(&self, sources: &[Source], place: Place, when: Met) -> bool {
        let Some(key) = key(sources, place, when) else { return false };
        let mut met = self.met();
        let is_new = met.len() < MOST && met.insert(key);
        self.count.store(met.len(), Ordering::Relaxed);
        is_new
    }

    fn met(&self) -> MutexGuard<'_, HashSet<(Born, u64, Met)>> {
        self.met.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(sources: &[Source], place: Place, when: Met) -> Option<(Born, u64, Met)> {
    sources.get(usize::from(place.source.0)).map(|source| (source.born, place.offset, when))
}

impl Banyan {
    /// How many entries with damaged content were met since the store was opened.
    pub fn damaged_entries(&self) -> u64 {
        self.store.damaged.count() as u64
    }
}

impl Store {
    /// Counts the entries of a session that are damaged already when it is loaded; the warnings about its lines name them.
    pub(crate) fn note_loaded_damage(&self, state: &SessionState) {
        for node in state.nodes().iter().filter(|node| node.is_damaged()) {
            self.damaged.add(state.sources(), node.place(), Met::Loading);
        }
    }

    /// Notes entries that could not be read. Nothing is noted when the session has ended: its name may stand for another's file.
    pub(crate) fn note_damaged<'w>(&self, sources: &[Source], lost: impl Iterator<Item = &'w Wanted>) {
        let mut lost = lost.peekable();
        if lost.peek().is_none() || !self.is_loaded(sources) {
            return;
        }
        for wanted in lost {
            self.note_damaged_entry(sources, wanted);
        }
    }

    /// The same for one entry of a session that is known to be there.
    pub(crate) fn note_damaged_entry(&self, sources: &[Source], wanted: &Wanted) {
        // An entry without a full record is damaged already when the session is loaded.
        let (Some(full), Some(own)) = (wanted.full, sources.first()) else { return };
        if self.damaged.add(sources, full.place, Met::Reading) {
            let reason = wanted.lines().find_map(|line| self.fault_of(sources, wanted, line));
            let reason = reason.unwrap_or_else(|| "its content is not whole".to_owned());
            self.warn(&format!(
                "session {}: entry `{}` is damaged and left out of answers: {reason}",
                own.session_id, wanted.entry_id
            ));
        }
    }

    /// True when a session is in memory with this incarnation. Blocks on nothing, so it may be called with its state held.
    fn is_loaded(&self, sources: &[Source]) -> bool {
        let Some(own) = sources.first() else { return false };
        let Some(session) = self.sessions.peek(&own.session_id) else { return false };
        session.try_read().is_some_and(|loaded| match &*loaded {
            Loaded::Present(state) => state.born() == own.born,
            Loaded::Absent(_) | Loaded::NotYet => false,
        })
    }

    /// What is wrong with a line of an entry; `None` when it is as it should be.
    fn fault_of(&self, sources: &[Source], wanted: &Wanted, line: Line) -> Option<String> {
        let bytes = self.read_place(sources, line.place).ok()?;
        let head = match Head::parse(&bytes) {
            Ok(head) => head,
            Err(fault) => return Some(fault.to_string()),
        };
        let expected = Expected::of(sources, wanted, line);
        if !expected.is_head(&head) {
            return Some("another record stands in its place".to_owned());
        }
        let missing = head.blobs.iter().find(|blob| self.blob(&blob.hash).is_err())?;
        Some(format!("content {} is missing or damaged", missing.hash))
    }

    /// How an answer names damaged entries of a session. Those that are gone by now are left out.
    pub(crate) fn describe_damaged<'w>(
        &self,
        sources: &[Source],
        lost: impl Iterator<Item = &'w Wanted>,
    ) -> Result<Vec<DamagedEntry>, Error> {
        let mut lost = lost.peekable();
        let Some(own) = sources.first().filter(|_| lost.peek().is_some()) else { return Ok(Vec::new()) };
        let described = self.look(Access::whole(), &own.session_id, |state| {
            let entries = lost.filter_map(|wanted| state.find(&wanted.entry_id));
            entries.map(|ix| page::damaged_entry(state, ix)).collect()
        })?;
        Ok(described.unwrap_or_default())
    }
}

/// True for what stands in for a damaged entry.
pub(crate) fn is_stand_in(entry: &SessionEntry) -> bool {
    matches!(entry, SessionEntry::Custom(entry) if entry.custom_type == DAMAGED)
}

/// What stands in for a damaged entry where a whole session is shown: its place, and words for people.
pub(crate) fn stand_in(wanted: &Wanted) -> Result<SessionEntry, Error> {
    let display = format!("[entry {} is damaged and was left out]", wanted.entry_id);
    Ok(SessionEntry::Custom(CustomEntry {
        id: wanted.entry_id.clone(),
        parent_id: wanted.parent_id.clone(),
        timestamp: wanted.timestamp,
        revision: wanted.revision,
        origin: None,
        custom_type: DAMAGED.to_owned(),
        data: Json::of(&serde_json::json!({ "display": display }))?,
    }))
}
