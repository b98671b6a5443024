//! GitHub Copilot CLI: a folder a session, with a log of events and a small file about it.

mod event;
mod lines;
mod place;
mod read;
mod write;

use std::path::{Path, PathBuf};

use crate::files::{files_below, sources_of};
use crate::{Agent, Destination, Env, Mark, Outgoing, Problem, Sink, Source, Stamp, Written};

/// The word it goes by.
const ID: &str = "copilot";
/// The log of a session.
const EVENTS: &str = "events.jsonl";
/// The file about a session.
const WORKSPACE: &str = "workspace.yaml";

/// GitHub Copilot CLI.
pub(crate) struct Copilot;

impl Agent for Copilot {
    fn id(&self) -> &'static str {
        ID
    }

    fn name(&self) -> &'static str {
        "GitHub Copilot CLI"
    }

    fn homes(&self, env: &Env) -> Vec<PathBuf> {
        vec![env.dir("COPILOT_HOME", ".copilot")]
    }

    fn recognise(&self, path: &Path, beginning: &[u8]) -> bool {
        if beginning.is_empty() {
            return path.join("session-state").is_dir() || path.join(EVENTS).is_file();
        }
        let beginning = &beginning[..beginning.len().min(4096)];
        let has = |word: &[u8]| memchr::memmem::find(beginning, word).is_some();
        has(b"\"session.start\"") && has(b"\"parentId\"")
    }

    fn sources(&self, place: &Path) -> Result<Vec<Source>, Problem> {
        let is_log = |path: &Path| path.file_name().is_some_and(|name| name == EVENTS);
        let files = if place.is_file() { vec![place.to_owned()] } else { files_below(place, &is_log)? };
        Ok(sources_of(ID, files, stamp))
    }

    fn read(&self, source: &Source, mark: Option<&Mark>, sink: &mut dyn Sink) -> Result<Mark, Problem> {
        read::read(source, mark, sink)
    }

    fn write(&self, session: &Outgoing, to: &Destination) -> Result<Written, Problem> {
        write::write(session, to)
    }
}

/// A session can be renamed without an event.
fn stamp(path: &Path) -> std::io::Result<Stamp> {
    let about = Stamp::of_file(&path.with_file_name(WORKSPACE)).unwrap_or_default();
    Ok(Stamp::of_file(path)?.and(about))
}
