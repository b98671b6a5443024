//! pi: a file of lines a session, a tree of entries in each; the last line is the live one.

mod blocks;
mod read;
mod write;

use std::path::{Path, PathBuf};

use banyan_model::Json;
use memchr::memmem;
use serde::{Deserialize, Serialize};

use self::read::{Reading, State, head};
use crate::files::{files_below, sources_of};
use crate::lines::{Between, Lines};
use crate::telling::{Telling, parse};
use crate::{Agent, Destination, Env, Mark, Outgoing, Problem, Sink, Source, Stamp, Written};

/// The sessions of pi.
pub(crate) struct Pi;

impl Agent for Pi {
    fn id(&self) -> &'static str {
        "pi"
    }

    fn name(&self) -> &'static str {
        "pi"
    }

    fn homes(&self, env: &Env) -> Vec<PathBuf> {
        vec![env.dir("PI_CODING_AGENT_DIR", ".pi/agent")]
    }

    fn recognise(&self, path: &Path, beginning: &[u8]) -> bool {
        if path.is_dir() {
            let folder = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with("--");
            let holds = |folders: std::fs::ReadDir| folders.flatten().any(folder);
            return path.join("sessions").read_dir().is_ok_and(holds) || path.read_dir().is_ok_and(holds);
        }
        let first = beginning.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let head = first.get(..first.len().min(40)).unwrap_or_default();
        let is_header = [&b"\"type\":\"session\""[..], b"\"type\": \"session\""];
        is_header.iter().any(|header| memmem::find(head, header).is_some())
    }

    fn sources(&self, place: &Path) -> Result<Vec<Source>, Problem> {
        let is_lines = |path: &Path| path.extension().is_some_and(|extension| extension == "jsonl");
        let sessions = place.join("sessions");
        let files = match () {
            () if place.is_file() => vec![place.to_owned()],
            () if sessions.is_dir() => files_below(&sessions, &is_lines)?,
            () => files_below(place, &is_lines)?,
        };
        Ok(sources_of("pi", files, Stamp::of_file))
    }

    fn read(&self, source: &Source, mark: Option<&Mark>, sink: &mut dyn Sink) -> Result<Mark, Problem> {
        let path = &source.path;
        let left: Option<Left> = parse(mark);
        let lines = Lines::open(path, left.as_ref().map(|left| left.from).unwrap_or_default())?;
        let mut reading = match left.filter(|left| left.from.offset > 0 && !lines.anew()) {
            Some(mut left) => {
                left.telling.tell(sink)?;
                Reading::new(left.telling, Some(left.state), left.from.offset)
            }
            None => Reading::new(head(path)?, None, 0),
        };
        let mut end = lines.each(sink, |line, sink| reading.line(line, sink))?;
        if let Some(stuck) = reading.stuck {
            // It goes on from an entry of long ago: only a reading from the start knows where that is.
            reading = Reading::new(head(path)?, None, stuck);
            end = Lines::open(path, Between::default())?.each(sink, |line, sink| reading.line(line, sink))?;
        }
        let (telling, state) = reading.finish(sink)?;
        Ok(Mark(Json::of(&Left { telling, from: end, state })?))
    }

    fn write(&self, session: &Outgoing, to: &Destination) -> Result<Written, Problem> {
        write::write(session, to)
    }
}

/// Where the reading of a file was left off.
#[derive(Debug, Serialize, Deserialize)]
struct Left {
    telling: Telling,
    from: Between,
    state: State,
}
