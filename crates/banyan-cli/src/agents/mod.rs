//! The sessions of coding agents: found, taken in, kept up with, and handed on.
//!
//! What agents write is the business of the `banyan-agents` crate. Here it is found on this machine ([`survey`]), read into the store in
//! pieces ([`intake`], [`take`]), remembered so that the next time only costs what is new ([`ledger`]), and followed ([`follow`]).

pub(crate) mod follow;
mod intake;
pub(crate) mod ledger;
mod originals;
pub(crate) mod outgoing;
pub(crate) mod survey;
pub(crate) mod take;
pub(crate) mod tell;

use banyan::Taken;
use banyan::model::{SessionEntry, SessionId};
use serde::Serialize;

use crate::client::Client;
use crate::failure::Failure;

/// What came of reading, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    /// Whether the session is new.
    pub(crate) created: bool,
    /// Entries that are new.
    pub(crate) added: u64,
    /// Entries of which there is more now.
    pub(crate) updated: u64,
    /// Entries that were there.
    pub(crate) unchanged: u64,
}

impl Counts {
    fn add(&mut self, taken: &Taken) {
        self.created |= taken.created;
        self.added += taken.added;
        self.updated += taken.updated;
        self.unchanged += taken.unchanged;
    }

    /// Counts what would be taken.
    fn dry_run(
        &mut self,
        client: &dyn Client,
        session: &SessionId,
        entries: &[SessionEntry],
        untold: bool,
    ) -> Result<(), Failure> {
        let there = match entries.first() {
            Some(first) if untold && !self.created => client.has_entry(session, first.id())?,
            _ => !self.created,
        };
        if !there {
            self.created = true;
            self.added += entries.len() as u64;
            return Ok(());
        }
        for entry in entries {
            match client.has_entry(session, entry.id())? {
                true => self.unchanged += 1,
                false => self.added += 1,
            }
        }
        Ok(())
    }
}
