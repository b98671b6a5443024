//! Qwen Code: a tree of lines, each with its parent's id, that speak in Gemini's parts.

mod lines;
mod place;
mod read;
mod record;
mod write;

use std::path::{Path, PathBuf};

use crate::files::{files_below, sources_of};
use crate::{Agent, Destination, Env, Mark, Outgoing, Problem, Sink, Source, Stamp, Written};

/// The word it goes by.
const ID: &str = "qwen";

/// Qwen Code.
pub(crate) struct Qwen;

impl Agent for Qwen {
    fn id(&self) -> &'static str {
        ID
    }

    fn name(&self) -> &'static str {
        "Qwen Code"
    }

    fn homes(&self, env: &Env) -> Vec<PathBuf> {
        vec![env.var("QWEN_RUNTIME_DIR").map_or_else(|| env.dir("QWEN_HOME", ".qwen"), PathBuf::from)]
    }

    fn recognise(&self, path: &Path, beginning: &[u8]) -> bool {
        if beginning.is_empty() {
            return path.ends_with(".qwen") || (path.join("chats").is_dir() && path.join("meta.json").is_file());
        }
        let first = beginning.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let has = |word: &[u8]| memchr::memmem::find(first, word).is_some();
        // Claude Code has lines like these, with another kind of message.
        has(b"\"parentUuid\"") && has(b"\"sessionId\"") && (has(b"\"parts\"") || has(b"\"systemPayload\""))
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

/// A chat lies in a folder `chats`, a sub-agent's in `subagents` and the folder of its session.
fn is_chat(path: &Path) -> bool {
    let above = |up: usize, name: &str| {
        path.ancestors().nth(up).and_then(Path::file_name).is_some_and(|found| found == name)
    };
    path.extension().is_some_and(|suffix| suffix == "jsonl") && (above(1, "chats") || above(2, "subagents"))
}
