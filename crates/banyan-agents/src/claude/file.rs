//! Which files there are, and what each of them is.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use banyan_model::{Json, Object, SessionStatus};
use serde::{Deserialize, Serialize};

use super::chat::State;
use super::read::{Reading, own_session};
use super::record::{Envelope, looks_own, number};
use crate::files::{files_below, sources_of};
use crate::lines::{Between, Lines, without_bom};
use crate::outline::Outline;
use crate::telling::{Telling, parse};
use crate::{Head, Mark, Problem, Sink, Source, Stamp, session_id};

/// So much of a file is looked at to find out whose it is.
const BEGINNING: u64 = 1 << 20;
/// Old versions write titles of other sessions into the first lines of a file; so much of it is looked at.
const TITLES: u64 = 1 << 14;

/// Where the reading of a file was left off.
#[derive(Debug, Serialize, Deserialize)]
struct Left {
    telling: Telling,
    /// From where it is read again: from the beginning of the last response.
    from: Between,
    /// Whatever begins before was told.
    told: u64,
    /// What is remembered there; none if that is the file's beginning.
    state: Option<State>,
}

/// What a file is called after, and whose sub-agent it is.
struct Name {
    native: String,
    parent: Option<String>,
}

/// Whether a folder is what Claude calls its home. Other folders have projects, too.
pub(super) fn is_home(place: &Path) -> bool {
    const LOOKED_AT: usize = 20;
    let is_own = |path: &std::path::PathBuf| {
        let mut beginning = Vec::new();
        let read = File::open(path).and_then(|file| file.take(TITLES).read_to_end(&mut beginning));
        read.is_ok() && looks_own(&beginning)
    };
    let projects = place.join("projects");
    let is_lines = |path: &Path| path.extension().is_some_and(|extension| extension == "jsonl");
    place.ends_with(".claude")
        || projects.is_dir()
            && files_below(&projects, &is_lines).is_ok_and(|files| files.iter().take(LOOKED_AT).any(is_own))
}

/// The sessions in a place.
pub(super) fn sources(place: &Path) -> Result<Vec<Source>, Problem> {
    let is_lines = |path: &Path| path.extension().is_some_and(|extension| extension == "jsonl");
    let projects = place.join("projects");
    let files = match () {
        () if place.is_file() => vec![place.to_owned()],
        () if projects.is_dir() => files_below(&projects, &is_lines)?,
        () => files_below(place, &is_lines)?,
    };
    Ok(sources_of("claude", files, Stamp::of_file))
}

/// Reads a file, or what is new in it.
pub(super) fn read(source: &Source, mark: Option<&Mark>, sink: &mut dyn Sink) -> Result<Mark, Problem> {
    let path = &source.path;
    let left: Option<Left> = parse(mark);
    let first = first_record(path)?;
    let name = name_of(path, &first);
    let lines = Lines::open(path, left.as_ref().map(|left| left.from).unwrap_or_default())?;
    let left = left.filter(|_| !lines.anew());
    let told = left.as_ref().map_or(0, |left| left.told);
    let mut reading = match left {
        Some(Left { mut telling, state: Some(state), .. }) => {
            telling.tell(sink)?;
            Reading::new(&name.native, telling, Some(state), told)
        }
        _ => Reading::new(&name.native, telling(path, &name, &first), None, told),
    };
    let mut end = lines.each(sink, |line, sink| reading.line(line, sink))?;
    if let Some(stuck) = reading.stuck {
        // It goes on from a record of long ago: only a reading from the start knows where that is.
        reading = Reading::new(&name.native, telling(path, &name, &first), None, stuck);
        let lines = Lines::open(path, Between::default())?;
        end = lines.each(sink, |line, sink| reading.line(line, sink))?;
    }
    old_title(path, &mut reading)?;
    reading.finish(sink)?;
    let chat = reading.chats.swap_remove(0);
    let (from, state) = match chat.response {
        Some(response) => {
            let (offset, lines) = response.begins;
            (Lines::between(path, offset, lines)?, Some(response.before))
        }
        None => (Between::default(), None),
    };
    Ok(Mark(Json::of(&Left { telling: chat.telling, from, told: end.offset, state })?))
}

