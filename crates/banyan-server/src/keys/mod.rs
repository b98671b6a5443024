//! The keys that a server knows, in `.banyan/keys.json`: one checked line a key, with a hash of the secret. Which of them are in
//! force is recorded a second time, in `.banyan/keys.in-force`.
//!
//! Whatever is not understood closes: a line that is damaged, unknown or not recorded is a key that is refused, and a directory
//! whose keys are gone refuses every call. The command and a running server share the files: a change replaces them whole, under a
//! lock, and the server reads them again when they change.

mod checked_line;
mod files;
mod in_force;
mod key_set;
mod record;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use banyan::model::Object;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;
use tokio::sync::watch;

use files::{KeyFiles, Stamp};
use in_force::InForce;
use key_set::{KeySet, Line};
pub use key_set::{Reach, RefusedKey};

/// A key, without its secret.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Key {
    /// What it is listed and removed by.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// The metadata that a session must carry for the key to see it; empty for all sessions.
    pub scope: Object,
    /// Whether it may only look.
    pub read_only: bool,
    /// The most requests a second; the server's own limit when it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<u32>,
    /// When it was made, in milliseconds since 1970.
    pub created_at: i64,
    /// BLAKE3 of the secret, in hex.
    #[serde(skip)]
    hash: String,
}

impl Key {
    /// Whether the key may see and change everything.
    pub fn is_operator(&self) -> bool {
        self.scope.is_empty() && !self.read_only
    }
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

/// Why keys could not be changed.
#[derive(Debug, Error)]
pub enum KeyError {
    /// A file could not be read or written.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// The key file cannot be read, so nothing is written over it.
    #[error("cannot read {path}: {reason}; move it away, then make the keys again")]
    Unreadable {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// The request is refused.
    #[error("{0}")]
    Refused(String),
}

/// See the module.
pub struct KeyStore {
    files: KeyFiles,
    known: RwLock<Arc<KeySet>>,
    read_at: Mutex<Option<Stamp>>,
    /// Notifies streams that keys were made or removed.
    changes: watch::Sender<()>,
}

const PREFIX: &str = "banyan_";

impl KeyStore {
    /// The keys of a data directory. Changes nothing. A file that cannot be read is a store that admits no one.
    pub fn open(data: &Path) -> Self {
        let files = KeyFiles::new(data);
        let stamp = files.stamp();
        let known = KeySet::read(&files);
        Self {
            files,
            known: RwLock::new(Arc::new(known)),
            read_at: Mutex::new(Some(stamp)),
            changes: watch::Sender::default(),
        }
    }

    /// Writes what the directory should record about its keys and does not: a key file of the first form is written anew, and
    /// keys that have no readable record of being in force get one. Refuses nothing that was accepted.
    pub fn settle(&self) -> Result<(), KeyError> {
        if !self.set().unsettled {
            return Ok(());
        }
        self.change(|_, _| Ok(()))
    }

    /// Every key that is accepted, oldest first.
    pub fn all(&self) -> Arc<Vec<Arc<Key>>> {
        Arc::clone(&self.set().keys)
    }

    /// Every key that is refused, and why.
    pub fn refused(&self) -> Vec<RefusedKey> {
        self.set().refused.clone()
    }

    /// Who is admitted.
    pub fn reach(&self) -> Reach {
        self.set().reach.clone()
    }

    /// Whether no key was ever in force, or the directory was opened on purpose.
    pub fn is_open(&self) -> bool {
        self.known.read().unwrap_or_else(PoisonError::into_inner).reach == Reach::Anyone
    }

    /// The key with this text, `banyan_ID_SECRET`.
    pub fn find(&self, shown: &str) -> Option<Arc<Key>> {
        self.look_up(shown).or_else(|| {
            // It may have been made a moment ago.
            self.refresh().then(|| self.look_up(shown)).flatten()
        })
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
        let key = self.change(|lines, listed| {
            let mut id = random::<4>()?;
            while listed.contains_key(&id) || lines.iter().any(|line| line.mentions(&id)) {
                id = random::<4>()?;
            }
            let line = Line::of(Key {
                id,
                name: new.name,
                scope,
                read_only: new.read_only,
                requests_per_second: new.requests_per_second,
                created_at: now_ms,
                hash: blake3::hash(secret.as_bytes()).to_hex().to_string(),
            });
            let key = line.key.clone().map_err(KeyError::Refused)?;
            listed.insert(key.id.clone(), line.checksum());
            lines.push(line);
            Ok(key)
        })?;
        let text = format!("{PREFIX}{}_{secret}", key.id);
        Ok((key, text))
    }

