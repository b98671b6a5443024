//! What can be typed after `banyan`.

use std::path::PathBuf;

use banyan::Durability;
use banyan::model::{EventType, Object};
use clap::{Args, Parser, ValueEnum};
use serde::de::{DeserializeOwned, IntoDeserializer, value};
use serde_json::Value;

use crate::commands::Command;

/// The session database for AI agents.
///
/// Sessions are conversations: messages in a tree, stored one file a session, durable when a call is answered.
/// Commands work on a data directory, which one process owns at a time.
#[derive(Parser)]
#[command(name = "banyan", version, arg_required_else_help = true, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  banyan tour                                        a first session, step by step
  banyan call session::create '{\"title\":\"Hello\"}'    start a session
  banyan ls                                          the sessions, newest change first
  banyan show s_0199                                 read one; the beginning of its id is enough
  banyan call --list                                 every function there is

Exit codes: 0 done, 1 refused (or damage found), 2 not understood, 3 trouble with storage.";

/// What every command understands.
#[derive(Args)]
pub(crate) struct Globals {
    /// The data directory [default: $BANYAN_DATA, then the platform's place for data]
    #[arg(long, global = true, value_name = "DIR", help_heading = "For every command")]
    pub(crate) data: Option<PathBuf>,
    /// Print data and errors as JSON, one object a line
    #[arg(long, global = true, help_heading = "For every command")]
    pub(crate) json: bool,
    /// When a change is answered: once it survives a power cut, or once the system has it
    #[arg(long, global = true, value_enum, default_value = "synced", help_heading = "For every command")]
    pub(crate) durability: DurabilityArg,
}

impl Globals {
    /// How to begin the next command on the same data.
    pub(crate) fn prompt(&self) -> String {
        let program = std::env::args().next().unwrap_or_else(|| "banyan".to_owned());
        match &self.data {
            Some(dir) => format!("{} --data {}", quoted(&program), quoted(&dir.display().to_string())),
            None => quoted(&program),
        }
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/\\:._-+=@%~".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// When a change is answered.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum DurabilityArg {
    /// Once it survives a power cut
    Synced,
    /// Once it survives the end of the process, but maybe not a power cut
    Buffered,
}

impl From<DurabilityArg> for Durability {
    fn from(arg: DurabilityArg) -> Self {
        match arg {
            DurabilityArg::Synced => Self::Synced,
            DurabilityArg::Buffered => Self::Buffered,
        }
    }
}

/// Reads a word of the API, such as a status, an order or a role.
pub(crate) fn named<T: DeserializeOwned>(word: &str) -> Result<T, String> {
    let word: value::StrDeserializer<'_, value::Error> = word.into_deserializer();
    T::deserialize(word).map_err(|error| error.to_string())
}

/// Reads a type of event, with or without `session::` before it.
pub(crate) fn event_type(word: &str) -> Result<EventType, String> {
    let full = if word.contains("::") { word.to_owned() } else { format!("session::{word}") };
    full.parse().map_err(|error: banyan::model::Error| error.message)
}

/// Reads `key=value`. The value is JSON if it can be read as such, and text otherwise.
pub(crate) fn label(text: &str) -> Result<(String, Value), String> {
    let (key, value) = text.split_once('=').ok_or("write it as key=value")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
    Ok((key.to_owned(), value))
}

/// Labels as a filter takes them: nothing when there are none.
pub(crate) fn labels(given: &[(String, Value)]) -> Option<Object> {
    (!given.is_empty()).then(|| given.iter().cloned().collect())
}
