//! A page of the conversation, oldest first.

use std::borrow::Cow;

use banyan_model::{EntryId, Error, MessagesRequest};

use super::{Budget, Page, endless, fill, must_exist};
use crate::cursor::EntryCursor;
use crate::limits::Limits;
use crate::node_kind::NodeKind;
use crate::state::{NodeIx, SessionState};

/// The entries for `session::messages`.
pub fn messages(state: &SessionState, request: &MessagesRequest, limits: &Limits) -> Result<Page, Error> {
    must_exist(state)?;
    let Some(path) = path_of(state, request.from_entry_id.as_ref())? else { return Ok(Page::default()) };
    let from = match (&request.cursor, &request.after_entry_id) {
        (Some(cursor), _) => after(state, &path, request, &EntryCursor::decode(cursor)?.id)?,
        (None, Some(anchor)) => after(state, &path, request, anchor)?,
        (None, None) => 0,
    };
    let entries = path[from..].iter().copied().filter(|ix| is_wanted(request, state.node(*ix).kind()));
    Ok(fill(state, entries, Budget::new(limits.page_size(request.limit), request.bytes)))
}

/// The path to read, or `None` when the session has no leaf.
fn path_of<'a>(state: &'a SessionState, from: Option<&EntryId>) -> Result<Option<Cow<'a, [NodeIx]>>, Error> {
    let Some(from) = from else {
        if state.is_cyclic() {
            return Err(endless(state.session_id()));
        }
        return Ok(state.leaf().map(|_| Cow::Borrowed(state.path())));
    };
    let leaf = state.find(from).ok_or_else(|| Error::entry_not_found(state.session_id(), from))?;
    if state.on_path(leaf) {
        let depth = state.node(leaf).depth() as usize;
        return Ok(Some(Cow::Borrowed(&state.path()[..=depth])));
    }
    state.chain(leaf).map(|chain| Some(Cow::Owned(chain))).ok_or_else(|| endless(state.session_id()))
}

/// Where to go on after an entry, which must be one that this read answers with.
fn after(state: &SessionState, path: &[NodeIx], request: &MessagesRequest, id: &EntryId) -> Result<usize, Error> {
    let found = state.find(id).filter(|ix| {
        let node = state.node(*ix);
        path.get(node.depth() as usize) == Some(ix) && is_wanted(request, node.kind())
    });
    let ix = found.ok_or_else(|| {
        Error::invalid_cursor(format!(
            "entry `{id}` is not on the path being read; the leaf or the filters have changed, so read from the beginning"
        ))
    })?;
    Ok(state.node(ix).depth() as usize + 1)
}

fn is_wanted(request: &MessagesRequest, kind: NodeKind) -> bool {
    match (&request.roles, kind.role()) {
        // What a damaged entry was is not always known; it is named then.
        _ if kind == NodeKind::Lost => true,
        (Some(roles), role) => role.is_some_and(|role| roles.contains(&role)),
        (None, Some(_)) => true,
        (None, None) => kind == NodeKind::CustomEntry && request.include_custom == Some(true),
    }
}
