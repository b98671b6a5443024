//! Changed messages: update-message, extend-message.
//!
//! A change that only makes one text longer is recorded as what it adds.

use banyan_model::{
    AgentMessage, ContentBlock, EntryId, Error, ErrorCode, ExtendMessageRequest, ExtendMessageResponse, Object,
    Raw, Revision, Role, UpdateMessageRequest, UpdateMessageResponse,
};

use super::settle::{settle_others, unread};
use super::{Ctx, Decision, must_exist, must_find};
use crate::node_kind::NodeKind;
use crate::record::{Add, Grew, Record, UpdatedRecord};
use crate::state::{NodeIx, SessionState, extend_text};

/// Replaces a message's content. `current` is the message as it is, read by the caller; it is not needed for the
/// growing entry, whose message the state has, nor when the entry is missing or custom.
pub fn update_message(
    state: &SessionState,
    request: UpdateMessageRequest,
    current: Option<&AgentMessage>,
    _ctx: &Ctx<'_>,
) -> Result<Decision<UpdateMessageResponse>, Error> {
    let ix = must_find_message(state, &request.entry_id)?;
    let revision = state.node(ix).revision();
    if request.expected_revision.is_some_and(|expected| expected != revision) {
        return Ok(Decision::nothing(UpdateMessageResponse { updated: false, revision }));
    }
    let role = state.node(ix).kind().role();
    if request.usage.is_some() && role != Some(Role::Assistant) {
        return Err(Error::new(
            ErrorCode::InvalidEntryKind,
            format!("entry `{}` is not an assistant message, so it has no `usage`", request.entry_id),
        ));
    }
    if request.details.is_some() && matches!(role, Some(Role::User | Role::Assistant)) {
        return Err(Error::new(
            ErrorCode::DetailsNotSupported,
            format!("entry `{}` is a user or assistant message, which has no `details`", request.entry_id),
        ));
    }
    let current = current_message(state, ix, current)?;
    let next = revision.next();
    let mut records: Vec<Record> = settle_others(state, ix)?.into_iter().collect();
    let only_content = request.details.is_none() && request.usage.is_none();
    records.push(match growth(current.content(), &request.content).filter(|_| only_content) {
        Some((block, text)) => grew(request.entry_id, block, next, text.to_owned(), request.origin),
        None => updated(replaced(current, request)?, next)?,
    });
    Ok(Decision { records, response: UpdateMessageResponse { updated: true, revision: next } })
}

/// Adds text to the end of a block. `current` is the message as it is, as for [`update_message`].
pub fn extend_message(
    state: &SessionState,
    request: ExtendMessageRequest,
    current: Option<&AgentMessage>,
    _ctx: &Ctx<'_>,
) -> Result<Decision<ExtendMessageResponse>, Error> {
    let ix = must_find_message(state, &request.entry_id)?;
    let revision = state.node(ix).revision();
    if request.expected_revision.is_some_and(|expected| expected != revision) {
        return Ok(Decision::nothing(ExtendMessageResponse { updated: false, revision }));
    }
    let current = current_message(state, ix, current)?;
    let next = revision.next();
    let record = match block_to_extend(current, request.block)? {
        Some(block) => grew(request.entry_id, block, next, request.text, request.origin),
        None => {
            let mut message = current.clone();
            message.content_mut().push(ContentBlock::text(request.text));
            updated(Change { entry_id: request.entry_id, origin: request.origin, message }, next)?
        }
    };
    let mut records: Vec<Record> = settle_others(state, ix)?.into_iter().collect();
    records.push(record);
    Ok(Decision { records, response: ExtendMessageResponse { updated: true, revision: next } })
}

/// The record of a message with text added to it, whole. A message that is at another revision is a conflict.
pub(super) fn extended(
    state: &SessionState,
    request: ExtendMessageRequest,
    current: Option<&AgentMessage>,
) -> Result<Record, Error> {
    let ix = must_find_message(state, &request.entry_id)?;
    let revision = state.node(ix).revision();
    if request.expected_revision.is_some_and(|expected| expected != revision) {
        let (session, entry) = (state.session_id(), &request.entry_id);
        return Err(Error::conflict(format!("entry `{entry}` of session `{session}` has changed; read it first")));
    }
    let mut message = current_message(state, ix, current)?.clone();
    match block_to_extend(&message, request.block)? {
        Some(block) => {
            extend_text(&mut message, block, &request.text);
        }
        None => message.content_mut().push(ContentBlock::text(request.text)),
    }
    updated(Change { entry_id: request.entry_id, origin: request.origin, message }, revision.next())
}

