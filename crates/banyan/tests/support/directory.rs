//! Data directories: made, closed, copied as a kill would leave them, and looked at.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use banyan::{Banyan, Options, Progress};
use tempfile::TempDir;

/// A store in a directory of its own.
pub struct OnDisk {
    pub store: Banyan,
    pub dir: TempDir,
}

impl OnDisk {
    pub fn new() -> Self {
        Self::with(tempfile::tempdir().expect("a directory"))
    }

    pub fn with(dir: TempDir) -> Self {
        Self { store: open(dir.path()), dir }
    }

    /// Closes the store; the directory that it leaves.
    pub fn close(self) -> TempDir {
        self.store.close().expect("a clean close");
        self.dir
    }

    /// Closes the store and opens it again.
    pub fn reopened(self) -> Self {
        Self::with(self.close())
    }

    /// What a kill at this moment leaves, opened.
    pub fn killed(self) -> Self {
        let dir = copied(self.dir.path());
        drop(self.store);
        Self::with(dir)
    }
}

pub fn open(dir: &Path) -> Banyan {
    Banyan::open(dir, Options::default()).expect("the directory opens")
}

/// Opens a directory and keeps the warnings.
pub fn open_hearing_warnings(dir: &Path) -> (Banyan, Warnings) {
    let warnings = Warnings::default();
    let options = Options { progress: Box::new(warnings.clone()), ..Options::default() };
    (Banyan::open(dir, options).expect("the directory opens"), warnings)
}

/// Warnings of a store.
#[derive(Clone, Default)]
pub struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    pub fn all(&self) -> Vec<String> {
        self.0.lock().expect("warnings").clone()
    }
}

impl Progress for Warnings {
    fn warn(&self, warning: &str) {
        self.0.lock().expect("warnings").push(warning.to_owned());
    }
}

/// A copy of a directory, as it was at one moment, though somebody may be writing to it.
pub fn copied(from: &Path) -> TempDir {
    loop {
        let to = tempfile::tempdir().expect("a directory");
        let files = files_in(from);
        for (name, bytes) in &files {
            let target = to.path().join(name);
            std::fs::create_dir_all(target.parent().expect("a parent")).expect("a directory");
            std::fs::write(target, bytes).expect("a copied file");
        }
        if files_in(from) == files {
            return to;
        }
    }
}

/// Every file below a directory, with its content.
pub fn files_in(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(next) = dirs.pop() {
        for entry in std::fs::read_dir(next).expect("a directory") {
            let path = entry.expect("a directory entry").path();
            if path.is_dir() {
                dirs.push(path);
            } else if let Ok(bytes) = std::fs::read(&path) {
                // A file may be removed between being listed and being read.
                files.insert(path.strip_prefix(dir).expect("a path below").to_owned(), bytes);
            }
        }
    }
    files
}

/// The file of a session whose id needs no encoding.
pub fn file_of(dir: &Path, session: &str) -> PathBuf {
    dir.join(format!("{session}.jsonl"))
}

/// The lines of a session's file.
pub fn lines_of(dir: &Path, session: &str) -> Vec<String> {
    let text = std::fs::read_to_string(file_of(dir, session)).expect("a session file");
    text.lines().map(str::to_owned).collect()
}

/// Writes a session's file anew.
pub fn write_lines(dir: &Path, session: &str, lines: &[String]) {
    let mut text = lines.join("\n");
    text.push('\n');
    std::fs::write(file_of(dir, session), text).expect("a session file");
}
