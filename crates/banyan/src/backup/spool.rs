//! Bytes of a backup on their way into a repository, and their pace.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use banyan_log::disk::DiskFile;

use super::repository::{INCOMING, PIECE, Repository};

/// Bytes that arrive: in memory while they are few, and otherwise in a file.
pub(crate) struct Spool<'a> {
    repository: &'a Repository,
    memory: Vec<u8>,
    file: Option<Arc<dyn DiskFile>>,
    hasher: blake3::Hasher,
    pub(crate) length: u64,
}

const SPOOL: &str = "part";

impl<'a> Spool<'a> {
    pub(crate) fn new(repository: &'a Repository) -> Self {
        Self { repository, memory: Vec::new(), file: None, hasher: blake3::Hasher::new(), length: 0 }
    }

    pub(crate) fn path() -> String {
        format!("{INCOMING}/{SPOOL}")
    }

    pub(crate) fn is_in_memory(&self) -> bool {
        self.file.is_none()
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.length += bytes.len() as u64;
        self.memory.extend_from_slice(bytes);
        if self.memory.len() >= PIECE || self.file.is_some() { self.spill() } else { Ok(()) }
    }

    /// Writes what is in memory to the file.
    pub(crate) fn spill(&mut self) -> io::Result<()> {
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(self.repository.create_private(&Self::path())?),
        };
        file.write_at(self.length - self.memory.len() as u64, &self.memory)?;
        self.memory.clear();
        Ok(())
    }

    pub(crate) fn hash(&self) -> String {
        self.hasher.finalize().to_hex().to_string()
    }

    pub(crate) fn prepend(&mut self, before: &[u8]) {
        self.memory.splice(..0, before.iter().copied());
        self.length = self.memory.len() as u64;
        self.hasher = blake3::Hasher::new();
        self.hasher.update(&self.memory);
    }

    /// Cuts what follows `stable` bytes off. Returns the hash of what stays, and what was cut off.
    pub(crate) fn split(&mut self, stable: u64) -> io::Result<(String, Vec<u8>)> {
        if stable == self.length {
            return Ok((self.hash(), Vec::new()));
        }
        let mut rest = vec![0; (self.length - stable) as usize];
        match &self.file {
            None => rest = self.memory.split_off(stable as usize),
            Some(file) => {
                let read = file.read_at(stable, &mut rest)?;
                rest.truncate(read);
                file.set_len(stable)?;
            }
        }
        self.length = stable;
        self.hasher = blake3::Hasher::new();
        match &self.file {
            None => {
                self.hasher.update(&self.memory);
            }
            Some(_) => {
                let hash = self.repository.hash_of(&Self::path())?.unwrap_or_default();
                return Ok((hash, rest));
            }
        }
        Ok((self.hash(), rest))
    }

    /// The file with everything in it.
    pub(crate) fn finish(mut self) -> io::Result<String> {
        if !self.memory.is_empty() || self.file.is_none() {
            self.spill()?;
        }
        Ok(Self::path())
    }
}

/// Slows a backup down to a number of bytes a second.
pub(crate) struct Pace {
    rate: Option<u64>,
    began: Instant,
    spent: u64,
}

impl Pace {
    pub(crate) fn new(rate: Option<u64>) -> Self {
        Self { rate: rate.filter(|rate| *rate > 0), began: Instant::now(), spent: 0 }
    }

    pub(crate) fn spend(&mut self, bytes: usize) {
        let Some(rate) = self.rate else { return };
        self.spent += bytes as u64;
        let due = Duration::from_secs_f64(self.spent as f64 / rate as f64);
        std::thread::sleep(due.saturating_sub(self.began.elapsed()));
    }
}
