//! Data directories: made, closed, copied as a kill would leave them, and looked at.

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

/// A copy of a directory, as it is now.
pub fn copied(from: &Path) -> TempDir {
    let to = tempfile::tempdir().expect("a directory");
    copy_into(from, to.path());
    to
}

fn copy_into(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("a directory entry");
        let target = to.join(entry.file_name());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            std::fs::create_dir_all(&target).expect("a directory");
            copy_into(&entry.path(), &target);
        } else if let Err(error) = std::fs::copy(entry.path(), &target) {
            // A file may be removed between being listed and being copied.
            assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{}", entry.path().display());
        }
    }
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
