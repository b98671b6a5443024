//! A story by the entries that it is made of, for writers that go along the path and put back what was their agent's own.

use std::collections::HashMap;

use banyan_model::{AgentMessage, EntryId, SessionEntry};

use crate::{COMPACTION, Outgoing, Step, Story};

/// The steps of a story, by entry, and what is lost.
pub(crate) struct Steps {
    by_entry: HashMap<EntryId, Step>,
    pub(crate) lost: Vec<String>,
    /// Whether some context found no place in the agent.
    pub(crate) left_out: bool,
}

impl Steps {
    /// The steps of a session that `agent` writes. What is the agent's own and no conversation is not among them.
    pub(crate) fn of(session: &Outgoing, agent: &str) -> Self {
        let Story { steps, lost } = Story::of(session);
        let entry_of = |step: &Step| match step {
            Step::User { entry, .. } | Step::Assistant { entry, .. } => entry.clone(),
        };
        let mut by_entry: HashMap<EntryId, Step> = steps.into_iter().map(|step| (entry_of(&step), step)).collect();
        for entry in &session.entries {
            if is_own_summary(entry, agent) {
                by_entry.remove(entry.id());
            }
        }
        Self { by_entry, lost, left_out: false }
    }

    pub(crate) fn take(&mut self, entry: &EntryId) -> Option<Step> {
        self.by_entry.remove(entry)
    }

    /// What is lost when answers that failed, and all context unless it was left out, were written beside the story.
    pub(crate) fn lost(mut self) -> Vec<String> {
        let left_out = self.left_out;
        self.lost.retain(|lost| {
            let context = lost.starts_with("context of the agent") && !left_out;
            !context && !lost.starts_with("an answer that failed")
        });
        self.lost.dedup();
        self.lost
    }
}

/// Whether an entry is a summary that the agent made itself.
fn is_own_summary(entry: &SessionEntry, agent: &str) -> bool {
    let SessionEntry::Message(entry) = entry else { return false };
    entry.origin.as_ref().is_some_and(|origin| origin.has(agent))
        && matches!(entry.message.parse(), Ok(AgentMessage::Custom(custom)) if custom.custom_type == COMPACTION)
}
