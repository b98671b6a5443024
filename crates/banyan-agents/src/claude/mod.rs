//! Claude Code: a file of lines a session, a tree of records in each, sub-agents in files of their own.

mod blocks;
mod chat;
mod file;
mod foreign;
mod messages;
mod read;
mod record;
mod write;

use std::path::{Path, PathBuf};

use crate::{Agent, Destination, Env, Mark, Outgoing, Problem, Sink, Source, Written};

/// The sessions of Claude Code.
pub(crate) struct Claude;

impl Agent for Claude {
    fn id(&self) -> &'static str {
        "claude"
    }

    fn name(&self) -> &'static str {
        "Claude Code"
    }

    fn homes(&self, env: &Env) -> Vec<PathBuf> {
        vec![env.dir("CLAUDE_CONFIG_DIR", ".claude")]
    }

    fn recognise(&self, path: &Path, beginning: &[u8]) -> bool {
        if path.is_dir() {
            return file::is_home(path)
                || path.parent().is_some_and(|parent| parent.ends_with(".claude/projects"));
        }
        let is_lines = path.extension().is_some_and(|extension| extension == "jsonl");
        is_lines && record::looks_own(beginning)
    }

    fn sources(&self, place: &Path) -> Result<Vec<Source>, Problem> {
        file::sources(place)
    }

    fn read(&self, source: &Source, mark: Option<&Mark>, sink: &mut dyn Sink) -> Result<Mark, Problem> {
        file::read(source, mark, sink)
    }

    fn write(&self, session: &Outgoing, to: &Destination) -> Result<Written, Problem> {
        write::write(session, to)
    }
}
