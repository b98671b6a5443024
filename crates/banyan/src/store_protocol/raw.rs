//! Session-manager's own store functions: things are put and read as they are, and nobody is told.
//!
//! A put is a record and a commit like any other. What is deleted goes with the session's file: `delete-entries` begins a
//! new file with the same meta, so that forks keep what they read.

use banyan_core::decide::{self, Ctx, Decision};
use banyan_core::state::{NodeIx, SessionState};
use banyan_index::ListQuery;
use banyan_model::store::{
    ActiveLeafResponse, EntryIdRequest, ListEntriesResponse, ListMetasRequest, ListMetasResponse, OkResponse,
    PutEntryRequest, PutMetaRequest, SessionIdRequest,
};
use banyan_model::{EntryId, Error, ListOrder, SessionEntry, SessionId, SessionMeta};

use crate::Banyan;
use crate::access::Access;
use crate::bodies::Wanted;
use crate::clock::now_ms;
use crate::commit::{End, Telling};
use crate::store::Store;

const DONE: OkResponse = OkResponse { ok: true };

/// How many sessions or entries are read at a time.
const AT_ONCE: usize = 256;

impl Banyan {
    pub(crate) async fn store_get_meta(&self, request: SessionIdRequest) -> Result<Option<SessionMeta>, Error> {
        let meta = |state: &SessionState| state.exists().then(|| state.meta().as_ref().clone());
        Ok(self.store.look_at_lines(&request.session_id, meta)?.flatten())
    }

    pub(crate) async fn store_put_meta(&self, request: PutMetaRequest) -> Result<OkResponse, Error> {
        let id = request.meta.session_id.clone();
        self.put(&id, |state, ctx| decide::put_meta(state, request.meta, ctx)).await
    }

    pub(crate) async fn store_delete_meta(&self, request: SessionIdRequest) -> Result<OkResponse, Error> {
        let held = self.store.find(Access::whole(), &request.session_id).await?;
        if let Some(held) = held {
            let end = End { time_ms: now_ms(), telling: Telling::Later, token: None };
            self.store.let_go(self.store.remove(held, end).await?);
        }
        Ok(DONE)
    }

    pub(crate) async fn store_list_metas(&self, _: ListMetasRequest) -> Result<ListMetasResponse, Error> {
        let order = ListOrder::CreatedAsc;
        let mut metas: Vec<SessionMeta> = Vec::new();
        loop {
            let after = metas.last().map(|last| (last.created_at, &last.session_id));
            let query = ListQuery { order, after, status: None, metadata: None, limit: AT_ONCE };
            let page = self.store.ask_catalogue(|catalogue| catalogue.list(&query))?;
            metas.extend(page.sessions);
            if !page.more {
                return Ok(ListMetasResponse { metas });
            }
        }
    }

    pub(crate) async fn store_get_entry(&self, request: EntryIdRequest) -> Result<Option<SessionEntry>, Error> {
        let entry_id = request.entry_id;
        let asked = move |state: &SessionState| state.find(&entry_id).into_iter().collect::<Vec<_>>();
        Ok(self.store.whole_entries(&request.session_id, asked)?.pop())
    }

    pub(crate) async fn store_put_entry(&self, request: PutEntryRequest) -> Result<OkResponse, Error> {
        self.put(&request.session_id, |state, ctx| decide::put_entry(state, request.entry, ctx)).await
    }

    pub(crate) async fn store_list_entries(
        &self,
        request: SessionIdRequest,
    ) -> Result<ListEntriesResponse, Error> {
        let all = |state: &SessionState| (0..state.nodes().len() as u32).map(NodeIx).collect();
        Ok(ListEntriesResponse { entries: self.store.whole_entries(&request.session_id, all)? })
    }

    pub(crate) async fn store_delete_entries(&self, request: SessionIdRequest) -> Result<OkResponse, Error> {
        let id = request.session_id;
        let held = self.store.hold_or_begin(Access::whole(), &id).await?;
        let (has_entries, meta) = held.with_state(|state| {
            (!state.nodes().is_empty(), state.exists().then(|| state.meta().as_ref().clone()))
        });
        if !has_entries {
            self.store.let_go(held);
            return Ok(DONE);
        }
        let end = End { time_ms: now_ms(), telling: Telling::Nobody, token: None };
        let held = self.store.remove(held, end).await?;
        let Some(meta) = meta else {
            self.store.let_go(held);
            return Ok(DONE);
        };
        let decided = held.decide(&self.store, |state, ctx| decide::put_meta(state, meta, ctx));
        self.store.carry_out(held, decided, None).await
    }

    pub(crate) async fn store_get_active_leaf(
        &self,
        request: SessionIdRequest,
    ) -> Result<ActiveLeafResponse, Error> {
        let leaf = self.store.look_at_lines(&request.session_id, SessionState::leaf_id)?;
        Ok(ActiveLeafResponse { entry_id: leaf.flatten() })
    }

    pub(crate) async fn store_set_active_leaf(&self, request: EntryIdRequest) -> Result<OkResponse, Error> {
        self.put_leaf(&request.session_id, Some(request.entry_id)).await
    }

    pub(crate) async fn store_delete_active_leaf(&self, request: SessionIdRequest) -> Result<OkResponse, Error> {
        self.put_leaf(&request.session_id, None).await
    }

    async fn put_leaf(&self, id: &SessionId, entry_id: Option<EntryId>) -> Result<OkResponse, Error> {
        self.put(id, |state, ctx| decide::put_leaf(state, entry_id, ctx)).await
    }

    /// Puts something into a session's file, whether or not there is a session.
    async fn put(
        &self,
        id: &SessionId,
        decide: impl FnOnce(&SessionState, &mut Ctx<'_>) -> Result<Decision<OkResponse>, Error>,
    ) -> Result<OkResponse, Error> {
        let held = self.store.hold_or_begin(Access::whole(), id).await?;
        let decided = held.decide(&self.store, decide);
        self.store.carry_out(held, decided, None).await
    }
}

impl Store {
    /// Looks at what a session's file says, whether or not that is a session. `None` when there is no file.
    pub(super) fn look_at_lines<T>(
        &self,
        id: &SessionId,
        look: impl FnOnce(&SessionState) -> T,
    ) -> Result<Option<T>, Error> {
        let session = self.session(id)?;
        // What an import has put is nobody's yet.
        let seen = session.read().state().filter(|state| !state.is_importing()).map(look);
        self.sessions.forget_absent(session);
        Ok(seen)
    }

    /// Entries with all that they say, without those whose content is lost.
    fn whole_entries(
        &self,
        id: &SessionId,
        which: impl FnOnce(&SessionState) -> Vec<NodeIx>,
    ) -> Result<Vec<SessionEntry>, Error> {
        let found = self.look_at_lines(id, |state| {
            let wanted: Vec<Wanted> = which(state).into_iter().map(|ix| Wanted::of(state, ix)).collect();
            (state.sources().to_vec(), wanted)
        })?;
        let Some((sources, wanted)) = found else { return Ok(Vec::new()) };
        let mut entries = Vec::with_capacity(wanted.len());
        for wanted in wanted.chunks(AT_ONCE) {
            let fetched = self.fetch(&sources, wanted)?;
            let read = wanted.iter().zip(fetched).filter_map(|(wanted, fetched)| Some(wanted.entry(fetched?)));
            entries.extend(read);
        }
        Ok(entries)
    }
}