    /// Removes a key by its id, or by its name when only one has it and it is no key's id. A key that is refused is removed by the
    /// id that it is listed with.
    pub fn remove(&self, which: &str) -> Result<(), KeyError> {
        self.change(|lines, listed| {
            let named = |line: &&Line| line.key.as_ref().is_ok_and(|key| key.name == which);
            let id = if lines.iter().any(|line| line.id() == which) || listed.contains_key(which) {
                which.to_owned()
            } else {
                match lines.iter().filter(named).map(Line::id).collect::<Vec<_>>().as_slice() {
                    [] => {
                        let message = format!("there is no key `{which}`; `banyan key ls` lists them");
                        return Err(KeyError::Refused(message));
                    }
                    [id] => id.clone(),
                    _ => {
                        let message = format!("several keys are called `{which}`; remove them by id");
                        return Err(KeyError::Refused(message));
                    }
                }
            };
            lines.retain(|line| line.id() != id);
            listed.remove(&id);
            Ok(())
        })
    }

    /// Opens a directory whose keys are gone to everyone on this machine. What is left of the key file is kept under another
    /// name. Refused while there are keys that are accepted.
    pub fn reset_to_open(&self) -> Result<(), KeyError> {
        let _lock = self.files.lock()?;
        let set = KeySet::read(&self.files);
        if !set.keys.is_empty() {
            let count = set.keys.len();
            return Err(KeyError::Refused(format!(
                "{count} {} still in force; remove {} first with `banyan key rm`",
                if count == 1 { "key is" } else { "keys are" },
                if count == 1 { "it" } else { "them" },
            )));
        }
        self.files.set_keys_aside()?;
        self.files.write_in_force(&InForce::Open)?;
        self.refresh();
        Ok(())
    }

    /// Reads the files again when they have changed, and says whether what is admitted has.
    pub fn refresh(&self) -> bool {
        let mut read_at = self.read_at.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = self.files.stamp();
        if stamp.is_known() && read_at.as_ref() == Some(&stamp) {
            return false;
        }
        let mut set = KeySet::read(&self.files);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        set.stay_closed_after(&known);
        let changed = **known != set;
        *known = Arc::new(set);
        *read_at = Some(stamp);
        drop(known);
        if changed {
            self.changes.send_replace(());
        }
        changed
    }

    /// Notifies when what is admitted has changed.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    fn set(&self) -> Arc<KeySet> {
        Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn look_up(&self, shown: &str) -> Option<Arc<Key>> {
        let (id, secret) = shown.strip_prefix(PREFIX)?.split_once('_')?;
        let hash = blake3::hash(secret.as_bytes());
        let all = self.all();
        let key = all.iter().find(|key| key.id == id)?;
        // Comparing hashes takes the same time wherever they differ.
        (blake3::Hash::from_hex(&key.hash).ok()? == hash).then(|| Arc::clone(key))
    }

    /// Changes the lines of the key file and the list of keys in force. A key counts only while both have it, so what is removed
    /// leaves the list first, and what is made enters it last.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut Vec<Line>, &mut BTreeMap<String, String>) -> Result<T, KeyError>,
    ) -> Result<T, KeyError> {
        let _lock = self.files.lock()?;
        let before = self.files.read_in_force();
        let mut lines = match self.files.read_lines(&before) {
            Ok(lines) => lines.unwrap_or_default(),
            Err(reason) => return Err(KeyError::Unreadable { path: self.files.keys_path(), reason }),
        };
        let mut listed = match &before {
            InForce::Keys(listed) => listed.clone(),
            InForce::Open => BTreeMap::new(),
            // There is no list that a line could be missing from.
            InForce::Unrecorded | InForce::Unreadable(_) => key_set::accepted(&lines),
        };
        let changed = change(&mut lines, &mut listed)?;
        if let InForce::Keys(old) = &before {
            let mut remaining = old.clone();
            remaining.retain(|id, checksum| listed.get(id) == Some(checksum));
            if remaining != *old {
                self.files.write_in_force(&InForce::Keys(remaining))?;
            }
        }
        self.files.write_lines(&lines)?;
        self.files.write_in_force(&InForce::Keys(listed))?;
        self.refresh();
        Ok(changed)
    }
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
