//! Where things are in a data directory.

use banyan_core::born::Born;
use banyan_core::names::Naming;
use banyan_model::SessionId;

use crate::LogError;
use crate::disk::Disk;

pub(crate) const STATE: &str = ".banyan";
pub(crate) const LOCK: &str = ".banyan/lock";
/// The format file and its second copy.
pub(crate) const FORMATS: [&str; 2] = [".banyan/format", ".banyan/format.copy"];
pub(crate) const WAL: &str = ".banyan/wal";
/// Which segments are in use.
pub(crate) const LIVE: &str = ".banyan/wal/live";
/// How long each session file was when it was flushed.
pub(crate) const REGISTER: &str = ".banyan/files";
/// What was lost, for good.
pub(crate) const DAMAGE: &str = ".banyan/damage.log";
/// Where repairs keep what they replace.
pub(crate) const ASIDE: &str = ".banyan/aside";
/// A line that is being written over another.
pub(crate) const ERASE: &str = ".banyan/erase";
/// Room that only the log may use.
pub(crate) const RESERVE: &str = ".banyan/reserve";
/// The directory was restored from a backup: which positions are of the directory that was backed up.
pub(crate) const RESTORED: &str = ".banyan/restored";
/// A restore into the directory is under way, or was interrupted.
pub(crate) const RESTORING: &str = ".banyan/restoring";
/// Content that seems unused, under its hash and the second since which it is here.
pub(crate) const ASIDE_CONTENT: &str = ".banyan/aside/content";
/// One empty file for each base that seems unused, named like the content.
pub(crate) const ASIDE_BASES: &str = ".banyan/aside/bases";
/// Positions before a commit that are not resumed from.
pub(crate) const HISTORY: &str = ".banyan/history";
pub(crate) const JOURNAL: &str = ".banyan/journal";
pub(crate) const BLOBS: &str = ".banyan/blobs";
pub(crate) const BASES: &str = ".banyan/bases";
pub(crate) const TREES: &str = ".banyan/index/trees";
const SUFFIX: &str = ".jsonl";

/// How a disk tells names apart: whether a file that is there is also found by another spelling of its path.
pub(crate) fn naming_by(disk: &dyn Disk, path: &str) -> Result<Naming, LogError> {
    let other = path.to_ascii_uppercase();
    let found = disk.stat(&other).map_err(LogError::io(format!("looking at {other}")))?;
    Ok(if found.is_some() { Naming::CaseFolding } else { Naming::CaseSensitive })
}

/// The file of the session that has this id now.
pub(crate) fn session(naming: Naming, id: &SessionId) -> String {
    let mut path = naming.file_stem(id);
    path.push_str(SUFFIX);
    path
}

/// The image of a session's tree.
pub(crate) fn tree(naming: Naming, id: &SessionId) -> String {
    format!("{TREES}/{}.tree", naming.file_stem(id))
}

/// The file of a deleted session that forks still read.
pub(crate) fn base(born: Born) -> String {
    format!("{BASES}/{born}{SUFFIX}")
}

/// The stem of a session file's name, or `None` for other files.
pub(crate) fn stem(file_name: &str) -> Option<&str> {
    file_name.strip_suffix(SUFFIX)
}

/// Whether a path is that of a session's file, live or kept for forks.
pub(crate) fn is_session_file(path: &str) -> bool {
    let name = path.strip_prefix(BASES).and_then(|rest| rest.strip_prefix('/')).unwrap_or(path);
    !name.contains('/') && stem(name).is_some()
}

pub(crate) fn segment(id: u64) -> String {
    format!("{WAL}/{id:012x}.seg")
}

pub(crate) fn journal(first_commit: u64) -> String {
    format!("{JOURNAL}/{first_commit:012x}.log")
}

pub(crate) fn blob_dir(hash: &str) -> String {
    format!("{BLOBS}/{}", hash.get(..2).unwrap_or("xx"))
}

pub(crate) fn blob(hash: &str) -> String {
    format!("{}/{hash}", blob_dir(hash))
}

pub(crate) fn aside_content(hash: &str, since: u64) -> String {
    format!("{ASIDE_CONTENT}/{hash}.{since}")
}

pub(crate) fn aside_base(born: Born, since: u64) -> String {
    format!("{ASIDE_BASES}/{born}.{since}")
}

/// The directory that a path is in.
pub(crate) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(dir, _)| dir)
}
