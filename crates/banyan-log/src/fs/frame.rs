//! The write-ahead log's frames: one commit each, checksummed, physical.
//!
//! ```text
//! frame   = length u32 · crc32c u32 · commit u64 · operation*      (length counts what follows the crc)
//! write   = 1 · path · offset u64 · bytes
//! remove  = 2 · path
//! retain  = 3 · path · path of the base
//! blob    = 4 · hash                     (may have lost its last user)
//! path, bytes, hash = length u32 · bytes
//! ```
//! All integers are little-endian. The checksum is seeded with the segment's number, so that a frame is
//! valid only in the segment that it was written to.

use banyan_model::CommitNo;

pub(crate) const FRAME_HEAD: usize = 8;

/// No frame has fewer bytes.
pub(crate) const SHORTEST: usize = FRAME_HEAD + 8;

const WRITE: u8 = 1;
const REMOVE: u8 = 2;
const RETAIN: u8 = 3;
const BLOB: u8 = 4;

/// One change to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Op<'a> {
    /// These bytes are at this offset.
    Write { path: &'a str, offset: u64, bytes: &'a [u8] },
    /// The file is gone.
    Remove { path: &'a str },
    /// The file moved to where forks read it.
    Retain { path: &'a str, base: &'a str },
    /// A blob that may have lost its last user.
    Blob { hash: &'a str },
}

/// Builds one frame at the end of a buffer.
pub(crate) struct FrameWriter<'b> {
    out: &'b mut Vec<u8>,
    start: usize,
    segment: u64,
}

impl<'b> FrameWriter<'b> {
    pub(crate) fn begin(out: &'b mut Vec<u8>, segment: u64, commit: CommitNo) -> Self {
        let start = out.len();
        out.extend_from_slice(&[0; FRAME_HEAD]);
        out.extend_from_slice(&commit.0.to_le_bytes());
        Self { out, start, segment }
    }

    pub(crate) fn push(&mut self, op: &Op<'_>) {
        match op {
            Op::Write { path, offset, bytes } => {
                self.out.push(WRITE);
                self.put(path.as_bytes());
                self.out.extend_from_slice(&offset.to_le_bytes());
                self.put(bytes);
            }
            Op::Remove { path } => {
                self.out.push(REMOVE);
                self.put(path.as_bytes());
            }
            Op::Retain { path, base } => {
                self.out.push(RETAIN);
                self.put(path.as_bytes());
                self.put(base.as_bytes());
            }
            Op::Blob { hash } => {
                self.out.push(BLOB);
                self.put(hash.as_bytes());
            }
        }
    }

    pub(crate) fn finish(self) {
        let len = (self.out.len() - self.start - FRAME_HEAD) as u32;
        let crc = checksum(self.segment, &self.out[self.start + FRAME_HEAD..]);
        self.out[self.start..self.start + 4].copy_from_slice(&len.to_le_bytes());
        self.out[self.start + 4..self.start + 8].copy_from_slice(&crc.to_le_bytes());
    }

    fn put(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.out.extend_from_slice(bytes);
    }
}

/// A frame that was read back.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) commit: CommitNo,
    pub(crate) ops: Vec<Op<'a>>,
}

/// The commit that a frame at the start of `bytes` would be of, if there is one.
pub(crate) fn commit_at(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(FRAME_HEAD..SHORTEST)?.try_into().ok()?))
}

/// Reads the frame at the start of `bytes`, and says how long it is. `None` where there is no valid one.
pub(crate) fn read_frame(bytes: &[u8], segment: u64) -> Option<(Frame<'_>, usize)> {
    let len = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
    let crc = u32::from_le_bytes(bytes.get(4..8)?.try_into().ok()?);
    let body = bytes.get(FRAME_HEAD..FRAME_HEAD.checked_add(len)?)?;
    if len < 8 || checksum(segment, body) != crc {
        return None;
    }
    let (commit, mut rest) = body.split_at_checked(8)?;
    let commit = CommitNo(u64::from_le_bytes(commit.try_into().ok()?));
    let mut ops = Vec::new();
    while let Some((kind, after)) = rest.split_first() {
        rest = after;
        let path = take_text(&mut rest)?;
        ops.push(match *kind {
            WRITE => {
                let (offset, after) = rest.split_at_checked(8)?;
                rest = after;
                let offset = u64::from_le_bytes(offset.try_into().ok()?);
                Op::Write { path, offset, bytes: take(&mut rest)? }
            }
            REMOVE => Op::Remove { path },
            RETAIN => Op::Retain { path, base: take_text(&mut rest)? },
            BLOB => Op::Blob { hash: path },
            _ => return None,
        });
    }
    Some((Frame { commit, ops }, FRAME_HEAD + len))
}

fn checksum(segment: u64, body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&segment.to_le_bytes()), body)
}

fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (len, after) = rest.split_at_checked(4)?;
    let len = u32::from_le_bytes(len.try_into().ok()?) as usize;
    let (bytes, after) = after.split_at_checked(len)?;
    *rest = after;
    Some(bytes)
}

fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    std::str::from_utf8(take(rest)?).ok()
}
