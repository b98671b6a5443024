//! What was seen of a session.

use banyan::model::store::Version;
use banyan::model::{AgentMessage, CommitNo, EntryId, Raw};
use banyan::now_ms;
use banyan::rules::record::{Envelope, Head, Record, Spots, UpdatedRecord};
use banyan::rules::state::{SessionState, extend_text};

use super::reference_main::Fetched;

/// See the module.
pub(super) struct Seen {
    /// The session, as far as it was asked for.
    pub(super) state: SessionState,
    /// How far the clock there is ahead of the one here, in milliseconds.
    pub(super) ahead_ms: i64,
    /// The entry whose message was asked for, and the message.
    pub(super) message: Option<(EntryId, AgentMessage)>,
    /// An entry that uses the attachment that was asked for.
    pub(super) used_by: Option<EntryId>,
    /// What only the main that it was seen at understands.
    pub(super) place: Place,
}

/// What a main needs to store a change of what was seen.
pub(super) enum Place {
    Banyan(Version),
    Reference(Box<Fetched>),
}

/// Clocks that differ by less than this are taken to be the same: an answer takes its time.
const NOTICEABLE_MS: i64 = 100;

impl Seen {
    /// Something seen where it is `there_ms`.
    pub(super) fn new(state: SessionState, there_ms: i64, place: Place) -> Self {
        let ahead_ms = there_ms.saturating_sub(now_ms());
        let ahead_ms = if ahead_ms.abs() < NOTICEABLE_MS { 0 } else { ahead_ms };
        Self { state, ahead_ms, message: None, used_by: None, place }
    }

    /// The time where the session is stored.
    pub(super) fn now_ms(&self) -> i64 {
        now_ms().saturating_add(self.ahead_ms)
    }

    /// The message that was asked for.
    pub(super) fn message(&self) -> Option<&AgentMessage> {
        self.message.as_ref().map(|(_, message)| message)
    }

    /// Takes in what was committed.
    pub(super) fn take_in(&mut self, records: &[Record], time_ms: i64, place: Place) {
        for record in records {
            apply(&mut self.state, record, time_ms);
            let Some((id, message)) = &mut self.message else { continue };
            match record {
                Record::Grew(grew) if grew.entry_id == *id => {
                    for add in &grew.adds {
                        extend_text(message, grew.block, &add.text);
                    }
                }
                Record::Updated(updated) if updated.entry_id == *id => match updated.message.parse() {
                    Ok(updated) => *message = updated,
                    Err(_) => self.message = None,
                },
                _ => {}
            }
        }
        self.place = place;
    }
}

/// Takes in a record of a session whose texts are not here, so that one that grew is one that changed.
pub(super) fn apply(state: &mut SessionState, record: &Record, time_ms: i64) {
    let envelope = Envelope { seq: state.next_seq(), time_ms, commit: CommitNo(0) };
    let grown;
    let record = match record {
        Record::Grew(grew) => {
            grown = Record::Updated(UpdatedRecord {
                entry_id: grew.entry_id.clone(),
                revision: grew.revision,
                origin: None,
                blobs: Vec::new(),
                message: Raw::vouched("null"),
            });
            &grown
        }
        record => record,
    };
    if let Some(head) = Head::written(record, envelope, &Spots::default()) {
        state.apply(&head, 0, 0);
    }
}
