//! Chosen entries of the active path, nothing shortened.

use std::borrow::Cow;

use banyan_model::{EntryId, Error, MessagesRangeRequest};

use super::{Budget, Page, endless, fill, must_exist};
use crate::cursor::EntryCursor;
use crate::limits::Limits;
use crate::state::{NodeIx, SessionState};

/// The entries for `session::messages-range`.
pub fn messages_range(
    state: &SessionState,
    request: &MessagesRangeRequest,
    limits: &Limits,
) -> Result<Page, Error> {
    must_exist(state)?;
    let chosen = chosen(state, request)?;
    let from = match &request.cursor {
        Some(cursor) => after(state, &chosen, &EntryCursor::decode(cursor)?.id)?,
        None => 0,
    };
    let budget = Budget::new(limits.page_size(request.limit), request.bytes);
    Ok(fill(state, chosen[from..].iter().copied(), budget))
}

fn chosen<'a>(state: &'a SessionState, request: &MessagesRangeRequest) -> Result<Cow<'a, [NodeIx]>, Error> {
    match (&request.from_entry_id, &request.to_entry_id, &request.entry_ids) {
        (Some(from), Some(to), None) => {
            let (first, last) = (depth_on_path(state, from)?, depth_on_path(state, to)?);
            if first > last {
                return Err(Error::invalid_request(format!(
                    "`from_entry_id` `{from}` comes after `to_entry_id` `{to}`; exchange them"
                )));
            }
            Ok(Cow::Borrowed(&state.path()[first..=last]))
        }
        (None, None, Some(ids)) => {
            let mut depths = ids.iter().map(|id| depth_on_path(state, id)).collect::<Result<Vec<_>, _>>()?;
            depths.sort_unstable();
            depths.dedup();
            Ok(Cow::Owned(depths.into_iter().map(|depth| state.path()[depth]).collect()))
        }
        _ => Err(Error::invalid_request("give either both `from_entry_id` and `to_entry_id`, or `entry_ids`")),
    }
}

fn depth_on_path(state: &SessionState, id: &EntryId) -> Result<usize, Error> {
    let ix = state.find(id).ok_or_else(|| Error::entry_not_found(state.session_id(), id))?;
    if state.is_cyclic() {
        return Err(endless(state.session_id()));
    }
    if !state.on_path(ix) {
        return Err(Error::invalid_cursor(format!("entry `{id}` is on another branch than the active one")));
    }
    Ok(state.node(ix).depth() as usize)
}

fn after(state: &SessionState, chosen: &[NodeIx], id: &EntryId) -> Result<usize, Error> {
    let depth = |ix: NodeIx| state.node(ix).depth();
    let found = state.find(id).and_then(|ix| {
        let at = chosen.binary_search_by_key(&depth(ix), |ix| depth(*ix)).ok()?;
        (chosen[at] == ix).then_some(at + 1)
    });
    found.ok_or_else(|| Error::invalid_cursor(format!("entry `{id}` is not among the entries asked for")))
}