fn must_find_message(state: &SessionState, entry_id: &EntryId) -> Result<NodeIx, Error> {
    must_exist(state)?;
    let ix = must_find(state, entry_id)?;
    if state.node(ix).kind() == NodeKind::CustomEntry {
        return Err(Error::new(
            ErrorCode::InvalidEntryKind,
            format!("entry `{entry_id}` is a custom entry, and only messages can be changed"),
        ));
    }
    Ok(ix)
}

fn current_message<'a>(
    state: &'a SessionState,
    ix: NodeIx,
    read: Option<&'a AgentMessage>,
) -> Result<&'a AgentMessage, Error> {
    let grown = state.growing().filter(|growing| growing.node() == ix).and_then(|growing| growing.message());
    grown.or(read).ok_or_else(|| unread(state, ix))
}

/// The one block that got longer and what was added to it, if that is all that differs.
fn growth<'a>(old: &[ContentBlock], new: &'a [ContentBlock]) -> Option<(u32, &'a str)> {
    if old.len() != new.len() {
        return None;
    }
    let mut differing = old.iter().zip(new).enumerate().filter(|(_, (old, new))| old != new);
    let (block, (old, new)) = differing.next()?;
    if differing.next().is_some() {
        return None;
    }
    let added = match (old, new) {
        (ContentBlock::Text(old), ContentBlock::Text(new)) => new.text.strip_prefix(&old.text)?,
        (ContentBlock::Thinking(old), ContentBlock::Thinking(new)) if old.signature == new.signature => {
            new.text.strip_prefix(&old.text)?
        }
        _ => return None,
    };
    Some((u32::try_from(block).ok()?, added))
}

/// The block to extend; `None` when there is no text block yet and none was asked for.
fn block_to_extend(message: &AgentMessage, asked: Option<usize>) -> Result<Option<u32>, Error> {
    let content = message.content();
    let Some(asked) = asked else {
        let last = content.iter().rposition(|block| matches!(block, ContentBlock::Text(_)));
        return Ok(last.and_then(|block| u32::try_from(block).ok()));
    };
    match content.get(asked) {
        Some(ContentBlock::Text(_) | ContentBlock::Thinking(_)) => Ok(u32::try_from(asked).ok()),
        Some(_) => {
            Err(Error::invalid_request(format!("block {asked} is neither text nor thinking, so it cannot grow")))
        }
        None => Err(Error::invalid_request(format!(
            "there is no block {asked}: the message has {} of them, counted from 0",
            content.len()
        ))),
    }
}

struct Change {
    entry_id: EntryId,
    origin: Option<Object>,
    message: AgentMessage,
}

fn replaced(current: &AgentMessage, request: UpdateMessageRequest) -> Result<Change, Error> {
    let mut message = current.clone();
    *message.content_mut() = request.content;
    match (&mut message, request.details) {
        (AgentMessage::FunctionResult(result), Some(details)) => result.details = details,
        (AgentMessage::Custom(custom), Some(details)) => custom.details = Some(details),
        _ => {}
    }
    if let (AgentMessage::Assistant(assistant), Some(usage)) = (&mut message, request.usage) {
        assistant.usage = Some(usage);
    }
    Ok(Change { entry_id: request.entry_id, origin: request.origin, message })
}

fn updated(change: Change, revision: Revision) -> Result<Record, Error> {
    Ok(Record::Updated(UpdatedRecord {
        entry_id: change.entry_id,
        revision,
        origin: change.origin,
        blobs: Vec::new(),
        message: Raw::of(&change.message)?,
    }))
}

fn grew(entry_id: EntryId, block: u32, revision: Revision, text: String, origin: Option<Object>) -> Record {
    let add = Add { text, ms_since: 0, commits_since: 0, origin };
    Record::Grew(Grew { entry_id, block, revision, adds: vec![add] })
}
