//! The operating system's disk: plain files under one directory.
//!
//! Linux is the platform that matters; elsewhere the same promises are kept by slower means.
//! The tree is expected to lie on one file system.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

#[cfg(target_os = "linux")]
use super::write_zeros;
use super::{Disk, DiskFile, HeldLock, Listed, LockGuard, LockOutcome, Space, Stat, private};

/// A directory of the operating system's file system.
pub struct OsDisk {
    root: PathBuf,
    /// `syncfs` reports only the write-back errors that came after its handle was opened, so the
    /// handle has to be older than the first write.
    root_handle: OnceLock<File>,
}

impl OsDisk {
    /// The disk whose paths start at `root`, which need not exist yet.
    pub fn new(root: PathBuf) -> Self {
        Self { root, root_handle: OnceLock::new() }
    }

    fn at(&self, path: &str) -> io::Result<PathBuf> {
        let relative = Path::new(path);
        let inside = relative.components().all(|part| matches!(part, Component::Normal(_)));
        if inside {
            Ok(self.root.join(relative))
        } else {
            Err(io::Error::new(
                ErrorKind::InvalidInput,
                format!("path {path:?} leaves the data directory: use names joined by `/`"),
            ))
        }
    }

    /// Makes the root, durably: no path of this disk leads to the directory that holds its name.
    fn make_root(&self) -> io::Result<()> {
        if self.root_handle.get().is_some() {
            return Ok(());
        }
        let above = self.root.ancestors();
        let missing: Vec<_> = above.take_while(|dir| is_absent(dir)).collect();
        private::create_root(&self.root)?;
        for parent in missing.into_iter().filter_map(Path::parent) {
            let here = parent.as_os_str().is_empty();
            flush_dir(if here { Path::new(".") } else { parent })?;
        }
        self.hold_root()
    }

    /// Opens the root for [`Disk::sync_all`] as soon as there is one.
    fn hold_root(&self) -> io::Result<()> {
        if cfg!(target_os = "linux") && self.root_handle.get().is_none() {
            let root = File::open(&self.root)?;
            // Losing the race to another thread leaves a handle just as old.
            let _ = self.root_handle.set(root);
        }
        Ok(())
    }
}

impl Disk for OsDisk {
    fn open(&self, path: &str) -> io::Result<Option<Arc<dyn DiskFile>>> {
        let path = self.at(path)?;
        match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => {
                private::tighten_file(&file);
                self.hold_root()?;
                Ok(Some(Arc::new(OsFile(file))))
            }
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = open_or_create(&self.at(path)?)?;
        self.hold_root()?;
        Ok(Arc::new(OsFile(file)))
    }

    fn create_dir(&self, path: &str) -> io::Result<()> {
        let path = self.at(path)?;
        self.make_root()?;
        private::create_dir_all(&path)
    }

    fn tighten(&self, state: &str) -> Vec<String> {
        private::tighten_tree(&self.root, state)
    }

