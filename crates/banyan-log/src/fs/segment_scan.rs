//! Reading a segment of the write-ahead log whatever happened to it: its frames, and what is damaged between them.
//!
//! Two things look alike and are not. A write that a power cut interrupted was never acknowledged and leaves no trace. A
//! frame that was flushed and changed later is damage: it is named, and the frames behind it are kept. What tells them
//! apart is evidence that the frame was whole: a later batch, a later segment, or the frame's own end.

use banyan_model::CommitNo;

use super::frame::{FRAME_HEAD, Op, SHORTEST, commit_at, follow_ops, looks_like_frame, read_frame};
use super::layout;
use super::segment::{self, HEADER, Header, MAGIC};
use crate::LogError;

/// What a segment's file holds.
#[derive(Debug)]
pub(crate) struct Scanned {
    /// Where the valid frames are, in order.
    pub(crate) frames: Vec<Span>,
    /// What is damaged.
    pub(crate) holes: Vec<Hole>,
    /// The header is damaged, though frames of the segment follow it.
    pub(crate) header_damaged: bool,
}

/// A valid frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) commit: CommitNo,
    pub(crate) at: usize,
    pub(crate) len: usize,
}

/// A range of bytes where frames were, and are not valid any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hole {
    pub(crate) at: usize,
    pub(crate) end: usize,
    /// The commits that were there.
    pub(crate) first: CommitNo,
    pub(crate) last: CommitNo,
    /// The file names that can still be read there, with the offsets written to. Nothing vouches for them.
    pub(crate) files: Vec<(String, u64)>,
    /// The frame was whole once. Otherwise it may be a write that never ended.
    pub(crate) was_whole: bool,
}

/// What a segment's file is.
#[derive(Debug)]
pub(crate) enum Contents {
    /// It was used under this number.
    Used(Scanned),
    /// It was prepared and never used, or used under another number only: nothing in it is missing elsewhere.
    Unused,
    /// Its first write never ended, so nothing in it was acknowledged.
    Unfinished,
    /// It cannot be told what it holds.
    Unreadable,
}

/// Reads the file of segment `id`. `next` is the commit that should come first, where the segment before tells.
pub(crate) fn scan(id: u64, bytes: &[u8], next: Option<CommitNo>) -> Result<Contents, LogError> {
    let head = bytes.get(..HEADER).unwrap_or(bytes);
    match segment::read_header(bytes) {
        Some(header) if header.id == id => {
            return Ok(Contents::Used(frames(bytes, header, Some(header.first_commit))));
        }
        header => {
            let found = frames(bytes, Header { id, first_commit: next.unwrap_or(CommitNo(0)) }, next);
            if !found.frames.is_empty() {
                return Ok(Contents::Used(Scanned { header_damaged: true, ..found }));
            }
            if header.is_some() {
                return Ok(Contents::Unused);
            }
        }
    }
    if is_newer(head) {
        return Err(LogError::Newer {
            what: layout::segment(id),
            written_by: "of a later release".to_owned(),
            format: u32::from(head[MAGIC.len() - 1] - b'0'),
            supported: 1,
        });
    }
    let rest_is_zeros = || bytes.iter().skip(HEADER).all(|byte| *byte == 0);
    Ok(match head.iter().rposition(|byte| *byte != 0) {
        None if rest_is_zeros() => Contents::Unused,
        None => Contents::Unfinished,
        // The beginning of a header, and nothing behind it.
        Some(last) if begins_header(id, &head[..=last]) && rest_is_zeros() => Contents::Unfinished,
        Some(_) => Contents::Unreadable,
    })
}

/// Whether a header says that a later release wrote it.
fn is_newer(head: &[u8]) -> bool {
    let (name, own) = MAGIC.split_at(MAGIC.len() - 1);
    head.starts_with(name) && head.get(name.len()).is_some_and(|version| (own[0] + 1..=b'9').contains(version))
}

/// Whether bytes are the beginning of the header of segment `id`, without its checksum.
fn begins_header(id: u64, bytes: &[u8]) -> bool {
    let whole = [&MAGIC[..], &id.to_le_bytes()].concat();
    let known = bytes.len().min(whole.len());
    bytes.len() < 28 && bytes[..known] == whole[..known]
}

/// Finds the frames of a segment, and the holes between them.
fn frames(bytes: &[u8], header: Header, first: Option<CommitNo>) -> Scanned {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let (mut frames, mut holes) = (Vec::new(), Vec::new());
    let (mut at, mut expected) = (HEADER, first.map(|first| first.0));
    let mut is_displaced = false;
    while at < end {
        let next = frame_at(bytes, at, header.id, expected).map(|span| (at, span));
        let Some((start, span)) = next.or_else(|| frame_after(bytes, at, end, header.id, expected)) else {
            holes.extend(hole(bytes, at, end, expected, None));
            break;
        };
        // Bytes between two frames that follow one another hold no commit.
        let follows = expected.is_some_and(|expected| expected == span.commit.0);
        is_displaced |= follows && start > at;
        if !follows && (start > at || expected.is_some_and(|expected| expected < span.commit.0)) {
            holes.extend(hole(bytes, at, start, expected, Some(span.commit)));
        }
        frames.push(span);
        at = start + span.len;
        expected = Some(span.commit.0.saturating_add(1));
    }
    settle(bytes, &frames, &mut holes, header.id);
    // No interrupted write moves a frame, so what is missing besides is damage, too.
    holes.iter_mut().for_each(|hole| hole.was_whole |= is_displaced);
    Scanned { frames, holes, header_damaged: false }
}

