//! What has to be written so that posted messages are there: what is new in them, and nothing twice.

use std::collections::{HashMap, HashSet};

use banyan::model::{EntryId, Error, Revision};
use banyan::{NewEntry, PathState, Whereabouts};
use banyan_formats::history::{
    Comparison, Entry, Growth, HistoryMessage, Projected, Speaker, compare, entries_of, identity,
};

use super::read::{Ahead, Reader};

/// What has to be written.
pub(crate) struct Plan {
    /// Texts for the ends of messages that are there, each at a revision.
    pub(crate) growths: Vec<(Growth, Revision)>,
    /// What is appended to the leaf.
    pub(crate) entries: Vec<NewEntry>,
    pub(crate) leaf: Option<EntryId>,
    /// The messages that are new, or longer than they were.
    pub(crate) changed: Vec<Key>,
}

/// Why posted messages cannot be added.
pub(crate) struct Conflict {
    pub(crate) interaction_id: String,
    pub(crate) role: Speaker,
    pub(crate) why: &'static str,
}

/// What a message is called.
pub(crate) type Key = (String, Speaker);

const SAYS_OTHER: &str = "is there already and says something else; it can only go on where it ends";
const IS_FOLLOWED: &str = "is there already and others follow it; only the newest message can get more parts";
const IS_ELSEWHERE: &str = "is on another branch of this session; choose that branch, or post to another session";

/// A message that gets entries.
struct Pending<'a> {
    posted: &'a HistoryMessage,
    existing: Option<Projected>,
    growth: Option<(Growth, Revision)>,
    entries: Vec<banyan_formats::history::NewEntry>,
}

impl Plan {
    /// Compares messages with the path as it is.
    pub(crate) fn make(
        reader: &Reader,
        state: &PathState,
        messages: &[HistoryMessage],
    ) -> Result<Result<Self, Conflict>, Error> {
        let starts: Vec<EntryId> =
            messages.iter().flat_map(|it| identity::starts(&it.interaction_id, it.role)).collect();
        let (_, places) = reader.store.whereabouts(&reader.session_id, &starts)?;
        let on_path = starts.into_iter().zip(places).filter(|(_, place)| matches!(place, Whereabouts::OnPath(_)));
        let mut known = Known { on_path: on_path.map(|(id, _)| id).collect(), ..Known::new(reader, state) };
        let mut pending: Vec<Pending<'_>> = Vec::new();
        for message in messages {
            if let Err(why) = add(&mut pending, &mut known, message)? {
                return Ok(Err(conflict(message, why)));
            }
        }
        let ids: Vec<EntryId> =
            pending.iter().flat_map(|it| it.entries.iter().map(|entry| entry.entry_id.clone())).collect();
        let (_, places) = reader.store.whereabouts(&reader.session_id, &ids)?;
        if let Some(at) = places.iter().position(|place| *place != Whereabouts::Nowhere) {
            let its = |it: &&Pending<'_>| it.entries.iter().any(|entry| entry.entry_id == ids[at]);
            if let Some(taken) = pending.iter().find(its) {
                return Ok(Err(conflict(taken.posted, IS_ELSEWHERE)));
            }
        }
        let changed = pending.iter().map(|it| key(it.posted)).collect();
        let growths = pending.iter_mut().filter_map(|it| it.growth.take()).collect();
        let entries = pending.into_iter().flat_map(|it| it.entries).map(|entry| NewEntry {
            entry_id: entry.entry_id,
            message: entry.message,
            origin: Some(entry.origin),
        });
        Ok(Ok(Self { growths, entries: entries.collect(), leaf: state.leaf.clone(), changed }))
    }
}

fn key(message: &HistoryMessage) -> Key {
    (message.interaction_id.clone(), message.role)
}

fn conflict(message: &HistoryMessage, why: &'static str) -> Conflict {
    Conflict { interaction_id: message.interaction_id.clone(), role: message.role, why }
}

