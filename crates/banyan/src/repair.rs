//! Repairing a data directory: what is safe is done by opening it; what is a person's decision is done when it is given.

use std::path::Path;
use std::sync::Arc;

use banyan_core::Born;
use banyan_log::{FileDamage, Removal};
use banyan_model::{Error, SessionId};

use crate::access::Access;
use crate::clock::now_ms;
use crate::commit::{End, Telling};
use crate::mutations::tombstone_of;
use crate::store::Store;
use crate::verify::Finding;
use crate::{Banyan, OpenError, Options, block_on};

/// What to do about sessions whose files are damaged as a whole. Without a decision such a session stays read-only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decisions {
    /// Sessions whose short file is accepted as it is.
    pub accept: Vec<SessionId>,
    /// Sessions whose file was removed on purpose: they end.
    pub forget: Vec<SessionId>,
}

/// One step of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The file that it is about.
    pub file: String,
    /// What is done.
    pub action: String,
}

/// Plans the repair of what `verify` found. Findings without a step are left as they are, and stay reported.
pub fn plan(findings: &[Finding], decisions: &Decisions) -> Vec<Step> {
    let safe = findings.iter().filter_map(|finding| Some((finding, safe_action(finding)?)));
    let mut steps: Vec<Step> =
        safe.map(|(finding, action)| Step { file: finding.file.clone(), action: action.to_owned() }).collect();
    steps.dedup();
    let step = |id: &SessionId, action: &str| Step { file: file_of(id), action: action.to_owned() };
    steps.extend(decisions.accept.iter().map(|id| step(id, "copy it to .banyan/aside, and accept it as it is")));
    steps.extend(decisions.forget.iter().map(|id| step(id, "end the session")));
    steps
}

/// What opening a directory repairs without a loss.
fn safe_action(finding: &Finding) -> Option<&'static str> {
    let file = finding.file.as_str();
    match file {
        ".banyan/format" | ".banyan/format.copy" => Some("write it again from its other copy"),
        ".banyan/files" => Some("make it anew from the session files"),
        _ if file.starts_with(".banyan/wal/") && file.ends_with(".seg") => {
            Some("recover what its frames have; keep it as .damaged if it has none")
        }
        _ => None,
    }
}

fn file_of(id: &SessionId) -> String {
    format!("{}.jsonl", banyan_core::names::file_stem(id))
}

/// Opens a directory that no other process uses, which recovers it, and carries out decisions. Nothing is done if one of them cannot be.
pub fn repair(dir: impl AsRef<Path>, decisions: &Decisions, options: Options) -> Result<(), OpenError> {
    let banyan = Banyan::open(dir, options)?;
    let outcome = banyan.store.carry_out_decisions(decisions);
    let closed = banyan.close();
    outcome?;
    Ok(closed?)
}

impl Store {
    fn carry_out_decisions(self: &Arc<Self>, decisions: &Decisions) -> Result<(), Error> {
        for id in &decisions.accept {
            match self.log.file_damage(id).or_else(|| self.log.check_file(id)) {
                Some(FileDamage::Short { .. }) => {}
                Some(FileDamage::Missing { .. }) => {
                    return Err(Error::invalid_request(format!(
                        "session `{id}`: its file is missing, so there is nothing to accept; put it back, or pass --forget {id}"
                    )));
                }
                Some(damage @ FileDamage::Unreadable { .. }) => {
                    return Err(Error::invalid_request(format!("session `{id}`: its file {}", damage.reason())));
                }
                None => return Err(undamaged(id, "accept")),
            }
        }
        for id in &decisions.forget {
            match self.log.file_damage(id).or_else(|| self.log.check_file(id)) {
                Some(FileDamage::Missing { .. }) => {}
                Some(_) => {
                    return Err(Error::invalid_request(format!(
                        "session `{id}`: its file is there; pass --accept {id}, and delete the session if it is not wanted"
                    )));
                }
                None => return Err(undamaged(id, "forget")),
            }
        }
        for id in &decisions.accept {
            self.log.copy_aside(id)?;
            self.log.forget_damage(id);
            // Loading mends the end, and corrects the catalogue.
            self.session(id)?;
            self.log.accept_file(id)?;
        }
        for id in &decisions.forget {
            block_on(self.end_missing(id))?;
        }
        Ok(())
    }

    /// Ends a session whose file is gone, so that subscribers which come back are notified.
    async fn end_missing(self: &Arc<Self>, id: &SessionId) -> Result<(), Error> {
        let row = self.catalogue.get(id)?;
        self.log.forget_damage(id);
        let time_ms = now_ms();
        let born = row.as_ref().and_then(|row| row.file.key.born.parse().ok()).unwrap_or_else(|| Born::unsaid(id));
        let metadata = row.as_ref().and_then(|row| row.meta.metadata.clone());
        let removal = Removal {
            session: id.clone(),
            born,
            tombstone: tombstone_of(time_ms, metadata),
            keep_for_forks: false,
            blobs: Vec::new(),
        };
        let held = self.hold_or_begin(Access::whole(), id).await?;
        let held =
            self.commit_removal(held, removal, End { time_ms, telling: Telling::Later, token: None }).await?;
        self.let_go(held);
        self.catalogue.forget(id);
        self.mark_for_search(vec![id.clone()]);
        Ok(())
    }
}

fn undamaged(id: &SessionId, option: &str) -> Error {
    Error::invalid_request(format!("session `{id}`: its file is as long as it was; there is nothing to {option}"))
}
