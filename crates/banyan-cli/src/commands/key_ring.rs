//! Where keys are: in a data directory, whoever owns it, or with a server.

use std::time::{SystemTime, UNIX_EPOCH};

use banyan_server::{Key, KeyError, KeyStore, NewKey, Reach, RefusedKey};
use serde::Deserialize;
use serde_json::Value;
use ureq::http::Method;

use crate::args::{Globals, Target};
use crate::client::{Client, Server, in_path};
use crate::data_dir::data_dir;
use crate::failure::Failure;

/// The keys of a server, by file or by asking.
pub(super) enum KeyRing {
    /// The file, which has a lock of its own: it may be changed beside a running server.
    Directory(KeyStore),
    /// The server.
    Server(Server),
}

impl KeyRing {
    /// The keys that the command line or the environment means.
    pub(super) fn of(globals: &Globals) -> Result<Self, Failure> {
        Ok(match globals.target()? {
            Target::Directory => Self::Directory(KeyStore::open(&data_dir(globals)?)),
            Target::Server(url) => Self::Server(Server::new(&url, globals)?),
        })
    }

    /// Makes a key. The answer holds the secret as `key`, and what is listed of it.
    pub(super) fn create(&self, new: &Value) -> Result<Value, Failure> {
        match self {
            Self::Directory(keys) => {
                let new = NewKey::deserialize(new).map_err(unreadable)?;
                let (key, secret) = keys.create(new, now_ms())?;
                let mut made = listed(&key)?;
                made["key"] = secret.into();
                Ok(made)
            }
            Self::Server(server) => {
                let answer = server.ask(Method::POST, "/v1/keys", Some(new.to_string().as_bytes()))?;
                serde_json::from_str(&answer).map_err(|error| server.unreadable("a new key", &error))
            }
        }
    }

    /// Every key, oldest first.
    pub(super) fn all(&self) -> Result<KeyList, Failure> {
        match self {
            Self::Directory(keys) => {
                let refused = keys.refused().into_iter();
                let refused = refused.map(|RefusedKey { id, reason }| Refused { id, reason });
                let keys = keys.all().iter().map(|key| listed(key)).collect::<Result<_, _>>()?;
                Ok(KeyList { keys, refused: refused.collect() })
            }
            Self::Server(server) => {
                let answer = server.ask(Method::GET, "/v1/keys", None)?;
                serde_json::from_str(&answer).map_err(|error| server.unreadable("the list of keys", &error))
            }
        }
    }

    /// Why no one is admitted, if that is so.
    pub(super) fn closed(&self) -> Option<String> {
        match self {
            Self::Directory(keys) => match keys.reach() {
                Reach::NoOne(reason) => Some(reason),
                Reach::Anyone | Reach::Holders(_) => None,
            },
            // A server that admits no one answers no one.
            Self::Server(_) => None,
        }
    }

    /// Opens the directory to everyone on this machine. False if it was open before.
    pub(super) fn reset_to_open(&self) -> Result<bool, Failure> {
        match self {
            Self::Directory(keys) if keys.is_open() => Ok(false),
            Self::Directory(keys) => keys.reset_to_open().map(|()| true).map_err(Failure::from),
            Self::Server(_) => {
                Err(Failure::usage("a directory is opened where it is; leave --url out and pass --data DIR"))
            }
        }
    }

    /// Removes a key by its id.
    pub(super) fn remove(&self, id: &str) -> Result<(), Failure> {
        match self {
            Self::Directory(keys) => keys.remove(id).map(drop).map_err(Failure::from),
            Self::Server(server) => {
                server.ask(Method::DELETE, &format!("/v1/keys/{}", in_path(id)), None).map(drop)
            }
        }
    }
}

/// The keys of a directory.
#[derive(Deserialize)]
pub(super) struct KeyList {
    /// Those that are accepted.
    pub(super) keys: Vec<Value>,
    /// Those that are not.
    #[serde(default)]
    pub(super) refused: Vec<Refused>,
}

/// A key that is not accepted, and why.
#[derive(Deserialize)]
pub(super) struct Refused {
    pub(super) id: String,
    pub(super) reason: String,
}

/// What may be seen of a key: all but the hash.
fn listed(key: &Key) -> Result<Value, Failure> {
    serde_json::to_value(key).map_err(unreadable)
}

fn unreadable(error: serde_json::Error) -> Failure {
    Failure::storage(format!("a key could not be read: {error}"))
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Self {
        let message = error.to_string();
        match error {
            KeyError::Refused(_) => Self::refused("session/invalid_request", message),
            KeyError::Io { .. } | KeyError::Unreadable { .. } => Self::storage(message),
        }
    }
}
