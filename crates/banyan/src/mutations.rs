//! The functions that change something.

use std::collections::BTreeSet;
use std::sync::Arc;

use banyan_core::content;
use banyan_core::decide;
use banyan_core::state::{NodeIx, SessionState};
use banyan_index::FileKey;
use banyan_log::Removal;
use banyan_model::*;

use crate::Banyan;
use crate::access::Access;
use crate::bodies::{Body, Wanted};
use crate::clock::{FreshIds, now_ms};
use crate::commit::{Change, ChangeKind, End, Held, Telling};
use crate::sessions::Loaded;
use crate::store::Store;
use crate::store_protocol::Token;
use crate::tombstone::Tombstone;

impl Banyan {
    /// Starts a session.
    pub async fn create(&self, mut request: CreateRequest) -> Result<CreateResponse, Error> {
        request.metadata = self.access.scope.put_into(request.metadata)?;
        let time_ms = now_ms();
        let limits = self.store.settings.limits();
        let decision = decide::create(request, &mut decide::Ctx { now_ms: time_ms, ids: &mut FreshIds, limits });
        let held = self.store.hold_new(&self.access, &decision.response.session_id).await?;
        self.store.carry_out(held, Ok((decision, time_ms)), None).await
    }

    /// Makes sure that a session with this id exists; an existing one is left as it is.
    pub async fn ensure(&self, mut request: EnsureRequest) -> Result<EnsureResponse, Error> {
        request.metadata = self.access.scope.put_into(request.metadata)?;
        let held = self.store.hold_or_begin(&self.access, &request.session_id).await?;
        let decided = held.decide(&self.store, |state, ctx| decide::ensure(state, request, ctx));
        self.store.carry_out(held, decided, None).await
    }

    /// Sets a session's title, description or metadata.
    pub async fn set_meta(&self, mut request: SetMetaRequest) -> Result<SetMetaResponse, Error> {
        if request.metadata.is_some() {
            request.metadata = self.access.scope.put_into(request.metadata)?;
        }
        let id = request.session_id.clone();
        self.store.mutate(&self.access, &id, |state, ctx| decide::set_meta(state, request, ctx)).await
    }

    /// Sets a session's status.
    pub async fn set_status(&self, request: SetStatusRequest) -> Result<SetStatusResponse, Error> {
        let id = request.session_id.clone();
        self.store.mutate(&self.access, &id, |state, ctx| decide::set_status(state, request, ctx)).await
    }

    /// Appends a message or a custom entry. Repeating an `entry_id` changes nothing.
    pub async fn append(&self, request: AppendRequest) -> Result<AppendResponse, Error> {
        let id = request.session_id.clone();
        self.store.mutate(&self.access, &id, |state, ctx| decide::append(state, request, ctx)).await
    }

    /// Appends several messages, all or none.
    pub async fn append_many(&self, request: AppendManyRequest) -> Result<AppendManyResponse, Error> {
        let id = request.session_id.clone();
        self.store.mutate(&self.access, &id, |state, ctx| decide::append_many(state, request, ctx)).await
    }

