//! Segments of the write-ahead log: preallocated files that frames go into, one after another.
//!
//! ```text
//! header = "BANYANW1" · segment u64 · first commit u64 · crc32c u32 · zeros up to 64 bytes
//! ```
//! The rest is zeros, or what frames of an earlier segment left when its file was taken again, until frames overwrite it. So a
//! flush carries no change of size.

use std::sync::Arc;

use banyan_model::CommitNo;

use super::frame::{Frame, SHORTEST, commit_at, read_frame};
use super::layout;
use crate::LogError;
use crate::disk::{Disk, DiskFile};

pub(crate) const HEADER: usize = 64;
const MAGIC: &[u8; 8] = b"BANYANW1";
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
    pub(crate) fn header(&self, first_commit: CommitNo) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(MAGIC);
        header[8..16].copy_from_slice(&self.id.to_le_bytes());
        header[16..24].copy_from_slice(&first_commit.0.to_le_bytes());
        let crc = crc32c::crc32c(&header[..24]);
        header[24..28].copy_from_slice(&crc.to_le_bytes());
        header
    }
}

/// What a segment's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) id: u64,
    pub(crate) first_commit: CommitNo,
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

/// Shows each frame of a segment's bytes; returns how many bytes were valid.
pub(crate) fn frames(bytes: &[u8], header: Header, visit: &mut dyn FnMut(Frame<'_>)) -> usize {
    let mut at = HEADER;
    let mut expected = header.first_commit;
    while let Some((frame, len)) = bytes.get(at..).and_then(|rest| read_frame(rest, header.id)) {
        if frame.commit != expected {
            break;
        }
        expected = CommitNo(expected.0.saturating_add(1));
        at += len;
        visit(frame);
    }
    at
}

/// The commit of a valid frame somewhere behind `from`, where there should be none: what is before it is damaged.
pub(crate) fn frame_after(bytes: &[u8], from: usize, header: Header) -> Option<u64> {
    let end = bytes.iter().rposition(|byte| *byte != 0)?;
    let first = header.first_commit.0.saturating_add(1);
    // Only what names one of these commits is summed up: behind the last frame may be millions of bytes of older ones, and
    // each of those bytes may be taken for a length.
    let commits = first..first.saturating_add((bytes.len() / SHORTEST) as u64);
    (from..=end).find_map(|at| {
        let rest = bytes.get(at..)?;
        commit_at(rest).filter(|commit| commits.contains(commit))?;
        read_frame(rest, header.id).map(|(frame, _)| frame.commit.0)
    })
}

/// The id that a segment's file name says, or `None` for another file.
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::super::frame::{FrameWriter, Op};
    use super::*;

    const HERE: Header = Header { id: 9, first_commit: CommitNo(5_000) };

    /// Frames of a segment, one for each commit.
    fn written(segment: u64, commits: std::ops::Range<u64>) -> Vec<u8> {
        let mut bytes = vec![1; HEADER];
        for commit in commits {
            let mut frame = FrameWriter::begin(&mut bytes, segment, CommitNo(commit));
            frame.push(&Op::Write { path: "a session.jsonl", offset: commit * 700, bytes: &[b'x'; 600] });
            frame.finish();
        }
        bytes
    }

    fn after_the_last(bytes: &[u8]) -> Option<u64> {
        frame_after(bytes, frames(bytes, HERE, &mut |_| {}), HERE)
    }

    #[test]
    fn a_frame_behind_a_damaged_one_is_found() {
        let mut bytes = written(9, 5_000..5_003);
        let whole = bytes.len();
        assert_eq!(after_the_last(&bytes), None);
        bytes[HEADER + (whole - HEADER) / 2] ^= 1;
        assert_eq!(after_the_last(&bytes), Some(5_002));
    }

    /// Summing up what every one of these bytes gives as a length would take hours.
    #[test]
    fn what_an_earlier_segment_left_in_the_file_is_passed_over() {
        let mut bytes = written(7, 0..26_000);
        assert!(bytes.len() > 16 << 20);
        let now = written(9, 5_000..5_010);
        bytes[..now.len()].copy_from_slice(&now);
        assert_eq!(after_the_last(&bytes), None);
    }
}
