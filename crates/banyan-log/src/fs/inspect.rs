//! Looking at a directory without owning it: what `verify` needs beyond the session files.

use super::recovery::{Log, SET_ASIDE};
use super::{damage_log, format, journal, layout, segment};
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

/// The id of a directory, if its format file can be read.
pub fn directory_id(disk: &dyn Disk) -> Option<super::DirectoryId> {
    format::check(disk).ok()?.id()
}

/// What was lost of the write-ahead log and is known for good, and segments that are kept because they cannot be read.
pub fn known_damage(disk: &dyn Disk) -> Result<Vec<Oddity>, LogError> {
    let (lost, unreadable) = damage_log::read(disk)?;
    let lost = lost.iter().map(|lost| Oddity { path: lost.segment.clone(), reason: lost.sentence() });
    let unreadable = unreadable.into_iter().map(|line| Oddity {
        path: layout::DAMAGE.to_owned(),
        reason: format!("line {line} is damaged: what it says of earlier damage is lost"),
    });
    let listed = disk.list(layout::WAL).map_err(LogError::io("listing the write-ahead log"))?;
    let kept = listed.into_iter().filter(|listed| segment_set_aside(&listed.name)).map(|listed| Oddity {
        path: format!("{}/{}", layout::WAL, listed.name),
        reason: "a damaged segment of the write-ahead log, kept; commits that only it had are lost".to_owned(),
    });
    Ok(lost.chain(unreadable).chain(kept).collect())
}

fn segment_set_aside(name: &str) -> bool {
    name.strip_suffix(SET_ASIDE).and_then(segment::id_of).is_some()
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
        let bytes = match disk.open(&path).and_then(|file| file.map(|file| segment::read_all(&*file)).transpose())
        {
            Ok(Some(bytes)) => bytes,
            Ok(None) => continue,
            Err(error) => {
                oddities.push(Oddity { path, reason: format!("cannot be read: {error}") });
                continue;
            }
        };
        let Some(first) = journal::first_of(&name) else { continue };
        let mut commits = first..first.saturating_add(journal::PER_FILE);
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let found = journal::decode(rest).map(|(entry, len)| (0, entry, len));
            let Some((damaged, entry, len)) = found.or_else(|| journal::find_next(rest, &commits)) else {
                // The end may be unwritten still: the write-ahead log has it then.
                if Log::read(disk, None)?.used.is_empty() {
                    let reason = format!(
                        "damaged from byte {at} on: subscribers that come back from before the next commit start over"
                    );
                    oddities.push(Oddity { path: path.clone(), reason });
                }
                break;
            };
            if damaged > 0 {
                let reason = format!(
                    "{damaged} bytes at {at} are damaged: subscribers that come back from before commit {} start over",
                    entry.commit.0
                );
                oddities.push(Oddity { path: path.clone(), reason });
            }
            commits.start = entry.commit.0.saturating_add(1);
            at += damaged + len;
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
