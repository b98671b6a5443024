//! Which seeds a test runs with, and what is said when one of them fails.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Seeds for a test of everyday length: `count` fixed ones, or the one in `BANYAN_SIM_SEED`.
pub fn everyday(count: u64) -> Vec<u64> {
    match chosen() {
        Some(seed) => vec![seed],
        None => (1..=count).collect(),
    }
}

/// How many parts the time of a soak has: four tests for each of two programs, two at a time on two cores.
const SHARES: u64 = 4;

/// Seeds nobody has tried, until this test's share of `BANYAN_SOAK_MINUTES` is over; or the one in `BANYAN_SIM_SEED`.
pub fn soak() -> impl Iterator<Item = u64> {
    let minutes = number("BANYAN_SOAK_MINUTES").unwrap_or(1);
    let end = Instant::now() + Duration::from_secs(60 * minutes / SHARES);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let chosen = chosen();
    let fresh = (0_u64..).map(move |n| now.wrapping_add(n) % 1_000_000_000_000);
    let one = chosen.into_iter();
    one.chain(fresh.take_while(move |_| chosen.is_none() && Instant::now() < end))
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
