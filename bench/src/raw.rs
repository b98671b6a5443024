//! The floor: a plain file, written to and flushed, with no store in between.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use crate::workbench::Outcome;
use crate::writers::While;

const ENTRY: usize = 1024;
const PREPARED: u64 = 64 << 20;

/// A file that entries are written to, each flushed.
pub(crate) struct RawFile {
    file: File,
    at: u64,
    room: Option<u64>,
}

impl RawFile {
    /// A file that grows with each entry.
    pub(crate) fn growing(path: &Path) -> Outcome<Self> {
        let file = OpenOptions::new().create(true).truncate(true).write(true).open(path)?;
        Ok(Self { file, at: 0, room: None })
    }

    /// A file of zeros that entries overwrite, from the beginning again when it is full.
    pub(crate) fn prepared(path: &Path) -> Outcome<Self> {
        let mut raw = Self::growing(path)?;
        let zeros = vec![0; 1 << 20];
        while raw.at < PREPARED {
            raw.file.write_all_at(&zeros, raw.at)?;
            raw.at += zeros.len() as u64;
        }
        raw.file.sync_all()?;
        Ok(Self { file: raw.file, at: 0, room: Some(PREPARED) })
    }

    /// Writes bytes and flushes them.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Outcome<()> {
        if self.room.is_some_and(|room| self.at + bytes.len() as u64 > room) {
            self.at = 0;
        }
        self.file.write_all_at(bytes, self.at)?;
        self.at += bytes.len() as u64;
        Ok(self.file.sync_data()?)
    }
}

/// Entries of 1 KiB a second when each flush carries so many of them.
pub(crate) fn batched(dir: &Path, entries: usize, time: While) -> Outcome<f64> {
    let mut raw = RawFile::prepared(&dir.join("floor"))?;
    let batch = vec![b'x'; ENTRY * entries];
    let warm = Instant::now();
    while warm.elapsed() < time.before {
        raw.write(&batch)?;
    }
    let (begun, mut batches) = (Instant::now(), 0);
    while begun.elapsed() < time.counted {
        raw.write(&batch)?;
        batches += 1;
    }
    Ok((batches * entries) as f64 / begun.elapsed().as_secs_f64())
}
