//! More text for messages that are there, and new ones after the leaf, all or none.

use banyan_model::{AgentMessage, EntryId, Error, ExtendMessageRequest};

use super::append::append_entries;
use super::update::extended;
use super::{Ctx, Decision, NewEntry};
use crate::record::Record;
use crate::state::SessionState;

/// Adds text to messages, each named once and at the revision it is expected at, and appends as [`append_entries`] does.
/// `current` are these messages as they are, as for [`extend_message`](super::extend_message).
pub fn extend_and_append(
    state: &SessionState,
    growths: Vec<ExtendMessageRequest>,
    current: &[Option<AgentMessage>],
    expected_leaf: Option<&EntryId>,
    entries: Vec<NewEntry>,
    ctx: &Ctx<'_>,
) -> Result<Decision<()>, Error> {
    let mut decision = append_entries(state, expected_leaf, entries, ctx)?;
    // Only one message grows at a time, so each is written whole, after the one that was growing.
    let settled = usize::from(matches!(decision.records.first(), Some(Record::Settled(_))));
    let grown = growths.into_iter().zip(current);
    let grown = grown.map(|(growth, current)| extended(state, growth, current.as_ref()));
    let grown = grown.collect::<Result<Vec<Record>, Error>>()?;
    decision.records.splice(settled..settled, grown);
    Ok(decision)
}
