//! Looking at a directory without owning it: what `verify` needs beyond the session files.

use super::{format, journal, layout, recovery, segment};
use crate::LogError;
use crate::disk::Disk;

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oddity {
    /// The file.
    pub path: String,
    /// What is wrong, in plain words.
    pub reason: String,
}

/// Checks the format file: both copies are whole and agree.
pub fn format(disk: &dyn Disk) -> Vec<Oddity> {
    format::faults(disk).into_iter().map(|(path, reason)| Oddity { path, reason }).collect()
}

/// Checks the write-ahead log: its segments follow one another and every frame in them is whole.
pub fn write_ahead_log(disk: &dyn Disk) -> Result<Vec<Oddity>, LogError> {
    let mut oddities = Vec::new();
    let segments = recovery::segments(disk)?;
    let mut next = None;
    for (header, bytes, path) in &segments.used {
        if let Some(next) = next
            && header.first_commit.0 != next
        {
            let reason = format!("starts at commit {}, but commit {next} should follow", header.first_commit.0);
            oddities.push(Oddity { path: path.clone(), reason });
        }
        let mut last = header.first_commit.0.saturating_sub(1);
        let used = segment::frames(bytes, *header, &mut |frame| last = frame.commit.0);
        if let Some(commit) = segment::frame_after(bytes, used, *header) {
            let reason = format!("commit {} is damaged, for commit {commit} follows it", last.saturating_add(1));
            oddities.push(Oddity { path: path.clone(), reason });
        }
        next = Some(last.saturating_add(1));
    }
    Ok(oddities)
}

/// Checks the journal: every entry is whole, and commits follow one another.
pub fn journal(disk: &dyn Disk) -> Result<Vec<Oddity>, LogError> {
    let reading = || LogError::io("reading the journal");
    let mut oddities = Vec::new();
    let mut names: Vec<String> =
        disk.list(layout::JOURNAL).map_err(reading())?.into_iter().map(|listed| listed.name).collect();
    names.sort_unstable();
    for name in names {
        let path = format!("{}/{name}", layout::JOURNAL);
        let Some(file) = disk.open(&path).map_err(reading())? else { continue };
        let bytes = segment::read_all(file.as_ref()).map_err(reading())?;
        let mut rest = bytes.as_slice();
        while let Some((_, len)) = journal::decode(rest) {
            rest = rest.get(len..).unwrap_or_default();
        }
        // The end may be unwritten still: the write-ahead log has it then.
        if !rest.is_empty() && !recovery::segments(disk)?.used.is_empty() {
            continue;
        }
        if !rest.is_empty() {
            let reason =
                format!("damaged from byte {} on: the order of later commits is lost", bytes.len() - rest.len());
            oddities.push(Oddity { path, reason });
        }
    }
    Ok(oddities)
}

/// Paths of all blobs, with the hash that each is named after.
pub fn blobs(disk: &dyn Disk) -> Result<Vec<(String, String)>, LogError> {
    let listing = || LogError::io("listing blobs");
    let mut found = Vec::new();
    for dir in disk.list(layout::BLOBS).map_err(listing())? {
        if !dir.is_dir {
            continue;
        }
        for file in disk.list(&format!("{}/{}", layout::BLOBS, dir.name)).map_err(listing())? {
            found.push((format!("{}/{}/{}", layout::BLOBS, dir.name, file.name), file.name));
        }
    }
    Ok(found)
}
