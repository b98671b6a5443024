//! What can be typed after `banyan`.

use std::env;
use std::path::PathBuf;

use banyan::Durability;
use banyan::model::{EventType, Object};
use clap::{Args, Parser, ValueEnum};
use serde::de::{DeserializeOwned, IntoDeserializer, value};
use serde_json::Value;

use crate::commands::Command;
use crate::failure::Failure;

/// The session database for AI agents.
///
/// Sessions are conversations: messages in a tree, stored one file a session, durable when a call is answered.
/// Commands work on a data directory, which one process owns at a time, or ask the server that owns it.
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
  banyan serve                                       serve the data directory over HTTP
  banyan call session::create '{\"title\":\"Hello\"}'    start a session
  banyan ls                                          the sessions, newest change first
  banyan show s_0199                                 read one; the beginning of its id is enough
  banyan call --list                                 every function there is
  banyan ls --url http://127.0.0.1:7420              ask a server instead of opening the directory

Exit codes: 0 done, 1 refused (or damage found), 2 not understood, 3 trouble with storage or the server.";

/// What every command understands.
#[derive(Args, Clone)]
pub(crate) struct Globals {
    /// The data directory [default: $BANYAN_DATA, then the platform's place for data]
    #[arg(long, global = true, value_name = "DIR", help_heading = "For every command")]
    pub(crate) data: Option<PathBuf>,
    /// The server to ask, instead of opening a data directory [default: $BANYAN_URL]
    #[arg(long, global = true, value_name = "URL", help_heading = "For every command")]
    pub(crate) url: Option<String>,
    /// The key to show to the server
    #[arg(long, global = true, value_name = "KEY", env = "BANYAN_KEY", hide_env_values = true)]
    #[arg(help_heading = "For every command")]
    pub(crate) key: Option<String>,
    /// A file of certificates (PEM) to trust, for a server whose own is not signed by a public authority
    #[arg(long, global = true, value_name = "FILE", env = "BANYAN_CA", hide_env_values = true)]
    #[arg(help_heading = "For every command")]
    pub(crate) ca: Option<PathBuf>,
    /// Print data and errors as JSON, one object a line
    #[arg(long, global = true, help_heading = "For every command")]
    pub(crate) json: bool,
    /// When a change is answered: once it survives a power cut, or once the system has it [default: synced]
    #[arg(long, global = true, value_enum, help_heading = "For every command")]
    pub(crate) durability: Option<DurabilityArg>,
}

/// Who answers calls.
pub(crate) enum Target {
    /// A data directory, which this process opens.
    Directory,
    /// A server at this address.
    Server(String),
}

impl Globals {
    /// Who answers: what was typed comes before what the environment says.
    pub(crate) fn target(&self) -> Result<Target, Failure> {
        match (&self.url, &self.data) {
            (Some(_), Some(_)) => {
                Err(Failure::usage("--url asks a server and --data opens a directory; pass one of them"))
            }
            (Some(url), None) => Ok(Target::Server(url.clone())),
            (None, Some(_)) => Ok(Target::Directory),
            (None, None) => Ok(match env::var("BANYAN_URL") {
                Ok(url) if !url.is_empty() => Target::Server(url),
                _ => Target::Directory,
            }),
        }
    }

    /// How to begin the next command on the same data. A key is a secret, and left out.
    pub(crate) fn prompt(&self) -> String {
        let program = quoted(&env::args().next().unwrap_or_else(|| "banyan".to_owned()));
        match (&self.url, &self.data) {
            (Some(url), _) => format!("{program} --url {}", quoted(url)),
            (None, Some(dir)) => format!("{program} --data {}", quoted(&dir.display().to_string())),
            (None, None) => program,
        }
    }
}

/// A word as a shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/\\:._-+=@%~".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// When a change is answered.
#[derive(Clone, Copy, Default, ValueEnum)]
pub(crate) enum DurabilityArg {
    /// Once it survives a power cut
    #[default]
    Synced,
    /// Once it survives the end of the process, but maybe not a power cut
    Buffered,
}

impl DurabilityArg {
    /// The word for it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Synced => "synced",
            Self::Buffered => "buffered",
        }
    }
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
    let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or("write it as key=value")?;
    let read = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
    // Several such numbers would be read as the same one.
    if read.is_f64() && value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        return Err(format!("this is too long for a number; as text it is {key}='\"{value}\"'"));
    }
    Ok((key.to_owned(), read))
}

/// Labels as a filter takes them: nothing when there are none.
pub(crate) fn labels(given: &[(String, Value)]) -> Result<Option<Object>, Failure> {
    let mut labels = Object::new();
    for (key, value) in given {
        if labels.insert(key.clone(), value.clone()).is_some() {
            return Err(Failure::usage(format!("`{key}` is given twice, and has one value only")));
        }
    }
    Ok((!labels.is_empty()).then_some(labels))
}
