//! Sessions as a whole: create, ensure, set-meta, set-status, delete.

use banyan_model::{
    CreateRequest, CreateResponse, DeleteResponse, EnsureRequest, EnsureResponse, Error, Object, SessionId,
    SessionMeta, SessionStatus, SetMetaRequest, SetMetaResponse, SetStatusRequest, SetStatusResponse,
};

use super::{Ctx, Decision, must_exist, settle};
use crate::record::{Created, MetaSet, Record, StatusSet};
use crate::state::SessionState;

/// Begins a session under a new id.
pub fn create(request: CreateRequest, ctx: &mut Ctx<'_>) -> Decision<CreateResponse> {
    let session_id = ctx.ids.session();
    let (record, meta) = begin(session_id.clone(), request.title, request.description, request.metadata, ctx);
    Decision { records: vec![record], response: CreateResponse { session_id, meta } }
}

/// Begins a session under the caller's id unless there is one.
pub fn ensure(
    state: &SessionState,
    request: EnsureRequest,
    ctx: &mut Ctx<'_>,
) -> Result<Decision<EnsureResponse>, Error> {
    let session_id = request.session_id;
    if session_id.is_empty() {
        return Err(Error::invalid_request("`session_id` is empty; name the session, or use session::create"));
    }
    if state.exists() {
        let meta = state.meta().as_ref().clone();
        return Ok(Decision::nothing(EnsureResponse { session_id, meta, created: false }));
    }
    let (record, meta) = begin(session_id.clone(), request.title, request.description, request.metadata, ctx);
    Ok(Decision { records: vec![record], response: EnsureResponse { session_id, meta, created: true } })
}

/// Replaces title, description or metadata.
pub fn set_meta(
    state: &SessionState,
    request: SetMetaRequest,
    ctx: &Ctx<'_>,
) -> Result<Decision<SetMetaResponse>, Error> {
    must_exist(state)?;
    let mut meta = state.meta().as_ref().clone();
    let set = MetaSet { title: request.title, description: request.description, metadata: request.metadata };
    if set.title.is_none() && set.description.is_none() && set.metadata.is_none() {
        return Ok(Decision::nothing(SetMetaResponse { meta }));
    }
    if let Some(title) = &set.title {
        meta.title.clone_from(title);
    }
    if let Some(description) = &set.description {
        meta.description.clone_from(description);
    }
    if let Some(metadata) = &set.metadata {
        meta.metadata = Some(metadata.clone());
    }
    meta.updated_at = ctx.now_ms;
    Ok(Decision { records: vec![Record::MetaSet(set)], response: SetMetaResponse { meta } })
}

/// Sets the status. The same status again changes nothing, whatever the reason.
pub fn set_status(
    state: &SessionState,
    request: SetStatusRequest,
    _ctx: &Ctx<'_>,
) -> Result<Decision<SetStatusResponse>, Error> {
    must_exist(state)?;
    let response = SetStatusResponse { status: request.status, previous_status: state.meta().status };
    if response.status == response.previous_status {
        return Ok(Decision::nothing(response));
    }
    let mut records = Vec::new();
    if request.status != SessionStatus::Working {
        records.extend(settle(state)?);
    }
    let reason = request.reason.filter(|_| request.status == SessionStatus::Error);
    records.push(Record::StatusSet(StatusSet { status: request.status, reason }));
    Ok(Decision { records, response })
}

/// Whether there is anything to delete. A deleted session has no records; its log goes with it.
pub fn delete(state: &SessionState) -> DeleteResponse {
    DeleteResponse { deleted: state.exists() }
}

fn begin(
    session_id: SessionId,
    title: Option<String>,
    description: Option<String>,
    metadata: Option<Object>,
    ctx: &mut Ctx<'_>,
) -> (Record, SessionMeta) {
    let created = Created {
        session_id,
        born: ctx.ids.born(),
        title: title.unwrap_or_default(),
        description: description.unwrap_or_default(),
        metadata,
        base: None,
    };
    let meta = meta_of(&created, ctx.now_ms);
    (Record::Created(created), meta)
}

/// What a session is known by right after its beginning.
pub fn meta_of(created: &Created, now_ms: i64) -> SessionMeta {
    SessionMeta {
        session_id: created.session_id.clone(),
        title: created.title.clone(),
        description: created.description.clone(),
        status: SessionStatus::Idle,
        status_reason: None,
        metadata: created.metadata.clone(),
        forked_from: created.base.as_ref().map(|base| base.session_id.clone()),
        message_count: created.base.as_ref().map_or(0, |base| base.messages),
        created_at: now_ms,
        updated_at: now_ms,
    }
}
