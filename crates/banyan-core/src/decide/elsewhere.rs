//! What was decided elsewhere, on a glimpse of the session, and is to be committed here.
//!
//! The session is as it was seen, so the records fit it. That is checked all the same: a record that does not fit would be
//! damage for ever.

use std::collections::HashSet;

use banyan_model::{EntryId, Error, Revision, SessionStatus};

use super::branch::settle_above;
use super::settle::{settle, settle_others};
use crate::node_kind::NodeKind;
use crate::record::{Base, Record};
use crate::state::{NodeIx, SessionState};

/// Records that were decided elsewhere, with a growing message settled where the rules ask for it. Whoever decided knows
/// nothing of how a message is stored.
pub fn decided_elsewhere(state: &SessionState, records: Vec<Record>) -> Result<Vec<Record>, Error> {
    let mut check = Check { state, exists: state.exists(), new: HashSet::new() };
    for record in &records {
        check.fits(record)?;
    }
    let settled = match records.first() {
        Some(Record::Message(_) | Record::Custom(_) | Record::Adopted(_)) => settle(state)?,
        Some(Record::StatusSet(set)) if set.status != SessionStatus::Working => settle(state)?,
        Some(Record::Updated(updated)) => settle_unless(state, &updated.entry_id)?,
        Some(Record::Grew(grew)) => settle_unless(state, &grew.entry_id)?,
        _ => None,
    };
    Ok(settled.into_iter().chain(records).collect())
}

/// The records of a fork that was decided elsewhere: what is written to the session forked from, and what the fork
/// begins with, which names it as it is then.
pub fn forked_elsewhere(
    state: &SessionState,
    mut records: Vec<Record>,
) -> Result<(Vec<Record>, Vec<Record>), Error> {
    let Some(Record::Created(created)) = records.first_mut() else { return Err(unfit("a fork begins with")) };
    let Some(base) = &mut created.base else { return Err(unfit("a fork has a base, unlike")) };
    let ix = state.find(&base.entry_id).filter(|ix| !state.is_endless(*ix));
    let ix = ix.ok_or_else(|| Error::entry_not_found(state.session_id(), &base.entry_id))?;
    let source = settle_above(state, ix)?;
    let node = state.node(ix);
    *base = Base {
        session_id: state.session_id().clone(),
        born: state.born(),
        seq: banyan_model::Seq((state.next_seq().0 + source.len() as u64).saturating_sub(1)),
        entry_id: base.entry_id.clone(),
        entries: u64::from(node.depth()) + 1,
        messages: node.messages_on_path(),
    };
    for record in &records[1..] {
        let Record::Attached(attached) = record else { return Err(unfit("a fork does not begin with")) };
        let known = state.attachments().get(&attached.attachment.attachment_id);
        if known.is_none_or(|known| known.blob != attached.blob) {
            return Err(unfit("the session forked from has no such attachment as in"));
        }
    }
    Ok((source, records))
}

struct Check<'a> {
    state: &'a SessionState,
    exists: bool,
    new: HashSet<EntryId>,
}

impl Check<'_> {
    fn fits(&mut self, record: &Record) -> Result<(), Error> {
        match record {
            Record::Created(created) => {
                let ours = created.session_id == *self.state.session_id() && created.base.is_none();
                if self.exists || !ours {
                    return Err(unfit("the session cannot begin with"));
                }
                self.exists = true;
                return Ok(());
            }
            _ if !self.exists => return Err(Error::not_found(self.state.session_id())),
            Record::Message(message) => {
                message.message.parse().map_err(|error| Error::invalid_request(error.message))?;
                self.appends(&message.entry_id, message.parent_id.as_ref())?;
            }
            Record::Custom(custom) => self.appends(&custom.entry_id, custom.parent_id.as_ref())?,
            Record::Updated(updated) => {
                updated.message.parse().map_err(|error| Error::invalid_request(error.message))?;
                self.changes(&updated.entry_id, updated.revision)?;
            }
            Record::Grew(grew) if grew.adds.len() == 1 => self.changes(&grew.entry_id, grew.revision)?,
            Record::LeafMoved(moved) => drop(self.known(&moved.entry_id)?),
            Record::Adopted(adopted) => drop(self.known(&adopted.entry_id)?),
            Record::MetaSet(_) | Record::StatusSet(_) | Record::Attached(_) => {}
            Record::Detached(gone) if self.state.attachments().contains_key(&gone.attachment_id) => {}
            _ => return Err(unfit("what is decided elsewhere has no such record as")),
        }
        Ok(())
    }

    fn appends(&mut self, entry_id: &EntryId, parent_id: Option<&EntryId>) -> Result<(), Error> {
        if let Some(parent) = parent_id.filter(|parent| !self.new.contains(*parent)) {
            self.state.find(parent).ok_or_else(|| Error::parent_not_found(self.state.session_id(), parent))?;
        }
        if self.state.find(entry_id).is_some() || !self.new.insert(entry_id.clone()) {
            return Err(unfit("the session has the entry of"));
        }
        Ok(())
    }

    fn changes(&self, entry_id: &EntryId, revision: Revision) -> Result<(), Error> {
        let node = self.state.node(self.known(entry_id)?);
        if !node.kind().is_message() || node.kind() == NodeKind::Lost || revision != node.revision().next() {
            return Err(unfit("the message is not the one of"));
        }
        Ok(())
    }

    fn known(&self, entry_id: &EntryId) -> Result<NodeIx, Error> {
        self.state.find(entry_id).ok_or_else(|| Error::entry_not_found(self.state.session_id(), entry_id))
    }
}

fn settle_unless(state: &SessionState, entry_id: &EntryId) -> Result<Option<Record>, Error> {
    match state.find(entry_id) {
        Some(ix) => settle_others(state, ix),
        None => Ok(None),
    }
}

fn unfit(why: &str) -> Error {
    Error::invalid_request(format!("{why} the records given; look at the session and decide again"))
}
