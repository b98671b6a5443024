//! What agents have left on this machine, and how much of it is news.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use banyan_agents::{AGENTS, Agent, Env, Source};

use super::ledger::{Known, Ledger};

/// So many bytes are enough to know a file by.
const BEGINNING: u64 = 4096;
/// Folders that nobody knows are looked into so deep.
const DEEPEST: usize = 6;

/// A place that belongs to an agent.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) agent: &'static dyn Agent,
    pub(crate) path: PathBuf,
}

/// What is in a place.
pub(crate) struct Found {
    pub(crate) place: Place,
    pub(crate) sources: Vec<(Source, News)>,
    /// Why it could not be looked at.
    pub(crate) problem: Option<String>,
}

/// Whether a source has to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// It never was.
    New,
    /// It has changed since.
    Changed,
    /// Nothing is new.
    None,
}

/// The places of some agents that are there.
pub(crate) fn homes(agents: &[&'static dyn Agent], env: &Env) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for agent in agents {
        for path in agent.homes(env) {
            if path.exists() && !places.iter().any(|place| place.agent.id() == agent.id() && place.path == path) {
                places.push(Place { agent: *agent, path });
            }
        }
    }
    places
}

/// The agents' own among what somebody named: a file, a folder, or what is below a folder that nobody knows.
pub(crate) fn recognise(path: &Path) -> Vec<Place> {
    let mut places = Vec::new();
    gather(path, DEEPEST, &mut places);
    places
}

/// Whether a folder that looks like an agent's is: its first file is not another agent's. Homes of agents look alike.
fn is_really(place: &Place) -> bool {
    let sources = place.agent.sources(&place.path).unwrap_or_default();
    let Some(first) = sources.iter().find(|source| source.path.is_file()) else { return true };
    let path = &first.path;
    belongs(path, place.agent) || !AGENTS.iter().any(|agent| belongs(path, *agent))
}

/// Whether a path is one of an agent's own.
pub(crate) fn belongs(path: &Path, agent: &dyn Agent) -> bool {
    agent.recognise(path, &beginning_of(path))
}

fn gather(path: &Path, depth: usize, places: &mut Vec<Place>) {
    let beginning = beginning_of(path);
    if banyan::session_log::recognise(&beginning) || banyan::batch::recognise(&beginning) {
        return;
    }
    let agents = AGENTS.iter().filter(|agent| agent.recognise(path, &beginning));
    // A file has one writer; a folder may be home to several.
    let known = agents.take(if path.is_dir() { usize::MAX } else { 1 });
    let before = places.len();
    let known = known.map(|agent| Place { agent: *agent, path: path.to_owned() });
    places.extend(known.filter(|place| path.is_file() || is_really(place)));
    if places.len() > before || depth == 0 || !path.is_dir() {
        return;
    }
    let mut below: Vec<PathBuf> =
        fs::read_dir(path).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect();
    below.sort();
    below.iter().filter(|path| !path.is_symlink()).for_each(|path| gather(path, depth - 1, places));
}

fn beginning_of(path: &Path) -> Vec<u8> {
    let mut beginning = Vec::new();
    if path.is_file()
        && let Ok(file) = fs::File::open(path)
    {
        let _ = file.take(BEGINNING).read_to_end(&mut beginning);
    }
    beginning
}

/// Looks at places. Only sources that changed at or after `since`, in milliseconds since 1970, count.
pub(crate) fn survey(places: &[Place], ledger: &Ledger, since: Option<i64>) -> Vec<Found> {
    places.iter().map(|place| look(place, ledger, since)).collect()
}

/// Looks at one place.
pub(crate) fn look(place: &Place, ledger: &Ledger, since: Option<i64>) -> Found {
    match place.agent.sources(&place.path) {
        Ok(sources) => {
            let recent = |source: &Source| since.is_none_or(|since| changed_ms(source.stamp.changed) >= since);
            let sources = sources.into_iter().filter(recent);
            let sources = sources.map(|source| {
                let news = news(&source, ledger.get(&source));
                (source, news)
            });
            Found { place: place.clone(), sources: sources.collect(), problem: None }
        }
        Err(problem) => Found { place: place.clone(), sources: Vec::new(), problem: Some(problem.to_string()) },
    }
}

/// The files of a source: its own, those in its folder, and those that its key names. None if it is a part of a database.
pub(crate) fn files_of(source: &Source) -> Option<Vec<PathBuf>> {
    let mut files = vec![source.path.clone()];
    if source.path.is_dir() {
        let below = fs::read_dir(&source.path).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
        files = below.filter(|path| path.is_file() && !path.is_symlink()).collect();
        files.sort();
    }
    for more in source.key.iter().flat_map(|key| key.lines()).map(PathBuf::from) {
        if !more.is_absolute() || !more.is_file() {
            return if source.path.is_dir() { Some(files) } else { None };
        }
        files.push(more);
    }
    Some(files)
}

/// How many bytes a source has; none if it is a part of a database.
pub(crate) fn bytes_of(source: &Source) -> Option<u64> {
    let bytes = |file: &PathBuf| file.metadata().map_or(0, |metadata| metadata.len());
    files_of(source).map(|files| files.iter().map(bytes).sum())
}

fn news(source: &Source, known: Option<&Known>) -> News {
    match known.and_then(|known| known.stamp) {
        None => News::New,
        Some(stamp) if stamp == source.stamp => News::None,
        Some(_) => News::Changed,
    }
}

/// A time of change in milliseconds. Stamps are in the unit of their place, which their size tells for the next thousand years.
fn changed_ms(changed: i64) -> i64 {
    match changed {
        ..100_000_000_000 => changed.saturating_mul(1000),
        100_000_000_000..100_000_000_000_000 => changed,
        100_000_000_000_000..100_000_000_000_000_000 => changed / 1000,
        _ => changed / 1_000_000,
    }
}

#[cfg(test)]
mod tests {
    use super::changed_ms;

    #[test]
    fn times_of_any_unit_are_told_apart() {
        let times = [1_790_000_000, 1_790_000_000_000, 1_790_000_000_000_000, 1_790_000_000_000_000_000];
        assert_eq!(times.map(changed_ms), [1_790_000_000_000; 4]);
    }
}
