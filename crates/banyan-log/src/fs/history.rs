//! From which commit on positions can be resumed from, and which numbers were given out at least, in `.banyan/history`: one
//! checked line that names the directory.
//!
//! Sessions may change in another way than by commits: files are copied in, or a directory is restored as it was earlier.
//! A subscriber that resumes from a position before such a change would miss it, so it has to read again.

use std::sync::atomic::Ordering;

use banyan_model::CommitNo;
use serde::{Deserialize, Serialize};

use super::recovery::Recovered;
use super::segment::read_all;
use super::shared::Shared;
use super::{FsLog, checked_line, layout};
use crate::LogError;

#[derive(Serialize, Deserialize)]
struct Line {
    directory: String,
    /// The first commit that can be resumed from.
    resume_from: CommitNo,
    /// The last commit of all when this was written.
    head: CommitNo,
}

impl Shared {
    /// Reads from where on positions can be resumed from, once the head is known. Numbers go on after that.
    pub(crate) fn open_history(&self, said: &mut Recovered) -> Result<(), LogError> {
        let (floor, head) = match self.read_history() {
            Ok(read) => read,
            Err(reason) => {
                said.warnings.push(format!(
                    "{}: {reason}; subscribers that come back read everything again",
                    layout::HISTORY
                ));
                let floor = CommitNo(self.head().0 + 1);
                (floor, floor)
            }
        };
        self.floor.fetch_max(floor.0, Ordering::AcqRel);
        self.head.fetch_max(head.max(floor).0, Ordering::AcqRel);
        Ok(())
    }

    fn read_history(&self) -> Result<(CommitNo, CommitNo), String> {
        let file = self.disk.open(layout::HISTORY).map_err(|error| format!("cannot be read: {error}"))?;
        let Some(file) = file else { return Ok(Default::default()) };
        let bytes = read_all(file.as_ref()).map_err(|error| format!("cannot be read: {error}"))?;
        match checked_line::decode::<Line>(&bytes) {
            Some(line) if line.directory == self.directory.to_string() => Ok((line.resume_from, line.head)),
            Some(_) => Err("is another directory's".to_owned()),
            None => Err("is damaged".to_owned()),
        }
    }

    fn write_history(&self, resume_from: CommitNo) -> std::io::Result<()> {
        let (directory, head) = (self.directory.to_string(), self.head());
        let beside = format!("{}.new", layout::HISTORY);
        let file = self.disk.create(&beside)?;
        file.set_len(0)?;
        file.write_at(0, &checked_line::encode(&Line { directory, resume_from, head }))?;
        file.sync()?;
        self.disk.rename(&beside, layout::HISTORY)?;
        self.disk.sync_dir(layout::STATE)
    }
}

impl FsLog {
    /// Takes a number for a change that no commit made, so that subscribers with an earlier position read again. To be
    /// called before the log is started. Durable when it returns.
    pub fn end_resuming(&self) -> Result<(), LogError> {
        self.set_resume_floor(CommitNo(self.shared.head().0 + 1))
    }

    /// Remembers the last number, which files told that the log and the journal know nothing of. Durable when it returns.
    pub fn keep_head(&self) -> Result<(), LogError> {
        self.shared.settle_floor();
        self.set_resume_floor(self.history_floor())
    }

    fn set_resume_floor(&self, floor: CommitNo) -> Result<(), LogError> {
        self.shared.write_history(floor).map_err(LogError::io(format!("writing {}", layout::HISTORY)))?;
        self.shared.floor.fetch_max(floor.0, Ordering::AcqRel);
        self.shared.head.fetch_max(floor.0, Ordering::AcqRel);
        Ok(())
    }
}
