//! What an agent is to us: where its sessions are, and how they are read and written.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Env, Mark, Outgoing, Sink};

/// All agents, in the order in which they are shown.
pub static AGENTS: &[&dyn Agent] = &[&crate::codex::Codex, &crate::gemini::Gemini, &crate::claude::Claude, &crate::pi::Pi, &crate::qwen::Qwen, &crate::copilot::Copilot, &crate::opencode::OpenCode, &crate::goose::Goose, &crate::cline::Cline, &crate::aider::Aider];

/// The agent of a name.
pub fn agent(id: &str) -> Option<&'static dyn Agent> {
    AGENTS.iter().copied().find(|agent| agent.id() == id)
}

/// A coding agent whose sessions can be read and written.
pub trait Agent: Send + Sync {
    /// The word it goes by on a command line and in metadata, for example `codex`.
    fn id(&self) -> &'static str;

    /// What it calls itself.
    fn name(&self) -> &'static str;

    /// The places where it keeps sessions on this machine, whether or not they are there.
    fn homes(&self, env: &Env) -> Vec<PathBuf>;

    /// Whether a file or folder that somebody named is one of its own. `beginning` has the file's first bytes, none of a folder.
    fn recognise(&self, path: &Path, beginning: &[u8]) -> bool;

    /// The sources in a place: a home, or a file or folder that is one of its own. Cheap: no source is read whole.
    fn sources(&self, place: &Path) -> Result<Vec<Source>, Problem>;

    /// Reads a source, or only what is new in it since `mark`. Gives the mark to go on from.
    fn read(&self, source: &Source, mark: Option<&Mark>, sink: &mut dyn Sink) -> Result<Mark, Problem>;

    /// Writes a session as the agent itself would have. Never overwrites a file.
    fn write(&self, session: &Outgoing, to: &Destination) -> Result<Written, Problem>;
}

/// Something that can be read by itself and holds one session, or a few: a file, a folder, a row of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The agent that wrote it.
    pub agent: &'static str,
    /// The file or folder.
    pub path: PathBuf,
    /// Which session of a file that holds many.
    pub key: Option<String>,
    /// Changes whenever its content does.
    pub stamp: Stamp,
}

/// Tells without reading whether a source has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// How large it is: bytes, or rows.
    pub size: u64,
    /// When it was last changed, in whatever unit its place has; finer is better.
    pub changed: i64,
}

impl Stamp {
    /// The stamp of a file.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        let metadata = path.metadata()?;
        let changed = metadata.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Ok(Self { size: metadata.len(), changed: i64::try_from(changed.as_nanos()).unwrap_or(i64::MAX) })
    }

    /// The stamp of several things together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { size: self.size.wrapping_add(other.size), changed: self.changed.max(other.changed) }
    }
}

/// Where a session is written to.
#[derive(Clone, Debug)]
pub struct Destination {
    /// The agent's home, as [`Agent::homes`] has it, or a folder that stands in for it.
    pub home: PathBuf,
    /// The directory in which the user will go on. Some agents find sessions only there.
    pub cwd: PathBuf,
    /// Milliseconds since 1970, now.
    pub now_ms: i64,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The session's id in the agent's own form.
    pub native_id: String,
    /// The files that were written, or the database that was added to. The first one is the session's own.
    pub paths: Vec<PathBuf>,
    /// The command that goes on with it, word by word, to be run in the destination's `cwd`.
    pub command: Vec<String>,
    /// What the agent has no place for, in words.
    pub lost: Vec<String>,
}

/// Why something could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The system says no.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The file is not what it should be.
    #[error("{}: {what}", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The one who takes the pieces wants no more.
    #[error(transparent)]
    Refused(#[from] banyan_model::Error),
}

impl Problem {
    /// A problem of the system with a file.
    pub fn io(path: &Path, error: io::Error) -> Self {
        Self::Io { path: path.to_owned(), error }
    }

    /// A problem with what a file says.
    pub fn form(path: &Path, what: impl Into<String>) -> Self {
        Self::Form { path: path.to_owned(), what: what.into() }
    }
}
