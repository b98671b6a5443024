//! Where a server's settings come from: a file, then the environment, then flags. What comes later wins, and of every value it
//! is known where it came from.
//!
//! ```no_run
//! use banyan_server::config::{Config, Sources};
//!
//! let sources = Sources::from_environment().flag("listen", "--listen", Some("127.0.0.1:8000"));
//! let config = Config::load(&sources)?;
//! for origin in &config.origins {
//!     println!("{} = {} ({})", origin.key, origin.value, origin.source);
//! }
//! # Ok::<(), banyan_server::config::ConfigError>(())
//! ```

mod keys;
mod units;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use banyan::{Durability, Options};
use thiserror::Error;

use self::keys::{Draft, Given, KEYS};
use crate::logs::Logs;
use crate::settings::Settings;

/// Everything that a server is told before it starts.
#[derive(Clone, Debug)]
pub struct Config {
    /// How it behaves.
    pub settings: Settings,
    /// The data directory, when one was named.
    pub data: Option<PathBuf>,
    /// When a change is answered.
    pub durability: Durability,
    /// How much the store keeps and takes on.
    pub store: StoreSettings,
    /// The disk is short when fewer bytes are free; `None` is a twentieth of it, and 1 GiB at most.
    pub low_mark: Option<u64>,
    /// What is logged, and how.
    pub logs: Logs,
    /// The buses that it is on.
    pub bus: Bus,
    /// The file that was read, if there was one.
    pub file: Option<PathBuf>,
    /// Every key, with its value and where that came from.
    pub origins: Vec<Origin>,
    /// Variables that look as if they were meant for Banyan, and mean nothing to it.
    pub unknown_variables: Vec<String>,
}

/// Who reaches a directory with keys through an engine, which checks none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BusAccess {
    /// No one: the engine is not joined.
    #[default]
    Closed,
    /// Everyone on the engine's bus.
    Open,
}

/// The buses that a server is on, besides HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bus {
    /// The iii engine that it joins.
    pub engine: Option<String>,
    /// Whether the engine's bus may reach a directory with keys, which the engine does not check.
    pub open: BusAccess,
    /// Where it is a bus itself.
    pub listen: Option<SocketAddr>,
}

/// How much a store keeps and takes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// The most bytes of a session's metadata, as JSON.
    pub metadata_bytes: usize,
    /// Maximum number of bytes kept in memory for sessions that are not in use.
    pub session_cache_bytes: usize,
    /// How many bytes of events may wait for all subscribers together.
    pub waiting_event_bytes: usize,
}

impl Default for StoreSettings {
    fn default() -> Self {
        let options = Options::default();
        Self {
            metadata_bytes: options.limits.max_metadata_bytes,
            session_cache_bytes: options.cached_session_bytes,
            waiting_event_bytes: options.waiting_event_bytes,
        }
    }
}

impl StoreSettings {
    /// The same in a store's options.
    #[must_use]
    pub fn options(self) -> Options {
        let mut options = Options {
            cached_session_bytes: self.session_cache_bytes,
            waiting_event_bytes: self.waiting_event_bytes,
            ..Options::default()
        };
        options.limits.max_metadata_bytes = self.metadata_bytes;
        options
    }
}

/// A value, and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// For example `limits.body_bytes`.
    pub key: &'static str,
    /// The value as it can be written in the file; empty when there is none.
    pub value: String,
    /// Where it came from.
    pub source: Source,
    /// What the key is for.
    pub help: &'static str,
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nobody said anything.
    Default,
    /// The file.
    File(PathBuf),
    /// A variable of the environment.
    Environment(String),
    /// A flag of the command.
    Flag(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Environment(name) => write!(f, "${name}"),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}

/// Why a configuration cannot be used.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{path}: {error}")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{path} is not TOML: {error}")]
    Malformed {
        /// The file.
        path: String,
        /// What is wrong, and where.
        error: Box<toml::de::Error>,
    },
    /// There is no such key.
    #[error("{source_text}: there is no key `{key}`; `banyan config` lists those that there are")]
    Unknown {
        /// The key.
        key: String,
        /// Where it was found.
        source_text: String,
    },
    /// A value makes no sense.
    #[error("{source_text}: `{key}` {reason}")]
    Invalid {
        /// The key.
        key: String,
        /// Where it was found.
        source_text: String,
        /// What is wrong.
        reason: String,
    },
}

/// What a configuration is made from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    file: Option<PathBuf>,
    environment: Vec<(String, String)>,
    flags: Vec<(String, String, String)>,
}

impl Sources {
    /// The variables of this process, and nothing else yet.
    pub fn from_environment() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
        };
        Self::from_variables(std::env::vars_os().filter_map(text))
    }

    /// These variables, and nothing else yet.
    pub fn from_variables(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { environment: variables.into_iter().collect(), ..Self::default() }
    }

    /// The file that was asked for, as by `--config`. Without it `BANYAN_CONFIG` names it, or it is the platform's, if
    /// that is there.
    #[must_use]
    pub fn file(mut self, file: Option<PathBuf>) -> Self {
        self.file = file;
        self
    }

    /// A flag that sets a key, when it was given.
    #[must_use]
    pub fn flag(mut self, key: &str, flag: &str, value: Option<impl ToString>) -> Self {
        if let Some(value) = value {
            self.flags.push((key.to_owned(), flag.to_owned(), value.to_string()));
        }
        self
    }

    fn variable(&self, name: &str) -> Option<&str> {
        let found = self.environment.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }
}

