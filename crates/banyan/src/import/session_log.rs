//! Session logs.

use banyan_formats::session_log::{Log, Note, read, recognise};
use banyan_model::{Error, ImportNote};

use super::{Found, Input, Source};
use crate::{Banyan, Incoming};

pub(super) const SOURCE: Source = Source { name: "session-log", recognise, read: read_log };

fn read_log(_: &Banyan, input: &mut dyn Input) -> Result<Vec<Found>, Error> {
    let log =
        read(input).map_err(|error| Error::invalid_request(format!("the file could not be read: {error}")))?;
    let Log { meta, active_leaf, entries, attachments, report } = log;
    let mut not_placed: Vec<ImportNote> = report.aside.iter().map(note).collect();
    not_placed.extend(attachments.iter().map(|attachment| ImportNote {
        place: format!("attachment {}", attachment.attachment_id),
        note: format!("`{}` ({} bytes) is not in a session log", attachment.name, attachment.size),
    }));
    Ok(vec![Found {
        incoming: Incoming { meta, entries, active_leaf, attachments: Vec::new() },
        attachments: Vec::new(),
        invented: report.invented.iter().map(note).collect(),
        not_placed,
        more_notes: report.more,
    }])
}

fn note(note: &Note) -> ImportNote {
    let place = note.line.map(|line| format!("line {line}")).unwrap_or_default();
    ImportNote { place, note: note.note.clone() }
}
