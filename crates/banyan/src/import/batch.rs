//! Batches: pieces of sessions that somebody imports again and again.

use std::io::BufReader;

use banyan_formats::batch::{Batch, read};
use banyan_model::{Error, ImportResponse, ImportedSession, SessionEntry};

use super::{Input, Mode};
use crate::{Banyan, Incoming, Taken};

/// Takes in a batch, whole or not at all.
pub(super) async fn import(banyan: &Banyan, input: &mut dyn Input, mode: Mode) -> Result<ImportResponse, Error> {
    let Batch { meta, told, leaf, entries } = read(BufReader::new(input)).map_err(Error::invalid_request)?;
    for entry in &entries {
        if let SessionEntry::Message(message) = entry {
            // Nobody reads them after this.
            message.message.parse().map_err(|error| Error::invalid_request(error.message))?;
        }
    }
    let (session_id, title) = (meta.session_id.clone(), meta.title.clone());
    let incoming = Incoming { meta, entries, active_leaf: leaf, attachments: Vec::new() };
    let Taken { created, added, updated, unchanged, attachments } =
        banyan.take_more(incoming, &told, mode).await?;
    let session = ImportedSession {
        session_id,
        title,
        created,
        added,
        updated,
        unchanged,
        attachments,
        invented: Vec::new(),
        not_placed: Vec::new(),
        more_notes: 0,
        remarks: Vec::new(),
        signature: None,
    };
    Ok(ImportResponse { format: "batch".to_owned(), dry_run: mode == Mode::DryRun, sessions: vec![session] })
}
