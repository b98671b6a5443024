//! What was imported from where: a line for each source, the last one counts.
//!
//! Everything in it can be found out again by reading the sources, so losing it costs time and nothing else. A line is added only
//! after what it tells of is safe in the store. When most lines are outdated, the file is written anew and takes the old one's place.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use banyan::model::{LastTold, SessionId};
use banyan_agents::{Mark, Source, Stamp};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// So many outdated lines are no reason to write the file anew.
const FEW: usize = 1000;
/// Readings before this version may have left something out, and are done again. What they told is still known.
const VERSION: u32 = 2;

/// What tells a source from all others.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Key {
    agent: String,
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
}

impl Key {
    pub(crate) fn of(source: &Source) -> Self {
        let path = source.path.to_string_lossy().into_owned();
        Self { agent: source.agent.to_owned(), path, key: source.key.clone() }
    }
}

/// What is known of a source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Known {
    /// What it looked like when it was read to its end; none if it never was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stamp: Option<Stamp>,
    /// Where to go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mark: Option<Mark>,
    /// Its sessions, and what was told of them last.
    pub(crate) sessions: Sessions,
    /// What was told of them after that, and may or may not have arrived.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) perhaps: Sessions,
}

/// What was told, by session.
pub(crate) type Sessions = BTreeMap<SessionId, LastTold>;

#[derive(Serialize, Deserialize)]
struct Line<K, V> {
    v: u32,
    of: K,
    is: V,
}

/// What was imported from where.
pub(crate) struct Ledger {
    /// None when nothing is to be written.
    path: Option<PathBuf>,
    known: HashMap<Key, Known>,
    /// The source that told each session last, by agent.
    last: HashMap<(String, SessionId), Key>,
    file: Option<File>,
    outdated: usize,
}

impl Ledger {
    /// Reads the ledger of a store. One that is not there, or not readable, is empty.
    pub(crate) fn open(path: &Path) -> Self {
        let mut ledger = Self {
            path: Some(path.to_owned()),
            known: HashMap::new(),
            last: HashMap::new(),
            file: None,
            outdated: 0,
        };
        let Ok(file) = File::open(path) else { return ledger };
        let mut reader = BufReader::with_capacity(1 << 18, file);
        let mut text = Vec::new();
        while reader.read_until(b'\n', &mut text).is_ok_and(|read| read > 0) {
            // A line that a crash tore tells nothing.
            if let Ok(line) = serde_json::from_slice::<Line<Key, Known>>(&text)
                && line.v <= VERSION
            {
                let known = match line.v {
                    VERSION => line.is,
                    _ => Known { stamp: None, mark: None, ..line.is },
                };
                ledger.put(line.of, known);
            }
            text.clear();
        }
        ledger
    }

    /// The same, and nothing is written to it.
    pub(crate) fn read_only(mut self) -> Self {
        self.path = None;
        self
    }

    /// What is known of a source.
    pub(crate) fn get(&self, source: &Source) -> Option<&Known> {
        self.known.get(&Key::of(source))
    }

    /// What an agent told of a session last, from whichever source.
    pub(crate) fn last_told(&self, agent: &str, session: &SessionId) -> Option<&LastTold> {
        let key = self.last.get(&(agent.to_owned(), session.clone()))?;
        self.known.get(key)?.sessions.get(session)
    }