impl Config {
    /// Puts a configuration together.
    pub fn load(sources: &Sources) -> Result<Self, ConfigError> {
        let mut loading = Loading { draft: Draft::default(), from: vec![Source::Default; KEYS.len()] };
        let file = loading.file(sources)?;
        let unknown_variables = loading.environment(sources)?;
        for (key, flag, value) in &sources.flags {
            loading.set(key, &Given::said(value), Source::Flag(flag.clone()))?;
        }
        let Loading { draft, from } = loading;
        let origins = KEYS
            .iter()
            .zip(from)
            .map(|(key, source)| Origin { key: key.name, value: (key.get)(&draft), source, help: key.help })
            .collect::<Vec<_>>();
        let Draft { settings, data, durability, low_mark, store, logs, bus, .. } =
            draft.finish().map_err(|(key, reason)| {
                let source =
                    origins.iter().find(|origin| origin.key == key).map(|origin| origin.source.to_string());
                ConfigError::Invalid { key: key.to_owned(), source_text: source.unwrap_or_default(), reason }
            })?;
        Ok(Self { settings, data, durability, low_mark, store, logs, bus, file, origins, unknown_variables })
    }
}

struct Loading {
    draft: Draft,
    from: Vec<Source>,
}

impl Loading {
    fn set(&mut self, name: &str, given: &Given<'_>, source: Source) -> Result<(), ConfigError> {
        let Some(at) = KEYS.iter().position(|key| key.name == name) else {
            return Err(ConfigError::Unknown { key: name.to_owned(), source_text: source.to_string() });
        };
        (KEYS[at].set)(&mut self.draft, given).map_err(|reason| ConfigError::Invalid {
            key: name.to_owned(),
            source_text: source.to_string(),
            reason,
        })?;
        self.from[at] = source;
        Ok(())
    }

    /// Reads the file, if there is one, and says which it was.
    fn file(&mut self, sources: &Sources) -> Result<Option<PathBuf>, ConfigError> {
        let named = sources.file.clone().or_else(|| sources.variable("BANYAN_CONFIG").map(PathBuf::from));
        let Some(path) = named.clone().or_else(|| usual_file(sources)) else { return Ok(None) };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            // One that nobody named need not be there.
            Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(ConfigError::Unreadable { path: path.display().to_string(), error }),
        };
        let table: toml::Table = text.parse().map_err(|error| ConfigError::Malformed {
            path: path.display().to_string(),
            error: Box::new(error),
        })?;
        self.table("", &table, &path)?;
        Ok(Some(path))
    }

    fn table(&mut self, prefix: &str, table: &toml::Table, path: &Path) -> Result<(), ConfigError> {
        for (name, value) in table {
            let key = format!("{prefix}{name}");
            if let toml::Value::Table(inner) = value {
                self.table(&format!("{key}."), inner, path)?;
                continue;
            }
            let source = Source::File(path.to_owned());
            let text = plain(value).ok_or_else(|| ConfigError::Invalid {
                key: key.clone(),
                source_text: source.to_string(),
                reason: "must be a text, a number or a list of texts".to_owned(),
            })?;
            self.set(&key, &Given { text: &text, beside: path.parent() }, source)?;
        }
        Ok(())
    }

    /// Takes the variables, and returns those that were meant for Banyan and mean nothing.
    fn environment(&mut self, sources: &Sources) -> Result<Vec<String>, ConfigError> {
        for key in KEYS {
            let names = [key.also.map(str::to_owned), Some(key.variable())];
            for name in names.into_iter().flatten() {
                if let Some(value) = sources.variable(&name) {
                    self.set(key.name, &Given::said(value), Source::Environment(name))?;
                }
            }
        }
        // These are for commands that are clients.
        let known = |name: &str| {
            ["BANYAN_CA", "BANYAN_CONFIG", "BANYAN_KEY", "BANYAN_URL"].contains(&name)
                || KEYS.iter().any(|key| key.variable() == name)
        };
        let ours = sources.environment.iter().map(|(name, _)| name).filter(|name| name.starts_with("BANYAN_"));
        Ok(ours.filter(|name| !known(name)).cloned().collect())
    }
}

/// A value of the file as it would be said elsewhere.
fn plain(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Boolean(flag) => Some(flag.to_string()),
        toml::Value::Array(items) => {
            let texts: Option<Vec<&str>> = items.iter().map(toml::Value::as_str).collect();
            Some(texts?.join(","))
        }
        toml::Value::Float(_) | toml::Value::Datetime(_) | toml::Value::Table(_) => None,
    }
}

/// `banyan/config.toml` where the platform keeps such files.
fn usual_file(sources: &Sources) -> Option<PathBuf> {
    let path = |name: &str| sources.variable(name).map(PathBuf::from);
    let place = if cfg!(windows) {
        path("APPDATA")
    } else if cfg!(target_os = "macos") {
        path("HOME").map(|home| home.join("Library/Application Support"))
    } else {
        // The XDG rule: a relative path is to be ignored.
        path("XDG_CONFIG_HOME")
            .filter(|dir| dir.is_absolute())
            .or_else(|| path("HOME").map(|home| home.join(".config")))
    };
    place.map(|place| place.join("banyan").join("config.toml"))
}
