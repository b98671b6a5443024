//! Segments of the write-ahead log: preallocated files that frames go into, one after another.
//!
//! ```text
//! header = "BANYANW1" · segment u64 · first commit u64 · crc32c u32 · directory (16 bytes) · crc32c u32 · zeros up to 64 bytes
//! ```
//! The first checksum is over what comes before it, the second one over the directory's id, which older segments do not have.
//! The rest is zeros, or what frames of an earlier segment left when its file was taken again, until frames overwrite it. So a
//! flush carries no change of size.

use std::sync::Arc;

use banyan_model::CommitNo;

use super::format::DirectoryId;
use super::layout;
use crate::LogError;
use crate::disk::{Disk, DiskFile};

pub(crate) const HEADER: usize = 64;
pub(crate) const MAGIC: &[u8; 8] = b"BANYANW1";
const ZEROS: usize = 1 << 20;

/// A segment that is being written.
pub(crate) struct Segment {
    pub(crate) id: u64,
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) size: u64,
    /// Where the next frame goes; 0 while the header is not written.
    pub(crate) at: u64,
}

impl Segment {
    /// Makes a file of zeros for segment `id`, durable, ready to be written to.
    pub(crate) fn prepare(disk: &dyn Disk, id: u64, size: u64) -> Result<Self, LogError> {
        let path = layout::segment(id);
        let made = Self::fill(disk, &path, size);
        if made.is_err() {
            // Give the room back; the error that matters is the first one.
            let _ = disk.remove(&path);
        }
        let file = made.map_err(LogError::io(format!("making room for the log in {path}")))?;
        Ok(Self { id, file, size, at: 0 })
    }

    fn fill(disk: &dyn Disk, path: &str, size: u64) -> std::io::Result<Arc<dyn DiskFile>> {
        let file = disk.create(path)?;
        let zeros = vec![0; ZEROS.min(size as usize)];
        let mut at = 0;
        while at < size {
            let len = zeros.len().min((size - at) as usize);
            file.write_at(at, &zeros[..len])?;
            at += len as u64;
        }
        file.sync()?;
        disk.sync_dir(layout::WAL)?;
        Ok(file)
    }

    /// Room left for frames.
    pub(crate) fn room(&self) -> u64 {
        self.size - self.at.max(HEADER as u64)
    }

    /// The header, which goes out together with the first frames.
    pub(crate) fn header(&self, first_commit: CommitNo, directory: DirectoryId) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(MAGIC);
        header[8..16].copy_from_slice(&self.id.to_le_bytes());
        header[16..24].copy_from_slice(&first_commit.0.to_le_bytes());
        let crc = crc32c::crc32c(&header[..24]);
        header[24..28].copy_from_slice(&crc.to_le_bytes());
        header[28..44].copy_from_slice(&directory.bytes());
        header[44..48].copy_from_slice(&crc32c::crc32c(&directory.bytes()).to_le_bytes());
        header
    }
}

/// What a segment's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) id: u64,
    pub(crate) first_commit: CommitNo,
}

/// Whether a segment says that it is of another directory.
pub(crate) fn is_foreign(bytes: &[u8], directory: DirectoryId) -> bool {
    let (Some(id), Some(crc)) = (bytes.get(28..44), bytes.get(44..48)) else { return false };
    crc32c::crc32c(id).to_le_bytes() == crc && *id != directory.bytes()
}

/// Reads a header; `None` for a segment that was never written to, or is none.
pub(crate) fn read_header(bytes: &[u8]) -> Option<Header> {
    let header = bytes.get(..HEADER)?;
    let crc = u32::from_le_bytes(header.get(24..28)?.try_into().ok()?);
    if header.get(..8)? != MAGIC || crc32c::crc32c(header.get(..24)?) != crc {
        return None;
    }
    Some(Header {
        id: u64::from_le_bytes(header.get(8..16)?.try_into().ok()?),
        first_commit: CommitNo(u64::from_le_bytes(header.get(16..24)?.try_into().ok()?)),
    })
}

/// The id in a segment's file name, or `None` for another file.
pub(crate) fn id_of(name: &str) -> Option<u64> {
    let hex = name.strip_suffix(".seg")?;
    u64::from_str_radix(hex, 16).ok()
}

/// All bytes of a file.
pub(crate) fn read_all(file: &dyn DiskFile) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; file.len()? as usize];
    let got = file.read_at(0, &mut bytes)?;
    bytes.truncate(got);
    Ok(bytes)
}
