//! New entries: append, append-many.

use banyan_model::{
    AgentMessage, AppendManyRequest, AppendManyResponse, AppendRequest, AppendResponse, CustomPayload, EntryId,
    Error, ErrorCode, Object, Raw,
};

use super::{Ctx, Decision, must_exist, settle};
use crate::record::{Adopted, CustomRecord, MessageRecord, Record};
use crate::state::{NodeIx, SessionState};

/// Appends one entry, once: an id that is known changes nothing.
pub fn append(
    state: &SessionState,
    request: AppendRequest,
    ctx: &mut Ctx<'_>,
) -> Result<Decision<AppendResponse>, Error> {
    must_exist(state)?;
    let body = body_of(request.message, request.custom)?;
    if let Some(known) = request.entry_id.as_ref().and_then(|id| state.find(id)) {
        return redelivered(state, known);
    }
    if let Some(expected) = &request.expected_leaf {
        must_be_leaf(state, expected)?;
    }
    let parent_id = parent_for(state, request.parent_id)?;
    let entry_id = request.entry_id.unwrap_or_else(|| ctx.ids.entry());
    let mut records: Vec<Record> = settle(state)?.into_iter().collect();
    records.push(match body {
        Body::Message(message) => message_record(entry_id.clone(), parent_id.clone(), request.origin, &message)?,
        Body::Custom(custom) => Record::Custom(CustomRecord {
            entry_id: entry_id.clone(),
            parent_id: parent_id.clone(),
            origin: request.origin,
            blobs: Vec::new(),
            custom_type: custom.custom_type,
            data: custom.data,
        }),
    });
    Ok(Decision { records, response: AppendResponse { entry_id, parent_id, timestamp: ctx.now_ms } })
}

/// Appends messages, each after the one before.
pub fn append_many(
    state: &SessionState,
    request: AppendManyRequest,
    ctx: &mut Ctx<'_>,
) -> Result<Decision<AppendManyResponse>, Error> {
    must_exist(state)?;
    if request.messages.is_empty() {
        return Err(Error::new(ErrorCode::EmptyBatch, "`messages` is empty; append at least one"));
    }
    let mut parent_id = parent_for(state, request.parent_id)?;
    let mut records: Vec<Record> = settle(state)?.into_iter().collect();
    let mut entry_ids = Vec::with_capacity(request.messages.len());
    for message in &request.messages {
        let entry_id = ctx.ids.entry();
        records.push(message_record(entry_id.clone(), parent_id, request.origin.clone(), message)?);
        parent_id = Some(entry_id.clone());
        entry_ids.push(entry_id);
    }
    let last_entry_id = parent_id.unwrap_or_else(|| EntryId::from(""));
    Ok(Decision { records, response: AppendManyResponse { entry_ids, last_entry_id } })
}

/// A message with an id of its own, to be appended.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEntry {
    /// The entry's id.
    pub entry_id: EntryId,
    /// The message.
    pub message: AgentMessage,
    /// Where it comes from, in the caller's own form.
    pub origin: Option<Object>,
}

/// Appends messages with ids that nothing has yet, each after the one before, if the leaf is the expected one.
pub fn append_entries(
    state: &SessionState,
    expected_leaf: Option<&EntryId>,
    entries: Vec<NewEntry>,
    _ctx: &Ctx<'_>,
) -> Result<Decision<()>, Error> {
    must_exist(state)?;
    let mut parent_id = state.leaf_id();
    match expected_leaf {
        Some(expected) => must_be_leaf(state, expected)?,
        None if parent_id.is_none() => {}
        None => {
            let session = state.session_id();
            return Err(Error::conflict(format!("session `{session}` has entries by now; read them first")));
        }
    }
    let mut records: Vec<Record> = settle(state)?.into_iter().collect();
    for entry in entries {
        if state.find(&entry.entry_id).is_some() {
            let (session, id) = (state.session_id(), &entry.entry_id);
            return Err(Error::conflict(format!("session `{session}` has an entry `{id}` already")));
        }
        let id = entry.entry_id.clone();
        records.push(message_record(entry.entry_id, parent_id, entry.origin, &entry.message)?);
        parent_id = Some(id);
    }
    Ok(Decision { records, response: () })
}

enum Body {
    Message(Box<AgentMessage>),
    Custom(CustomPayload),
}

fn body_of(message: Option<AgentMessage>, custom: Option<CustomPayload>) -> Result<Body, Error> {
    match (message, custom) {
        (Some(message), None) => Ok(Body::Message(Box::new(message))),
        (None, Some(custom)) => Ok(Body::Custom(custom)),
        (None, None) => Err(Error::invalid_request("neither `message` nor `custom` is given; give one of them")),
        (Some(_), Some(_)) => {
            Err(Error::invalid_request("both `message` and `custom` are given; give one of them"))
        }
    }
}

fn redelivered(state: &SessionState, known: NodeIx) -> Result<Decision<AppendResponse>, Error> {
    let response = AppendResponse {
        entry_id: state.id(known),
        parent_id: state.parent_id(known),
        timestamp: state.node(known).timestamp(),
    };
    if !state.node(known).is_uncommitted() {
        return Ok(Decision::nothing(response));
    }
    let mut records: Vec<Record> = settle(state)?.into_iter().collect();
    records.push(Record::Adopted(Adopted { entry_id: response.entry_id.clone() }));
    Ok(Decision { records, response })
}

fn must_be_leaf(state: &SessionState, expected: &EntryId) -> Result<(), Error> {
    let session = state.session_id();
    match state.leaf_id() {
        Some(leaf) if leaf == *expected => Ok(()),
        Some(leaf) => Err(Error::conflict(format!(
            "the active leaf of session `{session}` is `{leaf}`, not `{expected}`; read what was appended, then append to that"
        ))),
        None => Err(Error::conflict(format!(
            "session `{session}` has no active leaf, and `{expected}` was expected; append without `expected_leaf`"
        ))),
    }
}

fn parent_for(state: &SessionState, asked: Option<EntryId>) -> Result<Option<EntryId>, Error> {
    match asked {
        None => Ok(state.leaf_id()),
        Some(parent) if state.find(&parent).is_some() => Ok(Some(parent)),
        Some(parent) => Err(Error::parent_not_found(state.session_id(), &parent)),
    }
}

fn message_record(
    entry_id: EntryId,
    parent_id: Option<EntryId>,
    origin: Option<Object>,
    message: &AgentMessage,
) -> Result<Record, Error> {
    Ok(Record::Message(MessageRecord {
        entry_id,
        parent_id,
        role: message.role(),
        origin,
        blobs: Vec::new(),
        message: Raw::of(message)?,
    }))
}
