//! What a call writes, or why it is refused. One function per mutation; nothing here reads a clock or rolls dice.
//!
//! Each takes the session as it is, the request, and a [`Ctx`] with the time and a source of ids. It answers with the
//! records to commit and the response to give once they are durable; no records means that nothing changes.
//! Before a mutation is decided, [`SessionState::needs_hydration`] must be `None`.

mod append;
mod attachments;
mod branch;
mod elsewhere;
mod import;
mod import_parts;
mod lifecycle;
mod posted;
mod put;
mod settle;
mod update;

use banyan_model::{AttachmentId, EntryId, Error, SessionId};

use crate::born::Born;
use crate::limits::Limits;
use crate::record::Record;
use crate::state::{NodeIx, SessionState};

pub use append::{NewEntry, append, append_entries, append_many};
pub use attachments::{AttachmentContent, checked_attachment, delete_attachment, put_attachment};
pub use branch::{ForkDecision, fork, set_active_leaf};
pub use elsewhere::{decided_elsewhere, forked_elsewhere};
pub use import::{Incoming, Taken, adds_to, check_entry, import, import_more};
pub use import_parts::{import_end, import_ends, import_leaves, import_part};
pub use lifecycle::{create, delete, ensure, meta_of, set_meta, set_status};
pub use posted::extend_and_append;
pub use put::{put_entry, put_leaf, put_meta};
pub use settle::settle;
pub use update::{extend_message, update_message};

/// What a decision depends on besides the session and the request.
pub struct Ctx<'a> {
    /// The time.
    pub now_ms: i64,
    /// Where new ids come from.
    pub ids: &'a mut dyn Ids,
    /// How much one call may ask for.
    pub limits: Limits,
}

/// A source of new ids.
pub trait Ids {
    /// A new session's id.
    fn session(&mut self) -> SessionId;
    /// A new entry's id.
    fn entry(&mut self) -> EntryId;
    /// A new attachment's id.
    fn attachment(&mut self) -> AttachmentId;
    /// A new incarnation.
    fn born(&mut self) -> Born;
}

/// What a call writes and answers. All records have the time that was given to decide.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision<R> {
    /// The records to commit; none when nothing changes.
    pub records: Vec<Record>,
    /// The answer, once they are durable.
    pub response: R,
}

impl<R> Decision<R> {
    fn nothing(response: R) -> Self {
        Self { records: Vec::new(), response }
    }
}

fn must_exist(state: &SessionState) -> Result<(), Error> {
    if state.exists() { Ok(()) } else { Err(Error::not_found(state.session_id())) }
}

fn must_find(state: &SessionState, entry_id: &EntryId) -> Result<NodeIx, Error> {
    state.find(entry_id).ok_or_else(|| Error::entry_not_found(state.session_id(), entry_id))
}

#[cfg(test)]
mod tests;
