//! The journal: the one order over all sessions, kept for a while after the write-ahead log has let go.
//!
//! ```text
//! entry = length u32 · crc32c u32 · commit u64 · kind u8 · a u64 · b u32 · id · born · payload   (length counts what follows the crc)
//! id = length u32 · bytes; born = 16 bytes
//! ```
//! Its files are named after their first commit and hold [`PER_FILE`] commits each.

use std::ops::Range;

use banyan_core::born::Born;
use banyan_model::{CommitNo, SessionId};

use crate::{JournalEntry, JournalKind};

/// How many commits share a file.
pub(crate) const PER_FILE: u64 = 1 << 16;

const LINES: u8 = 1;
const ADDITION: u8 = 2;
const REMOVED: u8 = 3;
const HEAD: usize = 8;

/// The first commit of the file that a commit belongs to.
pub(crate) fn file_of(commit: CommitNo) -> u64 {
    commit.0 - commit.0 % PER_FILE
}

/// The first commit that a journal file of this name can have.
pub(crate) fn first_of(name: &str) -> Option<u64> {
    u64::from_str_radix(name.strip_suffix(".log")?, 16).ok()
}

/// Writes an entry.
pub(crate) fn encode(entry: &JournalEntry, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; HEAD]);
    out.extend_from_slice(&entry.commit.0.to_le_bytes());
    let (kind, a, b, payload): (u8, u64, u32, &[u8]) = match &entry.kind {
        JournalKind::Lines { offset, len } => (LINES, *offset, *len, &[]),
        JournalKind::Addition { offset, index } => (ADDITION, *offset, *index, &[]),
        JournalKind::Removed(tombstone) => (REMOVED, 0, 0, tombstone),
    };
    out.push(kind);
    out.extend_from_slice(&a.to_le_bytes());
    out.extend_from_slice(&b.to_le_bytes());
    put(out, entry.session.as_str().as_bytes());
    out.extend_from_slice(&entry.born.0);
    out.extend_from_slice(payload);
    let len = (out.len() - start - HEAD) as u32;
    let crc = crc32c::crc32c(&out[start + HEAD..]);
    out[start..start + 4].copy_from_slice(&len.to_le_bytes());
    out[start + 4..start + 8].copy_from_slice(&crc.to_le_bytes());
}

/// Reads the entry at the start of `bytes`, and says how long it is. `None` where there is no valid one.
pub(crate) fn decode(bytes: &[u8]) -> Option<(JournalEntry, usize)> {
    let len = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
    let crc = u32::from_le_bytes(bytes.get(4..8)?.try_into().ok()?);
    let body = bytes.get(HEAD..HEAD.checked_add(len)?)?;
    if len == 0 || crc32c::crc32c(body) != crc {
        return None;
    }
    let mut rest = body;
    let commit = CommitNo(u64::from_le_bytes(take(&mut rest, 8)?.try_into().ok()?));
    let kind = *take(&mut rest, 1)?.first()?;
    let a = u64::from_le_bytes(take(&mut rest, 8)?.try_into().ok()?);
    let b = u32::from_le_bytes(take(&mut rest, 4)?.try_into().ok()?);
    let session = SessionId::from(text(&mut rest)?);
    let born = Born(take(&mut rest, 16)?.try_into().ok()?);
    let kind = match kind {
        LINES => JournalKind::Lines { offset: a, len: b },
        ADDITION => JournalKind::Addition { offset: a, index: b },
        REMOVED => JournalKind::Removed(rest.to_vec()),
        _ => return None,
    };
    Some((JournalEntry { commit, session, born, kind }, HEAD + len))
}

/// No entry has fewer bytes behind its head: commit, kind, two numbers, an empty id, born.
const SHORTEST: usize = 8 + 1 + 8 + 4 + 4 + 16;

/// The largest entry that is looked for behind damage. A tombstone holds the metadata of a session.
const LARGEST: usize = 16 << 20;

/// The next valid entry behind damage at the start of `bytes`, where it starts, and how long it is. Its commit is in `commits`.
pub(crate) fn find_next(bytes: &[u8], commits: &Range<u64>) -> Option<(usize, JournalEntry, usize)> {
    (1..bytes.len().saturating_sub(HEAD + SHORTEST - 1)).find_map(|at| {
        let rest = bytes.get(at..)?;
        let len = u32::from_le_bytes(*rest.first_chunk()?) as usize;
        let commit = u64::from_le_bytes(*rest.get(HEAD..)?.first_chunk()?);
        let kind = *rest.get(HEAD + 8)?;
        let fits = (SHORTEST..=LARGEST).contains(&len) && commits.contains(&commit);
        let (entry, len) = (fits && (LINES..=REMOVED).contains(&kind)).then(|| decode(rest))??;
        Some((at, entry, len))
    })
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(len)?;
    *rest = after;
    Some(taken)
}

fn text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let len = u32::from_le_bytes(take(rest, 4)?.try_into().ok()?) as usize;
    std::str::from_utf8(take(rest, len)?).ok()
}
