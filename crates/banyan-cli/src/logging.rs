//! What a server says about itself while it runs, on standard error: lines for people, JSON for programs.

use std::io::{self, IsTerminal};

use clap::ValueEnum;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{fmt, registry};

use crate::failure::Failure;

/// How much is said.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Level {
    /// Nothing
    Off,
    /// What failed
    Error,
    /// And what may need a look
    Warn,
    /// And what the server does
    Info,
    /// And why
    Debug,
    /// And every step
    Trace,
}

impl From<Level> for LevelFilter {
    fn from(level: Level) -> Self {
        match level {
            Level::Off => Self::OFF,
            Level::Error => Self::ERROR,
            Level::Warn => Self::WARN,
            Level::Info => Self::INFO,
            Level::Debug => Self::DEBUG,
            Level::Trace => Self::TRACE,
        }
    }
}

/// Starts to say so much.
pub(crate) fn start(level: Level) -> Result<(), Failure> {
    let level = LevelFilter::from(level);
    // Of what others built into the server say, only what may need a look.
    let wanted = Targets::new()
        .with_default(level.min(LevelFilter::WARN))
        .with_target("banyan", level)
        .with_target("banyan_server", level);
    let terminal = io::stderr().is_terminal();
    let coloured = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let lines = fmt::layer().with_writer(io::stderr);
    let lines = match terminal {
        true => lines.with_target(false).with_ansi(coloured).boxed(),
        false => lines.json().flatten_event(true).boxed(),
    };
    let started = registry().with(lines.with_filter(wanted)).try_init();
    started.map_err(|error| Failure::storage(format!("logging cannot be started: {error}")))
}
