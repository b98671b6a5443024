//! Finding out whether a catalogue's file can be used, and putting away one that cannot.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension};

use crate::catalogue::Catalogue;
use crate::error::IndexError;
use crate::schema::{self, APPLICATION_ID, VERSION};
use crate::seal::{self, Seal};
use crate::store::{Owner, Store};

/// A catalogue that was opened, and whether it can be read at once.
pub enum Opened {
    /// It holds what it held when it was last flushed.
    Ready(Catalogue),
    /// There is nothing in it yet; [`Catalogue::rebuild`] comes first.
    Rebuild(Catalogue, RebuildReason),
}

/// Why a catalogue must be built anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RebuildReason {
    /// There was no file, or the last rebuild did not come to its end.
    Missing,
    /// The file was not a catalogue. It was moved aside, to the same name with `.foreign` at its end.
    Foreign,
    /// The file had the form of another version of this program. It was removed.
    OtherVersion(i32),
    /// The file was of another directory. It was removed.
    OtherDirectory,
    /// The file was damaged; the text says how. It was removed.
    Damaged(String),
}

impl fmt::Display for RebuildReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("there was none"),
            Self::Foreign => f.write_str("the file in its place was something else and was moved aside"),
            Self::OtherVersion(found) => write!(f, "it had the form of version {found}, and this is {VERSION}"),
            Self::OtherDirectory => f.write_str("it was another directory's"),
            Self::Damaged(detail) => write!(f, "it was damaged: {detail}"),
        }
    }
}

/// Opens the store of a file, or says why it must be rebuilt; then no file is left.
pub(crate) fn open_store(path: &Path, owner: &Owner) -> Result<Result<Store, RebuildReason>, IndexError> {
    discard(&building(path))?;
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            discard(path)?;
            return Ok(Err(RebuildReason::Missing));
        }
        Err(error) => return Err(IndexError::io("look at the catalogue", path)(error)),
    };
    let reason = if found.len() == 0 {
        RebuildReason::Damaged("the file is empty".to_owned())
    } else {
        match examine(path, owner) {
            Ok(None) => return Store::open(path, owner).map(Ok),
            Ok(Some(reason)) => reason,
            Err(IndexError::Damaged { detail }) => RebuildReason::Damaged(detail),
            Err(error) => return Err(error),
        }
    };
    if reason == RebuildReason::Foreign {
        move_aside(path)?;
    }
    discard(path)?;
    Ok(Err(reason))
}

/// Where the next file is built.
pub(crate) fn building(path: &Path) -> PathBuf {
    with_end(path, ".building")
}

/// Removes a database's file and what belongs to it. No connection to it may be open.
pub(crate) fn discard(path: &Path) -> Result<(), IndexError> {
    for end in ["", "-wal", "-shm", "-journal", ".sealed"] {
        let file = with_end(path, end);
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(IndexError::io("remove", &file)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Gives somebody else's database, with its log, another name.
fn move_aside(path: &Path) -> Result<(), IndexError> {
    for end in ["", "-wal", "-journal"] {
        let (file, aside) = (with_end(path, end), with_end(path, &format!(".foreign{end}")));
        match fs::rename(&file, &aside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(IndexError::io("move aside", &file)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Checks the header and the tables, and that nothing changed since the file was closed or, if it was not, every row.
fn examine(path: &Path, owner: &Owner) -> Result<Option<RebuildReason>, IndexError> {
    let seal = seal::take(path, owner)?;
    if !starts_like_a_database(path)? {
        return Ok(Some(RebuildReason::Foreign));
    }
    let conn = schema::reader(path)?;
    if number(&conn, "application_id")? != APPLICATION_ID {
        return Ok(Some(RebuildReason::Foreign));
    }
    let version = number(&conn, "user_version")?;
    if version != VERSION {
        return Ok(Some(RebuildReason::OtherVersion(version)));
    }
    for probe in schema::PROBES {
        // Whatever the database says against it: the tables are not as this version makes them.
        let read = conn.prepare(probe).and_then(|mut probe| probe.query(())?.next().map(|_| ()));
        read.map_err(|error| match IndexError::from(error) {
            IndexError::Database(error @ rusqlite::Error::SqliteFailure(failure, _))
                if failure.code != rusqlite::ErrorCode::Unknown =>
            {
                IndexError::Database(error)
            }
            error => IndexError::damaged(error.to_string()),
        })?;
    }
    match seal {
        Seal::Holds => Ok(None),
        Seal::Broken(reason) => Ok(Some(RebuildReason::Damaged(reason))),
        Seal::OtherOwner => Ok(Some(RebuildReason::OtherDirectory)),
        Seal::Absent => {
            let owned = conn.query_row("SELECT value FROM state WHERE name = 'owner'", (), |row| row.get(0));
            if owned.optional()?.is_none_or(|found: String| *found != **owner) {
                return Ok(Some(RebuildReason::OtherDirectory));
            }
            Ok(seal::examine(&conn)?.map(RebuildReason::Damaged))
        }
    }
}

fn starts_like_a_database(path: &Path) -> Result<bool, IndexError> {
    use io::Read;
    const MAGIC: &[u8] = b"SQLite format 3\0";
    let mut start = Vec::with_capacity(MAGIC.len());
    fs::File::open(path)
        .and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut start))
        .map_err(IndexError::io("read", path))?;
    Ok(start == MAGIC)
}

fn number(conn: &Connection, pragma: &str) -> Result<i32, IndexError> {
    Ok(conn.pragma_query_value(None, pragma, |row| row.get(0))?)
}

pub(crate) fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}
