//! All of a session, entry by entry, as it was at one moment: what exports are made of.

use std::collections::{HashMap, VecDeque};

use banyan_core::page::{self, Step, WalkOrder};
use banyan_core::record::{self, Record, StoredRecord};
use banyan_core::state::{Line, SessionState, Source};
use banyan_log::{At, BlobHash, SessionLog};
use banyan_model::{
    AttachmentId, AttachmentMeta, EntryId, Error, MessageEntry, Seq, SessionEntry, SessionId, SessionMeta,
};

use crate::Banyan;
use crate::bodies::{Brief, Wanted};
use crate::damage::stand_in;

/// How many entries are read at once, and about how many bytes.
const ENTRIES: usize = 256;
const BYTES: usize = 1 << 20;

/// A walk through a session. What changes meanwhile is not seen; what an entry says is read when its turn comes.
#[derive(Clone)]
pub struct Walk {
    banyan: Banyan,
    /// What the session is known by.
    pub meta: SessionMeta,
    /// Where its active path ends.
    pub active_leaf: Option<EntryId>,
    /// Its attachments, oldest first.
    pub attachments: Vec<AttachmentMeta>,
    /// Where the attachments' content is.
    pub(crate) contents: HashMap<AttachmentId, BlobHash>,
    sources: Vec<Source>,
    metas: Vec<Line>,
    /// The title, whatever becomes of it in `meta`.
    title: String,
    steps: std::vec::IntoIter<Planned>,
    ready: VecDeque<Walked>,
}

/// One step of a walk.
#[derive(Clone, Debug, PartialEq)]
pub enum Walked {
    /// An entry.
    Entry {
        /// The entry. A custom entry of type [`crate::DAMAGED`] stands in for one whose content is damaged.
        entry: SessionEntry,
        /// Whether it is on the active path.
        on_path: bool,
    },
    /// Another branch begins, of so many entries.
    BranchBegins(usize),
    /// The branch that began last has ended.
    BranchEnds,
}

#[derive(Clone)]
enum Planned {
    Brief(Brief, bool),
    Entry(Box<Wanted>, bool),
    BranchBegins(usize),
    BranchEnds,
}

impl Banyan {
    /// Begins a walk through a session.
    pub fn walk(&self, id: &SessionId, order: WalkOrder) -> Result<Walk, Error> {
        let planned = self.store.look(&self.access, id, |state| {
            let steps: Vec<Planned> =
                page::walk(state, order).into_iter().map(|step| Planned::of(state, step)).collect();
            let mut attachments: Vec<AttachmentMeta> =
                state.attachments().values().map(|attached| attached.attachment.clone()).collect();
            attachments.sort_by(|a, b| (a.created_at, &a.attachment_id).cmp(&(b.created_at, &b.attachment_id)));
            Walk {
                banyan: self.clone(),
                meta: state.meta().as_ref().clone(),
                active_leaf: state.leaf_id(),
                attachments,
                contents: (state.attachments().iter())
                    .map(|(id, attached)| (id.clone(), attached.blob.clone()))
                    .collect(),
                sources: state.sources().to_vec(),
                title: state.meta().title.clone(),
                metas: state.metas_before(Seq(u64::MAX)).collect(),
                steps: steps.into_iter(),
                ready: VecDeque::new(),
            }
        })?;
        planned.ok_or_else(|| Error::not_found(id))
    }
}

impl Planned {
    fn of(state: &SessionState, step: Step) -> Self {
        match step {
            Step::Entry(ix) => {
                let (wanted, on_path) = (Wanted::of(state, ix), state.on_path(ix));
                match wanted.brief() {
                    Some(brief) => Self::Brief(brief, on_path),
                    None => Self::Entry(Box::new(wanted), on_path),
                }
            }
            Step::BranchBegins(entries) => Self::BranchBegins(entries),
            Step::BranchEnds => Self::BranchEnds,
        }
    }

