//! Where the index is: files that are written without being flushed.
//!
//! The index can be made again at any time, so no writer of sessions ever waits behind a flush of it. After a power cut
//! its files may be torn; they are checked then, and made anew if need be ([`seal`] and [`is_sealed`] say when).

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use crate::room::Room;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, Directory, DirectoryLock, FileHandle, Lock, MmapDirectory, TerminatingWrite, WatchCallback,
    WatchHandle, WritePtr,
};

/// A directory whose files are read by mapping them, and written without a flush.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    root: PathBuf,
    mapped: MmapDirectory,
    room: Room,
}

impl Files {
    pub(crate) fn open(root: &Path, room: &Room) -> Result<Self, tantivy::TantivyError> {
        Ok(Self { root: root.to_owned(), mapped: MmapDirectory::open(root)?, room: room.clone() })
    }
}

impl Directory for Files {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.mapped.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.mapped.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.mapped.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let opened = private().create_new(true).open(self.root.join(path));
        let file = self.room.note(opened).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => OpenWriteError::FileAlreadyExists(path.to_owned()),
            _ => OpenWriteError::wrap_io_error(error, path.to_owned()),
        })?;
        let unflushed = Unflushed { file, room: self.room.clone(), granted: 0 };
        Ok(BufWriter::new(Box::new(unflushed)))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        let bytes = self.mapped.atomic_read(path)?;
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "it is not as it was written");
        without_sum(&bytes).ok_or_else(|| OpenReadError::wrap_io_error(damaged(), path.to_owned()))
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        let to = self.root.join(path);
        let beside = to.with_extension("new");
        self.room.note(write_private(&beside, &with_sum(data)))?;
        fs::rename(beside, to)
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        // What the lock is taken on is made here, if it is not there.
        let _ = private().create(true).truncate(false).open(self.root.join(&lock.filepath));
        self.mapped.acquire_lock(lock)
    }

    fn watch(&self, callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.mapped.watch(callback)
    }
}

/// Makes a directory and its missing parents, which only their owner may enter.
pub(crate) fn create_private_dir(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Options for writing that make a new file readable by its owner alone.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    private().create(true).truncate(true).open(path)?.write_all(content)
}

struct Unflushed {
    file: File,
    room: Room,
    /// How many more bytes may be written before it is asked again whether there is room.
    granted: u64,
}

/// How many bytes are granted at a time.
const GRANT: u64 = 256 << 10;
/// What begins the files that say what the index is made of: their checksum, and a line feed.
const SUM: usize = 9;

fn with_sum(data: &[u8]) -> Vec<u8> {
    [format!("{:08x}\n", crc32c::crc32c(data)).as_bytes(), data].concat()
}

/// The content of such a file, if it is as it was written.
fn without_sum(bytes: &[u8]) -> Option<Vec<u8>> {
    let (sum, data) = bytes.split_at_checked(SUM)?;
    (sum == format!("{:08x}\n", crc32c::crc32c(data)).as_bytes()).then(|| data.to_vec())
}

impl Write for Unflushed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.granted < bytes.len() as u64 {
            let grant = GRANT.max(bytes.len() as u64);
            self.room.expect(grant)?;
            self.granted = grant;
        }
        let written = self.room.note(self.file.write(bytes))?;
        self.granted -= written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TerminatingWrite for Unflushed {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        Ok(())
    }
}

/// The file that says how all others look. It is there while nobody uses the index.
const SEAL: &str = "sealed";

/// Says how the files look, so that whoever opens them next knows that nothing happened to them.
pub(crate) fn seal(root: &Path) -> io::Result<()> {
    for file in fs::read_dir(root)? {
        // The seal must not outlive what it vouches for.
        File::open(file?.path())?.sync_data()?;
    }
    write_private(&root.join(SEAL), look(root)?.as_bytes())?;
    File::open(root.join(SEAL))?.sync_data()
}

/// Whether the files look as when they were sealed. The seal is gone afterwards.
pub(crate) fn is_sealed(root: &Path) -> bool {
    let sealed = fs::read_to_string(root.join(SEAL));
    let _ = fs::remove_file(root.join(SEAL));
    matches!((sealed, look(root)), (Ok(sealed), Ok(now)) if sealed == now)
}

/// Every file with its length and when it was changed.
fn look(root: &Path) -> io::Result<String> {
    let mut lines = Vec::new();
    for file in fs::read_dir(root)? {
        let file = file?;
        let name = file.file_name().to_string_lossy().into_owned();
        // Locks are held on files that say nothing.
        if name == SEAL || name.ends_with(".lock") {
            continue;
        }
        let meta = file.metadata()?;
        let changed = meta.modified()?.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        lines.push(format!("{name} {} {changed}\n", meta.len()));
    }
    lines.sort_unstable();
    Ok(lines.concat())
}
