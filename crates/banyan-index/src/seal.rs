//! Whether a catalogue's file is as it was left.
//!
//! A closed catalogue is *sealed*: a file beside it has its length and checksum, and the directory that it belongs to. A
//! catalogue in use has no seal; after a kill each row is compared with its checksum, and both orders with the rows.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::decode;
use crate::error::IndexError;
use crate::open::with_end;
use crate::schema::create_private;
use crate::tags::{ANY_STATUS, Labels, Pair, status_bit, status_tag};

/// What a seal has to say of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Seal {
    /// There is none.
    Absent,
    /// The file is as it was when it was closed.
    Holds,
    /// It is not; the text says why.
    Broken(String),
    /// The file belongs to another directory.
    OtherOwner,
}

/// The seal of a catalogue's file.
pub(crate) fn path(catalogue: &Path) -> PathBuf {
    with_end(catalogue, ".sealed")
}

/// Seals a closed file, which no connection uses.
pub(crate) fn put(catalogue: &Path, owner: &str) -> Result<(), IndexError> {
    let path = path(catalogue);
    let (length, sum) = sum_of_file(catalogue).map_err(IndexError::io("read", catalogue))?;
    let text = format!("{length} {sum:08x} {owner}");
    let text = format!("{text} {:08x}\n", crc32c::crc32c(text.as_bytes()));
    create_private(&path);
    fs::write(&path, text).map_err(IndexError::io("write", &path))
}

/// Compares a file with its seal, and breaks the seal, because the file is in use from now on.
pub(crate) fn take(catalogue: &Path, owner: &str) -> Result<Seal, IndexError> {
    let seal = check(catalogue, owner)?;
    let path = path(catalogue);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(IndexError::io("remove", &path)(error)),
        _ => Ok(seal),
    }
}

/// Compares a file with its seal. Changes nothing.
pub(crate) fn check(catalogue: &Path, owner: &str) -> Result<Seal, IndexError> {
    let path = path(catalogue);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Seal::Absent),
        Err(error) => return Ok(Seal::Broken(format!("its seal cannot be read: {error}"))),
    };
    let Some((length, sum, sealed_for)) = parse(&text) else {
        return Ok(Seal::Broken("its seal is damaged".to_owned()));
    };
    if sealed_for != owner {
        return Ok(Seal::OtherOwner);
    }
    let log = fs::metadata(with_end(catalogue, "-wal")).map_or(0, |log| log.len());
    if log > 0 {
        return Ok(Seal::Broken("there is a write-ahead log beside the sealed file".to_owned()));
    }
    let found = sum_of_file(catalogue).map_err(IndexError::io("read", catalogue))?;
    Ok(if found == (length, sum) {
        Seal::Holds
    } else {
        Seal::Broken("its content is not what it was when it was closed".to_owned())
    })
}

fn parse(text: &str) -> Option<(u64, u32, &str)> {
    let (covered, crc) = text.strip_suffix('\n')?.rsplit_once(' ')?;
    if crc != format!("{:08x}", crc32c::crc32c(covered.as_bytes())) {
        return None;
    }
    let mut parts = covered.splitn(3, ' ');
    let (length, sum) = (parts.next()?.parse().ok()?, u32::from_str_radix(parts.next()?, 16).ok()?);
    Some((length, sum, parts.next()?))
}

fn sum_of_file(path: &Path) -> io::Result<(u64, u32)> {
    let mut file = File::open(path)?;
    let (mut length, mut sum, mut piece) = (0, 0, vec![0; 1 << 20]);
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            return Ok((length, sum));
        }
        sum = crc32c::crc32c_append(sum, &piece[..read]);
        length += read as u64;
    }
}

/// The checksum of a row, over its values in the order of the columns of [`decode::SUMMED`].
#[derive(Default)]
pub(crate) struct RowSum(u32);

