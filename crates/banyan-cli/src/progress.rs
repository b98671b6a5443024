//! Work that takes a while, on standard error: a bar when a person looks and it takes over a second, and warnings.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use banyan::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::failure::complain;

/// How long work may take before it is worth a bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// A bar on standard error, if there is a terminal.
#[derive(Default)]
pub(crate) struct Bar {
    work: Mutex<Option<Work>>,
}

struct Work {
    bar: ProgressBar,
    began: Instant,
}

impl Bar {
    fn with(&self, act: impl FnOnce(&mut Option<Work>)) {
        act(&mut self.work.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Progress for Bar {
    fn begin(&self, what: &str, steps: u64) {
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}") {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        self.with(|work| *work = Some(Work { bar, began: Instant::now() }));
    }

    fn step(&self, done: u64) {
        self.with(|work| {
            let Some(work) = work else { return };
            work.bar.set_position(done);
            if work.bar.is_hidden() && work.began.elapsed() > PATIENCE {
                // Where standard error is no terminal, this target stays silent.
                work.bar.set_draw_target(ProgressDrawTarget::stderr());
            }
        });
    }

    fn end(&self) {
        self.with(|work| {
            if let Some(work) = work.take() {
                work.bar.finish_and_clear();
            }
        });
    }

    fn warn(&self, warning: &str) {
        self.with(|work| match work {
            Some(work) => work.bar.suspend(|| complain(&format!("warning: {warning}"))),
            None => complain(&format!("warning: {warning}")),
        });
    }
}

/// A bar for bytes that are read, with how fast and how much longer.
pub(crate) struct Meter {
    bar: ProgressBar,
    began: Instant,
    shown: AtomicBool,
}

impl Meter {
    /// A bar for so many bytes.
    pub(crate) fn new(bytes: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::hidden());
        if let Ok(style) =
            ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left")
        {
            bar.set_style(style);
        }
        Self { bar, began: Instant::now(), shown: AtomicBool::new(false) }
    }

    /// So many more were read.
    pub(crate) fn add(&self, bytes: u64) {
        self.bar.inc(bytes);
        if !self.shown.load(Ordering::Relaxed)
            && self.began.elapsed() > PATIENCE
            && !self.shown.swap(true, Ordering::Relaxed)
        {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// All were.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// The same for a server, whose warnings are part of its log.
#[derive(Default)]
pub(crate) struct Logged(Bar);

impl Progress for Logged {
    fn begin(&self, what: &str, steps: u64) {
        self.0.begin(what, steps);
    }

    fn step(&self, done: u64) {
        self.0.step(done);
    }

    fn end(&self) {
        self.0.end();
    }

    fn warn(&self, warning: &str) {
        tracing::warn!(target: "banyan", "{warning}");
    }
}
