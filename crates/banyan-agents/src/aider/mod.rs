//! Aider: one Markdown file a repository, with everything that was on the screen. There is no escaping, and there are no ids.

mod blocks;
mod read;
mod write;

use std::path::{Path, PathBuf};

use crate::{Agent, Destination, Env, Mark, Outgoing, Problem, Sink, Source, Stamp, Written};

/// Its word on a command line and in metadata.
const ID: &str = "aider";
/// The file, in the root of the repository.
const HISTORY: &str = ".aider.chat.history.md";
/// How a run of aider begins.
const BEGIN: &str = "# aider chat started at ";

/// Aider.
pub(crate) struct Aider;

impl Agent for Aider {
    fn id(&self) -> &'static str {
        ID
    }

    fn name(&self) -> &'static str {
        "Aider"
    }

    /// The file of the repository that the command was started in: nobody keeps a list of the others.
    fn homes(&self, env: &Env) -> Vec<PathBuf> {
        if let Some(file) = env.var("AIDER_CHAT_HISTORY_FILE") {
            return vec![env.cwd.join(file)];
        }
        let with = |name: &str| env.cwd.ancestors().find(|folder| folder.join(name).exists());
        vec![with(HISTORY).or_else(|| with(".git")).unwrap_or(&env.cwd).to_owned()]
    }

    fn recognise(&self, path: &Path, beginning: &[u8]) -> bool {
        let is_named = path.file_name().and_then(|name| name.to_str()).is_some_and(is_history);
        if path.is_dir() {
            path.join(HISTORY).is_file()
        } else {
            is_named || memchr::memmem::find(beginning, BEGIN.as_bytes()).is_some()
        }
    }

    fn sources(&self, place: &Path) -> Result<Vec<Source>, Problem> {
        if place.is_file() {
            return Ok(vec![source(place)?]);
        }
        let mut sources = Vec::new();
        for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
            if entry.file_name().to_str().is_some_and(is_history) && entry.path().is_file() {
                sources.push(source(&entry.path())?);
            }
        }
        sources.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(sources)
    }

    fn read(&self, source: &Source, mark: Option<&Mark>, sink: &mut dyn Sink) -> Result<Mark, Problem> {
        read::file(&source.path, mark, sink)
    }

    fn write(&self, session: &Outgoing, to: &Destination) -> Result<Written, Problem> {
        write::session(session, to)
    }
}

/// Aider's own file, or one that we wrote beside it.
fn is_history(name: &str) -> bool {
    name.starts_with(".aider.chat.history") && name.ends_with(".md")
}

fn source(path: &Path) -> Result<Source, Problem> {
    let stamp = Stamp::of_file(path).map_err(|error| Problem::io(path, error))?;
    Ok(Source { agent: ID, path: path.to_owned(), key: None, stamp })
}
