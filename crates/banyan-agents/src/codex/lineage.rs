//! Which rollouts there are, and which of them belong together.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use memchr::memmem;
use serde::Deserialize;

use super::meta::Meta;
use super::read::ids_of;
use crate::files::{files_below, sources_of};
use crate::lines::without_bom;
use crate::{Problem, Source, Stamp, packed};

/// A first line is at most so long: it holds the instructions for the model.
const FIRST: u64 = 8 << 20;

/// Whether a file is called like a rollout. Those that were not touched for long may be packed.
pub(super) fn is_rollout(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with("rollout-") && (name.ends_with(".jsonl") || name.ends_with(".jsonl.zst"))
}

/// Whether a folder is where Codex keeps rollouts.
pub(super) fn is_home(path: &Path) -> bool {
    let year =
        |entry: std::fs::DirEntry| entry.file_name().to_str().is_some_and(|name| name.parse::<u16>().is_ok());
    let dated = |folder: &Path| folder.read_dir().is_ok_and(|entries| entries.flatten().any(year));
    path.join("session_index.jsonl").is_file()
        || path.join("archived_sessions").is_dir()
        || dated(&path.join("sessions"))
        || path.file_name().is_some_and(|name| name == "archived_sessions")
        || (path.file_name().is_some_and(|name| name == "sessions") && dated(path))
}

/// The home that a rollout lies in.
pub(super) fn home_of(path: &Path) -> Option<&Path> {
    let holds =
        |folder: &&Path| folder.file_name().is_some_and(|name| name == "sessions" || name == "archived_sessions");
    path.ancestors().skip(1).find(holds)?.parent()
}

/// Whether a rollout was put away.
pub(super) fn is_archived(path: &Path) -> bool {
    path.parent().and_then(Path::file_name).is_some_and(|name| name == "archived_sessions")
}

/// All rollouts of a home, or below another folder.
pub(super) fn rollouts(place: &Path) -> Result<Vec<PathBuf>, Problem> {
    let mut files = files_below(&place.join("sessions"), &is_rollout)?;
    files.extend(files_below(&place.join("archived_sessions"), &is_rollout)?);
    if files.is_empty() {
        files = files_below(place, &is_rollout)?;
    }
    Ok(files)
}

/// The threads in a place, each with all of its files.
pub(super) fn sources(place: &Path) -> Result<Vec<Source>, Problem> {
    let mut threads: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    let home = if place.is_dir() { Some(place) } else { home_of(place) };
    let files = match home {
        _ if !is_rollout(place) && place.is_file() => vec![place.to_owned()],
        Some(home) => rollouts(home)?,
        None => files_below(place.parent().unwrap_or(place), &is_rollout)?,
    };
    let only = place.is_file().then(|| ids_of(place).1);
    for file in files {
        let (_, thread) = ids_of(&file);
        if only.as_ref().is_none_or(|only| *only == thread) {
            threads.entry(thread).or_default().push(file);
        }
    }
    let names = home.map(Names::of).unwrap_or_default();
    Ok(threads.into_iter().filter_map(|(thread, files)| source(&thread, files, &names)).collect())
}

/// A thread's files in the order in which they were begun. The others' names go into the key.
fn source(thread: &str, mut files: Vec<PathBuf>, names: &Names) -> Option<Source> {
    files.sort_by_cached_key(|file| {
        let (own, thread) = ids_of(file);
        (own != thread, own)
    });
    let files = sources_of("codex", files, Stamp::of_file);
    let mut stamp = files.iter().fold(Stamp::default(), |stamp, file| stamp.and(file.stamp));
    if let Some(name) = names.of_thread(thread) {
        let hash = blake3::hash(name.as_bytes());
        let size = hash.as_bytes().first_chunk::<4>().map_or(0, |first| u32::from_le_bytes(*first));
        stamp = stamp.and(Stamp { size: size.into(), changed: 0 });
    }
    let mut files = files.into_iter().map(|file| file.path);
    let path = files.next()?;
    let others: Vec<String> = files.map(|file| file.to_string_lossy().into_owned()).collect();
    let key = (!others.is_empty()).then(|| others.join("\n"));
    Some(Source { agent: "codex", path, key, stamp })
}

/// All files of a thread.
pub(super) fn files_of(source: &Source) -> Vec<PathBuf> {
    let others = source.key.as_deref().into_iter().flat_map(str::lines).map(PathBuf::from);
    std::iter::once(source.path.clone()).chain(others).collect()
}

/// A part of a rollout that another one goes on from.
pub(super) struct Prefix {
    pub(super) path: PathBuf,
    pub(super) ordinal: u64,
    pub(super) offset: u64,
}

/// The prefixes that a rollout goes on from, the oldest first, and the id of one that is missing.
pub(super) fn prefixes(path: &Path, meta: &Meta) -> Result<(Vec<Prefix>, Option<String>), Problem> {
    let mut prefixes: Vec<Prefix> = Vec::new();
    let mut base = meta.base();
    let mut files = Vec::new();
    while let Some((id, ordinal, offset)) = base.take() {
        if files.is_empty() {
            files = rollouts(home_of(path).or(path.parent()).unwrap_or(path))?;
        }
        let found = files.iter().find(|file| ids_of(file).0 == id);
        let Some(found) = found.filter(|file| *file != path && prefixes.iter().all(|known| known.path != **file))
        else {
            prefixes.reverse();
            return Ok((prefixes, Some(id)));
        };
        prefixes.push(Prefix { path: found.clone(), ordinal, offset });
        base = Meta::of(&first_line(found)?).base();
    }
    prefixes.reverse();
    Ok((prefixes, None))
}

/// The first line of a file, or as much of it as is reasonable.
pub(super) fn first_line(path: &Path) -> Result<String, Problem> {
    let failed = |error| Problem::io(path, error);
    let mut bytes = Vec::new();
    let file = packed::open(path).map_err(failed)?;
    BufReader::new(file).take(FIRST).read_until(b'\n', &mut bytes).map_err(failed)?;
    Ok(String::from_utf8_lossy(without_bom(&bytes)).into_owned())
}

/// The names that people gave to threads: lines of an index, of which the last one counts.
#[derive(Default)]
pub(super) struct Names(Vec<u8>);

#[derive(Deserialize)]
struct Name {
    id: String,
    thread_name: String,
}

impl Names {
    pub(super) fn of(home: &Path) -> Self {
        Self(std::fs::read(home.join("session_index.jsonl")).unwrap_or_default())
    }

    pub(super) fn of_thread(&self, thread: &str) -> Option<String> {
        let mut before = self.0.len();
        while let Some(at) = memmem::rfind(&self.0[..before], thread.as_bytes()) {
            let begin = self.0[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
            let end = memchr::memchr(b'\n', &self.0[at..]).map_or(self.0.len(), |length| at + length);
            let name = serde_json::from_slice::<Name>(&self.0[begin..end]).ok();
            if let Some(name) = name.filter(|name| name.id == thread && !name.thread_name.is_empty()) {
                return Some(name.thread_name);
            }
            before = begin;
        }
        None
    }
}
