//! Branches: fork, set-active-leaf.

use std::collections::BTreeSet;

use banyan_model::{
    AttachmentId, AttachmentMeta, Error, ForkRequest, ForkResponse, Object, Seq, SetActiveLeafRequest,
    SetActiveLeafResponse,
};

use super::lifecycle::meta_of;
use super::{Ctx, Decision, must_exist, must_find, settle};
use crate::record::{Attached, Base, Created, LeafMoved, Record};
use crate::state::{NodeIx, SessionState};

/// What a fork writes, in one commit, to two sessions.
#[derive(Clone, Debug, PartialEq)]
pub struct ForkDecision {
    /// What is written to the session forked from, first.
    pub source_records: Vec<Record>,
    /// What the fork begins with.
    pub records: Vec<Record>,
    /// The answer, once both are durable.
    pub response: ForkResponse,
}

/// Begins a session that shares the path from the root to an entry.
///
/// `attachments` are those that the messages on the path refer to; they need only be looked for if the session has any.
pub fn fork(
    state: &SessionState,
    request: ForkRequest,
    attachments: &BTreeSet<AttachmentId>,
    ctx: &mut Ctx<'_>,
) -> Result<ForkDecision, Error> {
    must_exist(state)?;
    let ix = must_find(state, &request.entry_id)?;
    if state.is_endless(ix) {
        return Err(Error::storage(format!(
            "the parents of entry `{}` form a cycle, so there is no path to fork",
            request.entry_id
        )));
    }
    let source_records = settle_above(state, ix)?;
    let session_id = ctx.ids.session();
    let created = Created {
        session_id: session_id.clone(),
        born: ctx.ids.born(),
        title: request.title.unwrap_or_else(|| state.meta().title.clone()),
        description: state.meta().description.clone(),
        metadata: state.metadata().map(|metadata| Object::clone(metadata)),
        base: Some(Base {
            session_id: state.session_id().clone(),
            born: state.born(),
            seq: Seq((state.next_seq().0 + source_records.len() as u64).saturating_sub(1)),
            entry_id: request.entry_id,
            entries: u64::from(state.node(ix).depth()) + 1,
            messages: state.node(ix).messages_on_path(),
        }),
    };
    let meta = meta_of(&created, ctx.now_ms);
    let mut records = vec![Record::Created(created)];
    for attached in attachments.iter().filter_map(|id| state.attachments().get(id)) {
        let attachment = AttachmentMeta { session_id: session_id.clone(), ..attached.attachment.clone() };
        records.push(Record::Attached(Attached { attachment, blob: attached.blob.clone() }));
    }
    Ok(ForkDecision { source_records, records, response: ForkResponse { session_id, meta } })
}

/// The record that writes a growing message whole which a fork at this entry inherits, if there is one.
pub(super) fn settle_above(state: &SessionState, ix: NodeIx) -> Result<Vec<Record>, Error> {
    match state.growing() {
        Some(growing) if is_above(state, growing.node(), ix) => Ok(settle(state)?.into_iter().collect()),
        _ => Ok(Vec::new()),
    }
}

/// Chooses the entry that the next append follows.
pub fn set_active_leaf(
    state: &SessionState,
    request: SetActiveLeafRequest,
    _ctx: &Ctx<'_>,
) -> Result<Decision<SetActiveLeafResponse>, Error> {
    must_exist(state)?;
    let ix = must_find(state, &request.entry_id)?;
    let response = SetActiveLeafResponse { active_leaf: request.entry_id.clone() };
    if state.leaf() == Some(ix) {
        return Ok(Decision::nothing(response));
    }
    Ok(Decision { records: vec![Record::LeafMoved(LeafMoved { entry_id: request.entry_id })], response })
}

/// True when `above` is on the path from the root to `ix`, itself included.
fn is_above(state: &SessionState, above: NodeIx, ix: NodeIx) -> bool {
    let depth = state.node(above).depth();
    if state.on_path(ix) {
        return depth <= state.node(ix).depth() && state.on_path(above);
    }
    let mut next = Some(ix);
    while let Some(ix) = next.filter(|ix| state.node(*ix).depth() >= depth) {
        if ix == above {
            return true;
        }
        next = state.node(ix).parent();
    }
    false
}
