//! An open file of the disk in memory.

use std::borrow::Cow;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use super::inode::{Edit, Inode};
use super::shared::Shared;
use super::{DiskFile, read, write};

pub(super) struct MemFile {
    pub(super) disk: Arc<Shared>,
    pub(super) inode: Arc<Inode>,
}

impl DiskFile for MemFile {
    fn len(&self) -> io::Result<u64> {
        self.disk.alive()?;
        Ok(read(&self.inode.0).now.bytes.len() as u64)
    }

    /// A count of the changes to the disk, which goes on after a crash.
    fn modified(&self) -> io::Result<u64> {
        self.disk.alive()?;
        Ok(read(&self.inode.0).now.modified)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        self.disk.alive()?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        Ok(read(&self.inode.0).now.bytes.read(start, buf))
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let end = index(offset.saturating_add(data.len() as u64))?;
        let start = end - data.len();
        self.disk.mutate(|op| {
            let mut state = write(&self.inode.0);
            let fits = match self.disk.reach(&state) {
                reach if end <= reach => data.len(),
                reach => self.disk.some_of(op, reach.saturating_sub(start)),
            };
            if fits > 0 {
                let edit = Edit::Write(start, Cow::Borrowed(&data[..fits]));
                self.disk.edit(op, &self.inode, &mut state, edit);
            }
            if fits < data.len() { Err(ErrorKind::StorageFull.into()) } else { Ok(()) }
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let len = index(len)?;
        self.disk.mutate(|op| {
            let mut state = write(&self.inode.0);
            if len > self.disk.reach(&state) {
                return Err(ErrorKind::StorageFull.into());
            }
            self.disk.edit(op, &self.inode, &mut state, Edit::SetLen(len));
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.sync(|fails| {
            write(&self.inode.0).sync(fails);
            Ok(())
        })
    }
}

/// A file offset as an index into memory.
fn index(offset: u64) -> io::Result<usize> {
    let index = usize::try_from(offset).ok();
    let index = index.filter(|index| *index <= isize::MAX as usize);
    index.ok_or(ErrorKind::FileTooLarge.into())
}