    /// A name that is not UTF-8 is listed as lossy text: to be seen, but not to be opened.
    fn list(&self, dir: &str) -> io::Result<Vec<Listed>> {
        let entries = match fs::read_dir(self.at(dir)?) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut listed = Vec::new();
        for entry in entries {
            let entry = entry?;
            let kind = match entry.file_type() {
                Ok(kind) => kind,
                // Removed since the directory was read.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let is_dir = kind.is_dir() || (kind.is_symlink() && entry.path().is_dir());
            let name = entry.file_name().to_string_lossy().into_owned();
            listed.push(Listed { name, is_dir });
        }
        Ok(listed)
    }

    fn stat(&self, path: &str) -> io::Result<Option<Stat>> {
        match fs::metadata(self.at(path)?) {
            Ok(found) => {
                let modified = nanoseconds(found.modified()?);
                Ok(Some(Stat { len: found.len(), modified, is_dir: found.is_dir() }))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.at(from)?, self.at(to)?)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        match fs::remove_file(self.at(path)?) {
            Err(error) if !is_missing(&error) => Err(error),
            _ => Ok(()),
        }
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        flush_dir(&self.at(dir)?)
    }

    #[cfg(target_os = "linux")]
    fn sync_all(&self) -> io::Result<()> {
        self.hold_root()?;
        match self.root_handle.get() {
            Some(root) => Ok(rustix::fs::syncfs(root)?),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    /// No call here flushes one file system and waits for it, so every file is flushed by itself.
    #[cfg(not(target_os = "linux"))]
    fn sync_all(&self) -> io::Result<()> {
        let mut dirs = vec![String::new()];
        while let Some(dir) = dirs.pop() {
            for Listed { name, is_dir } in self.list(&dir)? {
                let path = if dir.is_empty() { name } else { format!("{dir}/{name}") };
                if is_dir {
                    dirs.push(path);
                } else if let Some(file) = self.open(&path)? {
                    file.sync()?;
                }
            }
            self.sync_dir(&dir)?;
        }
        Ok(())
    }

    #[cfg(unix)]
    fn space(&self) -> io::Result<Option<Space>> {
        let found = rustix::fs::statvfs(&self.root)?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Ok(Some(Space { total: bytes(found.f_blocks), free: bytes(found.f_bavail) }))
    }

    /// The owner's text is empty where the system lets nobody read a locked file.
    fn lock(&self, path: &str, owner: &str) -> io::Result<LockOutcome> {
        let path = self.at(path)?;
        self.make_root()?;
        if let Some(parent) = path.parent() {
            private::create_dir_all(parent)?;
        }
        let file = open_or_create(&path)?;
        let outcome = OsLock::take(&self.root, path, file)?;
        if let Some(lock) = &outcome.0 {
            write_owner(&lock.file(), owner)?;
        }
        Ok(outcome.into())
    }

    fn lock_unchanged(&self, path: &str) -> io::Result<LockOutcome> {
        let path = self.at(path)?;
        match OpenOptions::new().read(true).write(true).open(&path) {
            Ok(file) => Ok(OsLock::take(&self.root, path, file)?.into()),
            Err(error) if is_missing(&error) => match OsLock::take_root(&self.root) {
                Ok(root) => Ok(LockOutcome::Held(LockGuard(Box::new(RootLock(root))))),
                Err(TryLockError::WouldBlock) => Ok(LockOutcome::Taken(String::new())),
                Err(TryLockError::Error(error)) => Err(error),
            },
            Err(error) => Err(error),
        }
    }
}

/// The lock file, and the directory itself, so that removing the lock file lets nobody else in.
struct OsLock {
    path: PathBuf,
    file: Mutex<File>,
    /// `None` where the system locks no directories.
    root: Option<File>,
}

/// The directory alone, where there is no lock file.
struct RootLock(#[allow(dead_code, reason = "held until it is dropped")] Option<File>);

/// A lock, or what its holder wrote.
struct Outcome(Option<OsLock>, String);

impl From<Outcome> for LockOutcome {
    fn from(outcome: Outcome) -> Self {
        match outcome.0 {
            Some(lock) => Self::Held(LockGuard(Box::new(lock))),
            None => Self::Taken(outcome.1),
        }
    }
}

impl OsLock {
    fn take(root: &Path, path: PathBuf, file: File) -> io::Result<Outcome> {
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Outcome(None, read_owner(&file))),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        match Self::take_root(root) {
            Ok(root) => {
                let lock = Self { path, file: Mutex::new(file), root };
                // Between opening and locking it another process may have replaced the file.
                lock.check()?;
                Ok(Outcome(Some(lock), String::new()))
            }
            Err(TryLockError::WouldBlock) => {
                let owner = "whose lock file was removed".to_owned();
                Ok(Outcome(None, owner))
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn file(&self) -> MutexGuard<'_, File> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(unix)]
    fn take_root(root: &Path) -> Result<Option<File>, TryLockError> {
        let root = match File::open(root) {
            Ok(root) => root,
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(TryLockError::Error(error)),
        };
        match root.try_lock() {
            Ok(()) => Ok(Some(root)),
            Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
            // Some network file systems lock files only.
            Err(TryLockError::Error(_)) => Ok(None),
        }
    }

    #[cfg(not(unix))]
    fn take_root(_root: &Path) -> Result<Option<File>, TryLockError> {
        Ok(None)
    }
}

impl HeldLock for RootLock {
    fn check(&self) -> io::Result<()> {
        Ok(())
    }
}

impl HeldLock for OsLock {
    /// Puts a missing lock file back while the directory itself is locked.
    #[cfg(unix)]
    fn check(&self) -> io::Result<()> {
        use std::os::unix::fs::MetadataExt;
        let mut file = self.file();
        let ours = file.metadata()?;
        match fs::metadata(&self.path) {
            Ok(found) if (found.dev(), found.ino()) == (ours.dev(), ours.ino()) => return Ok(()),
            Ok(_) => {}
            Err(error) if is_missing(&error) => {}
            Err(error) => return Err(error),
        }
        if self.root.is_none() {
            return Err(io::Error::other(
                "it was removed or replaced, so another process may write to the directory",
            ));
        }
        let found = open_or_create(&self.path)?;
        match found.try_lock() {
            Ok(()) => {
                write_owner(&found, &read_owner(&file))?;
                *file = found;
                Ok(())
            }
            Err(TryLockError::WouldBlock) => Err(io::Error::other("another process replaced it")),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// A locked file can be neither removed nor replaced here.
    #[cfg(not(unix))]
    fn check(&self) -> io::Result<()> {
        Ok(())
    }
}

struct OsFile(File);

fn nanoseconds(time: SystemTime) -> u64 {
    let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX)
}

impl DiskFile for OsFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn modified(&self) -> io::Result<u64> {
        Ok(nanoseconds(self.0.metadata()?.modified()?))
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buf.len() {
            match read_some(&self.0, offset + filled as u64, &mut buf[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        write_all(&self.0, offset, data)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    #[cfg(target_os = "linux")]
    fn allocate(&self, len: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&self.0, rustix::fs::FallocateFlags::empty(), 0, len) {
            Err(rustix::io::Errno::OPNOTSUPP) => write_zeros(len, |at, zeros| self.write_at(at, zeros)),
            outcome => Ok(outcome?),
        }
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// An empty path is the working directory, which is there.
fn is_absent(dir: &Path) -> bool {
    !dir.as_os_str().is_empty() && !dir.exists()
}

#[cfg(unix)]
fn flush_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Directories cannot be flushed here; the file system's journal keeps their changes in order.
#[cfg(not(unix))]
fn flush_dir(dir: &Path) -> io::Result<()> {
    fs::metadata(dir).map(drop)
}

fn open_or_create(path: &Path) -> io::Result<File> {
    let file = private::options().read(true).create(true).truncate(false).open(path)?;
    private::tighten_file(&file);
    Ok(file)
}

/// The text is a courtesy to whoever is refused: a full disk must not keep a store from opening.
fn write_owner(file: &File, owner: &str) -> io::Result<()> {
    let written = write_all(file, 0, owner.as_bytes());
    match written.and_then(|()| file.set_len(owner.len() as u64)) {
        Err(error) if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => file.set_len(0),
        outcome => outcome,
    }
}

fn read_owner(file: &File) -> String {
    let mut text = [0; 256];
    match read_some(file, 0, &mut text) {
        Ok(read) => String::from_utf8_lossy(&text[..read]).trim().to_owned(),
        Err(_) => String::new(),
    }
}

#[cfg(unix)]
fn read_some(file: &File, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buf, offset)
}

#[cfg(unix)]
fn write_all(file: &File, offset: u64, data: &[u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, data, offset)
}

#[cfg(windows)]
fn read_some(file: &File, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buf, offset)
}

#[cfg(windows)]
fn write_all(file: &File, mut offset: u64, mut data: &[u8]) -> io::Result<()> {
    while !data.is_empty() {
        match std::os::windows::fs::FileExt::seek_write(file, data, offset) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => {
                data = &data[written..];
                offset += written as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "os_tests.rs"]
mod tests;
