//! Where configurations are: in memory, and each in a file of its own when there is a directory.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use banyan::private;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Failure;

/// A configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) description: String,
    #[serde(default)]
    pub(super) schema: Value,
    /// As it was given.
    #[serde(default)]
    pub(super) value: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) metadata: Option<Value>,
}

impl Entry {
    pub(super) fn without_value(&self) -> Value {
        let mut shown =
            json!({"id": self.id, "name": self.name, "description": self.description, "schema": self.schema});
        if let Some(metadata) = &self.metadata {
            shown["metadata"] = metadata.clone();
        }
        shown
    }
}

/// All configurations there are.
#[derive(Default)]
pub(in crate::hub) struct Configuration {
    directory: Option<PathBuf>,
    entries: BTreeMap<String, Entry>,
}

impl Configuration {
    /// Reads what is stored. A file that cannot be read is left alone, and said so.
    pub(in crate::hub) fn open(directory: Option<PathBuf>) -> Self {
        let mut entries = BTreeMap::new();
        for path in directory.iter().flat_map(|directory| files(directory)) {
            match read(&path) {
                Ok(entry) => drop(entries.insert(entry.id.clone(), entry)),
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "a stored configuration cannot be read")
                }
            }
        }
        Self { directory, entries }
    }

    pub(super) fn entry(&self, id: &str) -> Option<&Entry> {
        self.entries.get(id)
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// Stores an entry. What could not be stored is not there either.
    pub(super) fn put(&mut self, entry: Entry) -> Result<(), Failure> {
        if let Some(directory) = &self.directory {
            write(directory, &entry).map_err(|error| failed(&entry.id, &error))?;
        }
        self.entries.insert(entry.id.clone(), entry);
        Ok(())
    }

    pub(super) fn remove(&mut self, id: &str) -> Result<(), Failure> {
        if let Some(directory) = &self.directory {
            match fs::remove_file(path_of(directory, id)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(id, &error)),
                _ => {}
            }
        }
        self.entries.remove(id);
        Ok(())
    }
}

fn failed(id: &str, error: &io::Error) -> Failure {
    Failure::new("ADAPTER_ERROR", format!("configuration '{id}' could not be stored: {error}"))
}

fn path_of(directory: &Path, id: &str) -> PathBuf {
    directory.join(format!("{id}.json"))
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(directory).into_iter().flatten().filter_map(|file| Some(file.ok()?.path()));
    listed.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect()
}

fn read(path: &Path) -> io::Result<Entry> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

/// Written beside, and then put in its place, so that there is always a whole file.
fn write(directory: &Path, entry: &Entry) -> io::Result<()> {
    private::create_dir_all(directory)?;
    let path = path_of(directory, &entry.id);
    let beside = path.with_extension("json.new");
    let mut file = private::options().create(true).truncate(true).open(&beside)?;
    file.write_all(&serde_json::to_vec_pretty(entry)?)?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    fs::rename(&beside, &path)?;
    File::open(directory)?.sync_all()
}
