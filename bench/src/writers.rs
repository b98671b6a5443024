//! Many writers at once, as threads or as tasks, and how much they get done in a while.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::rounds::Latencies;
use crate::workbench::Outcome;

pub(crate) const WRITERS: usize = 64;

/// Clients of a process that is measured take as little of the machine from it as they can.
pub(crate) const CLIENT_THREADS: usize = 1;

/// How long writers write: a while that does not count, then one that does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct While {
    pub(crate) before: Duration,
    pub(crate) counted: Duration,
}

/// What all writers got done together.
pub(crate) struct Done {
    pub(crate) per_second: f64,
    pub(crate) latencies: Latencies,
}

#[derive(Default)]
struct Tally {
    done: AtomicU64,
    stop: AtomicBool,
}

impl Tally {
    fn going_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    fn one_more(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Watches for a while, then ends the writing.
    fn watch(&self, time: While) -> f64 {
        thread::sleep(time.before);
        let (first, begun) = (self.done.load(Ordering::Relaxed), Instant::now());
        thread::sleep(time.counted);
        let (last, took) = (self.done.load(Ordering::Relaxed), begun.elapsed());
        self.stop.store(true, Ordering::Relaxed);
        (last - first) as f64 / took.as_secs_f64()
    }
}

/// A thread for each writer. `writer` makes what one of them calls again and again.
pub(crate) fn as_threads<W>(time: While, mut writer: impl FnMut(usize) -> Outcome<W>) -> Outcome<Done>
where
    W: FnMut() -> Outcome<()> + Send,
{
    let tally = Tally::default();
    let writers = (0..WRITERS).map(&mut writer).collect::<Outcome<Vec<W>>>()?;
    thread::scope(|scope| {
        let spawned: Vec<_> = writers
            .into_iter()
            .map(|mut write| {
                let tally = &tally;
                scope.spawn(move || {
                    let mut latencies = Latencies::default();
                    while tally.going_on() {
                        latencies.time(&mut write)?;
                        tally.one_more();
                    }
                    Outcome::Ok(latencies)
                })
            })
            .collect();
        let per_second = tally.watch(time);
        let mut latencies = Latencies::default();
        for thread in spawned {
            latencies.append(thread.join().map_err(|_| "a writer panicked")??);
        }
        Ok(Done { per_second, latencies })
    })
}

/// A task for each writer, on so many threads.
pub(crate) fn as_tasks<W, F>(
    time: While,
    threads: usize,
    mut writer: impl FnMut(usize) -> Outcome<W>,
) -> Outcome<Done>
where
    W: FnMut() -> F + Send + 'static,
    F: Future<Output = Outcome<()>> + Send,
{
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    let tally = Arc::new(Tally::default());
    let writers = (0..WRITERS).map(&mut writer).collect::<Outcome<Vec<W>>>()?;
    let spawned: Vec<_> = writers
        .into_iter()
        .map(|mut write| {
            let tally = Arc::clone(&tally);
            runtime.spawn(async move {
                let mut latencies = Latencies::default();
                while tally.going_on() {
                    let begun = Instant::now();
                    write().await?;
                    latencies.push(begun.elapsed());
                    tally.one_more();
                }
                Outcome::Ok(latencies)
            })
        })
        .collect();
    let per_second = tally.watch(time);
    let mut latencies = Latencies::default();
    for task in spawned {
        latencies.append(runtime.block_on(task)??);
    }
    Ok(Done { per_second, latencies })
}
