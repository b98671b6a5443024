//! A session that comes from elsewhere and is too much for one commit. Its entries are put part by part, each a commit of its own,
//! and the session begins with the last one: before that nobody sees anything of it, and without it nothing of it counts.

use std::collections::HashSet;

use banyan_model::{EntryId, Error, SessionEntry};

use super::import::{check_entry, check_leaf, leaf_at};
use super::{Ctx, Decision, Incoming, Taken};
use crate::record::{Begun, Created, EntryPut, LeafPut, MetaPut, Record};
use crate::state::{NodeIx, SessionState};

/// Puts some entries of a session that is not there. Messages are not read: whoever calls has made them, or read them.
pub fn import_part(
    state: &SessionState,
    entries: Vec<SessionEntry>,
    ctx: &mut Ctx<'_>,
) -> Result<Decision<()>, Error> {
    let session = state.session_id();
    let mut records = Vec::with_capacity(entries.len() + 1);
    if state.next_seq().0 == 0 {
        records.push(Record::Begun(Begun { session_id: session.clone(), born: ctx.ids.born(), import: true }));
    } else if state.exists() || !state.is_importing() {
        return Err(Error::storage(format!("session `{session}` is not one that is being imported")));
    }
    let mut seen: HashSet<&EntryId> = HashSet::with_capacity(entries.len());
    for entry in &entries {
        check_entry(session, entry, |id| seen.contains(id) || state.find(id).is_some(), |_| false)?;
        seen.insert(entry.id());
    }
    drop(seen);
    for entry in entries {
        records.push(Record::EntryPut(EntryPut::vouched(entry)?));
    }
    Ok(Decision { records, response: () })
}

/// The entries that nothing follows, but for the leaf. They are to be given to [`import_leaves`], some at a time.
pub fn import_ends(state: &SessionState, leaf: Option<&EntryId>) -> Vec<NodeIx> {
    let mut followed = vec![false; state.nodes().len()];
    for parent in state.nodes().iter().filter_map(|node| node.parent()) {
        followed[parent.0 as usize] = true;
    }
    let leaf = leaf.and_then(|leaf| state.find(leaf));
    let ends = (0..).map(NodeIx).zip(followed).filter(|(ix, followed)| !followed && Some(*ix) != leaf);
    ends.map(|(ix, _)| ix).collect()
}

/// Puts branches on a path for a moment: an entry counts once it was on one.
pub fn import_leaves(state: &SessionState, ends: &[NodeIx]) -> Decision<()> {
    Decision { records: ends.iter().map(|end| leaf_at(state.id(*end))).collect(), response: () }
}

/// Begins the session, once all its entries are put.
pub fn import_end(state: &SessionState, incoming: Incoming) -> Result<Decision<Taken>, Error> {
    let Incoming { meta, active_leaf, attachments, .. } = incoming;
    check_leaf(&meta.session_id, active_leaf.as_ref(), |leaf| state.find(leaf).is_some())?;
    let response = Taken {
        created: true,
        added: state.nodes().len() as u64,
        attachments: attachments.len() as u64,
        ..Taken::default()
    };
    let created = Created {
        session_id: meta.session_id.clone(),
        // The same as it was begun with: this is what makes the entries its own.
        born: state.born(),
        title: meta.title.clone(),
        description: meta.description.clone(),
        metadata: meta.metadata.clone(),
        base: None,
    };
    let mut records = vec![Record::Created(created)];
    records.extend(attachments.into_iter().map(Record::Attached));
    records.push(Record::LeafPut(LeafPut { entry_id: active_leaf }));
    records.push(Record::MetaPut(MetaPut { meta }));
    Ok(Decision { records, response })
}