/// The valid frame at an offset. Commits of a segment only go up.
fn frame_at(bytes: &[u8], at: usize, segment: u64, expected: Option<u64>) -> Option<Span> {
    let (frame, len) = read_frame(bytes.get(at..)?, segment)?;
    expected.is_none_or(|expected| frame.commit.0 >= expected).then_some(Span { commit: frame.commit, at, len })
}

/// The next valid frame behind an offset, and where it starts.
fn frame_after(
    bytes: &[u8],
    after: usize,
    end: usize,
    segment: u64,
    expected: Option<u64>,
) -> Option<(usize, Span)> {
    // Only what names one of these commits is summed up: behind the last frame may be millions of bytes of older ones, and
    // each of those bytes may be taken for a length.
    let most = ((bytes.len() - after) / SHORTEST) as u64;
    let commits = expected.map(|expected| expected..expected.saturating_add(most).saturating_add(1));
    (after + 1..end).find_map(|at| {
        let rest = bytes.get(at..)?;
        let commit = commit_at(rest)?;
        let fits = commits.as_ref().map_or(commit > 0, |commits| commits.contains(&commit));
        (fits && looks_like_frame(rest)).then(|| frame_at(bytes, at, segment, expected).map(|span| (at, span)))?
    })
}

fn hole(bytes: &[u8], at: usize, end: usize, expected: Option<u64>, next: Option<CommitNo>) -> Option<Hole> {
    // What precedes the first frame of a segment whose header is damaged may be nothing at all.
    let first = expected?;
    let last = next.map_or(first, |next| next.0.saturating_sub(1)).max(first);
    let region = bytes.get(at..end).unwrap_or_default();
    let (ops, _) = follow_ops(region);
    let files = ops.into_iter().filter_map(|op| match op {
        Op::Write { path, offset, .. } => Some((path.to_owned(), offset)),
        Op::Remove { path } | Op::Retain { path, .. } => Some((path.to_owned(), 0)),
        Op::Blob { .. } | Op::Flushed { .. } | Op::End => None,
    });
    let files = files.filter(|(path, _)| layout::is_session_file(path)).collect();
    let filled = is_filled(bytes, at, end);
    let (was_whole, last) = match next {
        Some(_) => (filled, last),
        None => match frames_to_end(bytes, at, end) {
            Some(count) => (filled, first.saturating_add(count - 1)),
            None => (false, first),
        },
    };
    Some(Hole { at, end, first: CommitNo(first), last: CommitNo(last), files, was_whole })
}

/// Marks holes that later batches prove to have been whole, and drops what was never finished, with all behind it.
fn settle(bytes: &[u8], frames: &[Span], holes: &mut [Hole], segment: u64) {
    let flushed = frames.iter().rev().find_map(|span| {
        let (frame, _) = read_frame(bytes.get(span.at..)?, segment)?;
        frame.ops.iter().find_map(|op| match op {
            Op::Flushed { through } => Some(*through),
            _ => None,
        })
    });
    for hole in holes {
        hole.was_whole |= flushed.is_some_and(|flushed| hole.last <= flushed);
    }
}

/// A file system writes sectors of at least this size whole.
const SECTOR: usize = 512;

/// So many zeros in a row may be what a frame says.
const ZEROS: usize = 8;

/// Whether every sector between two offsets was written: a segment is all zeros before.
fn is_filled(bytes: &[u8], at: usize, end: usize) -> bool {
    let (mut from, mut filled) = (at, end > at);
    while filled && from < end {
        let to = (from - from % SECTOR + SECTOR).min(end);
        let part = bytes.get(from..to).unwrap_or_default();
        filled = part.len() < ZEROS || part.iter().any(|byte| *byte != 0);
        from = to;
    }
    filled
}

/// How many frames there were up to the end of what was written to a segment, if they were written to their ends.
fn frames_to_end(bytes: &[u8], at: usize, end: usize) -> Option<u64> {
    let (ops, len) = follow_ops(bytes.get(at..)?);
    if ops.last() == Some(&Op::End) && at + len == end {
        return Some(1);
    }
    let (mut at, mut count) = (at, 0);
    while at < end {
        let len = u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?) as usize;
        at = at.checked_add(FRAME_HEAD)?.checked_add(len)?;
        count += 1;
    }
    (at == end).then_some(count)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#[path = "segment_scan_tests.rs"]
mod tests;
