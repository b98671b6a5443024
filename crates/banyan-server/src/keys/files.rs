//! The two files of the keys, and the lock that changes are made under.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use banyan::private;

use super::KeyError;
use super::in_force::{self, InForce};
use super::key_set::Line;

/// Where the files are.
pub(super) struct KeyFiles {
    keys: PathBuf,
    in_force: PathBuf,
}

/// Tells one version of both files from another.
#[derive(PartialEq)]
pub(super) struct Stamp {
    keys: FileStamp,
    in_force: FileStamp,
}

#[derive(PartialEq)]
enum FileStamp {
    Missing,
    /// When it was written, how long it is, and, because two versions may be written within one tick of the clock, which file it is.
    There(Option<SystemTime>, u64, u64),
    Unknown,
}

impl Stamp {
    /// Whether both files could be looked at. What could not is read again each time.
    pub(super) fn is_known(&self) -> bool {
        self.keys != FileStamp::Unknown && self.in_force != FileStamp::Unknown
    }
}

impl KeyFiles {
    pub(super) fn new(data: &Path) -> Self {
        let directory = data.join(".banyan");
        Self { keys: directory.join("keys.json"), in_force: directory.join("keys.in-force") }
    }

    pub(super) fn keys_path(&self) -> String {
        self.keys.display().to_string()
    }

    pub(super) fn stamp(&self) -> Stamp {
        Stamp { keys: stamp(&self.keys), in_force: stamp(&self.in_force) }
    }

    /// The lines of the key file, `None` if there is no file, or why it cannot be read.
    pub(super) fn read_lines(&self, in_force: &InForce) -> Result<Option<Vec<Line>>, String> {
        let text = read(&self.keys).map_err(|error| error.to_string())?;
        Ok(text.map(|text| Line::split(&text, in_force)))
    }

    pub(super) fn read_in_force(&self) -> InForce {
        match read(&self.in_force) {
            Ok(Some(text)) => in_force::decode(&text),
            Ok(None) => InForce::Unrecorded,
            Err(error) => InForce::Unreadable(error.to_string()),
        }
    }

    /// Waits until no other process changes the keys. The lock is released when it is dropped.
    pub(super) fn lock(&self) -> Result<File, KeyError> {
        if let Some(directory) = self.keys.parent() {
            let make = || {
                directory.parent().map_or(Ok(()), private::create_root)?;
                private::create_dir_all(directory)
            };
            make().map_err(|error| io_error(directory, error))?;
        }
        let path = self.keys.with_extension("lock");
        let lock = private_file(&path).map_err(|error| io_error(&path, error))?;
        lock.lock().map_err(|error| io_error(&path, error))?;
        Ok(lock)
    }

    pub(super) fn write_lines(&self, lines: &[Line]) -> Result<(), KeyError> {
        let mut text = Vec::new();
        for line in lines {
            text.extend_from_slice(&line.text);
            // What follows a line without its end must not become part of it.
            if !line.text.ends_with(b"\n") {
                text.push(b'\n');
            }
        }
        if read(&self.keys).is_ok_and(|there| there.is_some_and(|there| there == text)) {
            return Ok(());
        }
        replace(&self.keys, &text)
    }

    pub(super) fn write_in_force(&self, in_force: &InForce) -> Result<(), KeyError> {
        match in_force::encode(in_force) {
            Some(text) => replace(&self.in_force, &text),
            None => Ok(()),
        }
    }

    /// Gives the key file another name, if there is one.
    pub(super) fn set_keys_aside(&self) -> Result<(), KeyError> {
        let free = (1_u32..).map(|number| self.keys.with_extension(format!("json.aside-{number}")));
        let Some(aside) = free.take(10_000).find(|path| path.symlink_metadata().is_err()) else {
            return Err(KeyError::Refused(format!("{} has too many copies beside it", self.keys_path())));
        };
        match fs::rename(&self.keys, &aside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error(&self.keys, error)),
            _ => sync_directory(&self.keys),
        }
    }
}

/// The content of a regular file, `None` if there is none. Anything else is an error, so that nothing is waited for.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let read = || {
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::other("not a file"));
        }
        fs::read(path)
    };
    match read() {
        // A link that leads nowhere is a file that cannot be read.
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.symlink_metadata().is_err() => Ok(None),
        read => read.map(Some),
    }
}

/// Replaces a file as a whole.
fn replace(path: &Path, text: &[u8]) -> Result<(), KeyError> {
    let beside = path.with_extension("new");
    let write = || {
        let mut file = private_file(&beside)?;
        file.set_len(0)?;
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    write().map_err(|error| io_error(path, error))?;
    sync_directory(path)
}

fn sync_directory(file: &Path) -> Result<(), KeyError> {
    let Some(directory) = file.parent() else { return Ok(()) };
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(|error| io_error(directory, error))
}

/// A file that only its owner may read, also when it was there before.
fn private_file(path: &Path) -> io::Result<File> {
    let file = private::options().create(true).truncate(false).open(path)?;
    #[cfg(unix)]
    let _ = file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600));
    Ok(file)
}

fn stamp(path: &Path) -> FileStamp {
    match fs::metadata(path) {
        Ok(file) => FileStamp::There(file.modified().ok(), file.len(), number(&file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.symlink_metadata().is_err() => {
            FileStamp::Missing
        }
        Err(_) => FileStamp::Unknown,
    }
}

#[cfg(unix)]
fn number(file: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(file)
}

#[cfg(not(unix))]
fn number(_: &fs::Metadata) -> u64 {
    0
}

fn io_error(path: &Path, error: io::Error) -> KeyError {
    KeyError::Io { path: path.display().to_string(), error }
}
