//! What a server's log looks like. The command decides where it goes.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tracing::Subscriber;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, Registry, fmt};

/// How lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// For people on a terminal, JSON otherwise.
    #[default]
    Auto,
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// What is written, and how.
#[derive(Clone, Debug)]
pub struct Logs {
    /// How lines are written.
    pub format: Format,
    /// What is written: a level (`info`), or levels by part (`info,banyan::requests=debug` for a line a request).
    pub level: Targets,
    /// The level as it was given.
    pub level_text: String,
}

impl Logs {
    /// Reads a level such as `info` or `info,banyan::requests=debug`.
    pub fn at(level: &str) -> Result<Self, String> {
        // A word alone could also be a part of the program; then nothing else would be written.
        let words = level.split(',').filter(|part| !part.contains('='));
        let known = words.map(str::trim).all(|word| LevelFilter::from_str(word).is_ok());
        let targets = Targets::from_str(level).ok().filter(|_| known).ok_or_else(|| {
            format!(
                "`{level}` is no level: write error, warn, info, debug or trace, or `info,banyan::requests=debug`"
            )
        })?;
        Ok(Self { format: Format::default(), level: targets, level_text: level.to_owned() })
    }

    /// What turns events into lines. `terminal` is whether a person reads along.
    pub fn subscriber<W>(&self, terminal: bool, writer: W) -> Box<dyn Subscriber + Send + Sync>
    where
        W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
    {
        let json = match self.format {
            Format::Json => true,
            Format::Text => false,
            Format::Auto => !terminal,
        };
        let lines = if json {
            fmt::layer().json().flatten_event(true).with_writer(writer).boxed()
        } else {
            let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            fmt::layer().with_ansi(terminal && !plain).with_writer(writer).boxed()
        };
        Box::new(Registry::default().with(lines.with_filter(self.level.clone())))
    }
}

impl Default for Logs {
    fn default() -> Self {
        Self {
            format: Format::default(),
            level: Targets::new().with_default(tracing::Level::INFO),
            level_text: "info".to_owned(),
        }
    }
}
