//! Reading a session's file line by line, and mending its torn end.

use std::io;
use std::sync::Arc;

use banyan_core::record::{Head, HeadKind, LegacyHead, Salvaged, SalvagedWhat};
use banyan_model::SessionId;

use super::lazy_file::LazyFile;
use crate::{LogError, Scanned};

/// How much is read at a time.
const CHUNK: usize = 1 << 20;

/// Shows every whole line, and a last one that only lacks its line feed.
pub(crate) fn scan(
    file: &Arc<LazyFile>,
    from: u64,
    visit: &mut dyn FnMut(u64, &[u8]),
) -> Result<Scanned, LogError> {
    let reading = || LogError::io(format!("reading {}", file.path()));
    file.close_open_line();
    let end = file.end();
    let mut rest: Vec<u8> = Vec::new();
    let mut rest_at = from;
    let mut at = from;
    while at < end {
        let bytes = file.read(at, CHUNK.min((end - at) as usize)).map_err(reading())?;
        if bytes.is_empty() {
            break;
        }
        at += bytes.len() as u64;
        if rest.is_empty() {
            rest = bytes;
        } else {
            // What is here has no line feed, so a line that is long is looked through once only.
            let has_end = memchr::memchr(b'\n', &bytes).is_some();
            rest.extend_from_slice(&bytes);
            if !has_end {
                continue;
            }
        }
        let used = show_lines(&rest, rest_at, visit);
        rest.drain(..used);
        rest_at += used as u64;
    }
    let mut scanned = Scanned { len: rest_at, torn: rest.len() as u64 };
    if !rest.is_empty() && Head::parse(&rest).is_ok() {
        visit(rest_at, &rest);
        scanned = Scanned { len: end, torn: 0 };
    }
    Ok(scanned)
}

/// Gives a last line its line feed, or cuts a torn one off.
pub(crate) fn mend(file: &Arc<LazyFile>, scanned: Scanned) -> io::Result<()> {
    let ends_well = scanned.len == 0 || file.read(scanned.len - 1, 1)? == b"\n";
    if scanned.torn > 0 || !ends_well {
        file.repair_tail(scanned.len, !ends_well)?;
    }
    Ok(())
}

/// Shows the lines that end within `bytes`; returns how many bytes they are.
pub(crate) fn show_lines(bytes: &[u8], offset: u64, visit: &mut dyn FnMut(u64, &[u8])) -> usize {
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', bytes) {
        visit(offset + start as u64, &bytes[start..=end]);
        start = end + 1;
    }
    start
}

/// Shows the first line of a file, as far as it has one.
pub(crate) fn first_line(file: &Arc<LazyFile>, visit: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    let mut bytes = Vec::new();
    loop {
        let more = file.read(bytes.len() as u64, 4096.max(bytes.len()))?;
        if more.is_empty() {
            return Ok(());
        }
        bytes.extend_from_slice(&more);
        if let Some(end) = memchr::memchr(b'\n', &bytes) {
            visit(&bytes[..=end]);
            return Ok(());
        }
    }
}

/// The session that a first line says its file is of, even when the line is damaged.
pub fn session_named_in(line: &[u8]) -> Option<SessionId> {
    match Head::parse(line) {
        Ok(Head { kind: HeadKind::Created(created), .. }) => Some(created.session_id),
        Ok(Head { kind: HeadKind::Begun(begun), .. }) => Some(begun.session_id),
        Ok(Head { kind: HeadKind::Legacy(legacy), .. }) => match *legacy {
            LegacyHead::Meta(meta) | LegacyHead::Append(_, meta) => Some(meta.session_id),
            LegacyHead::Entry(_) | LegacyHead::Leaf(_) | LegacyHead::Commit(_) => None,
        },
        Ok(Head { kind: HeadKind::Newer(newer), .. }) => salvaged_id(newer.salvage),
        Ok(_) => None,
        Err(fault) => salvaged_id(fault.salvage),
    }
}

fn salvaged_id(salvage: Option<Salvaged>) -> Option<SessionId> {
    match salvage?.what {
        SalvagedWhat::Created { session_id, .. } => session_id,
        _ => None,
    }
}
