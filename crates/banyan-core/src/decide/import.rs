//! A session that comes from elsewhere: taken as it is, with its ids, times, revisions and branches, all or nothing.
//!
//! What is there already stays, so that the same import twice changes nothing. Nobody is told of the entries: they are history,
//! and whoever acts on new messages must not act on old ones. Subscribers hear that a session began.

use std::collections::HashSet;

use banyan_model::{EntryId, Error, LastTold, SessionEntry, SessionId, SessionMeta};

use super::{Ctx, Decision, settle};
use crate::node_kind::NodeKind;
use crate::page::DAMAGED;
use crate::record::{Attached, Created, EntryPut, LeafPut, MetaPut, Record};
use crate::state::{NodeIx, SessionState};

/// A session that comes from elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Incoming {
    /// What it is known by. A session that is there already keeps what it has.
    pub meta: SessionMeta,
    /// Its entries, each after the one that it follows.
    pub entries: Vec<SessionEntry>,
    /// The entry that its active path ends in.
    pub active_leaf: Option<EntryId>,
    /// Its attachments. Their content is stored already.
    pub attachments: Vec<Attached>,
}

/// What an import comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Whether the session began with it.
    pub created: bool,
    /// Entries that are new.
    pub added: u64,
    /// Entries that were there in an older revision, or damaged.
    pub updated: u64,
    /// Entries that were there.
    pub unchanged: u64,
    /// Attachments that are new.
    pub attachments: u64,
}

/// Takes in a session. One that is there already keeps what it is known by.
pub fn import(state: &SessionState, incoming: Incoming, ctx: &mut Ctx<'_>) -> Result<Decision<Taken>, Error> {
    take(state, incoming, None, &HashSet::new(), ctx)
}

/// Takes in more of a session that somebody imports again and again, piece by piece. `told` is what they told of it before, the last
/// time or perhaps the last time: nothing if they never did. A session that was told and is not there any more was deleted, and
/// stays so. Messages are not read: whoever calls has made them, or read them. `unsaid` are messages at the end of the active path that
/// say nothing, such as an answer that failed.
pub fn import_more(
    state: &SessionState,
    incoming: Incoming,
    told: &[LastTold],
    unsaid: &HashSet<EntryId>,
    ctx: &mut Ctx<'_>,
) -> Result<Decision<Taken>, Error> {
    if !told.is_empty() && !state.exists() {
        return Err(Error::not_found(&incoming.meta.session_id));
    }
    take(state, incoming, Some(told), unsaid, ctx)
}

fn take(
    state: &SessionState,
    incoming: Incoming,
    told: Option<&[LastTold]>,
    unsaid: &HashSet<EntryId>,
    ctx: &mut Ctx<'_>,
) -> Result<Decision<Taken>, Error> {
    if incoming.meta.session_id.is_empty() {
        return Err(Error::invalid_request("the session has no id; name it"));
    }
    check(state, &incoming)?;
    let mut taken = Taken { created: !state.exists(), ..Taken::default() };
    let mut records = Vec::new();
    let ends = branch_ends(state, &incoming);
    for entry in incoming.entries {
        match known(state, entry.id()) {
            None => taken.added += 1,
            Some(ix) if is_newer(state, ix, &entry) => taken.updated += 1,
            Some(_) => {
                taken.unchanged += 1;
                continue;
            }
        }
        records.push(Record::EntryPut(if told.is_some() {
            EntryPut::vouched(entry)
        } else {
            EntryPut::of(entry)
        }?));
    }
    for attached in incoming.attachments {
        if !state.exists() || !state.attachments().contains_key(&attached.attachment.attachment_id) {
            taken.attachments += 1;
            records.push(Record::Attached(attached));
        }
    }
    match (state.exists(), told) {
        (false, _) => begin(&incoming.meta, &mut records, ends, incoming.active_leaf, ctx),
        (true, Some(told)) => {
            follow(state, &mut records, ends, (&incoming.meta, incoming.active_leaf), (told, unsaid))?
        }
        (true, None) if records.is_empty() => {}
        (true, None) => add(state, &mut records, ends, incoming.active_leaf, ctx)?,
    }
    Ok(Decision { records, response: taken })
}

/// Puts the beginning of a new session before its entries, and its leaf and times after them.
fn begin(
    meta: &SessionMeta,
    records: &mut Vec<Record>,
    ends: Vec<EntryId>,
    leaf: Option<EntryId>,
    ctx: &mut Ctx<'_>,
) {
    let created = Created {
        session_id: meta.session_id.clone(),
        born: ctx.ids.born(),
        title: meta.title.clone(),
        description: meta.description.clone(),
        metadata: meta.metadata.clone(),
        base: None,
    };
    records.insert(0, Record::Created(created));
    // An entry counts once it was on a path.
    records.extend(ends.into_iter().filter(|end| Some(end) != leaf.as_ref()).map(leaf_at));
    records.push(Record::LeafPut(LeafPut { entry_id: leaf }));
    records.push(Record::MetaPut(MetaPut { meta: meta.clone() }));
}

