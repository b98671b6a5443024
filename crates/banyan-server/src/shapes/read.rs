//! Reading entries for a shape: whole turns of the active path, or every branch.

use std::collections::HashMap;

use banyan::model::{EntryId, Error, Revision, SessionEntry, SessionId, TreeNode, TreeRequest};
use banyan::{Banyan, PathPage, PathRequest, PathState, Stretch};
use banyan_formats::shapes::{Body, Item, Scene};

use crate::history::standing;
use crate::path::segment;

/// Whose entries are read.
#[derive(Clone)]
pub(crate) struct Reader {
    pub(crate) store: Banyan,
    pub(crate) session_id: SessionId,
}

/// How many entries are read at once, and about how many bytes.
const ENTRIES: usize = 256;
const BYTES: u64 = 1 << 20;

/// Entries of the active path, and how often the last of them had changed.
pub(crate) struct Path {
    pub(crate) items: Vec<Item>,
    pub(crate) revision: Revision,
}

/// Some whole turns, and whether others follow.
pub(crate) struct Turns {
    pub(crate) items: Vec<Item>,
    pub(crate) more: bool,
}

impl Reader {
    pub(crate) fn new(store: Banyan, session_id: SessionId) -> Self {
        Self { store, session_id }
    }

    pub(crate) fn state(&self) -> Result<PathState, Error> {
        self.store.path_state(&self.session_id)
    }

    /// What a shape has to know of the session.
    pub(crate) fn scene(&self, state: &PathState) -> Scene {
        Scene {
            session_id: self.session_id.as_str().to_owned(),
            leaf: state.leaf.clone(),
            standing: standing(state.status, state.updated_at),
            attachments: format!("/v1/sessions/{}/attachments/", segment(self.session_id.as_str())),
        }
    }

    /// All entries of a path.
    pub(crate) fn path(&self, leaf: Option<&EntryId>) -> Result<Path, Error> {
        let mut path = Path { items: Vec::new(), revision: Revision(0) };
        let mut next = leaf.map(|_| Stretch::Oldest);
        while let Some(stretch) = next.take() {
            let page = self.page(leaf, stretch)?;
            path.items.extend(page.entries.iter().map(Item::from));
            path.revision = page.entries.last().map_or(path.revision, SessionEntry::revision);
            next = page.next.map(Stretch::After);
        }
        Ok(path)
    }

    /// At most so many turns of a path, from its beginning or from after an entry.
    pub(crate) fn turns(
        &self,
        leaf: Option<&EntryId>,
        after: Option<EntryId>,
        limit: usize,
    ) -> Result<Turns, Error> {
        let mut items: Vec<Item> = Vec::new();
        let mut begun = 0;
        let mut next = leaf.map(|_| after.map_or(Stretch::Oldest, Stretch::After));
        while let Some(stretch) = next.take() {
            let page = self.page(leaf, stretch)?;
            for item in page.entries.iter().map(Item::from) {
                if items.last().is_none_or(|before| item.is_start(before)) {
                    if begun == limit {
                        return Ok(Turns { items, more: true });
                    }
                    begun += 1;
                }
                items.push(item);
            }
            next = page.next.map(Stretch::After);
        }
        Ok(Turns { items, more: false })
    }

    /// Every entry of every branch, each after the one that it follows.
    pub(crate) fn tree(&self) -> Result<(Vec<Item>, Option<EntryId>), Error> {
        let mut request = TreeRequest::first_page(self.session_id.clone());
        let mut tree = banyan::block_on(self.store.tree(request.clone()))?;
        while let Some(cursor) = tree.next_cursor.take() {
            request.cursor = Some(cursor);
            let page = banyan::block_on(self.store.tree(request.clone()))?;
            tree.entries.extend(page.entries);
            (tree.active_leaf, tree.next_cursor) = (page.active_leaf, page.next_cursor);
        }
        let nodes: HashMap<&EntryId, &TreeNode> = tree.entries.iter().map(|node| (&node.entry_id, node)).collect();
        let mut found: HashMap<EntryId, Item> = HashMap::new();
        for branch in branches(&tree.entries) {
            let known = known_ancestor(branch, &nodes, &found);
            let mut next = Some(known.map_or(Stretch::Oldest, Stretch::After));
            while let Some(stretch) = next.take() {
                let page = self.page(Some(branch), stretch)?;
                found.extend(page.entries.iter().map(|entry| (entry.id().clone(), Item::from(entry))));
                next = page.next.map(Stretch::After);
            }
        }
        let item = |node: &TreeNode| {
            found.remove(&node.entry_id).unwrap_or_else(|| {
                Item::new(node.entry_id.clone(), node.parent_id.clone(), Body::Unreadable, None)
            })
        };
        Ok((tree.entries.iter().map(item).collect(), tree.active_leaf))
    }

    fn page(&self, leaf: Option<&EntryId>, stretch: Stretch) -> Result<PathPage, Error> {
        let session_id = self.session_id.clone();
        let (leaf, entries, bytes) = (leaf.cloned(), ENTRIES, BYTES);
        self.store.path(&PathRequest { session_id, leaf, stretch, entries, bytes })
    }
}

/// The entries that nothing follows.
fn branches(nodes: &[TreeNode]) -> impl Iterator<Item = &EntryId> {
    let followed: std::collections::HashSet<&EntryId> =
        nodes.iter().filter_map(|node| node.parent_id.as_ref()).collect();
    nodes.iter().map(|node| &node.entry_id).filter(move |id| !followed.contains(id))
}

/// The last entry before one that was read already.
fn known_ancestor(
    of: &EntryId,
    nodes: &HashMap<&EntryId, &TreeNode>,
    found: &HashMap<EntryId, Item>,
) -> Option<EntryId> {
    let mut at = nodes.get(of)?.parent_id.as_ref();
    while let Some(id) = at {
        if found.contains_key(id) {
            return Some(id.clone());
        }
        at = nodes.get(id)?.parent_id.as_ref();
    }
    None
}
