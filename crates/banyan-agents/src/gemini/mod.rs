//! Gemini CLI: a log of messages and of changes to their list; before 0.40 or so one JSON object a session.

mod lines;
mod message;
mod place;
mod read;
mod tell;
mod tree;
mod write;

use std::path::{Path, PathBuf};

use crate::files::{files_below, sources_of};
use crate::{Agent, Destination, Env, Mark, Outgoing, Problem, Sink, Source, Stamp, Written};

/// The word it goes by.
const ID: &str = "gemini";

/// Gemini CLI.
pub(crate) struct Gemini;

impl Agent for Gemini {
    fn id(&self) -> &'static str {
        ID
    }

    fn name(&self) -> &'static str {
        "Gemini CLI"
    }

    fn homes(&self, env: &Env) -> Vec<PathBuf> {
        vec![env.dir("GEMINI_CLI_HOME", "").join(".gemini")]
    }

    fn recognise(&self, path: &Path, beginning: &[u8]) -> bool {
        if beginning.is_empty() {
            return path.join("tmp").is_dir()
                && (path.join("projects.json").is_file() || path.ends_with(".gemini"));
        }
        let beginning = &beginning[..beginning.len().min(4096)];
        let has = |word: &[u8]| memchr::memmem::find(beginning, word).is_some();
        has(b"\"sessionId\"") && has(b"\"projectHash\"")
    }

    fn sources(&self, place: &Path) -> Result<Vec<Source>, Problem> {
        let files = if place.is_file() { vec![place.to_owned()] } else { files_below(place, &is_chat)? };
        Ok(sources_of(ID, files, Stamp::of_file))
    }

    fn read(&self, source: &Source, mark: Option<&Mark>, sink: &mut dyn Sink) -> Result<Mark, Problem> {
        read::read(source, mark, sink)
    }

    fn write(&self, session: &Outgoing, to: &Destination) -> Result<Written, Problem> {
        write::write(session, to)
    }
}

/// A chat lies in a folder `chats`, a sub-agent's one below it.
fn is_chat(path: &Path) -> bool {
    let below = |up: usize| path.ancestors().nth(up).and_then(Path::file_name).is_some_and(|name| name == "chats");
    let suffix = path.extension().is_some_and(|suffix| suffix == "jsonl" || suffix == "json");
    suffix && (below(1) || below(2))
}
