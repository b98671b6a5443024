//! How far each binding has come, kept in the data directory, so that a worker that was killed delivers what it had not.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use banyan::model::Position;
use banyan::private;

use crate::link::Engine;

/// See the module.
pub(super) struct Cursors {
    path: PathBuf,
    saved: Mutex<HashMap<String, Position>>,
}

impl Cursors {
    /// The cursors of a data directory. One directory can be on two buses, which do not know each other's bindings.
    pub(super) fn of(dir: &Path, engine: &Engine) -> Self {
        let name = match engine {
            Engine::Url(_) => "bindings.json",
            Engine::Here(_) => "bindings-here.json",
        };
        Self { path: dir.join(".banyan/iii").join(name), saved: Mutex::default() }
    }

    /// What was saved. What cannot be read is as good as nothing: those bindings go on from now.
    pub(super) fn load(&self) -> HashMap<String, Position> {
        let text = match std::fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return HashMap::new(),
            Err(error) => {
                tracing::warn!(file = %self.path.display(), %error, "how far bindings had come cannot be read");
                return HashMap::new();
            }
        };
        serde_json::from_slice(&text).unwrap_or_else(|error| {
            tracing::warn!(file = %self.path.display(), %error, "how far bindings had come cannot be read");
            HashMap::new()
        })
    }

    /// Saves, if anything is new.
    pub(super) fn save(&self, positions: HashMap<String, Position>) {
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        if *saved == positions {
            return;
        }
        let text = serde_json::to_vec(&positions).map_err(io::Error::from);
        if let Err(error) = text.and_then(|text| replace(&self.path, &text)) {
            tracing::warn!(file = %self.path.display(), %error, "how far bindings have come cannot be saved");
            return;
        }
        *saved = positions;
    }
}

/// Puts another text into a file, whose folder need not be there. It is never half written.
pub(super) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        private::create_dir_all(dir)?;
    }
    let beside = path.with_extension("tmp");
    private::write(&beside, text)?;
    std::fs::rename(&beside, path)
}
