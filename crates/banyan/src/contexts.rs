//! Sessions as contexts of the Open Context Protocol. A context is found by the session's metadata, within what the handle reaches.
//!
//! What was done is kept in custom entries of their own branch, which is never the active one: a call that brings a context along must not
//! move the leaf that the call itself, or somebody else, expects.

use banyan_core::decide::{self, Ctx, Decision};
use banyan_core::state::SessionState;
use banyan_formats::ocp::{
    ACTION, CONTEXT_ID, Gathering, Kept, Received, Told, Uncounted, action_entry, action_id, mark_of, merge,
    sessions_named_by,
};
use banyan_model::{
    EntryId, Error, GetRequest, ListOrder, ListRequest, Object, SessionEntry, SessionId, SessionMeta,
    SetMetaRequest,
};

use crate::clock::{FreshIds, now_ms};
use crate::import::Mode;
use crate::walk::Walked;
use crate::{Banyan, Incoming, PathRequest, Stretch, Taken, WalkOrder};
use banyan_core::decide::Ids;

/// What came of a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tied {
    /// Its session.
    pub session_id: SessionId,
    /// Whether the session began with it.
    pub created: bool,
    /// How many actions are new.
    pub added: u64,
    /// How many actions were there already.
    pub unchanged: u64,
}

/// So much of a conversation, and so many actions, are looked at for the headers of one answer. 8 KiB have room for less.
const ENTRIES: usize = 1024;
const ENTRY_BYTES: u64 = 2 << 20;
const ACTIONS: usize = 512;
const ACTION_BYTES: u64 = 512 << 10;

impl Banyan {
    /// The session of a context, among those that this handle reaches: the oldest that names it, or the one that it was named after.
    pub async fn session_of_context(&self, context_id: &str) -> Result<Option<SessionId>, Error> {
        let wanted = Object::from_iter([(CONTEXT_ID.to_owned(), context_id.into())]);
        let request = ListRequest {
            limit: Some(1),
            metadata: Some(wanted),
            order: Some(ListOrder::CreatedAsc),
            ..ListRequest::default()
        };
        if let Some(found) = self.list(request).await?.sessions.into_iter().next() {
            return Ok(Some(found.session_id));
        }
        for session_id in sessions_named_by(context_id) {
            let found = self.get(GetRequest { session_id: session_id.clone() }).await?;
            // One that was given another context since is that one's.
            if found.is_some_and(|found| Kept::of(found.meta.metadata.as_ref()).is_none()) {
                return Ok(Some(session_id));
            }
        }
        Ok(None)
    }

    /// Puts what was received into the session of its context, which begins if there is none.
    pub async fn keep_context(&self, received: &Received, mode: Mode) -> Result<Tied, Error> {
        // Two calls that bring the same new context must not begin two sessions.
        let _only = self.store.new_contexts.lock().await;
        match self.session_of_context(&received.context.context_id).await? {
            Some(session_id) => self.add_context(&session_id, received, mode).await,
            None => self.begin_context(received, mode).await,
        }
    }

    /// Puts what was received into a session. What is there already stays, so the same again changes nothing.
    pub async fn add_context(&self, id: &SessionId, received: &Received, mode: Mode) -> Result<Tied, Error> {
        let held = self.store.hold(&self.access, id).await?;
        let decided = held.decide(&self.store, |state, ctx| decide_adding(state, received, ctx));
        if mode == Mode::DryRun {
            self.store.let_go(held);
            return Ok(decided?.0.response);
        }
        self.store.carry_out(held, decided, None).await
    }

    async fn begin_context(&self, received: &Received, mode: Mode) -> Result<Tied, Error> {
        let (session_id, now) = (FreshIds.session(), now_ms());
        let mut chain = Chain { entries: Vec::new(), last: None, unchanged: 0 };
        for action in &received.context.history {
            chain.push(action_id(&session_id, action), action, now)?;
        }
        let kept = Kept { received: without_history(received), last_action: chain.last };
        let meta = kept.session(session_id.clone(), now);
        let incoming = Incoming { meta, entries: chain.entries, active_leaf: None, attachments: Vec::new() };
        let (Taken { created, added, unchanged, .. }, _) = self.take_in(incoming, mode).await?;
        Ok(Tied { session_id, created, added, unchanged })
    }

    /// A session as a context, with all of its actions and none of its secrets.
    pub fn context(&self, id: &SessionId) -> Result<Told, Error> {
        let mut walk = self.walk(id, WalkOrder::Taken)?;
        let mut gathering = Gathering::default();
        for step in walk.by_ref() {
            gather(&mut gathering, &step?);
        }
        Ok(gathering.finish(&walk.meta))
    }

