//! Taking turns: every contestant runs once a round, so that a busy moment meets all of them.

use std::time::{Duration, Instant};

use crate::workbench::Outcome;

/// One that takes its turn and says how it went.
pub(crate) type Turn<'a> = Box<dyn FnMut() -> Outcome<f64> + 'a>;

/// What the rounds of one contestant gave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) median: f64,
    pub(crate) lowest: f64,
    pub(crate) highest: f64,
}

/// Runs all contestants in turn, so many rounds.
pub(crate) fn interleaved(rounds: usize, mut turns: Vec<Turn<'_>>) -> Outcome<Vec<Measured>> {
    let mut figures = vec![Vec::with_capacity(rounds); turns.len()];
    for _ in 0..rounds {
        for (turn, figures) in turns.iter_mut().zip(&mut figures) {
            figures.push(turn()?);
        }
    }
    figures.into_iter().map(measured).collect()
}

/// The median of some figures, and how far they lie apart.
pub(crate) fn measured(mut figures: Vec<f64>) -> Outcome<Measured> {
    figures.sort_by(f64::total_cmp);
    let (Some(lowest), Some(highest)) = (figures.first(), figures.last()) else {
        return Err("nothing was measured".into());
    };
    let middle = figures.len() / 2;
    let median =
        if figures.len() % 2 == 1 { figures[middle] } else { (figures[middle - 1] + figures[middle]) / 2.0 };
    Ok(Measured { median, lowest: *lowest, highest: *highest })
}

/// How long each of many calls took.
#[derive(Default)]
pub(crate) struct Latencies(Vec<Duration>);

impl Latencies {
    /// Calls something so often, and times each call.
    pub(crate) fn of(calls: usize, mut call: impl FnMut() -> Outcome<()>) -> Outcome<Self> {
        let mut took = Self(Vec::with_capacity(calls));
        for _ in 0..calls {
            took.time(&mut call)?;
        }
        Ok(took)
    }

    /// Times one call.
    pub(crate) fn time<T>(&mut self, call: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        let begun = Instant::now();
        let outcome = call()?;
        self.0.push(begun.elapsed());
        Ok(outcome)
    }

    pub(crate) fn push(&mut self, took: Duration) {
        self.0.push(took);
    }

    pub(crate) fn append(&mut self, mut others: Self) {
        self.0.append(&mut others.0);
    }

    /// The time that a call took on average, in microseconds.
    pub(crate) fn mean(&self) -> f64 {
        self.0.iter().sum::<Duration>().as_secs_f64() * 1e6 / self.0.len().max(1) as f64
    }

    /// The time that this share of the calls did not exceed, in microseconds.
    pub(crate) fn percentile(&mut self, share: f64) -> f64 {
        self.0.sort_unstable();
        let at = ((self.0.len() as f64 * share).ceil() as usize).clamp(1, self.0.len().max(1)) - 1;
        self.0.get(at).map_or(0.0, |took| took.as_secs_f64() * 1e6)
    }
}
