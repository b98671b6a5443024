//! The names that bridges have with their mains, kept in a data directory, so that one that was stopped or killed is told what
//! happened meanwhile.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::cursors::replace;
use crate::link::Engine;

/// See the module.
pub(super) struct Names {
    path: PathBuf,
}

impl Names {
    /// The names that are kept in a data directory.
    pub(super) fn of(dir: &Path) -> Self {
        Self { path: dir.join(".banyan/iii/bridges.json") }
    }

    /// The name that the bridge between two engines had last, or a new one.
    pub(super) fn last(&self, own: &Engine, main: &str) -> Uuid {
        self.load().get(&between(own, main)).copied().unwrap_or_else(|| self.fresh(own, main))
    }

    /// A new name for the bridge between two engines.
    pub(super) fn fresh(&self, own: &Engine, main: &str) -> Uuid {
        let name = Uuid::new_v4();
        let mut names = self.load();
        names.insert(between(own, main), name);
        let kept = serde_json::to_vec_pretty(&names).map_err(io::Error::from);
        if let Err(error) = kept.and_then(|text| replace(&self.path, &text)) {
            tracing::warn!(file = %self.path.display(), %error, "after a restart, this bridge will not be told what it missed");
        }
        name
    }

    /// What cannot be read is as good as nothing: those bridges go on from now.
    fn load(&self) -> BTreeMap<String, Uuid> {
        let text = match std::fs::read(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return BTreeMap::new(),
            read => read,
        };
        text.and_then(|text| Ok(serde_json::from_slice(&text)?)).unwrap_or_else(|error| {
            tracing::warn!(file = %self.path.display(), %error, "the names of bridges cannot be read");
            BTreeMap::new()
        })
    }
}

fn between(own: &Engine, main: &str) -> String {
    format!("{own} to {main}")
}
