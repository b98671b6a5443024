//! A backup's directory: generations of manifests, and the content that they share.
//!
//! ```text
//! manifest-<8 digits>.jsonl     one generation each
//! records/ab/<blake3>.jsonl     record lines of one session
//! blobs/ab/<blake3>             long content and attachments
//! keys/<blake3>.json            the keys of a server, if they were asked for
//! incoming/                     what is being written
//! lock                          held by the backup that is under way
//! ```
//! Every file but a manifest is named after its content, so that an interrupted backup leaves nothing that could be mistaken.

use std::collections::HashSet;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use banyan_log::disk::{Disk, DiskFile, LockGuard, LockOutcome, OsDisk};

use super::manifest::{Manifest, Part};

/// Why a backup could not be written, read or restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A file could not be read or written.
    #[error("cannot {doing}: {cause}")]
    Io {
        /// What was being done.
        doing: String,
        /// Why it failed.
        cause: io::Error,
    },
    /// The backup is damaged in a way that leaves nothing to work with.
    #[error("{file} {reason}")]
    Damaged {
        /// The file.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// What was asked for cannot be done with this backup.
    #[error("{0}")]
    Refused(String),
    /// The stream from the store broke off; the backups before it are as they were.
    #[error("the backup was broken off: {0}; the earlier backups are as they were")]
    BrokenOff(String),
    /// The store could not be read, or the restored one not be written.
    #[error(transparent)]
    Log(#[from] banyan_log::LogError),
}

impl BackupError {
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::Io { doing: doing.into(), cause }
    }
}

/// The directory of a backup.
pub struct Repository {
    pub(crate) disk: Arc<dyn Disk>,
    _lock: Option<LockGuard>,
}

pub(crate) const INCOMING: &str = "incoming";
const LOCK: &str = "lock";
const PREFIX: &str = "manifest-";
const SUFFIX: &str = ".jsonl";

/// How much of a file is read or written at a time.
pub(crate) const PIECE: usize = 1 << 20;

/// A kind of content in a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Records,
    Blobs,
    Keys,
}

impl Content {
    pub(crate) const ALL: [Self; 3] = [Self::Records, Self::Blobs, Self::Keys];

    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::Records => "records",
            Self::Blobs => "blobs",
            Self::Keys => "keys",
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            Self::Records => ".jsonl",
            Self::Blobs => "",
            Self::Keys => ".json",
        }
    }

    pub(crate) fn dir(self, hash: &str) -> String {
        match self {
            Self::Keys => self.folder().to_owned(),
            Self::Records | Self::Blobs => format!("{}/{}", self.folder(), hash.get(..2).unwrap_or("xx")),
        }
    }

    pub(crate) fn path(self, hash: &str) -> String {
        format!("{}/{hash}{}", self.dir(hash), self.suffix())
    }

    /// The hash that a file is named after.
    pub(crate) fn hash_of(self, name: &str) -> Option<&str> {
        let stem = name.strip_suffix(self.suffix())?;
        (stem.len() == 64 && stem.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(stem)
    }
}

/// Whether a directory holds a backup.
pub fn is_backup(dir: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(dir) else { return false };
    entries.flatten().any(|entry| generation_of(&entry.file_name().to_string_lossy()).is_some())
}

/// The generations of a repository.
pub(crate) struct Generations {
    /// Those that can be read, oldest first.
    pub(crate) whole: Vec<Manifest>,
    /// Files that cannot, and why.
    pub(crate) damaged: Vec<(String, String)>,
    /// The number that comes next.
    pub(crate) next: u64,
}

impl Repository {
    /// Opens a repository on a directory of the operating system, for reading.
    pub fn open(dir: &Path) -> Result<Self, BackupError> {
        if !is_backup(dir) {
            return Err(BackupError::Refused(format!(
                "{} holds no backup; a data directory is named with --data",
                dir.display()
            )));
        }
        Ok(Self::on(Arc::new(OsDisk::new(dir.to_owned()))))
    }

    /// The same on any disk.
    pub fn on(disk: Arc<dyn Disk>) -> Self {
        Self { disk, _lock: None }
    }

