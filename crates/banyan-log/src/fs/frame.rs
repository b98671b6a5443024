//! The write-ahead log's frames: one commit each, checksummed, physical.
//!
//! ```text
//! frame   = length u32 · crc32c u32 · commit u64 · operation*      (length counts what follows the crc)
//! write   = 1 · path · offset u64 · bytes
//! remove  = 2 · path
//! retain  = 3 · path · path of the base
//! blob    = 4 · hash                     (may have lost its last user)
//! flushed = 5 · commit u64               (every commit up to here was flushed before this frame was written)
//! end     = 6                            (the last operation of a frame, so that its last byte is never zero)
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
const FLUSHED: u8 = 5;
const END: u8 = 6;

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
    /// Every commit up to this one was flushed before the frame was written. It is in the first frame of a batch.
    Flushed { through: CommitNo },
    /// The end of the frame.
    End,
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
            Op::Flushed { through } => {
                self.out.push(FLUSHED);
                self.out.extend_from_slice(&through.0.to_le_bytes());
            }
            Op::End => self.out.push(END),
        }
    }

    pub(crate) fn finish(mut self) {
        self.push(&Op::End);
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

/// A frame whose checksum holds.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) commit: CommitNo,
    pub(crate) ops: Vec<Op<'a>>,
}

/// The commit that a frame at the start of `bytes` would be of, if there is one.
pub(crate) fn commit_at(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(FRAME_HEAD..SHORTEST)?.try_into().ok()?))
}

/// Whether `bytes` can begin with a frame, as far as can be told without its checksum.
pub(crate) fn looks_like_frame(bytes: &[u8]) -> bool {
    let Some(len) = bytes.first_chunk().map(|len| u32::from_le_bytes(*len) as usize) else { return false };
    let first = bytes.get(SHORTEST).copied();
    (8..=bytes.len().saturating_sub(FRAME_HEAD)).contains(&len)
        && (len == 8 || first.is_some_and(|kind| (WRITE..=END).contains(&kind)))
}

/// Reads the frame at the start of `bytes`, and returns its length. `None` where there is no valid one.
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
    while !rest.is_empty() {
        ops.push(take_op(&mut rest)?);
    }
    Some((Frame { commit, ops }, FRAME_HEAD + len))
}

/// The operations of a damaged frame as far as they can be followed, and where they end. Nothing vouches for what they say.
pub(crate) fn follow_ops(bytes: &[u8]) -> (Vec<Op<'_>>, usize) {
    let mut rest = bytes.get(SHORTEST..).unwrap_or_default();
    let mut ops = Vec::new();
    loop {
        let mut after = rest;
        match take_op(&mut after) {
            Some(op) => ops.push(op),
            None => return (ops, bytes.len() - rest.len()),
        }
        rest = after;
    }
}

fn take_op<'a>(rest: &mut &'a [u8]) -> Option<Op<'a>> {
    let (kind, after) = rest.split_first()?;
    *rest = after;
    Some(match *kind {
        WRITE => {
            let path = take_text(rest)?;
            let offset = take_number(rest)?;
            Op::Write { path, offset, bytes: take(rest)? }
        }
        REMOVE => Op::Remove { path: take_text(rest)? },
        RETAIN => Op::Retain { path: take_text(rest)?, base: take_text(rest)? },
        BLOB => Op::Blob { hash: take_text(rest)? },
        FLUSHED => Op::Flushed { through: CommitNo(take_number(rest)?) },
        END => Op::End,
        _ => return None,
    })
}

fn checksum(segment: u64, body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&segment.to_le_bytes()), body)
}

fn take_number(rest: &mut &[u8]) -> Option<u64> {
    let (number, after) = rest.split_at_checked(8)?;
    *rest = after;
    Some(u64::from_le_bytes(number.try_into().ok()?))
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
