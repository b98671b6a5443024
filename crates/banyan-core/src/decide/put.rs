//! What another instance puts as it is: `session::store::put-meta`, `put-entry`, `set-active-leaf`, `delete-active-leaf`.
//!
//! None of it is checked against the session: whoever puts has decided already. An entry needs no session, and there is a
//! session once it has a meta.

use banyan_model::store::OkResponse;
use banyan_model::{EntryId, Error, SessionEntry, SessionMeta};

use super::settle::{settle, settle_others};
use super::{Ctx, Decision};
use crate::record::{Begun, EntryPut, LeafPut, MetaPut, Record};
use crate::state::SessionState;

/// Puts what a session is known by. The number of messages is counted here, whatever it says.
pub fn put_meta(
    state: &SessionState,
    meta: SessionMeta,
    ctx: &mut Ctx<'_>,
) -> Result<Decision<OkResponse>, Error> {
    if meta.session_id.is_empty() {
        return Err(Error::invalid_request("`meta.session_id` is empty; name the session"));
    }
    let known = state.meta();
    if state.exists() && (SessionMeta { message_count: known.message_count, ..meta.clone() }) == **known {
        return Ok(done(Vec::new()));
    }
    let mut records = beginning(state, ctx);
    records.push(Record::MetaPut(MetaPut { meta }));
    Ok(done(records))
}

/// Puts an entry, new or in place of the one of the same id.
pub fn put_entry(
    state: &SessionState,
    entry: SessionEntry,
    ctx: &mut Ctx<'_>,
) -> Result<Decision<OkResponse>, Error> {
    let mut records = beginning(state, ctx);
    records.extend(match state.find(entry.id()) {
        Some(ix) => settle_others(state, ix)?,
        None => settle(state)?,
    });
    records.push(Record::EntryPut(EntryPut::of(entry)?));
    Ok(done(records))
}

/// Puts the active leaf, or takes it away.
pub fn put_leaf(
    state: &SessionState,
    entry_id: Option<EntryId>,
    ctx: &mut Ctx<'_>,
) -> Result<Decision<OkResponse>, Error> {
    if state.leaf_id() == entry_id {
        return Ok(done(Vec::new()));
    }
    let mut records = beginning(state, ctx);
    records.push(Record::LeafPut(LeafPut { entry_id }));
    Ok(done(records))
}

/// The first line of a file that has none yet.
fn beginning(state: &SessionState, ctx: &mut Ctx<'_>) -> Vec<Record> {
    match state.next_seq().0 {
        0 => vec![Record::Begun(Begun {
            session_id: state.session_id().clone(),
            born: ctx.ids.born(),
            import: false,
        })],
        _ => Vec::new(),
    }
}

fn done(records: Vec<Record>) -> Decision<OkResponse> {
    Decision { records, response: OkResponse { ok: true } }
}