impl RowSum {
    pub(crate) fn bytes(&mut self, value: Option<&[u8]>) -> &mut Self {
        let value = value.map_or((u64::MAX, &[][..]), |value| (value.len() as u64, value));
        // The length comes first, so that no value can be mistaken for what follows it.
        self.0 = crc32c::crc32c_append(crc32c::crc32c_append(self.0, &value.0.to_le_bytes()), value.1);
        self
    }

    pub(crate) fn text(&mut self, value: Option<&str>) -> &mut Self {
        self.bytes(value.map(str::as_bytes))
    }

    pub(crate) fn number(&mut self, value: i64) -> &mut Self {
        self.0 = crc32c::crc32c_append(self.0, &value.to_le_bytes());
        self
    }

    pub(crate) fn get(&self) -> i64 {
        i64::from(self.0)
    }
}

/// Compares all rows with their checksums and both orders with the rows. Returns what is wrong.
pub(crate) fn examine(conn: &Connection) -> Result<Option<String>, IndexError> {
    let found: String = conn.query_row("PRAGMA integrity_check(1)", (), |row| row.get(0))?;
    if found != "ok" {
        return Ok(Some(found));
    }
    let mark =
        |name: &str| conn.query_row("SELECT value FROM mark WHERE name = ?1", [name], |row| row.get::<_, i64>(0));
    if mark("applied")? != !mark("applied_check")? {
        return Ok(Some("the commit that it speaks for is damaged".to_owned()));
    }
    let (mut by_updated, mut by_created, mut listed) = (0_u64, 0_u64, 0_i64);
    let mut statement = conn.prepare(&format!("SELECT num, sum, {} FROM session", decode::SUMMED))?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        if decode::row_sum(row, 2)? != row.get::<_, i64>(1)? {
            return Ok(Some("a row is not as it was written".to_owned()));
        }
        let num: i64 = row.get(0)?;
        let placed = decode::placed(row, 2)?;
        if placed.hidden {
            continue;
        }
        listed += 1;
        let labels = Labels { pairs: placed.pairs, signature: placed.signature };
        for tag in std::iter::once(status_tag(placed.status)).chain(labels.tags()) {
            let signature = placed.signature | status_bit(placed.status);
            by_updated = by_updated.wrapping_add(entry_sum(tag, placed.updated_at, placed.id, num, signature));
            let signature = placed.signature | ANY_STATUS;
            by_created = by_created.wrapping_add(entry_sum(tag, placed.created_at, placed.id, num, signature));
        }
    }
    if mark("sessions")? != listed {
        return Ok(Some(format!("it has {listed} sessions and counted {}", mark("sessions")?)));
    }
    for (order, expected) in [("by_updated", by_updated), ("by_created", by_created)] {
        if order_sum(conn, order)? != expected {
            return Ok(Some(format!("the order `{order}` does not fit the rows")));
        }
    }
    Ok(None)
}

fn order_sum(conn: &Connection, order: &str) -> Result<u64, IndexError> {
    let mut statement = conn.prepare(&format!("SELECT tag, at, id, num, signature FROM {order}"))?;
    let mut entries = statement.query(())?;
    let mut sum = 0_u64;
    while let Some(entry) = entries.next()? {
        let (tag, id) = (entry.get_ref(0)?.as_blob()?, entry.get_ref(2)?.as_str()?);
        sum = sum.wrapping_add(entry_sum(tag, entry.get(1)?, id, entry.get(3)?, entry.get(4)?));
    }
    Ok(sum)
}

/// What one entry adds to the sum of its order, which does not depend on where the entry stands.
fn entry_sum(tag: &[u8], at: i64, id: &str, num: i64, signature: i64) -> u64 {
    let mut sum = RowSum::default();
    sum.bytes(Some(tag)).number(at).text(Some(id)).number(num).number(signature);
    // Spread over all bits, so that sums of few entries differ, too.
    (sum.get().cast_unsigned().wrapping_add(1)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// What a row says about its place in the orders.
pub(crate) struct Placed<'a> {
    pub(crate) id: &'a str,
    pub(crate) hidden: bool,
    pub(crate) status: i64,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
    pub(crate) pairs: Vec<Pair>,
    pub(crate) signature: i64,
}
