//! Cline: two JSON files a session (3.x), or a folder a task with tools as XML in the text (2.x and the VS Code extension).

mod content;
mod head;
mod old;
mod outgoing;
mod read;
mod write;
mod xml;

use std::path::{Path, PathBuf};

use crate::files::{files_below, sources_of};
use crate::{Agent, Destination, Env, Mark, Outgoing, Problem, Sink, Source, Stamp, Written};

/// Its word on a command line and in metadata.
const ID: &str = "cline";
/// The same for records of the old form, which are not written again.
const ID_OLD: &str = "cline_2";
/// The custom type of the entry that has Cline's records of the session.
const SESSION_RECORD: &str = "cline.session";
/// How the file of a session's messages ends.
const MESSAGES: &str = ".messages.json";
/// The file of a task's messages.
const HISTORY: &str = "api_conversation_history.json";
/// The editors that the extension runs in, and where they keep what it stores.
const EDITORS: &[&str] = &["Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf"];
const EXTENSION: &str = "User/globalStorage/saoudrizwan.claude-dev";

/// Cline.
pub(crate) struct Cline;

impl Agent for Cline {
    fn id(&self) -> &'static str {
        ID
    }

    fn name(&self) -> &'static str {
        "Cline"
    }

    fn homes(&self, env: &Env) -> Vec<PathBuf> {
        let own = env.var("CLINE_DATA_DIR").map(PathBuf::from);
        let mut homes = vec![own.unwrap_or_else(|| env.dir("CLINE_DIR", ".cline").join("data"))];
        for editor in EDITORS {
            homes.push(env.dir("XDG_CONFIG_HOME", ".config").join(editor).join(EXTENSION));
            homes.push(env.home.join("Library/Application Support").join(editor).join(EXTENSION));
        }
        homes.push(env.home.join(".vscode-server/data").join(EXTENSION));
        homes
    }

    fn recognise(&self, path: &Path, beginning: &[u8]) -> bool {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() {
            return path.join(HISTORY).is_file()
                || path.join(format!("{name}{MESSAGES}")).is_file()
                || (path.join("tasks").is_dir() && path.join("state").is_dir())
                || path.join("sessions").is_dir() && path.join("db/sessions.db").is_file();
        }
        let beginning = String::from_utf8_lossy(beginning);
        name == HISTORY
            || name.ends_with(MESSAGES) && beginning.contains("\"sessionId\"")
            || beginning.contains("\"session_id\"") && manifest_messages(path).is_file()
    }

    fn sources(&self, place: &Path) -> Result<Vec<Source>, Problem> {
        let is_messages = |path: &Path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name == HISTORY || name.ends_with(MESSAGES)
        };
        if place.is_file() {
            let path = if is_messages(place) { place.to_owned() } else { manifest_messages(place) };
            return Ok(sources_of(ID, vec![path], stamp));
        }
        let folders = ["sessions", "tasks"].map(|name| place.join(name));
        let mut files = Vec::new();
        if folders.iter().any(|folder| folder.is_dir()) {
            for folder in &folders {
                files.extend(files_below(folder, &is_messages)?);
            }
        } else {
            files = files_below(place, &is_messages)?;
        }
        Ok(sources_of(ID, files, stamp))
    }

    fn read(&self, source: &Source, mark: Option<&Mark>, sink: &mut dyn Sink) -> Result<Mark, Problem> {
        if source.path.file_name().is_some_and(|name| name == HISTORY) {
            old::task(&source.path, mark, sink)
        } else {
            read::session(&source.path, mark, sink)
        }
    }

    fn write(&self, session: &Outgoing, to: &Destination) -> Result<Written, Problem> {
        write::session(session, to)
    }
}

/// The file of messages beside a manifest.
fn manifest_messages(manifest: &Path) -> PathBuf {
    manifest.with_extension("messages.json")
}

/// The manifest beside a file of messages. A sub-agent has none.
fn manifest(messages: &Path) -> PathBuf {
    let name = messages.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    messages.with_file_name(format!("{}.json", name.strip_suffix(MESSAGES).unwrap_or(name)))
}

fn stamp(path: &Path) -> std::io::Result<Stamp> {
    let about = Stamp::of_file(&manifest(path)).unwrap_or_default();
    Ok(Stamp::of_file(path)?.and(about))
}
