//! The shape of a session.

use banyan_model::{Error, TreeNode, TreeResponse};

use super::must_exist;
use crate::state::{NodeIx, SessionState};

/// Every entry of every branch, without content, as `session::tree` answers.
pub fn tree(state: &SessionState) -> Result<TreeResponse, Error> {
    must_exist(state)?;
    let entries = (0..state.nodes().len() as u32).map(|ix| tree_node(state, NodeIx(ix))).collect();
    Ok(TreeResponse { session_id: state.session_id().clone(), active_leaf: state.leaf_id(), entries })
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
