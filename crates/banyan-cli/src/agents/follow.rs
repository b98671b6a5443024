//! Keeping up with agents that are running.
//!
//! The system says which files change, so that an idle machine costs nothing and a write is seen at once. Everything is looked at
//! now and then all the same: some file systems say nothing, a queue can run over, and homes appear.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use banyan_agents::Stamp;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use super::ledger::{Key, Ledger};
use super::survey::{Found, News, Place, belongs, look, survey};
use super::take::{How, Job, Report, lock, take_all};
use crate::client::Client;
use crate::failure::{Failure, complain};
use crate::signals::on_stop;

/// How often everything is looked at, at most: when the system says what changes, and when it does not.
const WATCHED: Duration = Duration::from_secs(10);
const UNWATCHED: Duration = Duration::from_millis(250);
/// Looking at everything takes at most one part in so many of the time.
const SHARE: u32 = 10;
/// Writes that come together are read together.
const TOGETHER: Duration = Duration::from_millis(20);
/// So many changes wait to be looked at. Beyond that everything is looked at.
const QUEUE: usize = 4096;

/// What is heard.
enum Heard {
    Changed(PathBuf),
    Stop,
}

/// What was wrong, so that it is told once.
#[derive(Default)]
struct Failed {
    /// Sources that could not be read, as they were then.
    sources: HashMap<Key, Stamp>,
    /// Places that could not be looked at, and why.
    places: HashMap<(&'static str, PathBuf), String>,
}

impl Failed {
    /// What is wrong with a place, if that is news.
    fn news(&mut self, found: &Found) -> Option<String> {
        let (agent, path) = (found.place.agent.id(), &found.place.path);
        let Some(problem) = &found.problem else {
            // A part of a place that is well again makes it worth telling once more.
            let is_part = |known: &Path| known.starts_with(path) || path.starts_with(known);
            self.places.retain(|(of, known), _| *of != agent || !is_part(known));
            return None;
        };
        let is_told = self.places.iter().any(|((of, _), told)| *of == agent && told == problem);
        self.places.insert((agent, path.clone()), problem.clone());
        (!is_told).then(|| problem.clone())
    }
}

/// Follows places until the process is asked to stop.
pub(crate) struct Follow<'a> {
    pub(crate) client: &'a dyn Client,
    pub(crate) ledger: &'a Mutex<Ledger>,
    /// Which places there are by now.
    pub(crate) places: &'a dyn Fn() -> Vec<Place>,
    pub(crate) since: Option<i64>,
    pub(crate) how: How,
}

impl Follow<'_> {
    /// Takes what changes, and tells of it. What was wrong with the places that were found before is not told again.
    pub(crate) fn run(
        &self,
        before: &[Found],
        tell: &mut dyn FnMut(Report) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (sender, heard) = sync_channel(QUEUE);
        let stop = sender.clone();
        on_stop(move || {
            // A full queue is looked through within moments; until then there is no room for this.
            let _ = stop.send(Heard::Stop);
        })?;
        let behind = Arc::new(AtomicBool::new(false));
        let mut watch = Watch::new(sender, Arc::clone(&behind));
        let mut failed = Failed::default();
        before.iter().for_each(|found| drop(failed.news(found)));
        loop {
            let began = Instant::now();
            let places = (self.places)();
            let mut found = survey(&places, &lock(self.ledger), self.since);
            if watch.add(&found) {
                // Whatever was written before somebody watched.
                found = survey(&places, &lock(self.ledger), self.since);
            }
            self.take(&found, &mut failed, tell)?;
            let pause = if watch.has_all { WATCHED } else { UNWATCHED };
            let until = Instant::now() + pause.max(began.elapsed() * SHARE);
            if !self.listen(&heard, &behind, &places, until, &mut failed, tell)? {
                return Ok(());
            }
        }
    }

    /// Takes what is heard of until it is time to look at everything. Says no when asked to stop.
    fn listen(
        &self,
        heard: &Receiver<Heard>,
        behind: &AtomicBool,
        places: &[Place],
        until: Instant,
        failed: &mut Failed,
        tell: &mut dyn FnMut(Report) -> Result<(), Failure>,
    ) -> Result<bool, Failure> {
        loop {
            let mut changed = BTreeSet::new();
            let mut next = heard.recv_timeout(until.saturating_duration_since(Instant::now()));
            let together = Instant::now() + TOGETHER;
            loop {
                match next {
                    Ok(Heard::Changed(path)) => changed.insert(path),
                    Ok(Heard::Stop) | Err(RecvTimeoutError::Disconnected) => return Ok(false),
                    Err(RecvTimeoutError::Timeout) if changed.is_empty() => return Ok(true),
                    Err(RecvTimeoutError::Timeout) => break,
                };
                next = heard.recv_timeout(together.saturating_duration_since(Instant::now()));
            }
            if behind.swap(false, Ordering::Relaxed) {
                return Ok(true);
            }
            let mut found: Vec<Found> = Vec::new();
            for path in &changed {
                for place in self.narrowed(places, path) {
                    if !found.iter().any(|found| same(&found.place, &place)) {
                        found.push(look(&place, &lock(self.ledger), self.since));
                    }
                }
            }
            self.take(&found, failed, tell)?;
        }
    }

    /// The smallest places to look at when a path has changed: its own source if it has one, else the whole home.
    fn narrowed(&self, places: &[Place], path: &Path) -> Vec<Place> {
        let mut narrowed = Vec::new();
        for place in places.iter().filter(|place| path.starts_with(&place.path)) {
            let own = own_places(path, &place.path).into_iter().find(|own| belongs(own, place.agent));
            narrowed.push(own.map_or_else(|| place.clone(), |path| Place { agent: place.agent, path }));
        }
        narrowed
    }

    fn take(
        &self,
        found: &[Found],
        failed: &mut Failed,
        tell: &mut dyn FnMut(Report) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut jobs = Vec::new();
        for found in found {
            if let Some(problem) = failed.news(found) {
                tell(Report::of_place(&found.place, problem))?;
            }
            for (source, _) in found.sources.iter().filter(|(_, news)| *news != News::None) {
                // What could not be read is tried again when it has changed.
                if failed.sources.get(&Key::of(source)) != Some(&source.stamp) {
                    let known = lock(self.ledger).get(source).cloned().unwrap_or_default();
                    jobs.push(Job { agent: found.place.agent, source: source.clone(), bytes: 0, known });
                }
            }
        }
        if jobs.is_empty() {
            return Ok(());
        }
        take_all(self.client, self.ledger, jobs, self.how, &|_| {}, &mut |report| {
            if report.problem.is_some() {
                failed.sources.insert(Key::of(&report.source), report.source.stamp);
            }
            tell(report)
        })
    }
}

