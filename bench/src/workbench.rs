//! Where measuring happens: a directory on a real file system, and what several kinds of work share.

use std::cell::OnceCell;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::directory::Directory;
use crate::long_session::LongSession;
use crate::machine;

/// What every step of a measurement gives back.
pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// See the module.
pub(crate) struct Workbench {
    dir: TempDir,
    quick: bool,
    long_session: OnceCell<LongSession>,
    directory: OnceCell<Directory>,
}

impl Workbench {
    /// Makes a directory under `$BANYAN_BENCH_DIR`, or else beside the build.
    pub(crate) fn set_up(quick: bool) -> Outcome<Self> {
        let parent = match std::env::var_os("BANYAN_BENCH_DIR") {
            Some(dir) => PathBuf::from(dir),
            None => beside_the_build()?,
        };
        std::fs::create_dir_all(&parent)?;
        if machine::is_in_memory(&parent)? {
            return Err("the data would be in memory; set BANYAN_BENCH_DIR to a directory on a disk".into());
        }
        let dir = tempfile::Builder::new().prefix("banyan-bench-").tempdir_in(parent)?;
        Ok(Self { dir, quick, long_session: OnceCell::new(), directory: OnceCell::new() })
    }

    /// Removes everything that was measured on.
    pub(crate) fn tear_down(self) -> Outcome<()> {
        if let Some(directory) = self.directory.get() {
            remove_files(&directory.dir)?;
        }
        Ok(self.dir.close()?)
    }

    /// Whether a first impression is enough.
    pub(crate) fn quick(&self) -> bool {
        self.quick
    }

    /// How often each contestant gets its turn.
    pub(crate) fn rounds(&self) -> usize {
        self.pick(5, 3)
    }

    /// The first of two for a complete run, the second for a quick one.
    pub(crate) fn pick<T>(&self, complete: T, quick: T) -> T {
        if self.quick { quick } else { complete }
    }

    /// Where the data is.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A new, empty directory, removed with the guard.
    pub(crate) fn scratch(&self) -> Outcome<TempDir> {
        Ok(tempfile::tempdir_in(self.dir.path())?)
    }

    /// A session of 100,000 entries, made by whoever asks first.
    pub(crate) fn long_session(&self) -> Outcome<&LongSession> {
        if self.long_session.get().is_none() {
            let made = LongSession::make(&self.path().join("long"))?;
            let _ = self.long_session.set(made);
        }
        self.long_session.get().ok_or_else(|| "the long session was not kept".into())
    }

    /// A directory of very many sessions, made by whoever asks first.
    pub(crate) fn directory(&self) -> Outcome<&Directory> {
        if self.directory.get().is_none() {
            let made = Directory::make(&self.path().join("many"), self.pick(1_000_000, 100_000))?;
            let _ = self.directory.set(made);
        }
        self.directory.get().ok_or_else(|| "the directory was not kept".into())
    }
}

/// Removes the files of a directory. Several threads wait for the disk at once, which a million files need.
fn remove_files(dir: &Path) -> Outcome<()> {
    const THREADS: usize = 8;
    let entries = std::fs::read_dir(dir)?.collect::<Result<Vec<_>, _>>()?;
    let remove = |some: &[DirEntry]| -> std::io::Result<()> {
        for entry in some {
            if entry.file_type()?.is_file() {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let share = entries.len().div_ceil(THREADS).max(1);
        let threads: Vec<_> = entries.chunks(share).map(|some| scope.spawn(move || remove(some))).collect();
        for thread in threads {
            thread.join().map_err(|_| "a removing thread panicked")??;
        }
        Ok(())
    })
}

fn beside_the_build() -> Outcome<PathBuf> {
    let program = std::env::current_exe()?;
    let target = program.ancestors().nth(2).ok_or("the program lies in no target directory")?;
    Ok(target.join("bench-data"))
}
