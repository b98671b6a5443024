//! The files that are in use, one object each.

use hashbrown::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::fds::Fds;
use super::lazy_file::LazyFile;

/// Everyone who works on a path works on the same [`LazyFile`].
pub(crate) struct Files {
    fds: Arc<Fds>,
    live: Mutex<HashMap<String, Arc<LazyFile>>>,
}

/// Above this many files, those that nobody uses are let go.
const SWEEP_ABOVE: usize = 4096;

impl Files {
    pub(crate) fn new(fds: Arc<Fds>) -> Self {
        Self { fds, live: Mutex::default() }
    }

    pub(crate) fn fds(&self) -> &Arc<Fds> {
        &self.fds
    }

    /// The file at a path, or `None` when there is none.
    pub(crate) fn existing(&self, path: &str) -> io::Result<Option<Arc<LazyFile>>> {
        loop {
            if let Some(file) = self.lock().get(path) {
                return Ok(file.exists().then(|| Arc::clone(file)));
            }
            let forgotten = self.fds.forgotten();
            let Some(file) = self.fds.get(path)? else { return Ok(None) };
            if let Some(file) = self.insert(path, file.len()?, forgotten) {
                return Ok(Some(file));
            }
        }
    }

    /// The file at a path, to be made by the first write when there is none.
    pub(crate) fn ensure(&self, path: &str) -> io::Result<Arc<LazyFile>> {
        loop {
            if let Some(file) = self.lock().get(path) {
                return Ok(Arc::clone(file));
            }
            let forgotten = self.fds.forgotten();
            let len = match self.fds.get(path)? {
                Some(file) => file.len()?,
                None => 0,
            };
            if let Some(file) = self.insert(path, len, forgotten) {
                return Ok(file);
            }
        }
    }

    /// The length of a file that is in use.
    pub(crate) fn len_in_memory(&self, path: &str) -> Option<u64> {
        self.lock().get(path).map(|file| file.end())
    }

    /// Forgets a path whose file was removed or moved, after [`Fds::forget`].
    pub(crate) fn forget(&self, path: &str) {
        self.lock().remove(path);
    }

    /// Removes a file that nobody writes to any more.
    pub(crate) fn remove(&self, path: &str) -> io::Result<()> {
        let removed = self.fds.disk().remove(path);
        self.fds.forget(path);
        self.forget(path);
        removed
    }

    /// Paths of files that exist in memory only, so far.
    pub(crate) fn unwritten(&self) -> Vec<String> {
        self.lock().iter().filter(|(_, file)| !file.is_written()).map(|(path, _)| path.clone()).collect()
    }

    /// The object for a file of this length. `None` when files were removed since it was looked for, perhaps this one.
    fn insert(&self, path: &str, len: u64, forgotten: u64) -> Option<Arc<LazyFile>> {
        let mut live = self.lock();
        if self.fds.forgotten() != forgotten {
            return None;
        }
        if live.len() > SWEEP_ABOVE && live.len().is_power_of_two() {
            live.retain(|_, file| Arc::strong_count(file) > 1 || !file.is_written());
        }
        let file = live
            .entry(path.to_owned())
            .or_insert_with(|| Arc::new(LazyFile::new(path.to_owned(), Arc::clone(&self.fds), len)));
        Some(Arc::clone(file))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<LazyFile>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
