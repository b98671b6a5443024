//! The keys that a server knows, in `.banyan/keys.json`. Of each only a hash of the secret is kept.
//!
//! The command and a running server share the file: whoever changes it replaces it whole, under a lock of its own, and the
//! server looks whether it has changed.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;

use banyan::model::Object;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;
use tokio::sync::watch;

/// A key, without its secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Key {
    /// What it is listed and removed by.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// The metadata that a session must carry for the key to see it; empty for all sessions.
    #[serde(default)]
    pub scope: Object,
    /// Whether it may only look.
    #[serde(default)]
    pub read_only: bool,
    /// The most requests a second; the server's own limit when it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<u32>,
    /// When it was made, in milliseconds since 1970.
    pub created_at: i64,
    /// BLAKE3 of the secret, in hex.
    hash: String,
}

/// What a new key is to be like.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewKey {
    /// What people call it.
    pub name: String,
    /// The metadata that a session must carry for the key to see it.
    #[serde(default)]
    pub scope: Object,
    /// Whether it may only look.
    #[serde(default)]
    pub read_only: bool,
    /// The most requests a second.
    #[serde(default, deserialize_with = "banyan::model::whole::optional")]
    pub requests_per_second: Option<u32>,
}

/// Why keys could not be read or changed.
#[derive(Debug, Error)]
pub enum KeyError {
    /// The file could not be read or written.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// The file is not what it should be.
    #[error("{path} is damaged ({error}); move it away and make the keys again")]
    Damaged {
        /// The file.
        path: String,
        /// What is wrong.
        error: serde_json::Error,
    },
    /// What was asked for makes no sense.
    #[error("{0}")]
    Refused(String),
}

/// See the module.
pub struct Keys {
    path: PathBuf,
    known: RwLock<Arc<Vec<Arc<Key>>>>,
    read_at: Mutex<Option<Stamp>>,
    /// Tells those who wait that keys were made or removed.
    changes: watch::Sender<()>,
}

/// What tells one version of the file from another: when it was written, how long it is, and, because two versions may be
/// written within one tick of the clock, which file it is.
type Stamp = (SystemTime, u64, u64);

#[derive(Default, Serialize, Deserialize)]
struct Stored {
    keys: Vec<Arc<Key>>,
}

const PREFIX: &str = "banyan_";

impl Keys {
    /// The keys of a data directory.
    pub fn open(data: &Path) -> Result<Self, KeyError> {
        let path = data.join(".banyan").join("keys.json");
        let keys =
            Self { path, known: RwLock::default(), read_at: Mutex::new(None), changes: watch::Sender::default() };
        keys.refresh()?;
        Ok(keys)
    }