fn same(a: &Place, b: &Place) -> bool {
    a.agent.id() == b.agent.id() && a.path == b.path
}

/// What a changed path may be a part of, nearest first: itself, the database that it is the journal of, the folders up to the home.
fn own_places(path: &Path, home: &Path) -> Vec<PathBuf> {
    let mut places = vec![path.to_owned()];
    let name = path.to_string_lossy();
    if let Some(database) = ["-wal", "-shm", "-journal"].iter().find_map(|end| name.strip_suffix(end)) {
        places.push(PathBuf::from(database));
    }
    places.extend(path.ancestors().skip(1).take_while(|above| *above != home).map(Path::to_owned));
    places
}

/// What the system is asked to watch.
struct Watch {
    watcher: Option<RecommendedWatcher>,
    watched: BTreeMap<PathBuf, RecursiveMode>,
    /// Whether every place that has sources is watched.
    has_all: bool,
}

impl Watch {
    /// Sends what changes; whoever is `behind` missed something, and looks at everything.
    fn new(sender: SyncSender<Heard>, behind: Arc<AtomicBool>) -> Self {
        let hear = move |event: notify::Result<Event>| {
            let (paths, lost) = match event {
                Ok(event) if event.need_rescan() => (event.paths, true),
                // That somebody reads a file is no news, and we do.
                Ok(event) if matches!(event.kind, EventKind::Access(_)) => return,
                Ok(event) => (event.paths, false),
                Err(_) => (Vec::new(), true),
            };
            if lost {
                behind.store(true, Ordering::Relaxed);
            }
            for path in paths {
                if let Err(TrySendError::Full(_)) = sender.try_send(Heard::Changed(path)) {
                    behind.store(true, Ordering::Relaxed);
                }
            }
        };
        let watcher = notify::recommended_watcher(hear);
        if let Err(error) = &watcher {
            complain(&format!(
                "The system does not say what changes ({error}); files are looked at now and then."
            ));
        }
        Self { watcher: watcher.ok(), watched: BTreeMap::new(), has_all: false }
    }

    /// Watches places that are not watched yet, and says whether there were any. A place is watched as deep as its sources lie: some
    /// agents keep theirs in folders that are full of other things.
    fn add(&mut self, found: &[Found]) -> bool {
        let Some(watcher) = &mut self.watcher else { return false };
        let mut is_new = false;
        // What could not be looked at is not watched either, and may be well again in a moment.
        self.has_all = found.iter().all(|found| found.problem.is_none());
        for Found { place, sources, .. } in found.iter().filter(|found| !found.sources.is_empty()) {
            let is_flat = sources
                .iter()
                .all(|(source, _)| source.path == place.path || source.path.parent() == Some(&place.path));
            let mode = if is_flat { RecursiveMode::NonRecursive } else { RecursiveMode::Recursive };
            let known = self.watched.get(&place.path);
            if known == Some(&mode) || known == Some(&RecursiveMode::Recursive) {
                continue;
            }
            match watcher.watch(&place.path, mode) {
                Ok(()) => is_new |= self.watched.insert(place.path.clone(), mode).is_none(),
                Err(_) => self.has_all = false,
            }
        }
        is_new
    }
}
