//! Writing a message whole that was stored as what was added to it.

use banyan_model::{Error, Raw};

use crate::record::{Record, Settled};
use crate::state::{NodeIx, SessionState};

/// The record that writes the growing message whole, if there is one.
pub fn settle(state: &SessionState) -> Result<Option<Record>, Error> {
    let Some(growing) = state.growing() else { return Ok(None) };
    let ix = growing.node();
    let message = growing.message().ok_or_else(|| unread(state, ix))?;
    Ok(Some(Record::Settled(Settled {
        entry_id: state.id(ix),
        revision: state.node(ix).revision(),
        blobs: Vec::new(),
        message: Raw::of(message)?,
    })))
}

/// The same, unless the growing entry is this one.
pub(super) fn settle_others(state: &SessionState, ix: NodeIx) -> Result<Option<Record>, Error> {
    match state.growing() {
        Some(growing) if growing.node() != ix => settle(state),
        _ => Ok(None),
    }
}

pub(super) fn unread(state: &SessionState, ix: NodeIx) -> Error {
    Error::storage(format!(
        "the message of entry `{}` in session `{}` could not be read, so it cannot be changed",
        state.id(ix),
        state.session_id()
    ))
}
