//! The note that a server leaves in its data directory, so that others can tell where it is: `.banyan/server.json`.
//!
//! It is a courtesy. Whether the directory is taken is decided by its lock alone.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use banyan::private;
use banyan::{LogError, OpenError};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Note {
    url: String,
    pid: u32,
    /// The version of the server. A server before this field says none.
    #[serde(default)]
    banyan: Option<String>,
}

/// A server that owns a directory.
pub(crate) struct ServedAt {
    /// Its address.
    pub(crate) url: String,
    /// Its version, if it says it.
    pub(crate) banyan: Option<String>,
}

/// Leaves the note, and takes it away when dropped.
pub(crate) struct Notice(PathBuf);

impl Notice {
    /// Says where this process serves the directory.
    pub(crate) fn leave(dir: &Path, url: &str) -> io::Result<Self> {
        let note = Note {
            url: url.to_owned(),
            pid: std::process::id(),
            banyan: Some(env!("CARGO_PKG_VERSION").to_owned()),
        };
        let path = path(dir);
        private::write(&path, &serde_json::to_vec(&note)?)?;
        Ok(Self(path))
    }
}

impl Drop for Notice {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Where the owner of a directory serves it, if it does. A note that another process left behind does not count.
pub(crate) fn read(dir: &Path, owner: &str) -> Option<ServedAt> {
    let note: Note = serde_json::from_slice(&fs::read(path(dir)).ok()?).ok()?;
    let pid = note.pid.to_string();
    owner
        .split(|c: char| !c.is_ascii_digit())
        .any(|number| number == pid)
        .then_some(ServedAt { url: note.url, banyan: note.banyan })
}

/// Where the server that owns a directory serves it, for a directory that could not be opened.
pub(crate) fn owner_of(dir: &Path, error: &OpenError) -> Option<String> {
    match error {
        OpenError::Log(LogError::Locked { owner }) => read(dir, owner).map(|served| served.url),
        _ => None,
    }
}

fn path(dir: &Path) -> PathBuf {
    dir.join(".banyan").join("server.json")
}
