//! Taking in a session whose entries come one at a time, however many they are.
//!
//! A few are held, and committed together. More than that are put part by part, each of a few megabytes, while the next ones are read;
//! the session begins with the last part. Into a session that is there only what is new to it is held, to be committed together.

use std::collections::HashSet;

use banyan_core::decide;
use banyan_core::id_key::IdKey;
use banyan_model::{Error, SessionEntry, SessionId};
use tokio::sync::oneshot;

use super::Mode;
use crate::commit::{Held, Part, PartDone};
use crate::partial::Partial;
use crate::{Banyan, Incoming, Taken};

/// About so many bytes make a part.
const PART: usize = 4 << 20;

/// So many leaves make a part.
const LEAVES: usize = 16 << 10;

/// What is new to a session that is there is committed together, so there is a bound on it.
const MOST_NEW: usize = 512 << 20;

/// An entry takes about so many bytes besides what it says.
const BESIDES: usize = 512;

/// A session on its way in.
pub(super) struct Taking<'a> {
    banyan: &'a Banyan,
    mode: Mode,
    session_id: SessionId,
    entries: Vec<SessionEntry>,
    /// About how many bytes they have.
    size: usize,
    /// What is already there, of all that came.
    unchanged: u64,
    way: Way,
}

enum Way {
    /// There is little so far.
    Together,
    /// The session is there, or lines of one.
    Into(Held),
    /// It is not, and is put part by part.
    Parts(Parts),
    /// It is not, and nothing is to be done. These came.
    Counted(HashSet<IdKey>),
}

/// The parts of a session: there is a right to put the next one, or it comes back with the one that is under way.
enum Parts {
    Ready(Partial),
    UnderWay(oneshot::Receiver<PartDone>),
}

impl<'a> Taking<'a> {
    pub(super) fn new(banyan: &'a Banyan, session_id: SessionId, mode: Mode) -> Self {
        Self { banyan, mode, session_id, entries: Vec::new(), size: 0, unchanged: 0, way: Way::Together }
    }

    /// Takes the next entry. Its message must have been made of one, or read as one.
    pub(super) async fn push(&mut self, entry: SessionEntry) -> Result<(), Error> {
        match &mut self.way {
            Way::Together | Way::Parts(_) => {}
            Way::Counted(seen) => return count(seen, &self.session_id, &entry),
            Way::Into(held) if !held.with_state(|state| decide::adds_to(state, &entry)) => {
                self.unchanged += 1;
                return Ok(());
            }
            Way::Into(_) => {}
        }
        self.size += size_of(&entry);
        self.entries.push(entry);
        match &self.way {
            Way::Together if self.size > PART => self.choose_a_way().await,
            Way::Parts(_) if self.size > PART => self.put_part().await,
            Way::Into(_) if self.size > MOST_NEW => Err(Error::too_large(format!(
                "session `{}` is there, and more than {MOST_NEW} bytes are new to it, which is the most that is added at once",
                self.session_id
            ))),
            _ => Ok(()),
        }
    }

    /// Takes what is known by the end. Gives what came of it, and the keys of the metadata that the access has a value of its own for.
    pub(super) async fn finish(mut self, mut incoming: Incoming) -> Result<(Taken, Vec<String>), Error> {
        if let Way::Together = self.way {
            incoming.entries = self.entries;
            return self.banyan.take_in(incoming, self.mode).await;
        }
        if incoming.meta.session_id != self.session_id {
            return Err(Error::invalid_request("the file names two different sessions"));
        }
        let (metadata, replaced) = self.banyan.access.scope.impose(incoming.meta.metadata.take())?;
        incoming.meta.metadata = metadata;
        if let Way::Parts(_) = self.way {
            self.put_part().await?;
        }
        let store = &self.banyan.store;
        let taken = match self.way {
            Way::Together => Taken::default(),
            Way::Into(held) => {
                incoming.entries = self.entries;
                let decided = held.decide(store, |state, ctx| decide::import(state, incoming, ctx));
                let mut taken = if self.mode == Mode::Write {
                    store.carry_out(held, decided, None).await?
                } else {
                    store.let_go(held);
                    decided?.0.response
                };
                taken.unchanged += self.unchanged;
                taken
            }
            Way::Counted(seen) => Taken {
                created: true,
                added: seen.len() as u64,
                attachments: incoming.attachments.len() as u64,
                ..Taken::default()
            },
            Way::Parts(parts) => {
                let mut partial = parts.ready().await?;
                let ends = partial.look(|state| decide::import_ends(state, incoming.active_leaf.as_ref()));
                for ends in ends.unwrap_or_default().chunks(LEAVES) {
                    let put = partial.put(store, Part::Another, |state, _| Ok(decide::import_leaves(state, ends)));
                    partial = Parts::UnderWay(put?.1).ready().await?;
                }
                let (taken, answered) =
                    partial.put(store, Part::Last, |state, _| decide::import_end(state, incoming))?;
                Parts::UnderWay(answered).ready().await?;
                taken
            }
        };
        Ok((taken, replaced))
    }

    /// Decides what becomes of a session of which much has come.
    async fn choose_a_way(&mut self) -> Result<(), Error> {
        let store = &self.banyan.store;
        let held = store.hold_or_begin(&self.banyan.access, &self.session_id).await?;
        let (exists, is_new) = held.with_state(|state| (state.exists(), state.next_seq().0 == 0));
        if is_new && self.mode == Mode::Write {
            self.way = Way::Parts(Parts::Ready(Partial::new(store, held)));
            return self.put_part().await;
        }
        let so_far = std::mem::take(&mut self.entries);
        self.size = 0;
        self.way = if exists || self.mode == Mode::Write {
            Way::Into(held)
        } else {
            store.let_go(held);
            Way::Counted(HashSet::new())
        };
        for entry in so_far {
            // None of these comes back here.
            Box::pin(self.push(entry)).await?;
        }
        Ok(())
    }

    /// Puts what has come. It is being committed while the next entries are read.
    async fn put_part(&mut self) -> Result<(), Error> {
        let Way::Parts(parts) = std::mem::replace(&mut self.way, Way::Together) else { return Ok(()) };
        let partial = parts.ready().await?;
        let entries = std::mem::take(&mut self.entries);
        self.size = 0;
        let (_, answered) = partial
            .put(&self.banyan.store, Part::Another, |state, ctx| decide::import_part(state, entries, ctx))?;
        self.way = Way::Parts(Parts::UnderWay(answered));
        Ok(())
    }
}

impl Parts {
    /// Waits for the part that is under way.
    async fn ready(self) -> Result<Partial, Error> {
        match self {
            Self::Ready(partial) => Ok(partial),
            Self::UnderWay(answered) => {
                let done = answered.await.map_err(|_| Error::storage("the store was closed"))?;
                done.outcome?;
                Ok(done.partial)
            }
        }
    }
}

fn count(seen: &mut HashSet<IdKey>, session: &SessionId, entry: &SessionEntry) -> Result<(), Error> {
    decide::check_entry(session, entry, |id| seen.contains(&IdKey::of(id.as_str())), |_| false)?;
    seen.insert(IdKey::of(entry.id().as_str()));
    Ok(())
}

fn size_of(entry: &SessionEntry) -> usize {
    BESIDES
        + match entry {
            SessionEntry::Message(entry) => entry.message.get().len(),
            SessionEntry::Custom(entry) => entry.data.get().len(),
        }
}
