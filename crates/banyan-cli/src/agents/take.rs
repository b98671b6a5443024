//! Reading sources into the store, several at a time.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use banyan::model::SessionId;
use banyan_agents::{Agent, Note, Problem, Source, Stamp};

use super::intake::{Intake, Outcome};
use super::ledger::{Key, Known, Ledger};
use super::survey::Place;
use super::{Counts, originals};
use crate::client::Client;
use crate::failure::Failure;

/// More readers at once only wait for each other at the store.
const READERS: usize = 4;
/// The ledger is told after so many sources, or so much time, whichever comes first. Each time costs a flush.
const SOURCES: usize = 256;
const TIME: Duration = Duration::from_secs(1);

/// A source to read.
pub(crate) struct Job {
    pub(crate) agent: &'static dyn Agent,
    pub(crate) source: Source,
    /// How large it is.
    pub(crate) bytes: u64,
    pub(crate) known: Known,
}

/// How to read.
#[derive(Clone, Copy, Default)]
pub(crate) struct How {
    /// Nothing is changed.
    pub(crate) dry_run: bool,
    /// Whatever was told before counts for nothing.
    pub(crate) again: bool,
    /// Original bytes are kept.
    pub(crate) keep_original: bool,
}

/// What came of a source.
pub(crate) struct Report {
    pub(crate) source: Source,
    pub(crate) sessions: Vec<(SessionId, String, Counts)>,
    pub(crate) notes: Vec<Note>,
    pub(crate) more_notes: u64,
    /// Why it was not read to its end.
    pub(crate) problem: Option<String>,
}

impl Report {
    /// A place that could not be looked at.
    pub(crate) fn of_place(place: &Place, problem: String) -> Self {
        let (agent, path) = (place.agent.id(), place.path.clone());
        let source = Source { agent, path, key: None, stamp: Stamp::default() };
        Self { source, sessions: Vec::new(), notes: Vec::new(), more_notes: 0, problem: Some(problem) }
    }
}

/// A report, and what the ledger is told of it.
type Done = (Report, Option<Known>);

/// Reads sources and tells of each. What was read to its end is in the ledger when this returns.
pub(crate) fn take_all(
    client: &dyn Client,
    ledger: &Mutex<Ledger>,
    jobs: Vec<Job>,
    how: How,
    progress: &(dyn Fn(u64) + Sync),
    tell: &mut dyn FnMut(Report) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let readers = thread::available_parallelism().map_or(1, usize::from).min(READERS).min(jobs.len()).max(1);
    let jobs = Mutex::new(VecDeque::from(jobs));
    let stop = AtomicBool::new(false);
    let mut pages = Pages { client, ledger, dry_run: how.dry_run, waiting: Vec::new(), since: Instant::now() };
    let told = thread::scope(|scope| {
        let (sender, receiver) = sync_channel::<Result<Done, Failure>>(READERS * 2);
        for _ in 0..readers {
            let (sender, jobs, stop) = (sender.clone(), &jobs, &stop);
            scope.spawn(move || read_jobs(client, ledger, jobs, how, progress, stop, &sender));
        }
        drop(sender);
        let mut outcome = Ok(());
        for done in receiver {
            // What others have under way is waited for, but nothing new is begun after a failure.
            let taken = done.and_then(|(report, known)| {
                pages.add(&report.source, known)?;
                tell(report)
            });
            if let Err(failure) = taken
                && outcome.is_ok()
            {
                stop.store(true, Ordering::Relaxed);
                outcome = Err(failure);
            }
        }
        outcome
    });
    let written = pages.write();
    told.and(written)
}

fn read_jobs(
    client: &dyn Client,
    ledger: &Mutex<Ledger>,
    jobs: &Mutex<VecDeque<Job>>,
    how: How,
    progress: &(dyn Fn(u64) + Sync),
    stop: &AtomicBool,
    sender: &SyncSender<Result<Done, Failure>>,
) {
    while !stop.load(Ordering::Relaxed) {
        let Some(job) = lock(jobs).pop_front() else { return };
        if sender.send(read(client, ledger, job, how, progress)).is_err() {
            return;
        }
    }
}

fn read(
    client: &dyn Client,
    ledger: &Mutex<Ledger>,
    job: Job,
    how: How,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Done, Failure> {
    let Job { agent, source, bytes, known } = job;
    let (key, mark) = (Key::of(&source), known.mark.clone());
    let mut read = 0;
    let told = (known.sessions.clone(), known.perhaps.clone());
    let intends = |perhaps| lock(ledger).add(vec![(key.clone(), Known { perhaps, ..known.clone() })]);
    let agent_id = source.agent;
    let elsewhere = |session: &SessionId| {
        let ledger = (!how.again).then(|| lock(ledger))?;
        ledger.last_told(agent_id, session).cloned()
    };
    let mut intake = Intake::new(client, told, elsewhere, how.dry_run, intends, |bytes| {
        read += bytes;
        progress(bytes);
    });
    let told = agent.read(&source, mark.as_ref(), &mut intake);
    if let Some(failure) = intake.failure.take() {
        return Err(failure);
    }
    let Outcome { sessions, read: taken, mut notes, more_notes } = intake.finish()?;
    // What was read before, or is not read line by line, is done all the same.
    progress(bytes.saturating_sub(read));
    if how.keep_original && !how.dry_run {
        let ids: Vec<SessionId> = taken.iter().map(|(id, ..)| id.clone()).collect();
        originals::keep(client, &source, &ids, &mut notes)?;
    }
    let (known, problem) = match told {
        Ok(mark) => {
            let stamp = Some(source.stamp);
            (Some(Known { stamp, mark: Some(mark), sessions, perhaps: Default::default() }), None)
        }
        Err(Problem::Refused(error)) => (None, Some(error.message)),
        Err(problem) => (None, Some(problem.to_string())),
    };
    Ok((Report { source, sessions: taken, notes, more_notes, problem }, known))
}

/// What the ledger is to be told once it is safe in the store.
struct Pages<'a> {
    client: &'a dyn Client,
    ledger: &'a Mutex<Ledger>,
    dry_run: bool,
    waiting: Vec<(Key, Known)>,
    since: Instant,
}

impl Pages<'_> {
    fn add(&mut self, source: &Source, known: Option<Known>) -> Result<(), Failure> {
        if self.dry_run {
            return Ok(());
        }
        self.waiting.extend(known.map(|known| (Key::of(source), known)));
        match self.waiting.len() >= SOURCES || self.since.elapsed() > TIME {
            true => self.write(),
            false => Ok(()),
        }
    }

    fn write(&mut self) -> Result<(), Failure> {
        if !self.waiting.is_empty() {
            self.client.flush()?;
            lock(self.ledger).add(std::mem::take(&mut self.waiting))?;
        }
        self.since = Instant::now();
        Ok(())
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