    /// Appends messages under ids of the caller's own, all or none, if the active leaf is still the expected one.
    pub async fn append_entries(
        &self,
        id: &SessionId,
        expected_leaf: Option<&EntryId>,
        entries: Vec<decide::NewEntry>,
    ) -> Result<(), Error> {
        let decided = |state: &SessionState, ctx: &mut decide::Ctx<'_>| {
            decide::append_entries(state, expected_leaf, entries, ctx)
        };
        self.store.mutate(&self.access, id, decided).await
    }

    /// Adds text to messages and appends others, all or none, if the former are at their expected revisions and the
    /// active leaf is the expected one. Otherwise it is a conflict.
    pub async fn extend_and_append(
        &self,
        id: &SessionId,
        growths: Vec<ExtendMessageRequest>,
        expected_leaf: Option<&EntryId>,
        entries: Vec<decide::NewEntry>,
    ) -> Result<(), Error> {
        let held = self.store.hold(&self.access, id).await?;
        let current = growths.iter().map(|growth| self.store.current_message(&held, &growth.entry_id));
        let current = current.collect::<Result<Vec<_>, _>>()?;
        let decided = held.decide(&self.store, |state, ctx| {
            decide::extend_and_append(state, growths, &current, expected_leaf, entries, ctx)
        });
        self.store.carry_out(held, decided, None).await
    }

    /// Replaces a message's content.
    pub async fn update_message(&self, request: UpdateMessageRequest) -> Result<UpdateMessageResponse, Error> {
        let held = self.store.hold(&self.access, &request.session_id).await?;
        let current = self.store.current_message(&held, &request.entry_id)?;
        let decided =
            held.decide(&self.store, |state, ctx| decide::update_message(state, request, current.as_ref(), ctx));
        self.store.carry_out(held, decided, current).await
    }

    /// Adds text to the end of a message's block.
    pub async fn extend_message(&self, request: ExtendMessageRequest) -> Result<ExtendMessageResponse, Error> {
        let held = self.store.hold(&self.access, &request.session_id).await?;
        let current = self.store.current_message(&held, &request.entry_id)?;
        let decided =
            held.decide(&self.store, |state, ctx| decide::extend_message(state, request, current.as_ref(), ctx));
        self.store.carry_out(held, decided, current).await
    }

    /// Makes the active path end at an entry.
    pub async fn set_active_leaf(&self, request: SetActiveLeafRequest) -> Result<SetActiveLeafResponse, Error> {
        let id = request.session_id.clone();
        self.store.mutate(&self.access, &id, |state, ctx| decide::set_active_leaf(state, request, ctx)).await
    }

    /// Starts a new session from the path up to an entry.
    pub async fn fork(&self, request: ForkRequest) -> Result<ForkResponse, Error> {
        let held = self.store.hold(&self.access, &request.session_id).await?;
        let attachments = self.store.attachments_above(&held, &request.entry_id)?;
        let time_ms = now_ms();
        let limits = self.store.settings.limits();
        let decision = {
            let mut ctx = decide::Ctx { now_ms: time_ms, ids: &mut FreshIds, limits };
            let missing = Error::not_found(&request.session_id);
            held.look(|state| decide::fork(state, request, &attachments, &mut ctx)).unwrap_or(Err(missing))?
        };
        let fork = self.store.hold_new(&self.access, &decision.response.session_id).await?;
        let response = decision.response.clone();
        self.store.commit_fork(held, fork, decision, time_ms, None).await?;
        Ok(response)
    }

    /// Deletes a session and its entries. Forks of it stay as they are.
    pub async fn delete(&self, request: DeleteRequest) -> Result<DeleteResponse, Error> {
        let gone = DeleteResponse { deleted: false };
        let Some(held) = self.store.find(&self.access, &request.session_id).await? else { return Ok(gone) };
        let end = End { time_ms: now_ms(), telling: Telling::Everyone, token: None };
        self.store.let_go(self.store.remove(held, end).await?);
        Ok(DeleteResponse { deleted: true })
    }
}

impl Store {
    /// Commits a fork. Its source stays held until the fork is known, so that it cannot be deleted in between.
    pub(crate) async fn commit_fork(
        self: &Arc<Self>,
        source: Held,
        fork: Held,
        decision: decide::ForkDecision,
        time_ms: i64,
        token: Option<Token>,
    ) -> Result<(), Error> {
        let mut changes = Vec::new();
        let mut source = Some(source);
        if !decision.source_records.is_empty()
            && let Some(held) = source.take()
        {
            let records = decision.source_records;
            changes.push(Change { held, records, time_ms, before: None, kind: ChangeKind::Own });
        }
        let kind = ChangeKind::Fork(Box::new(decision.response.meta));
        changes.push(Change { held: fork, records: decision.records, time_ms, before: None, kind });
        self.commit(changes, source, token).await
    }

    /// Ends a session that is held.
    pub(crate) async fn remove(self: &Arc<Self>, held: Held, end: End) -> Result<Held, Error> {
        let found = held.with_state(|state| {
            (
                state.session_id().clone(),
                state.born(),
                base_key(state),
                state.exists(),
                tombstone(state, end.time_ms),
            )
        });
        let (session, born, base, exists, tombstone) = found;
        let key = FileKey { session_id: session.clone(), born: born.to_string() };
        let permit = self.holds.begin_removal();
        // The catalogue is derived, so it is not believed that there is none.
        let keep_for_forks = permit.is_held()
            || !self.with_reserve(|catalogue| catalogue.forks(&key))?.is_empty()
            || self.log.has_registered_fork(born);
        let blobs = match keep_for_forks {
            true => Vec::new(),
            false => self.with_reserve(|catalogue| catalogue.blobs_of(&key))?,
        };
        let blobs: Vec<String> = blobs.iter().map(|hash| hash.to_hex().to_string()).collect();
        let has_blobs = !blobs.is_empty();
        // The end of what was no session is nothing to tell, then or later.
        let tombstone = if exists && end.telling != Telling::Nobody { tombstone } else { Vec::new() };
        let removal = Removal { session, born, tombstone, keep_for_forks, blobs };
        let held = self.commit_removal(held, removal, end).await?;
        drop(permit);
        self.release_base(base);
        if has_blobs {
            self.collect_garbage();
        }
        Ok(held)
    }

