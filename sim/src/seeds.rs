//! Which seeds a test runs with, for how long, and what is said when one of them fails.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Seeds for a test of everyday length: `count` fixed ones, or the one in `BANYAN_SIM_SEED`.
pub fn everyday(count: u64) -> Vec<u64> {
    match chosen() {
        Some(seed) => vec![seed],
        None => (1..=count).collect(),
    }
}

/// What a soaking test gets of `BANYAN_SOAK_MINUTES`, in percent. Soaking tests run one after another, so these add up
/// to 100. Most goes to where the most different crashes are tried in a minute.
#[derive(Clone, Copy, Debug)]
pub enum Share {
    /// Simulated power cuts.
    Crashes = 50,
    /// Simulated kills with a power cut later.
    Kills = 14,
    /// Simulated flushes that fail.
    Flushes = 10,
    /// Simulated disks that fill up.
    FullDisks = 6,
    /// Each of the four tests on a real file system.
    Real = 5,
}

/// Seeds nobody has tried, until this test's share of the time is over; or the one in `BANYAN_SIM_SEED`.
pub fn soak(share: Share) -> impl Iterator<Item = u64> {
    let minutes = number("BANYAN_SOAK_MINUTES").unwrap_or(1);
    let end = Instant::now() + Duration::from_millis(600 * minutes * share as u64);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let chosen = chosen();
    let fresh = (0_u64..).map(move |n| now.wrapping_add(n) % 1_000_000_000_000);
    let one = chosen.into_iter();
    one.chain(fresh.take_while(move |_| chosen.is_none() && Instant::now() < end))
}

/// How often a soaking test says how far it is.
const EVERY: Duration = Duration::from_secs(60);

/// Works on the seeds of a soak on all cores, and says now and then and at the end what came of it.
pub fn soak_on_all_cores(share: Share, so_far: impl Fn(f64) -> String + Sync, work: impl Fn(u64) + Sync) {
    let started = Instant::now();
    let (next, done, failed) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let (first, said) = (soak(share).next().unwrap_or_default(), AtomicU64::new(0));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                let _alarm = Alarm(&failed);
                for _ in soak(share) {
                    if failed.load(Ordering::Relaxed) {
                        return;
                    }
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if chosen().is_some() && number > 0 {
                        return;
                    }
                    work(first.wrapping_add(number));
                    done.fetch_add(1, Ordering::Relaxed);
                    let passed = started.elapsed().as_secs() / EVERY.as_secs();
                    if said.fetch_max(passed, Ordering::Relaxed) < passed {
                        println!("{share:?}, so far: {}", so_far(started.elapsed().as_secs_f64()));
                    }
                }
            });
        }
    });
    let seconds = started.elapsed().as_secs_f64();
    let seeds = done.load(Ordering::Relaxed);
    println!("{share:?}: {}, {seeds} seeds in {seconds:.0} seconds", so_far(seconds));
}

/// Tells the others when a worker panics.
struct Alarm<'a>(&'a AtomicBool);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

fn chosen() -> Option<u64> {
    number("BANYAN_SIM_SEED")
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is `{text}`, which is not a number")))
}

/// Says where a test was if it panics.
pub struct Scene(pub String);

impl Drop for Scene {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("FAILED at {}", self.0);
        }
    }
}

/// Says aloud that a test could not be run here.
pub fn skipped(what: &str, why: &str) {
    use std::io::Write;
    // Past the test harness, which keeps what a passing test prints to itself.
    let _ = writeln!(std::io::stderr().lock(), "skipped: {what}: {why}");
}
