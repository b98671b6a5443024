//! Goose: one SQLite database for all sessions, the JSON that it exports, and the JSONL of old versions.

mod content;
mod file;
mod head;
mod outgoing;
mod read;
mod rows;
mod write;

use std::path::{Path, PathBuf};

use crate::files::{files_below, sources_of};
use crate::sqlite::{self, Database};
use crate::{Agent, Destination, Env, Mark, Outgoing, Problem, Sink, Source, Stamp, Written};

/// Its word on a command line and in metadata.
const ID: &str = "goose";
/// The file that all sessions are in.
const DATABASE: &str = "sessions.db";

/// The custom type of the entry that has goose's record of the session, and the name it goes by among our own ids.
const SESSION_RECORD: &str = "goose.session";
const SESSION: &str = "session";

/// Goose.
pub(crate) struct Goose;

impl Agent for Goose {
    fn id(&self) -> &'static str {
        ID
    }

    fn name(&self) -> &'static str {
        "Goose"
    }

    fn homes(&self, env: &Env) -> Vec<PathBuf> {
        match env.var("GOOSE_PATH_ROOT") {
            Some(root) => vec![Path::new(root).join("data/sessions")],
            None => vec![env.data_home().join("goose/sessions")],
        }
    }

    fn recognise(&self, path: &Path, beginning: &[u8]) -> bool {
        if path.is_dir() {
            return is_ours(&path.join(DATABASE));
        }
        if sqlite::is_database(beginning) {
            return is_ours(path);
        }
        let beginning = String::from_utf8_lossy(beginning);
        let beginning = beginning.trim_start();
        let first = beginning.lines().next().unwrap_or_default();
        let old =
            first.starts_with('{') && first.contains("\"working_dir\"") && first.contains("\"message_count\"");
        let export = beginning.starts_with('{')
            && beginning.contains("\"working_dir\"")
            && (beginning.contains("\"extension_data\"") || beginning.contains("\"conversation\""));
        old || export
    }

    fn sources(&self, place: &Path) -> Result<Vec<Source>, Problem> {
        if place.is_file() {
            return if is_json(place) { Ok(vec![source(place)?]) } else { rows::sources(place) };
        }
        let database = place.join(DATABASE);
        let mut sources = if database.is_file() { rows::sources(&database)? } else { Vec::new() };
        let old = files_below(place, &|path| path.extension().is_some_and(|end| end == "jsonl"))?;
        for path in old {
            // The database took in the old files when it was made.
            let known = path.file_stem().and_then(|stem| stem.to_str());
            if !sources.iter().any(|source| source.key.as_deref() == known) {
                sources.extend(sources_of(ID, vec![path], Stamp::of_file));
            }
        }
        Ok(sources)
    }

    fn read(&self, source: &Source, mark: Option<&Mark>, sink: &mut dyn Sink) -> Result<Mark, Problem> {
        match &source.key {
            Some(key) => rows::read(&source.path, key, mark, sink),
            None => file::read(&source.path, mark, sink),
        }
    }

    fn write(&self, session: &Outgoing, to: &Destination) -> Result<Written, Problem> {
        write::session(session, to)
    }
}

fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "json" || end == "jsonl")
}

fn source(path: &Path) -> Result<Source, Problem> {
    let stamp = Stamp::of_file(path).map_err(|error| Problem::io(path, error))?;
    Ok(Source { agent: ID, path: path.to_owned(), key: None, stamp })
}

/// Whether a database has goose's tables. Cline has a file of the same name.
fn is_ours(path: &Path) -> bool {
    path.is_file()
        && Database::open(path)
            .and_then(|database| database.table("messages"))
            .is_ok_and(|messages| messages.has("content_json"))
}
