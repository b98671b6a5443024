//! The shape of a session.

use banyan_model::{Error, TREE_PAGE, TreeNode, TreeRequest, TreeResponse, WHOLE_TREE};

use super::must_exist;
use crate::cursor::EntryCursor;
use crate::state::{NodeIx, SessionState};

/// Every entry of every branch, without content, as `session::tree` answers; a page of them when one is asked for.
pub fn tree(state: &SessionState, request: &TreeRequest) -> Result<TreeResponse, Error> {
    must_exist(state)?;
    let all = state.nodes().len();
    let first = match &request.cursor {
        Some(cursor) => after(state, &EntryCursor::decode(cursor)?)?,
        None => 0,
    };
    let most = match (request.limit, &request.cursor) {
        (Some(limit), _) => limit.clamp(1, TREE_PAGE),
        (None, Some(_)) => TREE_PAGE,
        (None, None) if all <= WHOLE_TREE => all,
        (None, None) => {
            return Err(Error::too_large(format!(
                "session `{}` has {all} entries, and {WHOLE_TREE} are the most of one answer; read it in pages, with `limit` and `cursor`",
                state.session_id()
            )));
        }
    };
    let end = first.saturating_add(most).min(all);
    let entries: Vec<TreeNode> = (first as u32..end as u32).map(|ix| tree_node(state, NodeIx(ix))).collect();
    let last = entries.last().filter(|_| end < all);
    let next_cursor = last.map(|node| EntryCursor { id: node.entry_id.clone() }.encode());
    Ok(TreeResponse { session_id: state.session_id().clone(), active_leaf: state.leaf_id(), entries, next_cursor })
}

/// Where the page after a cursor begins.
fn after(state: &SessionState, cursor: &EntryCursor) -> Result<usize, Error> {
    let NodeIx(ix) = state.find(&cursor.id).ok_or_else(|| {
        Error::invalid_cursor(format!(
            "the cursor continues after entry `{}`, which is not in the session",
            cursor.id
        ))
    })?;
    Ok(ix as usize + 1)
}

fn tree_node(state: &SessionState, ix: NodeIx) -> TreeNode {
    let node = state.node(ix);
    TreeNode {
        entry_id: node.id(),
        parent_id: state.parent_id(ix),
        kind: node.kind().entry_kind(),
        role: node.kind().role(),
        custom_type: state.custom_type(ix).map(str::to_owned),
        revision: node.revision(),
        timestamp: node.timestamp(),
        bytes: node.weight(),
        on_active_path: state.on_path(ix),
        damaged: node.is_damaged(),
    }
}
