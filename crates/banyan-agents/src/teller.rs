//! Tells a session that is read whole each time, and only what is new in it.

use std::collections::HashSet;

use banyan_model::{AgentMessage, ContentBlock, EntryId, Json, Object, SessionId};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::build::{Place, title_of};
use crate::{Head, Mark, Note, Problem, Sink, entry_id};

/// What an earlier reading told.
#[derive(Default, Serialize, Deserialize)]
struct Told {
    /// How often something that was told before had changed.
    changes: u64,
    /// A short hash of every entry, in order, in base64.
    told: String,
}

/// Tells the entries of a session one after another. Those that an earlier reading told, and that are as they were, are left out.
pub(crate) struct Teller<'a> {
    sink: &'a mut dyn Sink,
    head: Head,
    head_told: Option<Head>,
    before: Vec<u8>,
    now: Vec<u8>,
    changes: u64,
    changed: bool,
    ids: HashSet<EntryId>,
    last: Option<EntryId>,
    last_at: i64,
    /// The entry that the active path ends in, if it is not the last.
    leaf: Option<EntryId>,
}

impl<'a> Teller<'a> {
    /// Begins with what is known of the session. An empty title is made of what the user says first.
    pub(crate) fn new(sink: &'a mut dyn Sink, head: Head, mark: Option<&Mark>) -> Result<Self, Problem> {
        let told: Told = mark.and_then(|mark| mark.0.parse().ok()).unwrap_or_default();
        let before = STANDARD_NO_PAD.decode(&told.told).unwrap_or_default();
        let (now, ids) = (Vec::with_capacity(before.len()), HashSet::new());
        let changes = told.changes;
        let last_at = head.created_at;
        Ok(Self {
            sink,
            head,
            head_told: None,
            before,
            now,
            changes,
            changed: false,
            ids,
            last: None,
            last_at,
            leaf: None,
        })
    }

    /// The session's id.
    pub(crate) fn session(&self) -> SessionId {
        self.head.session.clone()
    }

    /// What is known of the session, to be added to.
    pub(crate) fn head(&mut self) -> &mut Head {
        &mut self.head
    }

    /// What follows is another beginning.
    pub(crate) fn begin_again(&mut self) {
        self.last = None;
    }

    /// The active path ends here and not in what follows.
    pub(crate) fn leaf_is_here(&mut self) {
        self.leaf.clone_from(&self.last);
    }

    /// Says something to the user.
    pub(crate) fn note(&mut self, place: impl Into<String>, what: impl Into<String>, lost: bool) {
        self.sink.note(Note { place: place.into(), what: what.into(), lost });
    }

    /// So many bytes were read.
    pub(crate) fn progress(&mut self, bytes: usize) {
        self.sink.progress(bytes as u64);
    }

    /// A message follows. `own` is true of one that we wrote there ourselves.
    pub(crate) fn message(
        &mut self,
        id: EntryId,
        own: bool,
        origin: Option<Object>,
        message: &AgentMessage,
    ) -> Result<(), Problem> {
        if let (true, AgentMessage::User(user)) = (self.head.title.is_empty(), message) {
            let text = user.content.iter().find_map(|block| match block {
                ContentBlock::Text(text) => Some(title_of(&text.text)).filter(|title| !title.is_empty()),
                _ => None,
            });
            self.head.title = text.unwrap_or_default();
        }
        let digest = Json::of(&(id.as_str(), message, &origin))?;
        let Some((id, revision)) = self.placed(id, own, digest.get())? else { return Ok(()) };
        let at = if message.timestamp() > 0 { message.timestamp() } else { self.last_at };
        self.last_at = at;
        let origin = origin.map(Object::into);
        let place = Place { id: id.clone(), parent: self.last.take(), at, revision, origin };
        self.sink.entry(&self.head.session, place.message(message)?)?;
        self.last = Some(id);
        Ok(())
    }

    /// A record of the agent's own follows. It is told once and never changes.
    pub(crate) fn custom(&mut self, id: EntryId, at: i64, custom_type: &str, data: Json) -> Result<(), Problem> {
        let digest = id.as_str().to_owned();
        let Some((id, _)) = self.placed(id, true, &digest)? else { return Ok(()) };
        let at = if at > 0 { at } else { self.last_at };
        let place = Place { id: id.clone(), parent: self.last.take(), at, revision: 0, origin: None };
        self.sink.entry(&self.head.session, place.custom(custom_type, data))?;
        self.last = Some(id);
        Ok(())
    }

    /// Ends the session. Gives the mark to go on from.
    pub(crate) fn finish(mut self) -> Result<Mark, Problem> {
        self.tell_head()?;
        let leaf = self.leaf.take().or_else(|| self.last.clone());
        if let Some(leaf) = leaf {
            self.sink.leaf(&self.head.session, &leaf)?;
        }
        let told = Told { changes: self.changes, told: STANDARD_NO_PAD.encode(&self.now) };
        Ok(Mark(Json::of(&told)?))
    }

    /// Tells what is known of the session, if it is more than was told.
    fn tell_head(&mut self) -> Result<(), Problem> {
        if self.head_told.as_ref() != Some(&self.head) {
            self.sink.head(&self.head)?;
            self.head_told = Some(self.head.clone());
        }
        Ok(())
    }

    /// The id and the revision to tell an entry with; none if there is nothing to tell.
    fn placed(&mut self, id: EntryId, own: bool, digest: &str) -> Result<Option<(EntryId, u64)>, Problem> {
        self.tell_head()?;
        let id = if self.ids.contains(&id) {
            self.note("", format!("two records have the id {id}"), false);
            entry_id(&self.head.session, &format!("{id} again {}", self.ids.len()))
        } else {
            id
        };
        self.ids.insert(id.clone());
        let hash = blake3::hash(digest.as_bytes());
        let place = self.now.len();
        self.now.extend_from_slice(&hash.as_bytes()[..4]);
        let as_before = self.before.get(place..place + 4) == self.now.get(place..place + 4);
        if as_before || (self.sink.knows(&self.head.session, &id)? && (own || self.before.is_empty())) {
            self.last = Some(id);
            return Ok(None);
        }
        if !self.sink.knows(&self.head.session, &id)? {
            return Ok(Some((id, 0)));
        }
        if !self.changed {
            self.changed = true;
            self.changes += 1;
        }
        Ok(Some((id, self.changes)))
    }
}
