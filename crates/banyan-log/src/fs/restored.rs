//! Directories that were restored from a backup.
//!
//! While a restore is under way, `.banyan/restoring` keeps the directory from being opened. Afterwards `.banyan/restored` says
//! where the history of this directory begins: commit numbers go on far behind those of the backup, so that no position of the
//! other directory is ever given out a second time, and every position before that gets a resync.

use std::sync::atomic::Ordering;

use banyan_model::CommitNo;
use serde::{Deserialize, Serialize};

use super::recovery::Recovered;
use super::segment::read_all;
use super::shared::Shared;
use super::{checked_line, layout};
use crate::LogError;
use crate::disk::Disk;

/// What `.banyan/restored` says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// Commits of this directory come after this one.
    pub floor: CommitNo,
    /// The id of the directory that was backed up.
    pub store: String,
    /// The commit that was restored.
    pub commit: CommitNo,
}

/// How many commits the other directory may have made after its last backup.
const GAP_BITS: u32 = 36;

impl Restored {
    /// A restore of a commit of a directory.
    pub fn of(store: String, commit: CommitNo) -> Self {
        let floor = ((commit.0 >> GAP_BITS) + 2) << GAP_BITS;
        Self { floor: CommitNo(floor), store, commit }
    }
}

/// Where things go in a directory that is restored.
pub mod place {
    use banyan_core::born::Born;
    use banyan_core::names::Naming;
    use banyan_model::SessionId;

    use super::layout;
    use crate::LogError;
    use crate::disk::Disk;

    /// How the disk tells names apart, once a restore into it has begun.
    pub fn naming(disk: &dyn Disk) -> Result<Naming, LogError> {
        layout::naming_by(disk, layout::RESTORING)
    }

    /// The file of a session.
    pub fn session(naming: Naming, id: &SessionId) -> String {
        layout::session(naming, id)
    }

    /// The file of a deleted session that forks read.
    pub fn base(born: Born) -> String {
        layout::base(born)
    }

    /// The file of content.
    pub fn blob(hash: &str) -> String {
        layout::blob(hash)
    }

    /// The directories that those are in.
    pub fn directories(blobs: &[String]) -> Vec<String> {
        let mut dirs = vec![layout::STATE.to_owned(), layout::BASES.to_owned(), layout::BLOBS.to_owned()];
        dirs.extend(blobs.iter().map(|hash| layout::blob_dir(hash)));
        dirs.dedup();
        dirs
    }
}

/// Keeps the directory from being opened until [`finish`]. Durable when it returns.
pub fn begin(disk: &dyn Disk) -> Result<(), LogError> {
    let write = || {
        disk.create_dir(layout::STATE)?;
        disk.create(layout::RESTORING)?.sync()?;
        disk.sync_dir(layout::STATE)?;
        disk.sync_dir("")
    };
    write().map_err(LogError::io(format!("writing {}", layout::RESTORING)))
}

/// Says where the history begins, and lets the directory be opened. Everything else is durable by now.
pub fn finish(disk: &dyn Disk, restored: &Restored) -> Result<(), LogError> {
    let write = || {
        let file = disk.create(layout::RESTORED)?;
        file.set_len(0)?;
        file.write_at(0, &checked_line::encode(restored))?;
        file.sync()?;
        disk.sync_dir(layout::STATE)?;
        disk.remove(layout::RESTORING)?;
        disk.sync_dir(layout::STATE)
    };
    write().map_err(LogError::io(format!("writing {}", layout::RESTORED)))
}

/// Fails for a directory into which a restore did not end.
pub(crate) fn refuse_unfinished(disk: &dyn Disk) -> Result<(), LogError> {
    let looking = LogError::io(format!("looking for {}", layout::RESTORING));
    match disk.stat(layout::RESTORING).map_err(looking)? {
        Some(_) => Err(LogError::Damaged {
            path: layout::RESTORING.to_owned(),
            reason: "a restore into this directory did not end; remove the directory and restore again".to_owned(),
        }),
        None => Ok(()),
    }
}

/// The floor of a directory whose file cannot be read: until the head is known.
const UNKNOWN: u64 = u64::MAX;

impl Shared {
    /// Takes over where the history of a restored directory begins.
    pub(crate) fn take_restored(&self, recovered: &mut Recovered) {
        let bytes = match self.disk.open(layout::RESTORED) {
            Ok(None) => return,
            Ok(Some(file)) => read_all(file.as_ref()).ok(),
            Err(_) => None,
        };
        match bytes.and_then(|bytes| checked_line::decode::<Restored>(&bytes)) {
            Some(restored) => {
                self.head.fetch_max(restored.floor.0, Ordering::AcqRel);
                self.floor.fetch_max(restored.floor.0, Ordering::AcqRel);
            }
            None => {
                let reason = "cannot be read; every position that was given out before is answered with a resync";
                recovered.warnings.push(format!("{}: {reason}", layout::RESTORED));
                self.floor.store(UNKNOWN, Ordering::Release);
            }
        }
    }

    /// Where it is not known where the history begins, it begins now.
    pub(crate) fn settle_floor(&self) {
        let head = self.head().0;
        let _ = self.floor.compare_exchange(UNKNOWN, head, Ordering::AcqRel, Ordering::Acquire);
    }
}
