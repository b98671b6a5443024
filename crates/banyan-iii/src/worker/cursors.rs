//! How far each binding has come, kept in the data directory, so that a worker that was killed delivers what it had not.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use banyan::model::Position;

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

    /// Saves, if anything is new. The file is never half written.
    pub(super) fn save(&self, positions: HashMap<String, Position>) {
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        if *saved == positions {
            return;
        }
        if let Err(error) = self.write(&positions) {
            tracing::warn!(file = %self.path.display(), %error, "how far bindings have come cannot be saved");
            return;
        }
        *saved = positions;
    }

    fn write(&self, positions: &HashMap<String, Position>) -> io::Result<()> {
        if let Some(dir) = self.path.parent() {
            std::fs::create_dir_all(dir)?;
        }
        let beside = self.path.with_extension("tmp");
        std::fs::write(&beside, serde_json::to_vec(positions)?)?;
        std::fs::rename(&beside, &self.path)
    }
}