    /// The message that an update is about, unless the state has it or there is none.
    pub(crate) fn current_message(&self, held: &Held, entry_id: &EntryId) -> Result<Option<AgentMessage>, Error> {
        let found = held.look(|state| {
            let wanted = |ix: &NodeIx| state.node(*ix).kind().is_message() && !grows(state, *ix);
            let ix = state.find(entry_id).filter(wanted)?;
            Some((state.sources().to_vec(), Wanted::of(state, ix)))
        });
        let Some((sources, wanted)) = found.flatten() else { return Ok(None) };
        match self.fetch_one(&sources, &wanted)?.map(|fetched| fetched.body) {
            Some(Body::Message(message)) => Ok(Some(message.parse()?)),
            _ => Ok(None),
        }
    }

    /// The attachments that messages on the path to an entry refer to.
    pub(crate) fn attachments_above(
        &self,
        held: &Held,
        entry_id: &EntryId,
    ) -> Result<BTreeSet<AttachmentId>, Error> {
        let chain = held.look(|state| match state.attachments().is_empty() {
            true => None,
            false => state.find(entry_id).and_then(|ix| state.chain(ix)),
        });
        let chain = chain.flatten().unwrap_or_default();
        let mut found = BTreeSet::new();
        self.each_message(held, &chain, &mut |_, message| found.extend(content::attachments_in(message)))?;
        Ok(found)
    }

    /// Reads messages of a held session, some at a time.
    pub(crate) fn each_message(
        &self,
        held: &Held,
        nodes: &[NodeIx],
        visit: &mut dyn FnMut(&EntryId, &AgentMessage),
    ) -> Result<(), Error> {
        for nodes in nodes.chunks(256) {
            let found = held.look(|state| {
                let messages = nodes.iter().filter(|ix| state.node(**ix).kind().is_message());
                let wanted: Vec<Wanted> = messages.map(|ix| Wanted::of(state, *ix)).collect();
                (state.sources().to_vec(), wanted)
            });
            let Some((sources, wanted)) = found else { return Ok(()) };
            for (it, fetched) in wanted.iter().zip(self.fetch(&sources, &wanted)?) {
                if let Some(Body::Message(message)) = fetched.map(|fetched| fetched.body) {
                    visit(&it.entry_id, &message.parse()?);
                }
            }
        }
        Ok(())
    }

    /// Writes every growing message whole, before the store closes.
    pub(crate) fn settle_all(self: &std::sync::Arc<Self>) {
        for session in self.sessions.all() {
            let growing = matches!(&*session.read(), Loaded::Present(state) if state.growing().is_some() && state.newer().is_none());
            if growing {
                let settled = crate::block_on(self.mutate(Access::whole(), &session.id, |state, _| {
                    Ok(decide::Decision { records: decide::settle(state)?.into_iter().collect(), response: () })
                }));
                // A session that ended meanwhile has nothing left to settle.
                if let Err(error) = settled.or_else(|error| match error.code {
                    ErrorCode::NotFound => Ok(()),
                    _ => Err(error),
                }) {
                    self.warn(&format!("session {}: {error}", session.id));
                }
            }
        }
    }
}

fn grows(state: &SessionState, ix: NodeIx) -> bool {
    state.growing().is_some_and(|growing| growing.node() == ix && growing.message().is_some())
}

fn base_key(state: &SessionState) -> Option<FileKey> {
    state.base().map(|base| FileKey { session_id: base.session_id.clone(), born: base.born.to_string() })
}

/// What the journal keeps of a deleted session.
fn tombstone(state: &SessionState, timestamp: i64) -> Vec<u8> {
    Tombstone::of(timestamp, state.born(), state.metadata().map(std::convert::AsRef::as_ref)).encode()
}
