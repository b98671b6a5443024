//! The directory's format file: which builds may read and write the directory, and the directory's id.
//!
//! ```text
//! {"format":1,"read_by":1,"write_by":1,"directory":"<32 hex>","banyan":"0.1.0","crc":"<8 hex>"}
//! ```
//! It is read before anything in the directory is touched. There are two copies; either one is enough, and the other is
//! rewritten from it. The checksum is CRC-32C over the bytes before `,"crc":`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::recovery::Recovered;
use super::segment::read_all;
use super::{checked_line, layout, register};
use crate::LogError;
use crate::disk::Disk;

/// The format that this build writes.
pub(crate) const FORMAT: u32 = 1;

/// Identifies one data directory. Everything derived from the directory names it, so that files of another directory are recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DirectoryId([u8; 16]);

/// What the format file says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Format {
    /// The format of the directory.
    format: u32,
    /// The oldest format that a reader must know.
    read_by: u32,
    /// The oldest format that a writer must know.
    write_by: u32,
    directory: String,
    /// The version of Banyan that wrote the file.
    banyan: String,
}

/// What was found before anything was touched.
pub(crate) struct Found {
    id: Option<DirectoryId>,
    /// The text that both copies should have.
    text: Option<Vec<u8>>,
    /// Which copies must be rewritten, and why.
    stale: Vec<(&'static str, String)>,
    /// The directory was used before there were format files.
    taken_over: bool,
}

impl Found {
    /// The id of the directory, if there is one.
    pub(crate) fn id(&self) -> Option<DirectoryId> {
        self.id
    }
}

/// One copy of the file.
enum Copy {
    Absent,
    /// It cannot be read, or its checksum differs.
    Damaged(String),
    Valid(Format, Vec<u8>),
}

/// Reads both copies. Fails if this build may not write the directory, or if neither copy can be read.
pub(crate) fn check(disk: &dyn Disk) -> Result<Found, LogError> {
    let copies = layout::FORMATS.map(|path| (path, read_copy(disk, path)));
    let mut valid: Option<(&Format, &[u8])> = None;
    for (_, copy) in &copies {
        if let Copy::Valid(format, text) = copy
            && valid.is_none_or(|(known, _)| format.format > known.format)
        {
            valid = Some((format, text));
        }
    }
    // Of two that are valid, the one counts whose directory the register names.
    if let [(_, Copy::Valid(first, _)), (_, Copy::Valid(second, text))] = &copies
        && first.format == second.format
        && first.directory != second.directory
        && register::directory_named(disk).is_some_and(|named| named.to_string() == second.directory)
    {
        valid = Some((second, text));
    }
    let Some((format, text)) = valid else { return without_valid(disk, &copies) };
    if format.read_by > FORMAT || format.write_by > FORMAT {
        return Err(LogError::Newer {
            what: "the data directory".to_owned(),
            written_by: format.banyan.clone(),
            format: format.format,
            supported: FORMAT,
        });
    }
    let stale = copies.iter().filter_map(|(path, copy)| match copy {
        Copy::Valid(_, bytes) if bytes == text => None,
        Copy::Valid(..) => Some((*path, "differs from the other copy".to_owned())),
        Copy::Damaged(reason) => Some((*path, reason.clone())),
        Copy::Absent => Some((*path, "is missing".to_owned())),
    });
    Ok(Found {
        id: format.directory.parse().ok(),
        text: Some(text.to_vec()),
        stale: stale.collect(),
        taken_over: false,
    })
}

fn without_valid(disk: &dyn Disk, copies: &[(&'static str, Copy); 2]) -> Result<Found, LogError> {
    for (path, copy) in copies {
        if let Copy::Damaged(reason) = copy {
            return Err(LogError::Damaged {
                path: (*path).to_owned(),
                reason: format!(
                    "{reason}, and there is no second copy that can be read; nothing was changed; if no newer Banyan \
                     wrote this directory, remove {} and {} and start again",
                    layout::FORMATS[0],
                    layout::FORMATS[1]
                ),
            });
        }
    }
    let listing = LogError::io("listing the data directory");
    let taken_over = disk.list(layout::STATE).map_err(listing)?.iter().any(|listed| listed.name == "wal");
    let stale = layout::FORMATS.map(|path| (path, "is missing".to_owned())).to_vec();
    Ok(Found { id: None, text: None, stale, taken_over })
}

/// Writes what [`check`] found missing. To be called by the owner of the directory. A disk without room is no reason to fail.
pub(crate) fn settle(disk: &dyn Disk, found: Found, said: &mut Recovered) -> Result<DirectoryId, LogError> {
    let id = match found.id {
        Some(id) => id,
        None => DirectoryId::random()?,
    };
    let text = found.text.unwrap_or_else(|| checked_line::encode(&Format::of(id)));
    for (path, reason) in &found.stale {
        if found.id.is_some() {
            said.warnings.push(format!("{path}: {reason}; rewritten from the other copy"));
        }
        match write_copy(disk, path, &text) {
            Ok(()) => {}
            Err(error) if found.id.is_some() || crate::error::is_full(&error) => {
                said.warnings.push(format!("{path}: cannot be written: {error}"));
            }
            Err(error) => return Err(LogError::io(format!("writing {path}"))(error)),
        }
    }
    if found.taken_over {
        said.notes.push(format!("this directory had no format file; it is format {FORMAT} from now on"));
    }
    Ok(id)
}

/// What is wrong with the format file, for `verify`.
pub(crate) fn faults(disk: &dyn Disk) -> Vec<(String, String)> {
    match check(disk) {
        Ok(found) if found.id.is_some() => {
            found.stale.into_iter().map(|(path, reason)| (path.to_owned(), reason)).collect()
        }
        _ => Vec::new(),
    }
}

fn write_copy(disk: &dyn Disk, path: &str, text: &[u8]) -> std::io::Result<()> {
    let beside = format!("{path}.new");
    let file = disk.create(&beside)?;
    file.set_len(0)?;
    file.write_at(0, text)?;
    file.sync()?;
    disk.rename(&beside, path)?;
    disk.sync_dir(layout::STATE)
}

fn read_copy(disk: &dyn Disk, path: &str) -> Copy {
    let bytes = match disk.open(path) {
        Ok(None) => return Copy::Absent,
        Ok(Some(file)) => read_all(file.as_ref()),
        Err(error) => Err(error),
    };
    match bytes {
        Err(error) => Copy::Damaged(format!("cannot be read: {error}")),
        Ok(bytes) => match decode(&bytes) {
            Some(format) => Copy::Valid(format, bytes),
            None => Copy::Damaged("is damaged".to_owned()),
        },
    }
}

fn decode(bytes: &[u8]) -> Option<Format> {
    let format: Format = checked_line::decode(bytes)?;
    // What a newer build says of itself is only its numbers.
    let ours = format.read_by <= FORMAT && format.write_by <= FORMAT;
    (!ours || format.directory.parse::<DirectoryId>().is_ok()).then_some(format)
}

impl Format {
    fn of(id: DirectoryId) -> Self {
        Self {
            format: FORMAT,
            read_by: FORMAT,
            write_by: FORMAT,
            directory: id.to_string(),
            banyan: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

impl DirectoryId {
    fn random() -> Result<Self, LogError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| LogError::Io {
            doing: "making an id for the data directory".to_owned(),
            cause: error.to_string(),
        })?;
        Ok(Self(bytes))
    }

    /// The id's bytes.
    pub fn bytes(&self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Display for DirectoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// The text is not 32 lower-case hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a directory id is 32 lower-case hex digits")]
pub struct NotADirectoryId;

impl FromStr for DirectoryId {
    type Err = NotADirectoryId;

    fn from_str(text: &str) -> Result<Self, NotADirectoryId> {
        let id = u128::from_str_radix(text, 16).map_err(|_| NotADirectoryId)?;
        let id = Self(id.to_be_bytes());
        if id.to_string() == text { Ok(id) } else { Err(NotADirectoryId) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#[path = "format_tests.rs"]
mod tests;
