//! Files: which are there, and new ones that never replace one.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::Problem;

/// A folder that is nested deeper is not looked into.
const DEEPEST: usize = 12;

/// All files below a folder for which `wanted` says yes, by name. A folder that is not there has none. Links are not followed.
pub(crate) fn files_below(folder: &Path, wanted: &dyn Fn(&Path) -> bool) -> Result<Vec<PathBuf>, Problem> {
    let mut files = Vec::new();
    gather(folder, wanted, DEEPEST, &mut files)?;
    files.sort();
    Ok(files)
}

fn gather(
    folder: &Path,
    wanted: &dyn Fn(&Path) -> bool,
    depth: usize,
    files: &mut Vec<PathBuf>,
) -> Result<(), Problem> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(()),
        Err(error) => return Err(Problem::io(folder, error)),
    };
    for entry in entries {
        let entry = entry.map_err(|error| Problem::io(folder, error))?;
        let path = entry.path();
        let kind = entry.file_type().map_err(|error| Problem::io(&path, error))?;
        if kind.is_dir() && depth > 0 {
            gather(&path, wanted, depth - 1, files)?;
        } else if kind.is_file() && wanted(&path) {
            files.push(path);
        }
    }
    Ok(())
}

/// Writes a file that must not be there yet, and the folders above it, durably.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> Result<(), Problem> {
    let failed = |error| Problem::io(path, error);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(path).map_err(failed)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed)
}
