//! Repairing a data directory: what is safe is done by opening it; what is a person's decision is done when it is given.

use std::path::Path;
use std::sync::Arc;

use banyan_core::Born;
use banyan_log::disk::OsDisk;
use banyan_log::{At, FileDamage, FsLog, Removal, SessionLog};
use banyan_model::{Error, GetRequest, Object, SessionId, SetMetaRequest};

use crate::access::Access;
use crate::clock::now_ms;
use crate::commit::{End, Telling};
use crate::file_damage::{REGISTERED_BEGINNING, restorable_beginning};
use crate::store::Store;
use crate::tombstone::Tombstone;
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
    steps.extend(decisions.accept.iter().map(|id| {
        step(id, "copy it to .banyan/aside, accept it as it is, and clear its metadata: set that again")
    }));
    steps.extend(decisions.forget.iter().map(|id| step(id, "end the session")));
    steps
}

/// What is repaired without a loss.
fn safe_action(finding: &Finding) -> Option<&'static str> {
    let file = finding.file.as_str();
    match file {
        _ if finding.reason == REGISTERED_BEGINNING => {
            Some("write its first line again from the register, and keep a copy of the file")
        }
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

/// Opens a directory that no other process uses, which recovers it, restores the damaged first lines of forks, and carries out
/// decisions: none of them if one cannot be.
pub fn repair(dir: impl AsRef<Path>, decisions: &Decisions, options: Options) -> Result<(), OpenError> {
    let restored = restore_beginnings(dir.as_ref())?;
    let banyan = Banyan::open(dir, options)?;
    let noted = restored.iter().try_for_each(|id| banyan.store.note_restored(id));
    let outcome = noted.and_then(|()| banyan.store.carry_out_decisions(decisions));
    let closed = banyan.close();
    outcome?;
    Ok(closed?)
}

/// Writes the first lines of forks that are damaged again as the register of files has them. Returns whose they are.
fn restore_beginnings(dir: &Path) -> Result<Vec<SessionId>, OpenError> {
    let disk = Arc::new(OsDisk::new(dir.to_owned()));
    let (log, _) = FsLog::open(disk, banyan_log::Options::default())?;
    if !log.register_is_new() {
        log.check_files()?;
    }
    let mut restored = Vec::new();
    for id in log.sessions()? {
        // A file that cannot be read at all is reported as such.
        if let Ok(Some(begins)) = restorable_beginning(&log, &id) {
            log.restore_beginning(&id, &begins)?;
            restored.push(id);
        }
    }
    log.close()?;
    Ok(restored)
}

impl Store {
    /// Corrects what the catalogue has of a session whose first line was restored.
    fn note_restored(&self, id: &SessionId) -> Result<(), Error> {
        self.note_again(id).map_err(|error| Error::storage(error.to_string()))
    }

    fn carry_out_decisions(self: &Arc<Self>, decisions: &Decisions) -> Result<(), Error> {
        for id in &decisions.accept {
            match self.log.file_damage(id).or_else(|| self.log.check_file(id)) {
                Some(FileDamage::Short { .. } | FileDamage::Replaced) => {}
                Some(FileDamage::Missing { .. }) => {
                    return Err(Error::invalid_request(format!(
                        "session `{id}`: its file is missing, so there is nothing to accept; put it back, or pass --forget {id}"
                    )));
                }
                Some(damage @ (FileDamage::Unreadable { .. } | FileDamage::Newer { .. })) => {
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
            let at = At::Live(id);
            if let Some(scanned) = self.log.scan(at, 0, &mut |_, _| {})? {
                self.log.mend(at, scanned)?;
            }
            self.log.accept_file(id)?;
            // Loading corrects the catalogue.
            self.session(id)?;
            block_on(self.clear_metadata(id))?;
        }
        for id in &decisions.forget {
            block_on(self.end_missing(id))?;
        }
        Ok(())
    }

    /// Clears the metadata of a session that may have had other metadata in what it lost, so that no scope reaches it until it
    /// is set again.
    async fn clear_metadata(self: &Arc<Self>, id: &SessionId) -> Result<(), Error> {
        let banyan = Banyan { store: Arc::clone(self), access: Arc::default() };
        let got = banyan.get(GetRequest { session_id: id.clone() }).await?;
        if got.is_none_or(|got| got.meta.metadata.is_none()) {
            return Ok(());
        }
        let request = SetMetaRequest {
            session_id: id.clone(),
            title: None,
            description: None,
            metadata: Some(Object::default()),
        };
        banyan.set_meta(request).await.map(drop)
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
            tombstone: Tombstone::of(time_ms, born, metadata.as_ref()).encode(),
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