    /// Opens a repository for writing, and makes it if the directory is empty or missing. Only its owner can read it.
    pub fn create(dir: &Path) -> Result<Self, BackupError> {
        let making = || BackupError::io(format!("make {}", dir.display()));
        if !is_backup(dir) && dir.exists() {
            let mut entries = std::fs::read_dir(dir).map_err(making())?;
            let ours =
                |name: &str| name == LOCK || name == INCOMING || Content::ALL.iter().any(|it| it.folder() == name);
            if entries.any(|entry| entry.is_ok_and(|entry| !ours(&entry.file_name().to_string_lossy()))) {
                return Err(BackupError::Refused(format!(
                    "{} is no backup and not empty; name another directory with --to",
                    dir.display()
                )));
            }
        }
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::DirBuilderExt;
            builder.mode(0o700);
        }
        builder.create(dir).map_err(making())?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let private = std::fs::Permissions::from_mode(0o700);
            std::fs::set_permissions(dir, private).map_err(making())?;
        }
        Self::create_on(Arc::new(OsDisk::new(dir.to_owned())))
    }

    /// The same on any disk.
    pub fn create_on(disk: Arc<dyn Disk>) -> Result<Self, BackupError> {
        let owner = format!("pid {}", std::process::id());
        let lock = match disk.lock(LOCK, &owner).map_err(BackupError::io("lock the backup"))? {
            LockOutcome::Held(guard) => guard,
            LockOutcome::Taken(owner) => {
                let reason = format!("another backup to this directory is under way ({})", owner.trim());
                return Err(BackupError::Refused(reason));
            }
        };
        let repository = Self { disk, _lock: Some(lock) };
        repository.clear_incoming().map_err(BackupError::io("clear what an interrupted backup left"))?;
        Ok(repository)
    }

    fn clear_incoming(&self) -> io::Result<()> {
        self.disk.create_dir(INCOMING)?;
        for listed in self.disk.list(INCOMING)? {
            self.disk.remove(&format!("{INCOMING}/{}", listed.name))?;
        }
        Ok(())
    }

    /// Reads all manifests.
    pub(crate) fn generations(&self) -> Result<Generations, BackupError> {
        let mut numbers: Vec<u64> = self
            .disk
            .list("")
            .map_err(BackupError::io("list the backup"))?
            .iter()
            .filter_map(|listed| generation_of(&listed.name))
            .collect();
        numbers.sort_unstable();
        let mut found = Generations {
            whole: Vec::new(),
            damaged: Vec::new(),
            next: numbers.last().map_or(1, |last| last + 1),
        };
        for number in numbers {
            let path = manifest_path(number);
            let text = self.read_file(&path);
            match text
                .map_err(|error| format!("cannot be read: {error}"))
                .and_then(|text| Manifest::decode(number, &text))
            {
                Ok(manifest) => found.whole.push(manifest),
                Err(reason) => found.damaged.push((path, reason)),
            }
        }
        Ok(found)
    }

    /// The newest generation, if there is one.
    pub fn newest(&self) -> Result<Option<Manifest>, BackupError> {
        let mut generations = self.generations()?;
        Ok(generations.whole.pop())
    }

    /// Writes a manifest. Everything that it names is durable by now; it is when this returns.
    pub(crate) fn write_manifest(&self, manifest: &Manifest) -> Result<(), BackupError> {
        let path = manifest_path(manifest.generation);
        let write = || {
            let beside = format!("{INCOMING}/manifest");
            let file = self.create_private(&beside)?;
            file.write_at(0, &manifest.encode())?;
            file.sync()?;
            self.disk.rename(&beside, &path)?;
            self.disk.sync_dir("")
        };
        write().map_err(BackupError::io(format!("write {path}")))
    }

    pub(crate) fn remove_manifest(&self, generation: u64) -> io::Result<()> {
        self.disk.remove(&manifest_path(generation))
    }

    /// An empty file.
    pub(crate) fn create_private(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.disk.create(path)?;
        file.set_len(0)?;
        Ok(file)
    }

    /// Gives a file its place among the content, unless the same content is there and whole. True if it was put.
    pub(crate) fn put(
        &self,
        content: Content,
        hash: &str,
        from: &str,
        dirs: &mut HashSet<String>,
    ) -> io::Result<bool> {
        let path = content.path(hash);
        if self.hash_of(&path)?.as_deref() == Some(hash) {
            self.disk.remove(from)?;
            return Ok(false);
        }
        let dir = content.dir(hash);
        if !dirs.contains(&dir) {
            self.disk.create_dir(&dir)?;
            dirs.insert(dir);
        }
        self.disk.rename(from, &path)?;
        Ok(true)
    }

    /// Whether a part is there with its length.
    pub(crate) fn has_part(&self, part: &Part) -> bool {
        let stat = self.disk.stat(&Content::Records.path(&part.hash));
        stat.is_ok_and(|stat| stat.is_some_and(|stat| stat.len == part.length))
    }

    /// Whether content is there.
    pub(crate) fn has_blob(&self, hash: &str) -> bool {
        self.disk.stat(&Content::Blobs.path(hash)).is_ok_and(|stat| stat.is_some())
    }

    /// The hash of a file's content; `None` if there is no file.
    pub(crate) fn hash_of(&self, path: &str) -> io::Result<Option<String>> {
        let Some(mut file) = self.stream(path)? else { return Ok(None) };
        let mut hasher = blake3::Hasher::new();
        let mut piece = vec![0; 256 << 10];
        loop {
            match file.read(&mut piece)? {
                0 => return Ok(Some(hasher.finalize().to_hex().to_string())),
                read => hasher.update(&piece[..read]),
            };
        }
    }

    /// A whole file.
    pub(crate) fn read_file(&self, path: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut file = self.stream(path)?.ok_or(io::ErrorKind::NotFound)?;
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// A file from its beginning; `None` if there is none.
    pub(crate) fn stream(&self, path: &str) -> io::Result<Option<FileStream>> {
        Ok(self.disk.open(path)?.map(|file| FileStream { file, at: 0 }))
    }
}

/// A file from its beginning to its end.
pub(crate) struct FileStream {
    file: Arc<dyn DiskFile>,
    at: u64,
}

impl Read for FileStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(self.at, into)?;
        self.at += read as u64;
        Ok(read)
    }
}

pub(crate) fn manifest_path(generation: u64) -> String {
    format!("{PREFIX}{generation:08}{SUFFIX}")
}

fn generation_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}
