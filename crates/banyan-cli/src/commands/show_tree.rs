//! The entries of all branches, as a drawing.

use std::collections::HashMap;

use banyan::model::{EntryId, TreeNode, TreeResponse};

use crate::failure::Failure;
use crate::screen::{Screen, Style};
use crate::words::{ago, one_line, size};

/// An entry still to be drawn.
struct Pending<'a> {
    node: &'a TreeNode,
    /// What stands before it.
    lead: String,
    /// What stands before what follows it.
    rest: String,
}

/// Draws a tree. A branch is set in; the active path stays where it is, however often it branched.
pub(super) fn draw(tree: &TreeResponse, screen: &mut Screen) -> Result<(), Failure> {
    let mut children: HashMap<Option<&EntryId>, Vec<&TreeNode>> = HashMap::new();
    for node in &tree.entries {
        children.entry(node.parent_id.as_ref()).or_default().push(node);
    }
    let mut pending = Vec::new();
    push(&mut pending, children.remove(&None), "");
    while let Some(Pending { node, lead, rest }) = pending.pop() {
        let active = tree.active_leaf.as_ref() == Some(&node.entry_id);
        screen.line(&format!("{lead}{}", line(node, active, screen)))?;
        push(&mut pending, children.remove(&Some(&node.entry_id)), &rest);
    }
    Ok(())
}

/// Puts siblings on the stack, so that the one that goes on in the same column comes last.
fn push<'a>(pending: &mut Vec<Pending<'a>>, siblings: Option<Vec<&'a TreeNode>>, rest: &str) {
    let mut siblings = siblings.unwrap_or_default();
    let main = siblings.iter().position(|node| node.on_active_path).unwrap_or(siblings.len().saturating_sub(1));
    if siblings.is_empty() {
        return;
    }
    let main = siblings.remove(main);
    pending.push(Pending { node: main, lead: rest.to_owned(), rest: rest.to_owned() });
    let aside = siblings.into_iter().rev();
    pending.extend(aside.map(|node| Pending { node, lead: format!("{rest}├─ "), rest: format!("{rest}│  ") }));
}

fn line(node: &TreeNode, active: bool, screen: &Screen) -> String {
    let mark = if node.on_active_path { "●" } else { "○" };
    let who = match (&node.role, &node.custom_type) {
        (Some(role), _) => role.as_str().to_owned(),
        (None, Some(custom)) => one_line(custom),
        (None, None) => "entry".to_owned(),
    };
    let who = screen.paint(Style::Heading, &who);
    let about = format!("{} · {}", size(node.bytes), ago(node.timestamp));
    let about = screen.paint(Style::Aside, &about);
    let leaf = if active { "  ← active" } else { "" };
    let damaged = if node.damaged { screen.paint(Style::Bad, "  damaged") } else { String::new() };
    format!("{mark} {}  {who}  {about}{damaged}{leaf}", one_line(node.entry_id.as_str()))
}
