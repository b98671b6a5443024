//! Session logs.

use std::io::{BufRead, BufReader, Read};

use banyan_formats::session_log::{Log, Note, Reader};
use banyan_model::{Error, ImportNote, ImportedSession, SessionId};

use super::taking::Taking;
use super::{Found, Input, Mode, unreadable};
use crate::Banyan;

pub(super) const NAME: &str = "session-log";

/// So much of a log is read at a time.
const BUFFER: usize = 256 << 10;

pub(super) async fn import(banyan: &Banyan, input: &mut dyn Input, mode: Mode) -> Result<ImportedSession, Error> {
    let session_id = session_named_in(&mut *input)?;
    input.rewind().map_err(unreadable)?;
    let mut taking = Taking::new(banyan, session_id, mode);
    let Log { meta, active_leaf, attachments, report, .. } = take_entries(&mut taking, input).await?;
    let mut not_placed: Vec<ImportNote> = report.aside.iter().map(note).collect();
    not_placed.extend(attachments.iter().map(|attachment| ImportNote {
        place: format!("attachment {}", attachment.attachment_id),
        note: format!("`{}` ({} bytes) is not in a session log", attachment.name, attachment.size),
    }));
    let found = Found {
        meta,
        active_leaf,
        attachments: Vec::new(),
        invented: report.invented.iter().map(note).collect(),
        not_placed,
        more_notes: report.more,
        remarks: Vec::new(),
        signature: None,
    };
    found.take(taking).await
}

/// The session that a log is of. Its beginning says so, or else it is read to its end.
pub(super) fn session_named_in(log: impl BufRead) -> Result<SessionId, Error> {
    let mut reader = Reader::new(log);
    while reader.next_entry().map_err(unreadable)?.is_some() {
        if let Some(session_id) = reader.session_id() {
            return Ok(session_id);
        }
    }
    Ok(reader.finish().meta.session_id)
}

/// Takes the entries of a log, and gives what else it says.
pub(super) async fn take_entries(taking: &mut Taking<'_>, log: impl Read) -> Result<Log, Error> {
    let mut reader = Reader::new(BufReader::with_capacity(BUFFER, log));
    while let Some(entry) = reader.next_entry().map_err(unreadable)? {
        taking.push(entry).await?;
    }
    Ok(reader.finish())
}

pub(super) fn note(note: &Note) -> ImportNote {
    let place = note.line.map(|line| format!("line {line}")).unwrap_or_default();
    ImportNote { place, note: note.note.clone() }
}
