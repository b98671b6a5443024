//! OpenCode: a SQLite database with two generations of tables, the JSON that it exports, and the folder of JSON files of old versions.

mod choice;
mod content;
mod files;
mod head;
mod ids;
mod outgoing;
mod read;
mod rows;
mod second;
mod write;

use std::path::{Path, PathBuf};

use crate::files::sources_of;
use crate::sqlite::{self, Database};
use crate::{Agent, Destination, Env, Mark, Outgoing, Problem, Sink, Source, Stamp, Written};

/// Its word on a command line and in metadata.
const ID: &str = "opencode";
/// The same for records of the second generation, which are not written again.
const ID_2: &str = "opencode_2";
/// The file that all sessions are in.
const DATABASE: &str = "opencode.db";
/// The custom type of the entry that has OpenCode's record of the session, and the name it goes by among our own ids.
const SESSION_RECORD: &str = "opencode.session";
const SESSION: &str = "session";

/// OpenCode.
pub(crate) struct OpenCode;

impl Agent for OpenCode {
    fn id(&self) -> &'static str {
        ID
    }

    fn name(&self) -> &'static str {
        "OpenCode"
    }

    fn homes(&self, env: &Env) -> Vec<PathBuf> {
        vec![env.data_home().join("opencode")]
    }

    fn recognise(&self, path: &Path, beginning: &[u8]) -> bool {
        if path.is_dir() {
            return is_ours(&path.join(DATABASE))
                || path.join("storage/session").is_dir()
                || files::is_storage(path);
        }
        if sqlite::is_database(beginning) {
            return is_ours(path);
        }
        let beginning = String::from_utf8_lossy(beginning);
        let first = beginning.trim_start().trim_start_matches('{').trim_start();
        let export = first.starts_with("\"info\"") && beginning.contains("\"ses_");
        export || files::is_session_file(path)
    }

    fn sources(&self, place: &Path) -> Result<Vec<Source>, Problem> {
        if place.is_file() {
            let is_json = place.extension().is_some_and(|end| end == "json");
            if files::is_session_file(place) {
                return Ok(sources_of(ID, vec![place.to_owned()], files::stamp));
            }
            return if is_json { Ok(vec![file(place)?]) } else { rows::sources(place) };
        }
        let database = place.join(DATABASE);
        let mut sources = if database.is_file() { rows::sources(&database)? } else { Vec::new() };
        let storage = place.join("storage");
        let old = files::sources(if storage.is_dir() { &storage } else { place })?;
        // A session that was taken into the database has gone on there.
        let id = |source: &Source| source.path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned);
        let old: Vec<Source> =
            old.into_iter().filter(|old| !sources.iter().any(|source| source.key == id(old))).collect();
        sources.extend(old);
        Ok(sources)
    }

    fn read(&self, source: &Source, mark: Option<&Mark>, sink: &mut dyn Sink) -> Result<Mark, Problem> {
        match &source.key {
            Some(key) => rows::read(&source.path, key, mark, sink),
            None if files::is_session_file(&source.path) => files::read(&source.path, mark, sink),
            None => read::export(&source.path, mark, sink),
        }
    }

    fn write(&self, session: &Outgoing, to: &Destination) -> Result<Written, Problem> {
        write::session(session, to)
    }
}

fn file(path: &Path) -> Result<Source, Problem> {
    let stamp = Stamp::of_file(path).map_err(|error| Problem::io(path, error))?;
    Ok(Source { agent: ID, path: path.to_owned(), key: None, stamp })
}

/// Whether a database has OpenCode's tables.
fn is_ours(path: &Path) -> bool {
    path.is_file()
        && Database::open(path)
            .and_then(|database| database.table("session"))
            .is_ok_and(|session| session.has("directory") && session.has("slug"))
}