fn name_of(path: &Path, first: &str) -> Name {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
    if !stem.starts_with("agent-") {
        return Name { native: stem, parent: None };
    }
    let folder = path.parent().filter(|folder| folder.ends_with("subagents")).and_then(Path::parent);
    let folder = folder.and_then(Path::file_name).and_then(|name| name.to_str()).map(str::to_owned);
    let outline = Outline::of(first).ok();
    let said = outline.and_then(|first| Some(Envelope::of(Some(first.root())).session_id?.into_owned()));
    let parent = folder.or(said);
    let native = parent.as_ref().map_or_else(|| stem.clone(), |parent| format!("{parent}.{stem}"));
    Name { native, parent }
}

/// What Claude keeps beside the file of a sub-agent.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct SubAgent {
    description: Option<String>,
    tool_use_id: Option<String>,
}

fn telling(path: &Path, name: &Name, first: &str) -> Telling {
    let own = own_session(first, &name.native);
    let is_own = own.is_some();
    let beside = std::fs::read(path.with_extension("meta.json")).ok();
    let beside: SubAgent = beside.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    let mut metadata = Object::new();
    metadata.insert("agent".to_owned(), "claude".into());
    metadata.insert("native_id".to_owned(), name.native.as_str().into());
    metadata.insert("provider".to_owned(), "anthropic".into());
    metadata.insert("source".to_owned(), path.to_string_lossy().into());
    if let Some(parent) = &name.parent {
        metadata.insert("parent_session_id".to_owned(), session_id("claude", parent).as_str().into());
        metadata.extend(beside.tool_use_id.map(|call| ("parent_call_id".to_owned(), call.into())));
    }
    let title = beside.description.filter(|_| name.parent.is_some());
    let named = title.is_some();
    let head = Head {
        session: own.unwrap_or_else(|| session_id("claude", &name.native)),
        title: title.unwrap_or_default(),
        created_at: 0,
        updated_at: 0,
        status: SessionStatus::Idle,
        metadata,
        forked_from: None,
    };
    Telling::new(head, named, is_own)
}

/// The first line that is a record.
fn first_record(path: &Path) -> Result<String, Problem> {
    let failed = |error| Problem::io(path, error);
    let mut reader = BufReader::new(File::open(path).map_err(failed)?).take(BEGINNING);
    let mut bytes = Vec::new();
    while reader.read_until(b'\n', &mut bytes).map_err(failed)? > 0 {
        let text = String::from_utf8_lossy(without_bom(&bytes)).into_owned();
        if Outline::of(&text).is_ok() {
            return Ok(text);
        }
        bytes.clear();
    }
    Ok(String::new())
}

/// Old versions write the title of a session into whichever file comes next.
fn old_title(path: &Path, reading: &mut Reading) -> Result<(), Problem> {
    let telling = &mut reading.chats[0].telling;
    let version = telling.head.metadata.get("version").and_then(|version| version.as_str()).unwrap_or_default();
    if telling.named || !(version.starts_with("0.") || version.starts_with("1.")) {
        return Ok(());
    }
    let Some(folder) = path.parent().and_then(|folder| folder.read_dir().ok()) else { return Ok(()) };
    for sibling in folder.flatten().map(|entry| entry.path()) {
        if sibling.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        let mut beginning = Vec::new();
        let Ok(file) = File::open(&sibling) else { continue };
        if file.take(TITLES).read_to_end(&mut beginning).is_err()
            || !beginning.starts_with(b"{\"type\":\"summary\"")
        {
            continue;
        }
        for line in String::from_utf8_lossy(&beginning).lines() {
            let Ok(outline) = Outline::of(line) else { break };
            let envelope = Envelope::of(Some(outline.root()));
            let (Some(summary), Some(leaf)) = (&envelope.summary, &envelope.leaf_uuid) else { break };
            if reading.known.get(number(leaf)).is_some_and(|(chat, _)| chat == 0) {
                telling.head.title = summary.to_string();
            }
        }
    }
    Ok(())
}