/// Puts the entries of a session that is there on their paths. The leaf follows them if they continue its path.
fn add(
    state: &SessionState,
    records: &mut Vec<Record>,
    ends: Vec<EntryId>,
    leaf: Option<EntryId>,
    ctx: &Ctx<'_>,
) -> Result<(), Error> {
    let before = state.leaf_id();
    let settled: Vec<Record> = settle(state)?.into_iter().collect();
    let continued =
        leaf.filter(|leaf| known(state, leaf).is_none() && continues(state, records, leaf, before.as_ref()));
    records.splice(0..0, settled);
    let leaf = continued.or(before);
    records.extend(ends.into_iter().filter(|end| Some(end) != leaf.as_ref()).map(leaf_at));
    records.push(Record::LeafPut(LeafPut { entry_id: leaf }));
    let meta = SessionMeta { updated_at: ctx.now_ms, ..state.meta().as_ref().clone() };
    records.push(Record::MetaPut(MetaPut { meta }));
    Ok(())
}

/// The same for somebody who keeps the session up to date: what they told last and nobody changed since follows them.
fn follow(
    state: &SessionState,
    records: &mut Vec<Record>,
    ends: Vec<EntryId>,
    (meta, leaf): (&SessionMeta, Option<EntryId>),
    (told, unsaid): (&[LastTold], &HashSet<EntryId>),
) -> Result<(), Error> {
    let before = state.leaf_id();
    let is_ours = told.iter().any(|told| told.leaf == before);
    let leaf = leaf.filter(|leaf| {
        let from = follows(state, records, leaf);
        let goes_on = from == before.as_ref() || from.is_some_and(|from| is_last_said(state, from, unsaid));
        is_ours || (known(state, leaf).is_none() && goes_on)
    });
    let leaf = leaf.or_else(|| before.clone());
    let followed = followed(state.meta(), meta, told, !records.is_empty());
    if records.is_empty() && leaf == before && followed == *state.meta().as_ref() {
        return Ok(());
    }
    let settled: Vec<Record> = settle(state)?.into_iter().collect();
    records.splice(0..0, settled);
    records.extend(ends.into_iter().filter(|end| Some(end) != leaf.as_ref()).map(leaf_at));
    records.push(Record::LeafPut(LeafPut { entry_id: leaf }));
    records.push(Record::MetaPut(MetaPut { meta: followed }));
    Ok(())
}

/// What a session is known by, once what was told before and still holds is replaced by what is told now.
fn followed(here: &SessionMeta, now: &SessionMeta, told: &[LastTold], grew: bool) -> SessionMeta {
    let mut meta = here.clone();
    if told.iter().any(|told| told.title == here.title) {
        meta.title.clone_from(&now.title);
    }
    if told.iter().any(|told| told.status == here.status) && now.status != here.status {
        meta.status = now.status;
        meta.status_reason.clone_from(&now.status_reason);
    }
    let (had, has) = (here.metadata.clone().unwrap_or_default(), now.metadata.clone().unwrap_or_default());
    let is_ours = |key: &String| told.iter().any(|told| told.metadata.get(key) == had.get(key));
    let mut labels = had.clone();
    for (key, value) in has.iter().filter(|(key, _)| is_ours(key)) {
        labels.insert(key.clone(), value.clone());
    }
    labels.retain(|key, _| has.contains_key(key) || !is_ours(key));
    meta.metadata = Some(labels).filter(|labels| !labels.is_empty() || here.metadata.is_some());
    if here.created_at == 0 {
        // Nobody knew when it was told first.
        meta.created_at = now.created_at;
    }
    if grew {
        meta.updated_at = here.updated_at.max(now.updated_at);
    }
    meta
}

pub(super) fn leaf_at(entry_id: EntryId) -> Record {
    Record::LeafPut(LeafPut { entry_id: Some(entry_id) })
}

/// Refuses entries without a place: an import is taken whole or not at all.
fn check(state: &SessionState, incoming: &Incoming) -> Result<(), Error> {
    let session = &incoming.meta.session_id;
    let mut seen: hashbrown::HashSet<&EntryId> = hashbrown::HashSet::with_capacity(incoming.entries.len());
    let mut last = None;
    for entry in &incoming.entries {
        // Most entries follow the one right before them.
        let came_before = |id: &EntryId| last == Some(id) || seen.contains(id);
        check_entry(session, entry, came_before, |parent| known(state, parent).is_some())?;
        seen.insert(entry.id());
        last = Some(entry.id());
    }
    check_leaf(session, incoming.active_leaf.as_ref(), |leaf| seen.contains(leaf) || known(state, leaf).is_some())
}

