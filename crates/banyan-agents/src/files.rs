//! Files: which are there, and new ones that never replace one.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::{Problem, Source, Stamp};

/// A folder that is nested deeper is not looked into.
const DEEPEST: usize = 12;

/// All files below a folder for which `wanted` says yes, by name. A folder that is not there has none. Links are not followed. A
/// folder within that cannot be looked into is given in place of its files: whoever reads it is told why not.
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
        Err(_) if depth < DEEPEST => {
            files.push(folder.to_owned());
            return Ok(());
        }
        Err(error) => return Err(Problem::io(folder, error)),
    };
    for entry in entries {
        let entry = entry.map_err(|error| Problem::io(folder, error))?;
        let path = entry.path();
        // Whatever is gone by now is no problem.
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && depth > 0 {
            gather(&path, wanted, depth - 1, files)?;
        } else if kind.is_file() && wanted(&path) {
            files.push(path);
        }
    }
    Ok(())
}

/// The sources that some files are, with what `stamp` says of each. One that is gone by now is none; one that nothing is to be known of
/// is found out about by whoever reads it.
pub(crate) fn sources_of(
    agent: &'static str,
    files: Vec<PathBuf>,
    stamp: impl Fn(&Path) -> io::Result<Stamp>,
) -> Vec<Source> {
    let source = |path: PathBuf| match stamp(&path) {
        Ok(stamp) => Some(Source { agent, path, key: None, stamp }),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(_) => Some(Source { agent, path, key: None, stamp: Stamp::default() }),
    };
    files.into_iter().filter_map(source).collect()
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn a_file_that_is_gone_by_now_keeps_no_other_from_being_found() {
        let folder = tempfile::tempdir().unwrap();
        let there = folder.path().join("there");
        fs::write(&there, "x").unwrap();
        // What is below a file is not gone: it cannot be known of.
        let odd = there.join("below");
        let files = vec![folder.path().join("gone"), there.clone(), odd.clone()];
        let found: Vec<PathBuf> =
            sources_of("agent", files, Stamp::of_file).into_iter().map(|source| source.path).collect();
        assert_eq!(found, [there, odd]);
    }
}
