//! The original bytes of sources, kept as attachments of their sessions when somebody asks for it.

use std::fs;
use std::path::Path;

use banyan::content_of;
use banyan::model::{ListAttachmentsRequest, PutAttachmentRequest, SessionId};
use banyan_agents::{Note, Source};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::survey::files_of;
use crate::calls::ask;
use crate::client::Client;
use crate::failure::Failure;

/// A folder that holds more files than this is not kept.
const MOST: usize = 64;
/// A larger file is not kept.
const LARGEST: u64 = 64 << 20;

/// Attaches the files of a source to its sessions, unless they are there: content is known by its hash.
pub(super) fn keep(
    client: &dyn Client,
    source: &Source,
    sessions: &[SessionId],
    notes: &mut Vec<Note>,
) -> Result<(), Failure> {
    let mut left_out = |what: String| notes.push(Note { place: String::new(), what, lost: true });
    let Some(files) = files_of(source) else {
        left_out("the original is a part of a database, and is not kept".to_owned());
        return Ok(());
    };
    if files.len() > MOST {
        left_out(format!("the original has more than {MOST} files, and is not kept"));
        return Ok(());
    }
    for file in files {
        if file.metadata().is_ok_and(|metadata| metadata.len() > LARGEST) {
            left_out(format!("{} has more than {LARGEST} bytes, and is not kept", file.display()));
            continue;
        }
        let bytes = match fs::read(&file) {
            Ok(bytes) => bytes,
            Err(error) => {
                left_out(format!("{} could not be kept: {error}", file.display()));
                continue;
            }
        };
        for session in sessions {
            put(client, session, &file, &bytes).or_else(|failure| match failure.is("session/not_found") {
                true => Ok(()),
                false => Err(failure),
            })?;
        }
    }
    Ok(())
}

fn put(client: &dyn Client, session: &SessionId, file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let sha256 = content_of(bytes).sha256;
    let there = ask(client, &ListAttachmentsRequest { session_id: session.clone() })?;
    if there.attachments.iter().any(|attachment| attachment.sha256 == sha256) {
        return Ok(());
    }
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mime = match file.extension().and_then(|extension| extension.to_str()) {
        Some("jsonl") => "application/jsonl",
        Some("json") => "application/json",
        Some("md") => "text/markdown",
        _ => "application/octet-stream",
    };
    let data = STANDARD.encode(bytes);
    ask(client, &PutAttachmentRequest { session_id: session.clone(), name, mime: mime.to_owned(), data })?;
    Ok(())
}