/// Refuses an entry that came before, or follows one that did not. Entries that the session has had before may come again.
pub fn check_entry(
    session: &SessionId,
    entry: &SessionEntry,
    came_before: impl Fn(&EntryId) -> bool,
    is_there: impl Fn(&EntryId) -> bool,
) -> Result<(), Error> {
    let id = entry.id();
    if id.is_empty() {
        return Err(Error::invalid_request(format!("an entry of session `{session}` has no id")));
    }
    if let Some(parent) = entry.parent_id().filter(|parent| !came_before(parent) && !is_there(parent)) {
        return Err(Error::invalid_request(format!(
            "entry `{id}` of session `{session}` follows `{parent}`, which does not come before it"
        )));
    }
    match came_before(id) {
        true => Err(Error::invalid_request(format!("session `{session}` has entry `{id}` twice"))),
        false => Ok(()),
    }
}

pub(super) fn check_leaf(
    session: &SessionId,
    leaf: Option<&EntryId>,
    is_there: impl FnOnce(&EntryId) -> bool,
) -> Result<(), Error> {
    match leaf {
        Some(leaf) if !is_there(leaf) => Err(Error::invalid_request(format!(
            "the active leaf `{leaf}` is not among the entries of session `{session}`"
        ))),
        _ => Ok(()),
    }
}

/// New entries that nothing new follows.
fn branch_ends(state: &SessionState, incoming: &Incoming) -> Vec<EntryId> {
    let entries = &incoming.entries;
    let next = entries.iter().skip(1).map(SessionEntry::parent_id).chain([None]);
    let not_by_the_next = entries.iter().zip(next).filter(|(entry, next)| *next != Some(entry.id()));
    let mut ends: Vec<&EntryId> = not_by_the_next.map(|(entry, _)| entry.id()).collect();
    if ends.len() > 1 {
        let followed: HashSet<&EntryId> = entries.iter().filter_map(SessionEntry::parent_id).collect();
        ends.retain(|id| !followed.contains(id));
    }
    ends.into_iter().filter(|id| known(state, id).is_none()).cloned().collect()
}

/// Whether the new entries lead from the leaf of before to the new one.
fn continues(state: &SessionState, records: &[Record], leaf: &EntryId, before: Option<&EntryId>) -> bool {
    follows(state, records, leaf) == before
}

/// The entry that the new ones up to the leaf follow, which is none of them.
fn follows<'a>(state: &SessionState, records: &'a [Record], leaf: &'a EntryId) -> Option<&'a EntryId> {
    let mut at = leaf;
    // Every entry comes after the one that it follows.
    for record in records.iter().rev() {
        if let Record::EntryPut(put) = record
            && put.entry_id == *at
            && known(state, at).is_none()
        {
            at = put.parent_id.as_ref()?;
        }
    }
    Some(at)
}

/// Whether nobody said anything on the active path after an entry. What an agent noted for itself is not handed on to another, so
/// what comes back from there follows the last thing that was said.
fn is_last_said(state: &SessionState, entry: &EntryId, unsaid: &HashSet<EntryId>) -> bool {
    let Some(ix) = known(state, entry) else { return false };
    let said = |ix: &&NodeIx| {
        let kind = state.node(**ix).kind();
        matches!(kind, NodeKind::User | NodeKind::Assistant | NodeKind::FunctionResult)
            && !unsaid.contains(&state.id(**ix))
    };
    let after = state.path().iter().rev().take_while(|at| **at != ix).find(said);
    state.on_path(ix) && after.is_none()
}

/// Whether an entry is new to a session, or newer than the one that is there.
pub fn adds_to(state: &SessionState, entry: &SessionEntry) -> bool {
    known(state, entry.id()).is_none_or(|ix| is_newer(state, ix, entry))
}

/// An entry of the session; lines that never became one do not count.
fn known(state: &SessionState, id: &EntryId) -> Option<NodeIx> {
    if state.exists() { state.find(id) } else { None }
}

fn is_newer(state: &SessionState, ix: NodeIx, entry: &SessionEntry) -> bool {
    // What stands in for a damaged entry replaces nothing, and is replaced by the entry.
    if matches!(entry, SessionEntry::Custom(custom) if custom.custom_type == DAMAGED) {
        return false;
    }
    let node = state.node(ix);
    let is_lost = node.is_damaged() || state.custom_type(ix) == Some(DAMAGED);
    is_lost || (node.revision() < entry.revision() && state.parent_id(ix).as_ref() == entry.parent_id())
}