    /// Forgets everything.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
        self.last.clear();
        self.outdated = FEW + 1;
    }

    /// Some of the sessions that it knows.
    pub(crate) fn some_sessions(&self, most: usize) -> Vec<SessionId> {
        self.known.values().flat_map(|known| known.sessions.keys()).take(most).cloned().collect()
    }

    /// Adds what has become known of some sources.
    pub(crate) fn add(&mut self, news: Vec<(Key, Known)>) -> Result<(), Failure> {
        let mut lines = Vec::new();
        for (key, known) in news {
            write_line(&key, &known, &mut lines).map_err(|error| self.unwritable(&error))?;
            self.put(key, known);
        }
        if self.path.is_none() || lines.is_empty() {
            return Ok(());
        }
        if self.outdated > FEW && self.outdated > self.known.len() {
            return self.write_anew().map_err(|error| self.unwritable(&error));
        }
        self.append(&lines).map_err(|error| self.unwritable(&error))
    }

    fn put(&mut self, key: Key, known: Known) {
        for session in known.sessions.keys() {
            self.last.insert((key.agent.clone(), session.clone()), key.clone());
        }
        self.outdated += usize::from(self.known.insert(key, known).is_some());
    }

    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
                let mut file = OpenOptions::new().append(true).create(true).open(path)?;
                // The last line may be torn; what is added stands on lines of its own.
                file.write_all(b"\n")?;
                self.file.insert(file)
            }
        };
        file.write_all(lines)
    }

    fn write_anew(&mut self) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        let partial = path.with_extension("partial");
        let mut lines = Vec::new();
        // Who told a session last stays the last.
        let lasts: HashSet<&Key> = self.last.values().collect();
        let (lasts, others): (Vec<_>, Vec<_>) = self.known.iter().partition(|(key, _)| lasts.contains(key));
        for (key, known) in others.into_iter().chain(lasts) {
            write_line(key, known, &mut lines)?;
        }
        let mut file = File::create(&partial)?;
        file.write_all(&lines)?;
        file.sync_all()?;
        fs::rename(&partial, path)?;
        self.file = None;
        self.outdated = 0;
        Ok(())
    }

    fn unwritable(&self, error: &io::Error) -> Failure {
        let path = self.path.as_deref().unwrap_or(Path::new("")).display();
        Failure::trouble(
            "cli/file",
            format!("{path}, which keeps what was imported, could not be written: {error}"),
        )
    }
}

fn write_line(key: &Key, known: &Known, lines: &mut Vec<u8>) -> io::Result<()> {
    serde_json::to_writer(&mut *lines, &Line { v: VERSION, of: key, is: known })?;
    lines.push(b'\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn source(name: &str) -> Source {
        let stamp = Stamp { size: 1, changed: 2 };
        Source { agent: "codex", path: PathBuf::from(name), key: None, stamp }
    }

    fn known(title: &str) -> Known {
        let told = LastTold { title: title.to_owned(), ..LastTold::default() };
        let mark = Mark(serde_json::from_str(r#"{"offset":7,"of":[1.50]}"#).unwrap());
        Known {
            stamp: Some(Stamp { size: 1, changed: 2 }),
            mark: Some(mark),
            sessions: BTreeMap::from([("s".into(), told)]),
            perhaps: BTreeMap::new(),
        }
    }

    #[test]
    fn the_last_line_of_a_source_counts_and_a_torn_one_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("imports/ledger.jsonl");
        let mut ledger = Ledger::open(&path);
        ledger.add(vec![(Key::of(&source("a")), known("1")), (Key::of(&source("b")), known("1"))]).unwrap();
        ledger.add(vec![(Key::of(&source("a")), known("2"))]).unwrap();
        let whole = fs::read(&path).unwrap();
        fs::write(&path, [&whole, &whole[..60]].concat()).unwrap();
        let mut ledger = Ledger::open(&path);
        assert_eq!(ledger.get(&source("a")), Some(&known("2")));
        assert_eq!(ledger.get(&source("c")), None);
        ledger.add(vec![(Key::of(&source("c")), known("3"))]).unwrap();
        assert_eq!(Ledger::open(&path).get(&source("c")), Some(&known("3")));
    }

    #[test]
    fn outdated_lines_are_left_out_once_they_are_many() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.jsonl");
        let mut ledger = Ledger::open(&path);
        for at in 0..3 * FEW {
            ledger.add(vec![(Key::of(&source("a")), known(&at.to_string()))]).unwrap();
        }
        assert!(fs::read_to_string(&path).unwrap().lines().count() < 2 * FEW);
        assert_eq!(Ledger::open(&path).get(&source("a")), Some(&known(&(3 * FEW - 1).to_string())));
    }
}
