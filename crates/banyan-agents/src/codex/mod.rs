//! Codex: rollouts, one file of lines a thread. A fork or a revert is a file that goes on from a prefix of another.

mod events;
mod filled;
mod foreign;
mod items;
mod lineage;
mod meta;
mod read;
mod response;
mod thread;
mod write;

use std::path::{Path, PathBuf};

use memchr::memmem;

use crate::{Agent, Destination, Env, Mark, Outgoing, Problem, Sink, Source, Written};

/// The sessions of Codex.
pub(crate) struct Codex;

impl Agent for Codex {
    fn id(&self) -> &'static str {
        "codex"
    }

    fn name(&self) -> &'static str {
        "Codex"
    }

    fn homes(&self, env: &Env) -> Vec<PathBuf> {
        vec![env.dir("CODEX_HOME", ".codex")]
    }

    fn recognise(&self, path: &Path, beginning: &[u8]) -> bool {
        if path.is_dir() {
            return lineage::is_home(path);
        }
        let first = beginning.split(|byte| *byte == b'\n').next().unwrap_or_default();
        memmem::find(first, b"\"session_meta\"").is_some() || lineage::is_rollout(path)
    }

    fn sources(&self, place: &Path) -> Result<Vec<Source>, Problem> {
        lineage::sources(place)
    }

    fn read(&self, source: &Source, mark: Option<&Mark>, sink: &mut dyn Sink) -> Result<Mark, Problem> {
        thread::read(source, mark, sink)
    }

    fn write(&self, session: &Outgoing, to: &Destination) -> Result<Written, Problem> {
        write::write(session, to)
    }
}