    /// Every key, oldest first.
    pub fn all(&self) -> Arc<Vec<Arc<Key>>> {
        Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Tells when keys were made or removed.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Whether there is no key at all.
    pub fn none(&self) -> bool {
        self.known.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// The key that a caller shows, `banyan_ID_SECRET`.
    pub fn find(&self, shown: &str) -> Option<Arc<Key>> {
        self.look_up(shown).or_else(|| {
            // It may have been made a moment ago.
            self.refresh().ok().filter(|changed| *changed).and_then(|_| self.look_up(shown))
        })
    }

    fn look_up(&self, shown: &str) -> Option<Arc<Key>> {
        let (id, secret) = shown.strip_prefix(PREFIX)?.split_once('_')?;
        let hash = blake3::hash(secret.as_bytes());
        let all = self.all();
        let key = all.iter().find(|key| key.id == id)?;
        // Comparing hashes takes the same time wherever they differ.
        (blake3::Hash::from_hex(&key.hash).ok()? == hash).then(|| Arc::clone(key))
    }

    /// Makes a key. The text that is returned with it is shown once and kept nowhere.
    pub fn create(&self, new: NewKey, now_ms: i64) -> Result<(Arc<Key>, String), KeyError> {
        if new.name.trim().is_empty() {
            return Err(KeyError::Refused("a key needs a name".to_owned()));
        }
        if new.requests_per_second == Some(0) {
            return Err(KeyError::Refused("a key that may ask 0 times a second is of no use".to_owned()));
        }
        let mut scope = Object::new();
        for (label, value) in &new.scope {
            let value = if label.is_empty() { Err("has no name") } else { fit(value) };
            let value =
                value.map_err(|why| KeyError::Refused(format!("the label `{label}` of the scope {why}")))?;
            scope.insert(label.clone(), value);
        }
        let secret = random::<32>()?;
        let key = self.change(|keys| {
            let mut id = random::<4>()?;
            while keys.iter().any(|key| key.id == id) {
                id = random::<4>()?;
            }
            let key = Arc::new(Key {
                id,
                name: new.name,
                scope,
                read_only: new.read_only,
                requests_per_second: new.requests_per_second,
                created_at: now_ms,
                hash: blake3::hash(secret.as_bytes()).to_hex().to_string(),
            });
            keys.push(Arc::clone(&key));
            Ok(key)
        })?;
        let text = format!("{PREFIX}{}_{secret}", key.id);
        Ok((key, text))
    }

    /// Removes a key, by its id, or by its name when only one has it and it is no key's id.
    pub fn remove(&self, which: &str) -> Result<Arc<Key>, KeyError> {
        self.change(|keys| {
            if let Some(at) = keys.iter().position(|key| key.id == which) {
                return Ok(keys.remove(at));
            }
            let found: Vec<usize> = (0..keys.len()).filter(|at| keys[*at].name == which).collect();
            match found.as_slice() {
                [] => Err(KeyError::Refused(format!("there is no key `{which}`; `banyan key ls` lists them"))),
                [at] => Ok(keys.remove(*at)),
                _ => Err(KeyError::Refused(format!("several keys are called `{which}`; remove them by id"))),
            }
        })
    }

    /// Reads the file again when it has changed, and says whether it had.
    pub fn refresh(&self) -> Result<bool, KeyError> {
        let mut read_at = self.read_at.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = self.stamp()?;
        if stamp.is_some() && *read_at == stamp {
            return Ok(false);
        }
        let keys = self.read()?;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let changed = **known != keys;
        *known = Arc::new(keys);
        *read_at = stamp;
        drop(known);
        if changed {
            self.changes.send_replace(());
        }
        Ok(changed)
    }

    fn stamp(&self) -> Result<Option<Stamp>, KeyError> {
        match fs::metadata(&self.path) {
            Ok(file) => Ok(Some((file.modified().map_err(|error| self.io(error))?, file.len(), number(&file)))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.io(error)),
        }
    }

    fn read(&self) -> Result<Vec<Arc<Key>>, KeyError> {
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.io(error)),
        };
        let stored: Stored = serde_json::from_slice(&text)
            .map_err(|error| KeyError::Damaged { path: self.path.display().to_string(), error })?;
        Ok(stored.keys)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Vec<Arc<Key>>) -> Result<T, KeyError>) -> Result<T, KeyError> {
        let io = |error| self.io(error);
        if let Some(directory) = self.path.parent() {
            fs::create_dir_all(directory).map_err(io)?;
        }
        let lock = File::create(self.path.with_extension("lock")).map_err(io)?;
        lock.lock().map_err(io)?;
        let mut keys = self.read()?;
        let changed = change(&mut keys)?;
        let text = serde_json::to_vec_pretty(&Stored { keys }).map_err(|error| self.io(error.into()))?;
        let beside = self.path.with_extension("new");
        let mut file = private_file(&beside).map_err(io)?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(io)?;
        fs::rename(&beside, &self.path).map_err(io)?;
        if let Some(directory) = self.path.parent() {
            File::open(directory).and_then(|directory| directory.sync_all()).map_err(io)?;
        }
        self.refresh()?;
        Ok(changed)
    }

    fn io(&self, error: std::io::Error) -> KeyError {
        KeyError::Io { path: self.path.display().to_string(), error }
    }
}

#[cfg(unix)]
fn number(file: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(file)
}

#[cfg(not(unix))]
fn number(_: &fs::Metadata) -> u64 {
    0
}

/// A new file that only its owner may read.
fn private_file(path: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// A value of a scope as it is kept, or why it cannot tell tenants apart.
fn fit(value: &Value) -> Result<Value, &'static str> {
    /// Whole numbers up to here are read as themselves everywhere, and no other as one of them.
    const MOST: i64 = (1 << 53) - 1;
    match value {
        Value::Number(number) => {
            let whole = number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() <= MOST as f64);
            whole
                .map(|number| Value::from(number as i64))
                .ok_or("is a number that is not whole, or too long; write it as text, in quotes")
        }
        Value::String(text) if text.is_empty() => Err("is empty; give it a value"),
        Value::Null | Value::Array(_) | Value::Object(_) => Err("is no text, whole number, true or false"),
        Value::String(_) | Value::Bool(_) => Ok(value.clone()),
    }
}

fn random<const N: usize>() -> Result<String, KeyError> {
    let mut bytes = [0_u8; N];
    getrandom::fill(&mut bytes).map_err(|error| KeyError::Refused(format!("no random numbers: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
