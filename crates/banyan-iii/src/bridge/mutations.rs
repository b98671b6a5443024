//! The functions that change something: what each needs to know, and which rule decides.

use std::collections::BTreeSet;

use banyan::model::*;
use banyan::rules::born::Born;
use banyan::rules::decide::{self, Ctx, Decision, Ids};
use banyan::{FreshIds, content_of};

use super::{Ask, Change, Leaf, Place, Serving};

impl Serving<'_> {
    pub(super) async fn create(&self, request: CreateRequest) -> Result<CreateResponse, Error> {
        let id = FreshIds.session();
        self.mutate(("session::create", &request), Ask::of(&id), |_, ctx| {
            let mut ids = Minted(id.clone());
            let mut ctx = Ctx { now_ms: ctx.now_ms, ids: &mut ids, limits: ctx.limits };
            Ok(decided(decide::create(request.clone(), &mut ctx)))
        })
        .await
    }

    pub(super) async fn ensure(&self, request: EnsureRequest) -> Result<EnsureResponse, Error> {
        self.mutate(("session::ensure", &request), Ask::of(&request.session_id), |seen, ctx| {
            decide::ensure(&seen.state, request.clone(), ctx).map(decided)
        })
        .await
    }

    pub(super) async fn set_meta(&self, request: SetMetaRequest) -> Result<SetMetaResponse, Error> {
        self.mutate(("session::set-meta", &request), Ask::of(&request.session_id), |seen, ctx| {
            decide::set_meta(&seen.state, request.clone(), ctx).map(decided)
        })
        .await
    }

    pub(super) async fn set_status(&self, request: SetStatusRequest) -> Result<SetStatusResponse, Error> {
        self.mutate(("session::set-status", &request), Ask::of(&request.session_id), |seen, ctx| {
            decide::set_status(&seen.state, request.clone(), ctx).map(decided)
        })
        .await
    }

    pub(super) async fn delete(&self, request: DeleteRequest) -> Result<DeleteResponse, Error> {
        self.mutate(("session::delete", &request), Ask::of(&request.session_id), |seen, _| {
            let response = decide::delete(&seen.state);
            Ok((response.deleted.then_some(Change::Delete), response))
        })
        .await
    }

    pub(super) async fn append(&self, request: AppendRequest) -> Result<AppendResponse, Error> {
        let mut ask = Ask::of(&request.session_id);
        ask.entries = request.entry_id.iter().chain(&request.parent_id).cloned().collect();
        if request.parent_id.is_none() || request.expected_leaf.is_some() {
            ask.leaf = Leaf::Wanted;
        }
        self.mutate(("session::append", &request), ask, |seen, ctx| {
            decide::append(&seen.state, request.clone(), ctx).map(decided)
        })
        .await
    }

    pub(super) async fn append_many(&self, request: AppendManyRequest) -> Result<AppendManyResponse, Error> {
        let mut ask = Ask::of(&request.session_id);
        ask.entries = request.parent_id.iter().cloned().collect();
        if request.parent_id.is_none() {
            ask.leaf = Leaf::Wanted;
        }
        self.mutate(("session::append-many", &request), ask, |seen, ctx| {
            decide::append_many(&seen.state, request.clone(), ctx).map(decided)
        })
        .await
    }

    pub(super) async fn update_message(
        &self,
        request: UpdateMessageRequest,
    ) -> Result<UpdateMessageResponse, Error> {
        let ask = Ask { message: Some(request.entry_id.clone()), ..Ask::of(&request.session_id) };
        self.mutate(("session::update-message", &request), ask, |seen, ctx| {
            decide::update_message(&seen.state, request.clone(), seen.message(), ctx).map(decided)
        })
        .await
    }

    pub(super) async fn extend_message(
        &self,
        request: ExtendMessageRequest,
    ) -> Result<ExtendMessageResponse, Error> {
        let ask = Ask { message: Some(request.entry_id.clone()), ..Ask::of(&request.session_id) };
        self.mutate(("session::extend-message", &request), ask, |seen, ctx| {
            decide::extend_message(&seen.state, request.clone(), seen.message(), ctx).map(decided)
        })
        .await
    }

    pub(super) async fn set_active_leaf(
        &self,
        request: SetActiveLeafRequest,
    ) -> Result<SetActiveLeafResponse, Error> {
        let mut ask = Ask::of(&request.session_id);
        ask.entries.push(request.entry_id.clone());
        ask.leaf = Leaf::Wanted;
        self.mutate(("session::set-active-leaf", &request), ask, |seen, ctx| {
            decide::set_active_leaf(&seen.state, request.clone(), ctx).map(decided)
        })
        .await
    }

    pub(super) async fn fork(&self, request: ForkRequest) -> Result<ForkResponse, Error> {
        let ask = Ask { fork_at: Some(request.entry_id.clone()), ..Ask::of(&request.session_id) };
        self.mutate(("session::fork", &request), ask, |seen, ctx| {
            // Of a session's attachments only those on the path were asked for.
            let attachments: BTreeSet<AttachmentId> = seen.state.attachments().keys().cloned().collect();
            let decision = decide::fork(&seen.state, request.clone(), &attachments, ctx)?;
            let change = Change::Fork(decision.response.session_id.clone(), decision.records);
            Ok((Some(change), decision.response))
        })
        .await
    }

    pub(super) async fn put_attachment(
        &self,
        request: PutAttachmentRequest,
    ) -> Result<PutAttachmentResponse, Error> {
        let content = content_of(&decide::checked_attachment(&request, &self.limits())?);
        self.mutate(("session::put-attachment", &request), Ask::of(&request.session_id), |seen, ctx| {
            let decision = decide::put_attachment(&seen.state, &request, content.clone(), ctx)?;
            if let Place::Reference(_) = seen.place {
                return Err(Error::storage(
                    "the main instance keeps no attachments: it is a session-manager, whose store protocol has none",
                ));
            }
            let change = Change::Records(decision.records, vec![request.data.clone()]);
            Ok((Some(change), decision.response))
        })
        .await
    }

    pub(super) async fn delete_attachment(
        &self,
        request: DeleteAttachmentRequest,
    ) -> Result<DeleteAttachmentResponse, Error> {
        let ask = Ask { attachment_id: Some(request.attachment_id.clone()), ..Ask::of(&request.session_id) };
        self.mutate(("session::delete-attachment", &request), ask, |seen, ctx| {
            decide::delete_attachment(&seen.state, request.clone(), seen.used_by.as_ref(), ctx).map(decided)
        })
        .await
    }
}

fn decided<R>(decision: Decision<R>) -> (Option<Change>, R) {
    let Decision { records, response } = decision;
    ((!records.is_empty()).then(|| Change::Records(records, Vec::new())), response)
}

/// Ids for a session whose own is minted already, so that it could be looked for.
struct Minted(SessionId);

impl Ids for Minted {
    fn session(&mut self) -> SessionId {
        self.0.clone()
    }

    fn entry(&mut self) -> EntryId {
        FreshIds.entry()
    }

    fn attachment(&mut self) -> AttachmentId {
        FreshIds.attachment()
    }

    fn born(&mut self) -> Born {
        FreshIds.born()
    }
}
