//! Contexts of the Open Context Protocol, such as the files in `~/.ocp/sessions`.

use std::io::Read;

use banyan_formats::ocp::{Received, read_file};
use banyan_model::{Error, GetRequest, ImportNote, ImportResponse, ImportedSession};

use super::{Input, Mode, unknown, unreadable};
use crate::clock::now_ms;
use crate::{Banyan, Tied};

pub(super) const NAME: &str = "ocp-context";

/// A context that is larger is none.
const LARGEST: u64 = 64 << 20;

/// Takes in a file that nobody else recognised, if it is a context. It goes to the session of that context, or begins one.
pub(super) async fn import(
    banyan: &Banyan,
    beginning: &[u8],
    input: &mut dyn Input,
    mode: Mode,
) -> Result<ImportResponse, Error> {
    if !recognise(beginning) {
        return Err(unknown());
    }
    let mut bytes = Vec::new();
    Read::take(input, LARGEST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > LARGEST {
        return Err(Error::too_large(format!("the context has more than {LARGEST} bytes")));
    }
    let received = read_file(&bytes, now_ms())
        .map_err(|why| Error::invalid_request(format!("the context cannot be read: {why}")))?;
    let tied = banyan.keep_context(&received, mode).await?;
    let session = told(banyan, tied, &received).await?;
    Ok(ImportResponse { format: NAME.to_owned(), dry_run: mode == Mode::DryRun, sessions: vec![session] })
}

/// The two names that every context has, at the beginning of an object.
fn recognise(beginning: &[u8]) -> bool {
    let text = String::from_utf8_lossy(beginning);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    text.starts_with('{') && text.contains("\"context_id\"") && text.contains("\"agent_type\"")
}

async fn told(banyan: &Banyan, tied: Tied, received: &Received) -> Result<ImportedSession, Error> {
    let Tied { session_id, created, added, unchanged } = tied;
    let there = banyan.get(GetRequest { session_id: session_id.clone() }).await?;
    let title = match there {
        Some(there) => there.meta.title,
        None => received.context.current_goal.clone().unwrap_or_default(),
    };
    let note = |place: &str, note: String| ImportNote { place: place.to_owned(), note };
    let mut invented = Vec::new();
    if let Some(given) = &received.given_id {
        let id = &received.context.context_id;
        invented.push(note("context_id", format!("`{given}` is none that the schema takes; it goes by `{id}`")));
    }
    if received.undated {
        invented.push(note("last_updated", format!("it is taken to be {}", received.context.last_updated)));
    }
    let not_placed = received.ignored.iter().map(|ignored| note(ignored.what, ignored.why.replace('-', " ")));
    Ok(ImportedSession {
        session_id,
        title,
        created,
        added,
        updated: 0,
        unchanged,
        attachments: 0,
        invented,
        not_placed: not_placed.collect(),
        more_notes: 0,
        remarks: Vec::new(),
        signature: None,
    })
}