/// Adds what is new in a message to what is planned, or says why that cannot be.
fn add<'a>(
    pending: &mut Vec<Pending<'a>>,
    known: &mut Known<'_>,
    message: &'a HistoryMessage,
) -> Result<Result<(), &'static str>, Error> {
    let twin = pending.iter().position(|it| key(it.posted) == key(message));
    let existing = match twin {
        None => known.find(message)?,
        Some(at) => {
            // The same message was posted twice at once. The later one may go on where the earlier ends.
            match known.as_if_stored(pending[at].posted).map(|stored| compare(&stored, message)) {
                Some(Comparison::Same) => return Ok(Ok(())),
                Some(Comparison::Longer(_)) if at + 1 == pending.len() => {}
                Some(Comparison::Longer(_)) => return Ok(Err(IS_FOLLOWED)),
                Some(Comparison::Different) | None => return Ok(Err(SAYS_OTHER)),
            }
            pending.remove(at).existing
        }
    };
    let Some(existing) = existing else {
        let entries = entries_of(message);
        pending.push(Pending { posted: message, existing: None, growth: None, entries });
        return Ok(Ok(()));
    };
    match compare(&existing, message) {
        Comparison::Same => Ok(Ok(())),
        Comparison::Different => Ok(Err(SAYS_OTHER)),
        Comparison::Longer(rest) => {
            let others = pending.iter().any(|it| !it.entries.is_empty());
            if !rest.entries.is_empty() && (others || !known.is_newest(&existing)) {
                return Ok(Err(IS_FOLLOWED));
            }
            let growth = match rest.growth {
                Some(growth) => {
                    let revision = known.reader.revision(&growth.entry_id)?;
                    Some((growth, revision))
                }
                None => None,
            };
            pending.push(Pending { posted: message, existing: Some(existing), growth, entries: rest.entries });
            Ok(Ok(()))
        }
    }
}

/// The messages that are there, as far as they were looked for.
struct Known<'r> {
    reader: &'r Reader,
    state: &'r PathState,
    /// Which of the entries that posted messages may begin with are on the path.
    on_path: HashSet<EntryId>,
    ahead: Option<Ahead>,
    found: HashMap<Key, Projected>,
    /// Which of the messages that were found has an entry, and how many there are.
    holders: HashMap<EntryId, usize>,
    count: usize,
    /// The entries that were read since the place where reading began.
    passed: HashSet<EntryId>,
    newest: Option<Key>,
}

impl<'r> Known<'r> {
    fn new(reader: &'r Reader, state: &'r PathState) -> Self {
        let (on_path, found, holders, passed) = Default::default();
        Self { reader, state, on_path, ahead: None, found, holders, count: 0, passed, newest: None }
    }

    /// The message as it is, if it is there.
    fn find(&mut self, message: &HistoryMessage) -> Result<Option<Projected>, Error> {
        let key = key(message);
        let starts = identity::starts(&message.interaction_id, message.role);
        let Some(start) = starts.into_iter().find(|start| self.on_path.contains(start)) else { return Ok(None) };
        // Who posts a whole history asks for one message after another, so reading on finds most of them.
        if self.ahead.is_some() && !self.passed.contains(&start) {
            self.read_on()?;
        }
        if !self.passed.contains(&start) {
            let leaf = self.state.leaf.clone();
            self.ahead = Some(Ahead::from_message_of(self.reader, leaf, start.clone())?);
            self.passed.clear();
        }
        // It is the message that the entry is in, or the one right after that.
        let is_past = |known: &Self| known.holders.get(&start).is_some_and(|at| known.count > at + 1);
        while !self.found.contains_key(&key) && !is_past(self) && self.read_on()? {}
        Ok(self.found.get(&key).cloned())
    }

    /// Reads some more of the path. False at its end.
    fn read_on(&mut self) -> Result<bool, Error> {
        let Some(ahead) = &mut self.ahead else { return Ok(false) };
        let Some(messages) = ahead.next()? else {
            let newest = self.ahead.take().and_then(|ahead| ahead.finish(self.state));
            self.newest = newest.as_ref().map(|newest| key(&newest.message));
            self.keep(newest);
            return Ok(false);
        };
        self.passed.extend(ahead.passed().iter().cloned());
        self.keep(messages);
        Ok(true)
    }

    fn keep(&mut self, messages: impl IntoIterator<Item = Projected>) {
        for message in messages {
            self.holders.extend(message.entries.iter().map(|entry| (entry.clone(), self.count)));
            self.count += 1;
            self.found.entry(key(&message.message)).or_insert(message);
        }
    }

    fn is_newest(&mut self, message: &Projected) -> bool {
        self.newest.as_ref() == Some(&key(&message.message))
    }

    /// A message as it would be read if it had been written.
    fn as_if_stored(&self, message: &HistoryMessage) -> Option<Projected> {
        let mut projector = self.reader.projector();
        for entry in entries_of(message) {
            projector.push(Entry::of_message(entry.entry_id, entry.message, Some(&entry.origin)));
        }
        projector.finish()
    }
}
