//! What was lost, in `.banyan/damage.log`: one checked line each, kept for good.

use std::collections::HashSet;

use banyan_model::CommitNo;
use serde::{Deserialize, Serialize};

use super::segment::read_all;
use super::{checked_line, layout};
use crate::LogError;
use crate::disk::Disk;

/// Commits of the write-ahead log that cannot be read any more.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LostCommits {
    /// The first commit that was lost.
    pub first: CommitNo,
    /// The last one; `None` if it is not known how many there were.
    pub last: Option<CommitNo>,
    /// The segment that they were in.
    pub segment: String,
    /// Where in the segment.
    pub offset: u64,
    /// How many bytes cannot be read.
    pub length: u64,
    /// The session files that they wrote to, as far as that can be told, each with the offset.
    pub files: Vec<(String, u64)>,
}

#[derive(Serialize, Deserialize)]
enum Line {
    #[serde(rename = "lost")]
    Lost(LostCommits),
}

/// Adds what is new, durably.
pub(crate) fn add(disk: &dyn Disk, lost: &[LostCommits]) -> Result<(), LogError> {
    if lost.is_empty() {
        return Ok(());
    }
    let known: HashSet<LostCommits> = read(disk)?.0.into_iter().collect();
    let new = lost.iter().filter(|lost| !known.contains(lost)).cloned();
    let lines: Vec<u8> = new.flat_map(|lost| checked_line::encode(&Line::Lost(lost))).collect();
    if lines.is_empty() {
        return Ok(());
    }
    let write = || {
        let file = disk.create(layout::DAMAGE)?;
        let end = file.len()?;
        let mut last = *b"\n";
        file.read_at(end.saturating_sub(1), &mut last)?;
        // A line that was cut must not take the next one with it.
        let lines = if last == *b"\n" { lines } else { [b"\n", &lines[..]].concat() };
        file.write_at(end, &lines)?;
        file.sync()?;
        disk.sync_dir(layout::STATE)
    };
    write().map_err(LogError::io(format!("writing {}", layout::DAMAGE)))
}

/// What was lost, and the numbers of lines that cannot be read.
pub(crate) fn read(disk: &dyn Disk) -> Result<(Vec<LostCommits>, Vec<u64>), LogError> {
    let reading = || LogError::io(format!("reading {}", layout::DAMAGE));
    let Some(file) = disk.open(layout::DAMAGE).map_err(reading())? else { return Ok(Default::default()) };
    let bytes = read_all(file.as_ref()).map_err(reading())?;
    let (mut lost, mut damaged) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(bytes.split_inclusive(|byte| *byte == b'\n')) {
        match checked_line::decode(line) {
            Some(Line::Lost(commits)) => lost.push(commits),
            None => damaged.push(number),
        }
    }
    Ok((lost, damaged))
}

impl LostCommits {
    /// What was lost, in one line.
    pub fn sentence(&self) -> String {
        let commits = match self.last {
            Some(last) if last == self.first => format!("commit {} is lost", self.first.0),
            Some(last) => format!("commits {} to {} are lost", self.first.0, last.0),
            None => format!("commit {} is lost, and perhaps later ones", self.first.0),
        };
        let files: Vec<String> = self.files.iter().map(|(file, offset)| format!("{file} at {offset}")).collect();
        let files = if files.is_empty() { String::new() } else { format!(", written to {}", files.join(", ")) };
        format!("{commits} ({} bytes at offset {}{files})", self.length, self.offset)
    }
}