    /// The entry, and whether it is on the active path.
    fn entry(&self) -> Option<(Wanted, bool)> {
        match self {
            Self::Brief(brief, on_path) => Some((Wanted::from(brief), *on_path)),
            Self::Entry(wanted, on_path) => Some((wanted.as_ref().clone(), *on_path)),
            Self::BranchBegins(_) | Self::BranchEnds => None,
        }
    }
}

impl Walk {
    /// The titles that the session had, and since when, oldest first; the last one is the one that it has.
    pub fn titles(&self) -> Result<Vec<(i64, String)>, Error> {
        let mut titles: Vec<(i64, String)> = Vec::new();
        for Line { place, seq } in &self.metas {
            let line =
                self.banyan.store.log.read(At::Live(&self.meta.session_id), place.offset, place.len as usize)?;
            let Ok(stored) = record::parse_full(&line) else { continue };
            if stored.envelope.is_some_and(|envelope| envelope.seq != *seq) {
                continue;
            }
            let title = match stored.record {
                StoredRecord::Own(Record::Created(created)) => Some(created.title),
                StoredRecord::Own(Record::MetaSet(set)) => set.title,
                StoredRecord::Own(Record::MetaPut(put)) => Some(put.meta.title),
                _ => None,
            };
            let (Some(title), Some(envelope)) = (title, stored.envelope) else { continue };
            if titles.last().is_none_or(|(_, last)| *last != title) {
                titles.push((envelope.time_ms, title));
            }
        }
        // The file may have become another session's, or say it in an old way.
        if titles.last().is_none_or(|(_, last)| *last != self.title) {
            return Ok(vec![(self.meta.created_at, self.title.clone())]);
        }
        Ok(titles)
    }

    /// Looks at the first entries without taking them.
    pub fn peek(&mut self) -> Result<impl Iterator<Item = &SessionEntry>, Error> {
        if self.ready.is_empty() {
            self.read_on()?;
        }
        Ok(self.ready.iter().filter_map(|walked| match walked {
            Walked::Entry { entry, .. } => Some(entry),
            _ => None,
        }))
    }

    /// The last message of the active path, of those that were not taken yet.
    pub(crate) fn last_message(&self) -> Result<Option<MessageEntry>, Error> {
        for step in self.steps.as_slice().iter().rev() {
            let Some((wanted, true)) = step.entry() else { continue };
            let fetched = self.banyan.store.fetch_seen(&self.banyan.access, &self.sources, &[&wanted])?;
            let entry = fetched.into_iter().flatten().next().map(|fetched| wanted.entry(fetched));
            if let Some(SessionEntry::Message(entry)) = entry {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    fn read_on(&mut self) -> Result<(), Error> {
        let (mut planned, mut wanted, mut bytes) = (Vec::new(), Vec::new(), 0);
        while wanted.len() < ENTRIES && bytes < BYTES {
            let Some(step) = self.steps.next() else { break };
            if let Some((entry, on_path)) = step.entry() {
                bytes += entry.bytes();
                wanted.push((entry, on_path));
            }
            planned.push(step);
        }
        let all: Vec<&Wanted> = wanted.iter().map(|(wanted, _)| wanted).collect();
        let fetched = self.banyan.store.fetch_seen(&self.banyan.access, &self.sources, &all)?;
        let mut fetched = wanted.iter().zip(fetched);
        for step in planned {
            match step {
                Planned::BranchBegins(entries) => self.ready.push_back(Walked::BranchBegins(entries)),
                Planned::BranchEnds => self.ready.push_back(Walked::BranchEnds),
                Planned::Brief(..) | Planned::Entry(..) => {
                    let Some(((wanted, on_path), fetched)) = fetched.next() else { continue };
                    let entry = match fetched {
                        Some(fetched) => wanted.entry(fetched),
                        None => stand_in(wanted)?,
                    };
                    self.ready.push_back(Walked::Entry { entry, on_path: *on_path });
                }
            }
        }
        Ok(())
    }
}

impl Iterator for Walk {
    type Item = Result<Walked, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() {
            if self.steps.len() == 0 {
                return None;
            }
            if let Err(error) = self.read_on() {
                return Some(Err(error));
            }
        }
        self.ready.pop_front().map(Ok)
    }
}