    /// The same with the newest actions only, at a cost that does not grow with the session; and how much is older.
    pub fn newest_context(&self, id: &SessionId) -> Result<(Told, Uncounted), Error> {
        let (meta, last, actions) =
            self.store.look(&self.access, id, newest_action)?.ok_or_else(|| Error::not_found(id))?;
        let mut gathering = Gathering::default();
        let mut uncounted = Uncounted::default();
        if last.is_some() {
            let page = self.path(&PathRequest {
                session_id: id.clone(),
                leaf: last,
                stretch: Stretch::Newest,
                entries: ACTIONS,
                bytes: ACTION_BYTES,
            })?;
            uncounted.older_actions = actions.saturating_sub(page.entries.len() as u64);
            page.entries.iter().for_each(|entry| gathering.entry(entry));
        }
        let page = self.path(&PathRequest {
            session_id: id.clone(),
            leaf: None,
            stretch: Stretch::Newest,
            entries: ENTRIES,
            bytes: ENTRY_BYTES,
        })?;
        page.entries.iter().for_each(|entry| gathering.entry(entry));
        if let Some(oldest) = page.next {
            let depth = |state: &SessionState| state.find(&oldest).map(|ix| u64::from(state.node(ix).depth()));
            uncounted.entries = self.store.look(&self.access, id, depth)?.flatten().unwrap_or(0);
        }
        Ok((gathering.finish(&meta), uncounted))
    }
}

/// Takes a step of a walk into a gathering: what is on the active path, and actions wherever they are.
pub(crate) fn gather(gathering: &mut Gathering, step: &Walked) {
    if let Walked::Entry { entry, on_path } = step {
        let is_action = matches!(entry, SessionEntry::Custom(custom) if custom.custom_type == ACTION);
        if *on_path || is_action {
            gathering.entry(entry);
        }
    }
}

/// What a session is known by, its newest action, and how many there are up to that.
fn newest_action(state: &SessionState) -> (SessionMeta, Option<EntryId>, u64) {
    let last = Kept::of(state.metadata().map(AsRef::as_ref)).and_then(|kept| kept.last_action);
    let found = last.and_then(|last| Some((state.find(&last)?, last)));
    let count = found.as_ref().map_or(0, |(ix, _)| u64::from(state.node(*ix).depth()) + 1);
    (state.meta().as_ref().clone(), found.map(|(_, last)| last), count)
}

/// New actions, each after the one before.
struct Chain {
    entries: Vec<SessionEntry>,
    last: Option<EntryId>,
    unchanged: u64,
}

impl Chain {
    fn push(&mut self, id: EntryId, action: &banyan_formats::ocp::Action, now: i64) -> Result<(), Error> {
        let entry = action_entry(id.clone(), self.last.replace(id), action, now)?;
        self.entries.push(SessionEntry::Custom(entry));
        Ok(())
    }
}

fn without_history(received: &Received) -> Received {
    let mut bare = received.clone();
    bare.context.history.clear();
    bare.ignored.clear();
    bare
}

fn decide_adding(state: &SessionState, received: &Received, ctx: &mut Ctx<'_>) -> Result<Decision<Tied>, Error> {
    let session_id = state.session_id().clone();
    let before = Kept::of(state.metadata().map(AsRef::as_ref));
    let context_id = &received.context.context_id;
    if let Some(before) = before.as_ref().filter(|before| before.received.context.context_id != *context_id) {
        let theirs = &before.received.context.context_id;
        return Err(Error::conflict(format!(
            "session `{session_id}` has context `{theirs}`, and this is `{context_id}`"
        )));
    }
    // A fork has what its source kept, but not the source's actions.
    let last =
        before.as_ref().and_then(|before| before.last_action.clone()).filter(|last| state.find(last).is_some());
    let mut chain = Chain { entries: Vec::new(), last, unchanged: 0 };
    for action in &received.context.history {
        let id = action_id(&session_id, action);
        let here = |id: &EntryId| state.find(id).is_some();
        match here(&id) || mark_of(action).is_some_and(|mark| here(&mark)) {
            true => chain.unchanged += 1,
            false => chain.push(id, action, ctx.now_ms)?,
        }
    }
    let given = without_history(received);
    let merged = before.as_ref().map_or_else(|| given.clone(), |before| merge(&before.received, &given));
    let after = Kept { received: merged, last_action: chain.last };
    let added = chain.entries.len() as u64;
    let meta = state.meta().as_ref().clone();
    let incoming =
        Incoming { meta: meta.clone(), entries: chain.entries, active_leaf: None, attachments: Vec::new() };
    let mut records = decide::import(state, incoming, ctx)?.records;
    if before.is_none_or(|before| is_other(before, &after)) {
        let mut metadata = meta.metadata.unwrap_or_default();
        after.put_into(&mut metadata);
        let context = &after.received.context;
        let when_empty = |there: &str, text: &Option<String>| text.clone().filter(|_| there.is_empty());
        let request = SetMetaRequest {
            session_id: session_id.clone(),
            title: when_empty(&meta.title, &context.current_goal),
            description: when_empty(&meta.description, &context.context_summary),
            metadata: Some(metadata),
        };
        records.extend(decide::set_meta(state, request, ctx)?.records);
    }
    let response = Tied { session_id, created: false, added, unchanged: chain.unchanged };
    Ok(Decision { records, response })
}

/// Whether something changed besides the time at which it was said. A client that sends an answer's context back says nothing new.
fn is_other(mut before: Kept, after: &Kept) -> bool {
    before.received.context.last_updated.clone_from(&after.received.context.last_updated);
    before != *after
}
